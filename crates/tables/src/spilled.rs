//! Rows of a long table in a file.

use crate::table::Values;
use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most rows of a table in memory; each part in a file has this many.
pub const PART: usize = 65_536;

/// Parts of a table in an unnamed file, which the system removes with the process in any case.
/// Numbers are in the machine's byte order, because no other machine reads them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spilled {
    file: Option<Arc<File>>,
    /// The position of each part.
    parts: Vec<u64>,
    /// The position of the next part.
    end: u64,
}

impl Spilled {
    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Appends a part: columns of [`PART`] rows each. If a copy of the table shares the file, this
    /// one gets its own.
    pub fn add(&mut self, columns: &[Values]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Arc::new(create()?)),
        };
        if Arc::get_mut(file).is_none() {
            *file = Arc::new(copied(file, self.end)?);
        }
        let mut at = self.end;
        let mut bytes = Vec::new();
        for values in columns {
            values.write_to(&mut bytes);
            file.write_all_at(&bytes, at)?;
            at += bytes.len() as u64;
        }
        self.parts.push(self.end);
        self.end = at;
        Ok(())
    }

    /// Reads rows of a part, in as many of these columns as it has.
    pub fn read(
        &self,
        part: usize,
        rows: &Range<usize>,
        columns: &[Values],
    ) -> io::Result<Vec<Values>> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut at = self.parts[part];
        let end = self.parts.get(part + 1).copied().unwrap_or(self.end);
        let mut read = Vec::new();
        let mut bytes = Vec::new();
        for like in columns {
            if at == end {
                break;
            }
            let width = like.width();
            bytes.resize(width * rows.len(), 0);
            file.read_exact_at(&mut bytes, at + (width * rows.start) as u64)?;
            read.push(like.read_from(&bytes));
            at += (width * PART) as u64;
        }
        Ok(read)
    }
}

/// A copy of the first bytes of a file.
fn copied(file: &File, end: u64) -> io::Result<File> {
    let copy = create()?;
    let mut bytes = vec![0; COPIED.min(end as usize)];
    let mut at = 0;
    while at < end {
        let length = (end - at).min(COPIED as u64) as usize;
        file.read_exact_at(&mut bytes[..length], at)?;
        copy.write_all_at(&bytes[..length], at)?;
        at += length as u64;
    }
    Ok(copy)
}

/// The number of bytes copied at once.
const COPIED: usize = 1 << 20;

/// An unnamed file in the folder for temporary files.
fn create() -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("tcplab-{}-{number}.rows", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

impl Values {
    /// The size of a value in bytes.
    fn width(&self) -> usize {
        if matches!(self, Self::Text(_)) { 4 } else { 8 }
    }

    /// Writes the values to `bytes`, replacing its content.
    fn write_to(&self, bytes: &mut Vec<u8>) {
        fn write<T: Copy, const N: usize>(values: &[T], bytes: &mut [u8], to: fn(T) -> [u8; N]) {
            // Arrays of a known length compile to one copy of memory.
            for (place, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                *place = to(*value);
            }
        }
        bytes.resize(self.width() * self.len(), 0);
        match self {
            Self::Text(values) => write(values, bytes, u32::to_ne_bytes),
            Self::Integer(values) => write(values, bytes, i64::to_ne_bytes),
            Self::Number(values) => write(values, bytes, f64::to_ne_bytes),
        }
    }

    /// Values of this kind.
    fn read_from(&self, bytes: &[u8]) -> Self {
        fn read<T, const N: usize>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks().0.iter().map(|bytes| from(*bytes)).collect()
        }
        match self {
            Self::Text(_) => Self::Text(read(bytes, u32::from_ne_bytes)),
            Self::Integer(_) => Self::Integer(read(bytes, i64::from_ne_bytes)),
            Self::Number(_) => Self::Number(read(bytes, f64::from_ne_bytes)),
        }
    }
}
