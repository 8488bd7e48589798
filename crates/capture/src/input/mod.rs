//! The source of a capture's bytes: a file or standard input, plain or packed.

mod decompress;
mod window;

pub(crate) use window::Window;

use crate::error::{Error, Problem};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// The bytes of a capture.
pub type Source = Box<dyn Read + Send>;

/// Opens a file; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Window, Error> {
    let name = path.to_string_lossy();
    if path == Path::new("-") {
        return unpack(Box::new(io::stdin()), &name);
    }
    let opened = File::open(path).and_then(|file| {
        if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
    });
    let file = opened.map_err(|error| Problem::Io(error).of(&name))?;
    unpack(Box::new(file), &name)
}

/// Unpacks a source that begins like a packed file.
pub(crate) fn unpack(mut source: Source, name: &str) -> Result<Window, Error> {
    let mut first = Vec::new();
    source.by_ref().take(4).read_to_end(&mut first).map_err(|error| Problem::Io(error).of(name))?;
    let rest = Cursor::new(first.clone()).chain(source);
    let unpacked: Source = match first[..] {
        [0x1f, 0x8b, ..] => Box::new(decompress::gzip(rest)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(decompress::Zstd::new(rest)),
        _ => Box::new(rest),
    };
    Ok(Window::new(unpacked))
}
