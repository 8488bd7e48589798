//! `HighSpeed` TCP: Reno at small windows; the larger the window, the faster it grows and the less
//! a loss takes.
//!
//! Reno's window is 1.2 / sqrt(p), with p the share of lost segments: a window of 83,000 segments
//! allows no more than one loss in five billion. `HighSpeed` TCP needs only one in ten million. On
//! the line from there to Reno's 38 segments at one in a thousand, on a logarithmic scale, its
//! window is
//!
//! w = 0.12 / p^0.835.
//!
//! This line determines the growth a(w), in segments a round trip, and the share b(w) that a loss
//! takes:
//!
//! - b(w) falls from 0.5 at 38 segments to 0.1 at 83,000, linearly in the logarithm of w;
//! - a(w) = w^2 p(w) 2 b(w) / (2 - b(w)), with p(w) = 0.078 / w^1.2: 1 at 38, 70 at 83,000.
//!
//! Up to 38 segments it is Reno. Beyond 83,000, which the RFC does not cover, b stays 0.1.
//!
//! Linux has a and b as a table, with a step wherever a(w) grows by a whole segment; above a step,
//! the next one applies. Linux is therefore more aggressive at small windows: between 39 and 118
//! segments it grows by two a round trip, where the RFC says 1.01 to 2. At one loss in a thousand
//! its window is 59 instead of 38, and at one in a hundred thousand 6 % larger than the line. Linux
//! adds a / w for each ACK, however many segments the ACK covers, and a loss in slow start takes
//! the share of the last step.
//!
//! The algorithm is simple, and below 38 segments it is Reno. Two such flows converge slowly,
//! because the larger one grows faster. Reno flows get little where windows are large.
//!
//! - RFC 3649: the response function (§5), a(w) and b(w) (§5), the table (appendix B).
//! - Linux, `tcp_highspeed.c`: computed to the integer with the Linux flavour.

use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, Flavour, FlowState, Init, Kind, Marks,
    Window, defaults,
};
use serde::{Deserialize, Serialize};

/// `HighSpeed` TCP in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "highspeed",
    kind: Kind::Loss,
    summary: "Reno that grows more and shrinks less, the larger the window is",
    reference: "RFC 3649",
    year: 2003,
    marks: Marks::AsSet,
    source: include_str!("highspeed.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(HighSpeed::new(init, params.parse()?))),
};

/// `HighSpeed` TCP has no parameters, like the kernel's module.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

/// The window at which the response function leaves Reno's (RFC 3649 §5).
const LOW_WINDOW: f64 = 38.0;
/// The upper end of the line, and the share that a loss takes there.
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;

/// The window up to which a step applies, and the share that a loss takes there in 1/256. The
/// number of the step, from 1, is the growth per round trip. RFC 3649, appendix B.
const STEPS: [(u64, u64); 72] = [
    (38, 128),
    (118, 112),
    (221, 104),
    (347, 98),
    (495, 93),
    (663, 89),
    (851, 86),
    (1058, 83),
    (1284, 81),
    (1529, 78),
    (1793, 76),
    (2076, 74),
    (2378, 72),
    (2699, 71),
    (3039, 69),
    (3399, 68),
    (3778, 66),
    (4177, 65),
    (4596, 64),
    (5036, 62),
    (5497, 61),
    (5979, 60),
    (6483, 59),
    (7009, 58),
    (7558, 57),
    (8130, 56),
    (8726, 55),
    (9346, 54),
    (9991, 53),
    (10661, 52),
    (11358, 52),
    (12082, 51),
    (12834, 50),
    (13614, 49),
    (14424, 48),
    (15265, 48),
    (16137, 47),
    (17042, 46),
    (17981, 45),
    (18955, 45),
    (19965, 44),
    (21013, 43),
    (22101, 43),
    (23230, 42),
    (24402, 41),
    (25618, 41),
    (26881, 40),
    (28193, 39),
    (29557, 39),
    (30975, 38),
    (32450, 38),
    (33986, 37),
    (35586, 36),
    (37253, 36),
    (38992, 35),
    (40808, 35),
    (42707, 34),
    (44694, 33),
    (46776, 33),
    (48961, 32),
    (51258, 32),
    (53677, 31),
    (56230, 30),
    (58932, 30),
    (61799, 29),
    (64851, 28),
    (68113, 28),
    (71617, 27),
    (75401, 26),
    (79517, 26),
    (84035, 25),
    (89053, 24),
];

