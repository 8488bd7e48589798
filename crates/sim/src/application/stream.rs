//! What a program sees of a connection: a stream of bytes in each direction, of any protocol.

use tcplab_tcp::Endpoint;
use tcplab_units::Time;

/// Bytes kept ready for a connection that has not sent them. A program that writes further ahead could
/// not stop when its time is over.
const READY: u64 = 1 << 17;

/// How a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// All of it in one call, from a file.
    Whole,
    /// The same, but not far ahead: it may stop.
    MayStop,
    /// In a call of its own, from its memory.
    Piece,
}

/// One end of a connection, as a program uses it.
pub(crate) trait Stream {
    /// Writes up to so many bytes; how many there was room for.
    fn write(&mut self, bytes: u64, how: Writing) -> u64;
    /// Reads up to so many bytes of those that wait.
    fn read(&mut self, now: Time, most: u64) -> u64;
    /// Waits for something to read, in a call that looks for room as well.
    fn look(&mut self);
    /// Nothing more is to be written.
    fn finish(&mut self);
    /// The other end has finished, and all that it wrote has arrived.
    fn is_at_end(&self) -> bool;
}

impl Stream for Endpoint {
    #[inline]
    fn write(&mut self, bytes: u64, how: Writing) -> u64 {
        if how == Writing::Piece {
            return self.write_copied(bytes);
        }
        // One that need not stop leaves it to the send buffer to hold it back, if that does so.
        let ahead = (how == Writing::MayStop || !self.paces_writer()).then_some(READY);
        self.write_ahead(bytes, ahead)
    }

    #[inline]
    fn read(&mut self, now: Time, most: u64) -> u64 {
        Self::read(self, now, most)
    }

    #[inline]
    fn look(&mut self) {
        Self::look(self);
    }

    #[inline]
    fn finish(&mut self) {
        self.close();
    }

    #[inline]
    fn is_at_end(&self) -> bool {
        Self::is_at_end(self)
    }
}
