//! pcapng: sections of blocks (draft-ietf-opsawg-pcapng).

use super::{Interface, LARGEST, Order, Step, Unit, too_short};
use crate::error::Problem;
use crate::input::Window;

/// The type of a section header block, which is the same in either byte order.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The minimum size of a block, and of a section header block.
const BLOCK: usize = 12;
const SECTION_BLOCK: usize = 28;
/// More interfaces than any capture has.
const MOST_INTERFACES: usize = 1 << 16;

/// Block types.
pub(super) const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
pub(super) const PACKET: u32 = 6;

/// The current section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    order: Order,
    /// The index of the section's first interface.
    first: usize,
}

impl Section {
    /// Reads the first section of a file.
    pub fn read(window: &mut Window) -> Result<Self, Problem> {
        let bytes = window.peek(SECTION_BLOCK);
        if bytes.len() < SECTION_BLOCK {
            return Err(too_short(window));
        }
        let (order, length) = Self::head(bytes).map_err(|what| Problem::Field { at: 8, what })?;
        if !window.skip(length.into()) {
            return Err(too_short(window));
        }
        Ok(Self { order, first: 0 })
    }

    /// The byte order and the length of a section header block.
    fn head(bytes: &[u8]) -> Result<(Order, u32), String> {
        let order = match bytes[8..12] {
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            _ => return Err("the section has an invalid byte-order magic".into()),
        };
        let (length, major) = (order.word(bytes, 4), order.short(bytes, 12));
        if major != 1 {
            return Err(format!("version {major} of pcapng is not supported; version 1 is"));
        }
        if (length as usize) < SECTION_BLOCK || length % 4 != 0 {
            return Err(format!("a section cannot begin with a block of {length} bytes"));
        }
        Ok((order, length))
    }

    #[inline]
    pub fn step(&mut self, window: &mut Window, interfaces: &mut Vec<Interface>) -> Step {
        let order = self.order;
        // The head of a packet block.
        let bytes = window.peek(28);
        if bytes.len() < BLOCK {
            return if bytes.is_empty() {
                Step::End
            } else {
                Step::Damage("the file ends within the header of a block".into())
            };
        }
        if bytes[..4] == SECTION {
            return self.section(window, interfaces);
        }
        let (kind, length) = (order.word(bytes, 0), order.word(bytes, 4));
        if (length as usize) < BLOCK || length % 4 != 0 {
            return Step::Damage(format!("a block of {length} bytes"));
        }
        match kind {
            PACKET | OLD_PACKET | SIMPLE_PACKET | INTERFACE | STATISTICS if length > LARGEST => {
                too_large(length)
            }
            PACKET | OLD_PACKET if length < 32 || bytes.len() < 28 => short(bytes, length),
            PACKET | OLD_PACKET => {
                let number = if kind == PACKET {
                    order.word(bytes, 8)
                } else {
                    order.short(bytes, 8).into()
                };
                let [high, low, kept, original] = [12, 16, 20, 24].map(|at| order.word(bytes, at));
                let found = Found { number, ticks: u64::from(high) << 32 | u64::from(low) };
                self.packet(interfaces, found, (28, length), (kept, original))
            }
            SIMPLE_PACKET if length < 16 => short(bytes, length),
            SIMPLE_PACKET => {
                let original = order.word(bytes, 8);
                let snap = interfaces.get(self.first).map_or(0, |interface| interface.snap);
                let kept = original.min(if snap == 0 { u32::MAX } else { snap });
                let kept = kept.min(length - 16);
                // A simple packet block has no time.
                let found = Found { number: 0, ticks: 0 };
                self.packet(interfaces, found, (12, length), (kept, original))
            }
            INTERFACE | STATISTICS => {
                let whole = window.peek(length as usize);
                if whole.len() < length as usize {
                    return Step::Damage("the file ends within a block".into());
                }
                let content = &whole[8..whole.len() - 4];
                if kind == STATISTICS {
                    self.statistics(content, interfaces);
                } else if interfaces.len() == MOST_INTERFACES {
                    return Step::Damage(format!("more than {MOST_INTERFACES} interfaces"));
                } else if content.len() < 8 {
                    return Step::Damage("an interface without its header".into());
                } else {
                    interfaces.push(interface(order, content));
                }
                window.consume(length as usize);
                Step::Other
            }
            _ => {
                if window.skip(length.into()) {
                    Step::Other
                } else {
                    Step::Damage("the file ends within a block".into())
                }
            }
        }
    }