/// The maximum window in the kernel (`snd_cwnd_clamp`).
const MOST: u64 = u32::MAX as u64 / 128;

/// The `HighSpeed` controller of one flow.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    flavour: Flavour,
    window: Window,
    /// With the Linux flavour: the step of the window in `STEPS`, as of the last growth outside
    /// slow start.
    step: usize,
}

impl HighSpeed {
    /// `HighSpeed` TCP at the start of a connection.
    pub fn new(init: &Init, _config: Config) -> Self {
        Self { flavour: init.flavour, window: Window::new(init), step: 0 }
    }

    /// The step for a window: the first that covers it.
    fn step_of(cwnd: u64) -> usize {
        STEPS.partition_point(|(up_to, _)| *up_to < cwnd).min(STEPS.len() - 1)
    }

    /// Congestion avoidance.
    fn grow(&mut self, credit: u64) {
        let cwnd = self.window.cwnd();
        match self.flavour {
            Flavour::Rfc => self.window.grow(cwnd as f64 / a(cwnd as f64), credit),
            Flavour::Linux => {
                self.step = Self::step_of(cwnd);
                if cwnd < MOST {
                    self.window.grow(cwnd as f64, self.step as u64 + 1);
                }
            }
        }
    }

    /// `a` and `b` of the window.
    fn rules(&self) -> (f64, f64) {
        let cwnd = self.window.cwnd() as f64;
        match self.flavour {
            Flavour::Rfc => (a(cwnd), b(cwnd)),
            Flavour::Linux => (self.step as f64 + 1.0, STEPS[self.step].1 as f64 / 256.0),
        }
    }
}

/// RFC 3649 §5: the share that a loss takes.
fn b(w: f64) -> f64 {
    let (low, high) = (libm::log(LOW_WINDOW), libm::log(HIGH_WINDOW));
    let w = libm::log(w.clamp(LOW_WINDOW, HIGH_WINDOW));
    (HIGH_DECREASE - 0.5) * (w - low) / (high - low) + 0.5
}

/// RFC 3649 §5: the growth per round trip that balances losses at p(w).
fn a(w: f64) -> f64 {
    let (p, b) = (0.078 / libm::pow(w, 1.2), b(w));
    if w > LOW_WINDOW { (w * w * p * 2.0 * b / (2.0 - b)).max(1.0) } else { 1.0 }
}

impl CongestionControl for HighSpeed {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || !flow.cwnd_limited || ack.credit == 0 {
            return;
        }
        let was_in_slow_start = self.window.in_slow_start();
        let rest = self.window.slow_start(ack.credit);
        if was_in_slow_start && self.flavour == Flavour::Linux {
            // Growth left over from slow start is dropped.
            self.window.cap(MOST);
        } else if rest > 0 {
            self.grow(rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let base = self.window.cut_from(event);
        match self.flavour {
            Flavour::Rfc => self.window.shrink(flow, event, 1.0 - self.rules().1),
            Flavour::Linux => {
                let taken = (u128::from(base) * u128::from(STEPS[self.step].1)) >> 8;
                self.window.shrink_to(flow, event, base - taken as u64);
            }
        }
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        let (a, b) = self.rules();
        // `a(w)`: segments by which the window grows per round trip.
        record("a", a);
        // `b(w)`: share of the window that a loss takes.
        record("b", b);
        // Share of a segment that the window has grown by besides.
        record("credit", self.window.credit());
    }
}

#[cfg(test)]
mod tests;
