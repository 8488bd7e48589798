//! What tcplab adds to a kernel's source, and how it is told whether that has changed.

use super::error::{At, Error};
use super::options;
use super::request::Control;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Files added to the tree. In `net/tcplab` is our part of the kernel: the links, the observer, the
/// random numbers.
const FILES: [(&str, &str); 6] = [
    ("net/tcplab/Makefile", include_str!("../../kernel/net/Makefile")),
    ("net/tcplab/lane.c", include_str!("../../kernel/net/lane.c")),
    ("net/tcplab/observer.c", include_str!("../../kernel/net/observer.c")),
    ("net/tcplab/random.c", include_str!("../../kernel/net/random.c")),
    ("net/tcplab/record.h", include_str!("../../kernel/net/record.h")),
    ("arch/x86/um/os-Linux/tcplab_xstate.h", include_str!("../../kernel/um/xstate.h")),
];

/// Texts replaced in files of the kernel, where both exist: file, before, after.
const EDITS: [(&str, &str, &str); 9] = [
    ("arch/um/include/asm/archrandom.h", "os_getrandom", "tcplab_getrandom"),
    // The first seed, at boot.
    ("arch/um/kernel/um_arch.c", "os_getrandom", "tcplab_getrandom"),
    (
        "arch/um/kernel/um_arch.c",
        "#include <linux/random.h>\n",
        "#include <linux/random.h>\n#include <asm/archrandom.h>\n",
    ),
    // Up to some version, hosts whose processor has many registers (AMX) refuse to set only some.
    (
        "arch/x86/um/os-Linux/registers.c",
        "#include <registers.h>\n",
        "#include <registers.h>\n#include \"tcplab_xstate.h\"\n",
    ),
    (
        "arch/x86/um/os-Linux/registers.c",
        "ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov)",
        "tcplab_set_xstate(pid, &iov)",
    ),
    // The clock has steps of a nanosecond, not of 256, and so do its alarms.
    (
        "arch/um/include/linux/time-internal.h",
        "#define TIMER_MULTIPLIER 256",
        "#define TIMER_MULTIPLIER 1\nextern unsigned long tcplab_clock_step;",
    ),
    // What a program's look at the clock moves it on by, so that those that wait by looking end.
    (
        "arch/um/kernel/time.c",
        "time_travel_update_time_rel(TIMER_MULTIPLIER)",
        "time_travel_update_time_rel(tcplab_clock_step)",
    ),
    (
        "arch/um/include/linux/time-internal.h",
        "#define TIMER_MIN_DELTA  500",
        "#define TIMER_MIN_DELTA  1",
    ),
    // The tracepoint of arriving segments, also for connections whose application has finished.
    (
        "net/ipv4/tcp_input.c",
        "\ttcp_mstamp_refresh(tp);\n\ttp->rx_opt.saw_tstamp = 0;\n",
        "\ttrace_tcp_probe(sk, skb);\n\ttcp_mstamp_refresh(tp);\n\ttp->rx_opt.saw_tstamp = 0;\n",
    ),
];

/// The file that defines `HZ`, and much else of `ARCH=um`.
pub(super) const KCONFIG: &str = "arch/um/Kconfig";

/// Stands for everything that tcplab itself puts into a kernel.
pub(super) fn fingerprint() -> String {
    let files = FILES.iter().flat_map(|(name, text)| [*name, *text]);
    let edits = EDITS.iter().flat_map(|(file, before, after)| [*file, *before, *after]);
    fingerprint_of(files.chain(edits).chain([options::FRAGMENT]).map(str::as_bytes))
}

/// 16 hexadecimal digits that stand for these parts, in this order.
pub(super) fn fingerprint_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    digits(hash)
}

/// The first 16 hexadecimal digits of a hash.
pub(super) fn digits(hash: Sha256) -> String {
    let mut text = String::new();
    for byte in &hash.finalize()[..8] {
        write!(text, "{byte:02x}").expect("text takes everything");
    }
    text
}

/// Changes a source: our part, our random numbers, the timer's frequency, the user's congestion
/// controls.
pub(super) fn apply(tree: &Path, hz: u32, controls: &[Control]) -> Result<(), Error> {
    let part = tree.join("net/tcplab");
    fs::create_dir_all(&part).at(&part)?;
    for (file, text) in FILES {
        write(&tree.join(file), text)?;
    }
    append(&tree.join("net/Makefile"), "\nobj-y += tcplab/\n")?;
    for (file, before, after) in EDITS {
        let file = tree.join(file);
        if file.exists() {
            write(&file, read(&file)?.replace(before, after))?;
        }
    }
    let kconfig = tree.join(KCONFIG);
    write(&kconfig, options::with_hz(&read(&kconfig)?, hz))?;
    for control in controls {
        write(&tree.join("net/ipv4").join(&control.file), &control.text)?;
        let line = format!("\nobj-y += {}.o\n", control.stem());
        append(&tree.join("net/ipv4/Makefile"), &line)?;
    }
    Ok(())
}

fn append(file: &Path, text: &str) -> Result<(), Error> {
    write(file, read(file)? + text)
}

pub(super) fn read(file: &Path) -> Result<String, Error> {
    let bytes = fs::read(file).at(file)?;
    // Old sources have names of people in other encodings, in comments.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Error> {
    fs::write(file, text).at(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_ours_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel");
        let texts = FILES.map(|(_, text)| text);
        for part in ["net", "um"] {
            for file in fs::read_dir(folder.join(part)).unwrap() {
                let file = file.unwrap().path();
                assert!(texts.contains(&&*read(&file).unwrap()), "{}", file.display());
            }
        }
    }

    #[test]
    fn fingerprints_tell_parts_apart() {
        let of = |parts: &[&str]| fingerprint_of(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["a", "b"]).len(), 16);
        assert_ne!(of(&["a", "b"]), of(&["ab", ""]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        assert_eq!(fingerprint(), fingerprint());
    }
}