    #[inline]
    fn packet(
        &self,
        interfaces: &[Interface],
        Found { number, ticks }: Found,
        (head, length): (u32, u32),
        (kept, original): (u32, u32),
    ) -> Step {
        let Some(number) = self.first.checked_add(number as usize) else {
            return Step::Damage(format!(
                "a packet of interface {number}, which the section does not describe"
            ));
        };
        let Some(interface) = interfaces.get(number) else {
            let number = number - self.first;
            return Step::Damage(format!(
                "a packet of interface {number}, which the section does not describe"
            ));
        };
        if kept > length - head - 4 {
            return Step::Damage(format!("a packet of {kept} bytes in a block of {length}"));
        }
        Step::Packet {
            head: head as usize,
            kept: kept as usize,
            rest: (length - head - kept) as usize,
            time: interface.nanoseconds(ticks),
            interface: number as u32,
            length: original.max(kept),
        }
    }

    /// Begins another section, whose interfaces are numbered anew.
    fn section(&mut self, window: &mut Window, interfaces: &[Interface]) -> Step {
        let bytes = window.peek(SECTION_BLOCK);
        if bytes.len() < SECTION_BLOCK {
            return Step::Damage("the file ends within the header of a section".into());
        }
        match Self::head(bytes) {
            Ok((order, length)) => {
                *self = Self { order, first: interfaces.len() };
                if window.skip(length.into()) {
                    Step::Other
                } else {
                    Step::Damage("the file ends within the header of a section".into())
                }
            }
            Err(what) => Step::Damage(what),
        }
    }

    /// Reads an interface statistics block: packets dropped by the interface or the system.
    fn statistics(&self, content: &[u8], interfaces: &mut [Interface]) {
        if content.len() < 12 {
            return;
        }
        let number = self.first.saturating_add(self.order.word(content, 0) as usize);
        let mut dropped = None;
        for (code, value) in options(self.order, &content[12..]) {
            // isb_ifdrop and isb_osdrop; the counters are totals.
            if (code == 5 || code == 7) && value.len() >= 8 {
                dropped = Some(self.order.long(value, 0).saturating_add(dropped.unwrap_or(0)));
            }
        }
        if let (Some(interface), Some(dropped)) = (interfaces.get_mut(number), dropped) {
            interface.dropped = dropped;
        }
    }
}

/// The interface number and time of a packet.
#[derive(Clone, Copy)]
struct Found {
    number: u32,
    ticks: u64,
}

#[cold]
fn too_large(length: u32) -> Step {
    Step::Damage(format!("a block of {length} bytes; blocks of up to {LARGEST} bytes are read"))
}

#[cold]
fn short(bytes: &[u8], length: u32) -> Step {
    Step::Damage(if bytes.len() < 28 && length as usize >= bytes.len() {
        "the file ends within a block".into()
    } else {
        format!("a packet in a block of {length} bytes")
    })
}

/// Reads an interface description block.
fn interface(order: Order, content: &[u8]) -> Interface {
    let mut found = Interface {
        link: order.short(content, 0),
        snap: order.word(content, 4),
        // The default unit is microseconds.
        unit: Unit::Coarse(1000),
        ..Interface::default()
    };
    for (code, value) in options(order, &content[8..]) {
        match code {
            // if_name
            2 => found.name = Some(String::from_utf8_lossy(value).into_owned()),
            // if_tsresol
            9 if !value.is_empty() => found.unit = unit(value[0]),
            // if_tsoffset
            14 if value.len() >= 8 => found.offset = order.long(value, 0).cast_signed(),
            _ => {}
        }
    }
    found
}

/// A unit: a negative power of ten, or of two if the highest bit is set.
fn unit(resolution: u8) -> Unit {
    let exponent = u32::from(resolution & 0x7f);
    if resolution & 0x80 != 0 {
        return Unit::PerSecond(1_u64.checked_shl(exponent).unwrap_or(1 << 63));
    }
    match exponent {
        9 => Unit::Nanosecond,
        0..9 => Unit::Coarse(10_u64.pow(9 - exponent)),
        _ => Unit::PerSecond(10_u64.checked_pow(exponent).unwrap_or(10_u64.pow(19))),
    }
}

/// The complete options of a block.
fn options(order: Order, bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.get(..4)?;
        let (code, length) = (order.short(head, 0), usize::from(order.short(head, 2)));
        let value = rest.get(4..4 + length)?;
        rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        // opt_endofopt
        (code != 0).then_some((code, value))
    })
}
