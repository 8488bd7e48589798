//! The memory that a run holds: estimated before the run, counted during it.
//!
//! The count is of rows and packets, not of the process: a run that stops for lack of memory stops
//! at the same moment every time. The bytes of each were measured at the peak of the process:
//! tables exist twice while they are handed over (`docs/explanation/security-host.md`). Rows that
//! were moved to a file are not counted.

use crate::plan::Plan;
use crate::schema::{OrOff, Samples, TrafficPlan};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Add;

/// A row of flow or link samples, or of a packet.
pub const ROW: u64 = 256;
/// The most rows of a table in memory; others are in a file.
pub const ROWS: u64 = 65_536;
/// A dropped or lost packet.
pub const DROP: u64 = 400;
/// A packet in a queue or in transit, with its sender's record.
pub const PACKET: u64 = 300;
/// A captured packet, as far as it is kept.
pub const CAPTURED: u64 = 600;
/// A change of a link's rate or delay, while listed.
pub const CHANGE: u64 = 40;

/// Bytes by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Both ends of all flows, and their rows.
    pub flows: u64,
    /// The samples of flows.
    pub samples: u64,
    /// The samples of links.
    pub links: u64,
    /// Records of drops.
    pub drops: u64,
    /// Packets in queues or in transit.
    pub packets: u64,
    /// Captured packets.
    pub captures: u64,
    /// The rows of packets.
    pub points: u64,
    /// The rows of intervals.
    pub intervals: u64,
    /// Changes of links.
    pub changes: u64,
    /// A kernel.
    pub kernel: u64,
}

impl Held {
    /// The memory that the tables of a plan hold at least at its end, with `each` bytes for a flow.
    pub fn at_least(plan: &Plan, each: u64) -> Self {
        let times = |interval: tcplab_units::Duration| {
            plan.duration.as_picos() / interval.as_picos().max(1)
        };
        let links = match plan.record.links {
            OrOff::On(interval) => times(interval).saturating_mul(plan.lanes.len() as u64),
            OrOff::Off => 0,
        };
        let samples = match plan.record.samples {
            Samples::Every(interval) => times(interval).saturating_mul(lasting(plan)),
            Samples::Ack | Samples::Off => 0,
        };
        let measured = plan.measured();
        let length = measured.to.saturating_sub(measured.from).as_picos();
        let intervals = measured.every.map_or(0, |every| length / every.as_picos().max(1));
        let changes = plan.lanes.iter().map(|lane| lane.changes_in(plan.duration));
        Self {
            changes: changes.fold(0, u64::saturating_add).saturating_mul(CHANGE),
            intervals: intervals.saturating_mul(lasting(plan)).min(ROWS) * ROW,
            flows: each.saturating_mul(plan.flows.len() as u64),
            samples: samples.min(ROWS) * ROW,
            links: links.min(ROWS) * ROW,
            ..Self::default()
        }
    }

    /// The total.
    pub fn total(&self) -> u64 {
        self.parts().iter().fold(0, |total, part| total.saturating_add(part.0))
    }

    /// The largest part: its bytes, its name, and how to reduce it.
    pub fn largest(&self) -> (u64, &'static str, &'static str) {
        let [first, others @ ..] = self.parts();
        others.into_iter().fold(first, |most, part| if part.0 > most.0 { part } else { most })
    }

    fn parts(&self) -> [(u64, &'static str, &'static str); 10] {
        [
            (self.samples, "samples of flows", "a longer interval of `record.samples`"),
            (self.links, "samples of links", "a longer interval of `record.links`"),
            (self.flows, "connections", "fewer `flows` or arrivals"),
            (self.drops, "dropped packets", "a shorter `duration`"),
            (self.packets, "packets on their way", "a shorter `queue`, or a smaller `wmem`"),
            (self.captures, "captured packets", "fewer `record.captures`"),
            (self.points, "rows of packets", "fewer `record.packets`"),
            (self.intervals, "intervals of flows", "a longer `every`"),
            (self.changes, "changes of links", "changes that are further apart"),
            (self.kernel, "the kernel", "fewer `flows`"),
        ]
    }
}

impl Add for Held {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            flows: self.flows.saturating_add(other.flows),
            samples: self.samples.saturating_add(other.samples),
            links: self.links.saturating_add(other.links),
            drops: self.drops.saturating_add(other.drops),
            packets: self.packets.saturating_add(other.packets),
            captures: self.captures.saturating_add(other.captures),
            points: self.points.saturating_add(other.points),
            intervals: self.intervals.saturating_add(other.intervals),
            changes: self.changes.saturating_add(other.changes),
            kernel: self.kernel.saturating_add(other.kernel),
        }
    }
}

/// Flows that are sampled from beginning to end for sure. Others may end at any time, or not
/// connect through a congested bottleneck.
fn lasting(plan: &Plan) -> u64 {
    let mut endless: BTreeMap<usize, u64> = BTreeMap::new();
    for flow in plan.flows.iter().filter(|flow| flow.start.is_zero()) {
        if matches!(&*flow.traffic, TrafficPlan::Bulk(bulk) if bulk.size.is_none()) {
            *endless.entry(flow.bottleneck).or_default() += 1;
        }
    }
    let is_roomy = |(lane, flows): &(usize, u64)| {
        plan.lanes[*lane].lasting_rate().bits_per_second() / flows >= ROOMY
    };
    endless.into_iter().filter(is_roomy).map(|(_, flows)| flows).sum()
}

/// Bits a second for each flow: several full-sized packets.
const ROOMY: u64 = 50_000;

/// Bytes for display: `1.5 GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            // Less than a megabyte would be rounded to 0 MB.
            1_000..1_000_000 => write!(f, "{:.0} kB", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.0} MB", self.0 as f64 / 1e6),
            _ => write!(f, "{:.1} GB", self.0 as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_part_of_memory_is_named() {
        let held = Held { samples: 3, links: 5, drops: 5, ..Held::default() };
        assert_eq!(held.total(), 13);
        assert_eq!(held.largest().1, "samples of links");
        assert_eq!(Held { flows: u64::MAX, ..held }.total(), u64::MAX);
    }

    #[test]
    fn sizes_are_printed_in_readable_units() {
        assert_eq!(Size(999).to_string(), "999 B");
        assert_eq!(Size(1_000).to_string(), "1 kB");
        assert_eq!(Size(999_400_000).to_string(), "999 MB");
        assert_eq!(Size(2_460_000_000).to_string(), "2.5 GB");
    }
}
