//! The transmission capacity of a lane over time.

use std::cell::OnceCell;
use tcplab_model::schema::OPPORTUNITY_BYTES;
use tcplab_model::{LanePlan, Plan};
use tcplab_units::{Duration, Rate};
use tcplab_workload::links;

/// The minimum time in which a packet of this size passes a lane: at its highest rate and shortest
/// delay.
pub(crate) fn least_time(lane: &LanePlan, bytes: u64) -> Duration {
    if lane.leaves_lan() {
        return Duration::ZERO;
    }
    let changes = lane.delay_changes.as_ref();
    let delay = changes.map_or(lane.delay, |changes| changes.least(lane.delay));
    let delay = lane.light.as_ref().map_or(delay, |light| light.trains.least_delay());
    let changes = lane.rate_changes.as_ref();
    match changes.map_or(Some(lane.rate), |changes| changes.highest(lane.rate)) {
        Some(rate) => delay + rate.time_for(bytes),
        None => delay,
    }
}

/// The bytes that a lane can have transmitted by each time.
pub(crate) enum Capacity {
    /// From when, at how many bytes a second, and the bytes until then.
    Rates(Vec<(f64, f64, f64)>),
    /// The milliseconds of a trace with the bytes until then, and the period in milliseconds.
    Trace(Vec<(u64, u64)>, u64),
}

impl Capacity {
    pub fn of(plan: &Plan, lane: &LanePlan) -> Self {
        // Packets far enough apart each have an opportunity of their own.
        if lane.light.is_some() {
            return Self::Rates(vec![(0.0, ANY_RATE, 0.0)]);
        }
        if let Some((mut list, period)) = links::opportunities(lane, plan.seed, plan.duration) {
            let mut bytes = 0_u64;
            for (_, count) in &mut list {
                bytes = bytes.saturating_add(count.saturating_mul(OPPORTUNITY_BYTES));
                *count = bytes;
            }
            return Self::Trace(list, period);
        }
        let per_second = |rate: Rate| rate.bits_per_second() as f64 / 8.0;
        let mut pieces = vec![(0.0, per_second(lane.rate), 0.0)];
        for (at, rate) in links::rates(lane, plan.seed, plan.duration) {
            let (from, bytes, before) = pieces[pieces.len() - 1];
            let at = at.as_secs_f64();
            pieces.push((at, per_second(rate), before + bytes * (at - from)));
        }
        Self::Rates(pieces)
    }

    /// Bytes from the start until then.
    #[inline]
    pub fn until(&self, time_s: f64) -> f64 {
        match self {
            Self::Rates(pieces) => {
                if let [(_, bytes, _)] = pieces[..] {
                    return bytes * time_s;
                }
                let after = pieces.partition_point(|piece| piece.0 <= time_s).max(1);
                let (from, bytes, before) = pieces[after - 1];
                before + bytes * (time_s - from)
            }
            Self::Trace(list, period) => {
                let ms = (time_s * 1e3 + ROUNDING_MS) as u64;
                let (rounds, into) = (ms / period, ms % period);
                let whole = list.last().map_or(0, |last| last.1);
                let reached = list.partition_point(|entry| entry.0 <= into);
                let part = reached.checked_sub(1).map_or(0, |entry| list[entry].1);
                rounds as f64 * whole as f64 + part as f64
            }
        }
    }

    /// The most bytes in a time of less than a millisecond.
    pub fn most_in(&self, time_s: f64) -> f64 {
        match self {
            Self::Rates(pieces) => {
                time_s * pieces.iter().fold(0.0, |most: f64, piece| most.max(piece.1))
            }
            // The end of a period and the beginning of the next may be the same millisecond.
            Self::Trace(list, _) if time_s > 0.0 => {
                let before = std::iter::once(0).chain(list.iter().map(|entry| entry.1));
                let bursts = list.iter().zip(before).map(|(entry, before)| entry.1 - before);
                2.0 * bursts.max().unwrap_or(0) as f64
            }
            Self::Trace(..) => 0.0,
        }
    }

    /// The bytes by which rounding a packet's time, to half a picosecond, may put a lane ahead.
    pub fn rounding(&self) -> f64 {
        match self {
            Self::Rates(_) => self.most_in(0.5e-12),
            Self::Trace(..) => 0.0,
        }
    }
}

/// The capacities of all lanes, computed on demand.
pub(crate) struct Capacities<'a> {
    plan: &'a Plan,
    lanes: Vec<OnceCell<Capacity>>,
}

impl<'a> Capacities<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, lanes: plan.lanes.iter().map(|_| OnceCell::new()).collect() }
    }

    /// The capacity of the lane with this number.
    pub fn of(&self, lane: usize) -> &Capacity {
        self.lanes[lane].get_or_init(|| Capacity::of(self.plan, &self.plan.lanes[lane]))
    }
}

/// Rounding errors of times in tables.
const ROUNDING_MS: f64 = 1e-9;

/// More bytes a second than any lane transmits.
const ANY_RATE: f64 = 1e18;
