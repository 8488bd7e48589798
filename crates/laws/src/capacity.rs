//! How much a lane can transmit over time.

use tcplab_model::{LanePlan, RateChanges};
use tcplab_units::Rate;

fn steps(lane: &LanePlan) -> &[(tcplab_units::Duration, Rate)] {
    match &lane.rate_changes {
        Some(RateChanges::Steps(steps)) => steps,
        _ => &[],
    }
}

/// The highest rate that it ever has.
pub(crate) fn highest_rate(lane: &LanePlan) -> Rate {
    steps(lane).iter().map(|step| step.1).fold(lane.rate, Rate::max)
}

/// What a lane can have transmitted at each time.
pub(crate) struct Capacity {
    /// From when, at how many bytes a second, and how many bytes until then.
    pieces: Vec<(f64, f64, f64)>,
}

impl Capacity {
    pub fn of(lane: &LanePlan) -> Self {
        let per_second = |rate: Rate| rate.bits_per_second() as f64 / 8.0;
        let mut pieces = vec![(0.0, per_second(lane.rate), 0.0)];
        for (at, rate) in steps(lane) {
            let (from, bytes, before) = pieces[pieces.len() - 1];
            let at = at.as_secs_f64();
            pieces.push((at, per_second(*rate), before + bytes * (at - from)));
        }
        Self { pieces }
    }

    /// Bytes from the start until then.
    #[inline]
    pub fn until(&self, time_s: f64) -> f64 {
        if let [(_, bytes, _)] = self.pieces[..] {
            return bytes * time_s;
        }
        let after = self.pieces.partition_point(|piece| piece.0 <= time_s).max(1);
        let (from, bytes, before) = self.pieces[after - 1];
        before + bytes * (time_s - from)
    }

    /// Bytes a second at the most.
    pub fn most(&self) -> f64 {
        self.pieces.iter().fold(0.0, |most, piece| most.max(piece.1))
    }
}
