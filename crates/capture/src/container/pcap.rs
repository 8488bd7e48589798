//! pcap: a file header, then packets (draft-ietf-opsawg-pcap).

use super::{Interface, LARGEST, Order, Step, Unit, too_short};
use crate::error::Problem;
use crate::input::Window;

/// The size of the file header.
const FILE_HEADER: usize = 24;

/// A variant of the format, by the first four bytes of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    order: Order,
    /// The unit of a time's second word, in nanoseconds.
    unit: u32,
    /// The size of a packet header: 16 bytes, or 24 as written by a patched libpcap.
    header: usize,
}

impl Kind {
    pub fn of(begin: [u8; 4]) -> Option<Self> {
        let (big, little) = (u32::from_be_bytes(begin), u32::from_le_bytes(begin));
        let find = |magic, order| {
            let (unit, header) = match magic {
                0xa1b2_c3d4 => (1000, 16),
                0xa1b2_3c4d => (1, 16),
                0xa1b2_cd34 => (1000, 24),
                _ => return None,
            };
            Some(Self { order, unit, header })
        };
        find(big, Order::Big).or_else(|| find(little, Order::Little))
    }
}

/// The fields of the file header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    kind: Kind,
    lengths: Lengths,
}

/// The order of a packet's two lengths, by the version of the format. libpcap has the same rule
/// (`sf-pcap.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    /// The captured length first: since 2.4.
    Kept,
    /// The original length first: before 2.3.
    Wire,
    /// Depends on the program: 2.3.
    Either,
}

impl Header {
    pub fn read(window: &mut Window, kind: Kind) -> Result<(Self, Interface), Problem> {
        let bytes = window.peek(FILE_HEADER);
        if bytes.len() < FILE_HEADER {
            return Err(too_short(window));
        }
        let [major, minor] = [4, 6].map(|at| kind.order.short(bytes, at));
        let snap = kind.order.word(bytes, 16);
        if major != 2 {
            let what = format!("version {major} of pcap is not supported; version 2 is");
            return Err(Problem::Field { at: 4, what });
        }
        // The upper half has the length of a frame check sequence.
        let link = kind.order.word(bytes, 20) as u16;
        let unit = Unit::Nanosecond;
        let lengths = match minor {
            ..3 => Lengths::Wire,
            3 => Lengths::Either,
            _ => Lengths::Kept,
        };
        window.consume(FILE_HEADER);
        Ok((Self { kind, lengths }, Interface { link, snap, unit, ..Interface::default() }))
    }

    #[inline]
    pub fn step(&mut self, window: &mut Window, interface: &Interface) -> Step {
        let Kind { order, unit, header } = self.kind;
        let bytes = window.peek(header);
        if bytes.len() < header {
            return if bytes.is_empty() {
                Step::End
            } else {
                Step::Damage("the file ends within the header of a packet".into())
            };
        }
        let [seconds, part, mut kept, mut length] = [0, 4, 8, 12].map(|at| order.word(bytes, at));
        if self.lengths == Lengths::Wire || self.lengths == Lengths::Either && kept > length {
            (kept, length) = (length, kept);
        }
        if kept > LARGEST {
            return Step::Damage(format!(
                "a packet of {kept} bytes; packets of up to {LARGEST} bytes are read"
            ));
        }
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(part) * i64::from(unit);
        let time = time.saturating_add(interface.offset);
        let (kept, length) = (kept as usize, length.max(kept));
        Step::Packet { head: header, kept, rest: 0, time, interface: 0, length }
    }
}
