//! A sliding window over the bytes of a capture.

use super::Source;
use std::io;

/// The size of reads from the source, which stays in a processor's cache.
const PIECE: usize = 1 << 16;

/// A sliding window over the bytes of a capture, which holds as much as a block needs.
pub(crate) struct Window {
    source: Source,
    bytes: Vec<u8>,
    /// The part of `bytes` that has been read and not consumed.
    from: usize,
    to: usize,
    /// The position of `from` in the capture.
    at: u64,
    is_over: bool,
    /// Why the source ended early.
    broken: Option<io::Error>,
}

impl Window {
    pub fn new(source: Source) -> Self {
        Self { source, bytes: vec![0; PIECE], from: 0, to: 0, at: 0, is_over: false, broken: None }
    }

    /// The position of the next byte in the unpacked capture.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Why the source ended early, if it did.
    pub fn take_broken(&mut self) -> Option<io::Error> {
        self.broken.take()
    }

    /// The next `count` bytes, or as many as are left.
    #[inline]
    pub fn peek(&mut self, count: usize) -> &[u8] {
        if self.to - self.from < count {
            self.fill(count);
        }
        &self.bytes[self.from..self.to.min(self.from + count)]
    }

    /// Consumes `count` bytes that were peeked at.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.to - self.from);
        self.from += count;
        self.at += count as u64;
    }

    /// The last `count` consumed bytes, which stay valid until the next peek.
    #[inline]
    pub fn behind(&self, count: usize) -> &[u8] {
        &self.bytes[self.from - count..self.from]
    }

    /// Skips `count` bytes; false if there are fewer.
    pub fn skip(&mut self, mut count: u64) -> bool {
        while count > 0 {
            let step = count.min(PIECE as u64) as usize;
            let there = self.peek(step).len();
            self.consume(there);
            if there < step {
                return false;
            }
            count -= step as u64;
        }
        true
    }

    #[cold]
    fn fill(&mut self, count: usize) {
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.bytes.len() < count {
            self.bytes.resize(count.max(PIECE), 0);
        }
        while self.to < count && !self.is_over {
            match self.source.read(&mut self.bytes[self.to..]) {
                Ok(0) => self.is_over = true,
                Ok(read) => self.to += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_over = true;
                    self.broken = Some(error);
                }
            }
        }
    }
}
