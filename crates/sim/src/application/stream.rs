//! The connection as a program sees it: a byte stream in each direction, over any protocol.

use tcplab_tcp::Endpoint;
use tcplab_units::Time;

/// Bytes kept ready for a connection that has not sent them. A program that wrote further ahead
/// could not stop at the end of its period.
/// not stop when its time is over.
const READY: u64 = 1 << 17;

/// How a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Everything in one call, from a file.
    Whole,
    /// The same, but only a little ahead, because the program may stop.
    MayStop,
    /// Each piece in its own call, from the program's memory.
    Piece,
}

/// One end of a connection, as a program uses it.
pub(crate) trait Stream {
    /// Writes up to so many bytes. Returns how many were accepted.
    fn write(&mut self, bytes: u64, how: Writing) -> u64;
    /// Reads up to so many of the available bytes.
    fn read(&mut self, now: Time, most: u64) -> u64;
    /// Waits for data to read, in a call that also checks for buffer space.
    fn on_poll(&mut self);
    /// Closes the sending direction.
    fn finish(&mut self);
    /// Whether the other end has closed and everything it wrote has arrived.
    fn is_at_end(&self) -> bool;
}

impl Stream for Endpoint {
    #[inline]
    fn write(&mut self, bytes: u64, how: Writing) -> u64 {
        if how == Writing::Piece {
            return self.write_copied(bytes);
        }
        // A program that need not stop leaves it to the send buffer to block it, where the buffer
        // does so.
        let ahead = (how == Writing::MayStop || !self.blocks_writer()).then_some(READY);
        self.write_with_lowat(bytes, ahead)
    }

    #[expect(clippy::inline_always, reason = "every segment with data passes here")]
    #[inline(always)]
    fn read(&mut self, now: Time, most: u64) -> u64 {
        Self::read(self, now, most)
    }

    #[inline]
    fn on_poll(&mut self) {
        Self::on_poll(self);
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
