//! Rows of a long table that wait in a file.

use crate::table::{Column, Kind, Values};
use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of a long table, so many rows are in memory at most; each part in a file has this many.
pub const PART: usize = 65_536;

/// Parts of a table in a file that has no name: the system removes it with the process, however that ends.
/// Numbers are in the machine's own order of bytes, as nobody else reads them.
#[derive(Clone, Debug)]
pub(crate) struct Spilled {
    file: Arc<File>,
    parts: usize,
    /// The bytes of a part.
    length: u64,
}

impl Spilled {
    /// A file for a table of these columns, in the folder for temporary files.
    pub fn create(columns: &[Column]) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tcplab-{}-{number}.rows", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        remove_file(&path)?;
        let width = |column: &Column| if column.kind == Kind::Text { 4 } else { 8 };
        let length = columns.iter().map(width).sum::<u64>() * PART as u64;
        Ok(Self { file: Arc::new(file), parts: 0, length })
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Adds a part. A copy of the table has the same file: then nothing can be added.
    pub fn add(&mut self, columns: &[Values]) -> io::Result<()> {
        if Arc::get_mut(&mut self.file).is_none() {
            return Err(io::Error::other("a copy of the table needs the file"));
        }
        let mut offset = self.parts as u64 * self.length;
        for values in columns {
            let bytes: Vec<u8> = match values {
                Values::Text(values) => values.iter().flat_map(|it| it.to_ne_bytes()).collect(),
                Values::Integer(values) => values.iter().flat_map(|it| it.to_ne_bytes()).collect(),
                Values::Number(values) => values.iter().flat_map(|it| it.to_ne_bytes()).collect(),
            };
            self.file.write_all_at(&bytes, offset)?;
            offset += bytes.len() as u64;
        }
        self.parts += 1;
        Ok(())
    }

    /// Reads a part.
    pub fn read(&self, part: usize, columns: &[Column]) -> io::Result<Vec<Values>> {
        fn numbers<T, const N: usize>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks().0.iter().map(|bytes| from(*bytes)).collect()
        }
        let mut bytes = vec![0; self.length as usize];
        self.file.read_exact_at(&mut bytes, part as u64 * self.length)?;
        let mut rest = &bytes[..];
        let read = columns.iter().map(|column| {
            let width = if column.kind == Kind::Text { 4 } else { 8 };
            let (own, others) = rest.split_at(width * PART);
            rest = others;
            match column.kind {
                Kind::Text => Values::Text(numbers(own, u32::from_ne_bytes)),
                Kind::Integer => Values::Integer(numbers(own, i64::from_ne_bytes)),
                Kind::Number => Values::Number(numbers(own, f64::from_ne_bytes)),
            }
        });
        Ok(read.collect())
    }
}
