//! The SHA-256 of files.

use super::error::{At, Error};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The identity of a file when it was read: device, inode, size, and the times of its last changes.
type Seen = (u64, u64, u64, (i64, i64), (i64, i64));

/// The hash as 64 hexadecimal digits.
pub(super) fn text(hash: Sha256) -> String {
    let digits = |mut text: String, byte: &u8| {
        write!(text, "{byte:02x}").expect("text takes everything");
        text
    };
    hash.finalize().iter().fold(String::new(), digits)
}

/// The hash of a file's content.
pub(super) fn of(path: &Path) -> Result<String, Error> {
    let mut file = File::open(path).at(path)?;
    let mut hash = Sha256::new();
    let mut part = vec![0; 1 << 18];
    loop {
        match file.read(&mut part).at(path)? {
            0 => return Ok(text(hash)),
            count => hash.update(&part[..count]),
        }
    }
}

/// The hash, cached while the file is unchanged.
pub(super) fn of_unchanged(path: &Path) -> Result<String, Error> {
    static KNOWN: Mutex<BTreeMap<Seen, String>> = Mutex::new(BTreeMap::new());
    let seen = seen(&path.metadata().at(path)?);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hash) = known.get(&seen) {
        return Ok(hash.clone());
    }
    let hash = of(path)?;
    known.insert(seen, hash.clone());
    Ok(hash)
}

fn seen(file: &Metadata) -> Seen {
    let modified = (file.mtime(), file.mtime_nsec());
    (file.dev(), file.ino(), file.size(), modified, (file.ctime(), file.ctime_nsec()))
}
