//! Capture file formats, read packet by packet.
//!
//! - pcap: draft-ietf-opsawg-pcap.
//! - pcapng: draft-ietf-opsawg-pcapng.

mod pcap;
mod pcapng;
mod writer;

pub use writer::{FILE, SNAP, Writer};

use crate::error::{Error, Problem};
use crate::input::{self, Source, Window};
use std::path::Path;

/// The size limit of a packet or block. The largest packets that programs capture have 256 KiB.
pub(crate) const LARGEST: u32 = 16 << 20;

/// The latest time, in the year 2116, which leaves room for differences.
const LATEST: i64 = 1 << 62;

/// A packet record of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The capture time, in nanoseconds after the epoch of the capture.
    pub time: i64,
    /// The index among the [interfaces](Reader::interfaces).
    pub interface: u32,
    /// The number of known interfaces.
    pub interfaces: usize,
    /// The link type, which decides the first header (`LINKTYPE_...`).
    pub link: u16,
    /// The original length in bytes.
    pub length: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

/// An interface on which packets were captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The name, if the file has one.
    pub name: Option<String>,
    /// The link type (`LINKTYPE_...`).
    pub link: u16,
    /// The snap length in bytes; 0: unlimited.
    pub snap: u32,
    /// Packets that the capturing program reports as dropped.
    pub dropped: u64,
    unit: Unit,
    /// The offset of times, in seconds.
    offset: i64,
}

/// The unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unit {
    #[default]
    Nanosecond,
    /// A multiple of nanoseconds.
    Coarse(u64),
    /// A fraction of a second.
    PerSecond(u64),
}

impl Interface {
    /// A time of this interface in nanoseconds.
    #[inline]
    fn nanoseconds(&self, ticks: u64) -> i64 {
        let time = match self.unit {
            Unit::Nanosecond => i64::try_from(ticks).unwrap_or(i64::MAX),
            Unit::Coarse(unit) => {
                i64::try_from(u128::from(ticks) * u128::from(unit)).unwrap_or(i64::MAX)
            }
            Unit::PerSecond(units) => {
                let time = u128::from(ticks) * 1_000_000_000 / u128::from(units);
                i64::try_from(time).unwrap_or(i64::MAX)
            }
        };
        time.saturating_add(self.offset.saturating_mul(1_000_000_000))
    }
}

/// Why reading stopped before the end of the file, or why the file ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The position in the unpacked file.
    pub at: u64,
    /// The problem.
    pub what: String,
}

/// Reads a capture packet by packet, in constant memory.
pub struct Reader {
    window: Window,
    format: Format,
    interfaces: Vec<Interface>,
    damage: Option<Damage>,
    is_over: bool,
}

enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

/// The next element of a file.
enum Step {
    /// A packet: `head` bytes before it, its captured length, `rest` bytes behind it.
    Packet { head: usize, kept: usize, rest: usize, time: i64, interface: u32, length: u32 },
    /// Another element, which has been consumed.
    Other,
    /// The regular end of the file.
    End,
    /// The rest of the file cannot be read.
    Damage(String),
}

impl Reader {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a capture.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::of(input::open(path)?, &path.to_string_lossy())
    }

    /// Reads from a source, which messages call `name`.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn new(source: Source, name: &str) -> Result<Self, Error> {
        Self::of(input::unpack(source, name)?, name)
    }

    fn of(mut window: Window, name: &str) -> Result<Self, Error> {
        let mut interfaces = Vec::new();
        let begin: [u8; 4] = match window.peek(4).try_into() {
            Ok(begin) => begin,
            Err(_) => return Err(too_short(&mut window).of(name)),
        };
        let format = if begin == pcapng::SECTION {
            pcapng::Section::read(&mut window).map(Format::Pcapng)
        } else if let Some(kind) = pcap::Kind::of(begin) {
            pcap::Header::read(&mut window, kind).map(|(header, interface)| {
                interfaces.push(interface);
                Format::Pcap(header)
            })
        } else {
            let bytes = begin.map(|byte| format!("{byte:02x}")).join(" ");
            Err(Problem::Format(bytes))
        };
        let format = format.map_err(|problem| problem.of(name))?;
        Ok(Self { window, format, interfaces, damage: None, is_over: false })
    }

    /// The interfaces so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Why there were no further packets, unless the file ended regularly.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// The position in the unpacked file, in bytes.
    pub fn at(&self) -> u64 {
        self.window.at()
    }

    /// The next packet.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Record<'_>> {
        if self.is_over {
            return None;
        }
        loop {
            let step = match &mut self.format {
                Format::Pcap(header) => header.step(&mut self.window, &self.interfaces[0]),
                Format::Pcapng(section) => section.step(&mut self.window, &mut self.interfaces),
            };
            match step {
                Step::Packet { head, kept, rest, time, interface, length } => {
                    let whole = head + kept + rest;
                    let there = self.window.peek(whole).len();
                    if there < whole {
                        self.stop(format!("the file ends within a packet of {kept} bytes"));
                        return None;
                    }
                    self.window.consume(whole);
                    let time = time.clamp(0, LATEST);
                    let link = self.interfaces[interface as usize].link;
                    let bytes = &self.window.behind(whole)[head..head + kept];
                    let interfaces = self.interfaces.len();
                    return Some(Record { time, interface, interfaces, link, length, bytes });
                }
                Step::Other => {}
                Step::End => {
                    self.is_over = true;
                    if let Some(error) = self.window.take_broken() {
                        self.stop(format!("the file cannot be unpacked further: {error}"));
                    }
                    return None;
                }
                Step::Damage(what) => {
                    self.stop(what);
                    return None;
                }
            }
        }
    }

    #[cold]
    fn stop(&mut self, what: String) {
        self.is_over = true;
        let broken = self.window.take_broken();
        let what =
            broken.map_or(what, |error| format!("the file cannot be unpacked further: {error}"));
        self.damage = Some(Damage { at: self.window.at(), what });
    }
}

/// The file ends within its first header.
fn too_short(window: &mut Window) -> Problem {
    let there = window.at() + window.peek(1 << 10).len() as u64;
    window.take_broken().map_or(Problem::Header(there), Problem::Io)
}

/// The byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    fn word(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = bytes[at..at + 4].try_into().expect("four bytes");
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    #[inline]
    fn short(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = bytes[at..at + 2].try_into().expect("two bytes");
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    fn long(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (self.word(bytes, at).into(), self.word(bytes, at + 4).into());
        let (high, low): (u64, u64) = match self {
            Self::Little => (second, first),
            Self::Big => (first, second),
        };
        high << 32 | low
    }
}

#[cfg(test)]
mod tests;
