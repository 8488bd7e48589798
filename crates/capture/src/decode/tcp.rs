//! The header and options of TCP (RFC 9293 §3.1).

use super::{short, word};

/// Flags of the header, by their bits there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// Reset the connection.
    pub const RST: Self = Self(1 << 2);
    /// The sender has nothing more ready.
    pub const PUSH: Self = Self(1 << 3);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(1 << 4);
    /// Marks are echoed (RFC 3168).
    pub const ECE: Self = Self(1 << 6);
    /// The window was made smaller for marks.
    pub const CWR: Self = Self(1 << 7);

    /// Whether a flag is set.
    #[inline]
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

/// Data that arrived out of order: from its first byte to the byte behind its last.
pub type SackBlock = (u32, u32);

/// Options that performance depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest payload that the sender takes.
    pub mss: Option<u16>,
    /// By how many bits its windows are to be shifted (RFC 7323).
    pub window_scale: Option<u8>,
    /// Whether it understands SACK (RFC 2018).
    pub sack_permitted: bool,
    /// Its clock, and the peer's as last heard (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    sack: [SackBlock; 4],
    sack_count: u8,
    /// Whether they end before they should: the packet was not kept whole, or an option is malformed.
    pub is_cut: bool,
}

impl Options {
    /// The SACK blocks.
    #[inline]
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sack_count)]
    }

    #[inline]
    fn read(bytes: &[u8], length: usize) -> Self {
        let mut found = Self { is_cut: bytes.len() < length, ..Self::default() };
        let mut rest = bytes;
        // The order in which nearly all senders have them after the handshake (RFC 7323 appendix A).
        if let [1, 1, 8, 10, at @ ..] = rest
            && at.len() >= 8
        {
            found.timestamps = word(at, 0).zip(word(at, 4));
            rest = &at[8..];
        }
        loop {
            let (kind, length) = match *rest {
                [] | [0, ..] => return found,
                [1, ..] => {
                    rest = &rest[1..];
                    continue;
                }
                [kind, length, ..] => (kind, usize::from(length)),
                [_] => (0, 0),
            };
            let Some(option) = rest.get(..length).filter(|option| option.len() >= 2) else {
                found.is_cut = true;
                return found;
            };
            found.add(kind, &option[2..]);
            rest = &rest[length..];
        }
    }

    fn add(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (2, 2) => self.mss = short(value, 0),
            // More than 14 is taken for 14 (RFC 7323 §2.3).
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

/// What the header of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// The sender's port.
    pub from: u16,
    /// The receiver's port.
    pub to: u16,
    /// The number of its first byte, or of the SYN or FIN.
    pub seq: u32,
    /// The next byte that is expected.
    pub ack: u32,
    /// The flags.
    pub flags: Flags,
    /// The window as it stands there.
    pub window: u16,
    /// Bytes of data.
    pub payload: u32,
    /// The options.
    pub options: Options,
}

impl Tcp {
    /// Reads a segment of `length` bytes, header and all.
    #[inline]
    pub fn read(bytes: &[u8], length: u32) -> Option<Self> {
        let fixed = bytes.first_chunk::<16>()?;
        let rest = short(fixed, 12)?;
        let header = usize::from(rest >> 12) * 4;
        if header < 20 {
            return None;
        }
        let options = bytes.get(20..header.min(bytes.len()).max(20)).unwrap_or_default();
        Some(Self {
            from: short(fixed, 0)?,
            to: short(fixed, 2)?,
            seq: word(fixed, 4)?,
            ack: word(fixed, 8)?,
            flags: Flags(rest & 0x1ff),
            window: short(fixed, 14)?,
            payload: length.checked_sub(header as u32)?,
            options: Options::read(options, header - 20),
        })
    }

    /// Sequence numbers it takes: its data, and one each for SYN and FIN.
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        self.payload + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}
