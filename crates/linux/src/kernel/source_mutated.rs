//! Mutated tarballs: each one unpacks or is rejected, and nothing is written outside its folder.
//!
//! Seeded; a few in every `cargo test`, more with `TCPLAB_FUZZ`.

use super::request;
use super::source::Source;
use super::tools::Tools;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

/// The size of a block: headers are one block, and contents are padded.
const BLOCK: usize = 512;

/// A small generator (splitmix64), which is good enough for this test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// A tarball of a small tree with a link.
fn tarball(folder: &Path) -> Vec<u8> {
    let tree = folder.join("linux");
    fs::create_dir_all(tree.join("arch/um")).unwrap();
    fs::write(tree.join("arch/um/Kconfig"), "config UML_TIME_TRAVEL_SUPPORT\n\tbool\n").unwrap();
    fs::create_dir_all(tree.join("net/ipv4")).unwrap();
    fs::write(tree.join("net/ipv4/tcp.c"), "int x;\n").unwrap();
    std::os::unix::fs::symlink("tcp.c", tree.join("net/ipv4/link.c")).unwrap();
    fs::hard_link(tree.join("net/ipv4/tcp.c"), tree.join("net/ipv4/hard.c")).unwrap();
    let file = folder.join("seed.tar");
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--file").arg(&file).arg("-C").arg(folder).arg("linux");
    assert!(tar.status().unwrap().success());
    fs::read(file).unwrap()
}

/// Changes header fields, usually with a valid checksum, or bytes anywhere.
fn mutate(tar: &mut Vec<u8>, outside: &str, random: &mut Random) {
    let names = ["../out", "/", "linux/net/ipv4/link.c/x", "linux/../../out", "", ".", "linux"];
    // The offsets of a header's name, mode, size, type, link and prefix.
    let fields = [(0, 100), (100, 8), (124, 12), (156, 1), (157, 100), (345, 155)];
    let block = random.below(tar.len() / BLOCK) * BLOCK;
    match random.below(8) {
        0 => tar.truncate(block + random.below(BLOCK)),
        1 => {
            let copy = tar[block..block + BLOCK].to_vec();
            tar.splice(block..block, copy);
        }
        2 => {
            let at = random.below(tar.len());
            tar[at] = random.below(256) as u8;
        }
        _ => {
            let (at, length) = fields[random.below(fields.len())];
            let field = &mut tar[block + at..block + at + length];
            if length == 1 {
                field[0] = b"0123456789gxLKSVM\0"[random.below(18)];
            } else if length < 100 {
                field[random.below(length)] = b"0777789-\0\x80\xff"[random.below(11)];
            } else {
                let chosen = random.below(names.len() + 1);
                let name = names.get(chosen).copied().unwrap_or(outside);
                field.fill(0);
                field[..name.len()].copy_from_slice(name.as_bytes());
            }
            let header = &mut tar[block..block + BLOCK];
            header[148..156].fill(b' ');
            let sum: u32 = header.iter().copied().map(u32::from).sum();
            header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

#[test]
fn mutated_tarballs_stay_in_their_folder() {
    let count = std::env::var("TCPLAB_FUZZ").map_or(100, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let seed = tarball(folder.path());
    let outside = folder.path().join("out");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("canary"), "sings").unwrap();
    // A name in a header has at most a hundred bytes.
    let target = outside.to_str().unwrap().to_owned();
    assert!(target.len() < 100, "{target}");
    let tools =
        Tools::get(Path::new("/no"), Path::new("/no"), &mut |_| ControlFlow::Continue(())).unwrap();
    let mut unpacked = 0;
    for number in 0..count {
        let mut random = Random(number);
        let mut tar = seed.clone();
        for _ in 0..=random.below(4) {
            if tar.len() >= BLOCK {
                mutate(&mut tar, &target, &mut random);
            }
        }
        let file = folder.path().join("mutant.tar");
        fs::write(&file, tar).unwrap();
        let wanted = request::Source::Path(file);
        let into = folder.path().join("into");
        let none = Path::new("/none");
        let watch = &mut |_| ControlFlow::Continue(());
        let source = Source::find(&wanted, none, none, watch).unwrap();
        let mut log = File::create(folder.path().join("log")).unwrap();
        match source.copy(&into, &tools, &mut log, watch) {
            Ok(tree) => {
                unpacked += 1;
                assert!(tree.starts_with(&into), "number {number}: {}", tree.display());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let kept = fs::read_to_string(outside.join("canary")).unwrap();
        assert_eq!(kept, "sings", "number {number}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "number {number}");
        let beside = fs::read_dir(folder.path()).unwrap().count();
        assert!(beside <= 6, "number {number}: {beside} entries beside the folder");
        let _ = fs::remove_dir_all(&into);
    }
    assert!(unpacked * 10 > count, "{unpacked} of {count}");
}
