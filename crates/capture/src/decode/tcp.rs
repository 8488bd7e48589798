//! The TCP header and its options (RFC 9293 §3.1).

use super::{short, word};

/// Flags as bits of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// Reset the connection.
    pub const RST: Self = Self(1 << 2);
    /// Push function: deliver the data without delay.
    pub const PUSH: Self = Self(1 << 3);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(1 << 4);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 7);

    /// Whether a flag is set.
    #[inline]
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

/// A SACK block: from the first byte to the byte behind the last.
pub type SackBlock = (u32, u32);

/// Options that matter for performance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The maximum segment size.
    pub mss: Option<u16>,
    /// The window scale (RFC 7323).
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted (RFC 2018).
    pub sack_permitted: bool,
    /// The sender's timestamp and the echoed one of its peer (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    sack: [SackBlock; 4],
    sack_count: u8,
    /// Whether options are incomplete: the packet was truncated, or an option is malformed.
    pub is_cut: bool,
}

impl Options {
    /// The SACK blocks.
    #[inline]
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sack_count)]
    }

    /// Adds the options in `bytes`, of `length` bytes on the wire.
    #[inline]
    fn read(&mut self, bytes: &[u8], length: usize) {
        self.is_cut = bytes.len() < length;
        let mut rest = bytes;
        // The usual order of options after the handshake (RFC 7323 appendix A).
        if let [1, 1, 8, 10, at @ ..] = rest
            && at.len() >= 8
        {
            self.timestamps = word(at, 0).zip(word(at, 4));
            rest = &at[8..];
        }
        loop {
            let (kind, length) = match *rest {
                [] | [0, ..] => return,
                [1, ..] => {
                    rest = &rest[1..];
                    continue;
                }
                [kind, length, ..] => (kind, usize::from(length)),
                [_] => (0, 0),
            };
            let Some(option) = rest.get(..length).filter(|option| option.len() >= 2) else {
                self.is_cut = true;
                return;
            };
            self.add(kind, &option[2..]);
            rest = &rest[length..];
        }
    }

    fn add(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (2, 2) => self.mss = short(value, 0),
            // A scale above 14 counts as 14 (RFC 7323 §2.3).
            (3, 1) => self.window_scale = Some(value[0].min(14)),
            (4, 0) => self.sack_permitted = true,
            (5, _) => {
                for block in value.chunks_exact(8).take(4) {
                    let (Some(from), Some(to)) = (word(block, 0), word(block, 4)) else { break };
                    self.sack[usize::from(self.sack_count.min(3))] = (from, to);
                    self.sack_count = (self.sack_count + 1).min(4);
                }
            }
            (8, 8) => self.timestamps = word(value, 0).zip(word(value, 4)),
            _ => {}
        }
    }
}

/// The header fields of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// The source port.
    pub from: u16,
    /// The destination port.
    pub to: u16,
    /// The sequence number of the first byte, or of the SYN or FIN.
    pub seq: u32,
    /// The acknowledgment number.
    pub ack: u32,
    /// The flags.
    pub flags: Flags,
    /// The window field, unscaled.
    pub window: u16,
    /// Bytes of data.
    pub payload: u32,
    /// The options.
    pub options: Options,
}

impl Tcp {
    /// Reads a segment of `length` bytes, header included, in place of this one; false if there is
    /// none.
    #[inline]
    pub(crate) fn fill(&mut self, bytes: &[u8], length: u32) -> bool {
        let Some(fixed) = bytes.first_chunk::<16>() else { return false };
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|n| fixed[at + n]));
        let short = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let header = usize::from(fixed[12] >> 4) * 4;
        let Some(payload) = length.checked_sub(header as u32) else { return false };
        if header < 20 {
            return false;
        }
        (self.from, self.to) = (short(0), short(2));
        (self.seq, self.ack) = (word(4), word(8));
        self.flags = Flags(short(12) & 0x1ff);
        self.window = short(14);
        self.payload = payload;
        self.options = Options::default();
        let options = bytes.get(20..header.min(bytes.len())).unwrap_or_default();
        self.options.read(options, header - 20);
        true
    }

    /// The sequence numbers that the segment takes: its data, and one each for SYN and FIN.
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        self.payload + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}
