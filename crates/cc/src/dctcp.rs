//! DCTCP: cut the window by the share of marked packets.
//!
//! A classic sender halves its window for one mark, so a queue that keeps the link busy must be
//! long. DCTCP counts how many packets were marked: few marks cause a small cut. Queues can then
//! mark as soon as a few packets wait, and stay short. DCTCP is designed for data centres, where
//! all hosts and queues belong to one owner; beside classic flows on such a queue it takes nearly
//! everything.
//!
//! - A switch marks every packet that finds more than K packets waiting. The receiver echoes the
//!   marks exactly: it acknowledges at once when marks begin or end (RFC 8257 §3.2).
//! - Once a window, `alpha` moves towards the share F of marked packets: `alpha += g (F - alpha)`,
//!   with g = 2 to the power of minus `dctcp_shift_g`.
//! - The first mark in a window reduces it: `cwnd *= 1 - alpha / 2`. If all packets are marked, the
//!   window is halved as in Reno, whose growth DCTCP shares. A loss halves the window, whatever
//!   alpha is.
//!
//! N flows of equal windows keep a queue that marks at K between K + N and K + N less the amplitude
//! `sqrt(2 N (C RTT + K)) / 2` (Alizadeh et al. 2010, §3.3), so that K = C RTT / 7 is enough for a
//! full link. Flows converge more slowly than Reno's.
//!
//! Both ends use ECN and DCTCP's echo without further options, and all their packets are
//! ECN-capable. The arithmetic is the kernel's (`tcp_dctcp.c`) in both flavours: alpha in 1/1024,
//! and initially 1. In the kernel, a tail loss that a probe has repaired counts like a mark.
//!
//! - RFC 8257.
//! - Alizadeh, Greenberg, Maltz, Padhye, Patel, Prabhakar, Sengupta, Sridharan: Data Center TCP
//!   (DCTCP), SIGCOMM 2010.

use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, Flavour, FlowState, Init, Kind,
    Marks, Phase, Window, defaults,
};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

/// An alpha of one.
const ONE: u64 = 1 << LOG;
const LOG: u32 = 10;

/// DCTCP in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "dctcp",
    kind: Kind::Marks,
    summary: "cut by the share of marked packets, for queues that mark at a threshold",
    reference: "RFC 8257; Alizadeh et al. 2010",
    year: 2010,
    marks: Marks::Echoed,
    source: include_str!("dctcp.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Dctcp::new(init, &params.parse()?))),
};

/// Parameters of DCTCP, as in the kernel module.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The weight of a window in alpha is 2 to the power of minus this (RFC 8257 §4.2: g = 1/16).
    #[serde(deserialize_with = "shift")]
    pub dctcp_shift_g: u32,
    /// The initial alpha, in 1/1024. 1024 is cautious: the first mark halves the window.
    #[serde(deserialize_with = "alpha")]
    pub dctcp_alpha_on_init: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { dctcp_shift_g: 4, dctcp_alpha_on_init: ONE }
    }
}

fn up_to<'de, D: Deserializer<'de>>(deserializer: D, most: u64) -> Result<u64, D::Error> {
    let number = u64::deserialize(deserializer)?;
    if number > most {
        return Err(D::Error::custom(format!("{number}, expected a whole number up to {most}")));
    }
    Ok(number)
}

fn shift<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    up_to(deserializer, LOG.into()).map(|number| number as u32)
}

fn alpha<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    up_to(deserializer, ONE)
}

/// The DCTCP controller of one flow.
#[derive(Clone, Debug)]
pub struct Dctcp {
    shift: u32,
    flavour: Flavour,
    window: Window,
    /// The share of marked packets, in 1/1024.
    alpha: u64,
    /// The counted window ends when this is acknowledged.
    end: u64,
    /// Segments delivered before the window began.
    delivered: u64,
    /// Marked segments of the window.
    marked: u64,
}

impl Dctcp {
    /// DCTCP at the start of a connection.
    pub fn new(init: &Init, config: &Config) -> Self {
        Self {
            shift: config.dctcp_shift_g,
            flavour: init.flavour,
            window: Window::new(init),
            alpha: config.dctcp_alpha_on_init,
            end: 0,
            delivered: 0,
            marked: 0,
        }
    }

    /// Updates alpha at the end of a window in which so many segments arrived (RFC 8257 §3.3 step
    /// 6).
    fn update(&mut self, delivered: u64) {
        let less = match self.alpha >> self.shift {
            // A value too small to be shifted is cleared.
            0 => self.alpha,
            less => less,
        };
        let more = (self.marked.saturating_mul(ONE >> self.shift)) / delivered.max(1);
        self.alpha = (self.alpha - less).saturating_add(more).min(ONE);
    }
}

impl CongestionControl for Dctcp {
    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        self.marked = self.marked.saturating_add(ack.ce);
        if flow.una < self.end {
            return;
        }
        let delivered = flow.delivered.saturating_add(ack.delivered);
        self.update(delivered.saturating_sub(self.delivered));
        (self.end, self.delivered, self.marked) = (flow.nxt, delivered, 0);
    }

    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || !flow.cwnd_limited {
            return;
        }
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            self.window.grow(self.window.cwnd() as f64, rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        // In the kernel a loss repaired by a probe does not enter the loss state, and only
        // `ssthresh` is called.
        let is_probed = flow.phase == Phase::Reduced && self.flavour == Flavour::Linux;
        if event.cause == Cause::Ecn || (event.cause == Cause::Loss && is_probed) {
            let cwnd = self.window.cwnd();
            let cut = cwnd.saturating_mul(self.alpha) >> (LOG + 1);
            self.window.shrink_to(flow, event, cwnd - cut);
        } else {
            self.window.shrink(flow, event, 0.5);
        }
    }

    fn on_deepened(&mut self, cwnd: u64) {
        // `dctcp_react_to_loss`; recovery ends with a window of the threshold
        // (`tcp_end_cwnd_reduction`).
        let kept = (cwnd / 2).max(2);
        self.window.set_threshold(kept);
        self.window.cap(kept);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // `alpha`: moving average of the share of marked packets, 0 to 1.
        record("alpha", self.alpha as f64 / ONE as f64);
        // Always 0: whether the last data received was marked, and a sender receives none.
        record("ce_state", 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{INIT, LINUX, Path, windows};
    use crate::{Params, build};
    use tcplab_units::Duration;

    fn dctcp(init: &Init) -> Dctcp {
        Dctcp::new(init, &Config::default())
    }

    /// Windows of so many segments, of which so many are marked.
    fn after(cc: &mut Dctcp, rounds: usize, segments: u64, marked: u64) {
        let mut flow = crate::testing::FLOW;
        flow.delivered = cc.delivered;
        flow.una = cc.end;
        for _ in 0..rounds {
            flow.nxt = flow.una + 1;
            let ack = Ack { delivered: segments, ce: marked, ..Ack::default() };
            cc.on_arrival(&flow, &ack);
            flow.delivered += segments;
            flow.una = flow.nxt;
        }
    }

    #[test]
    fn alpha_begins_at_one_and_follows_the_share_of_marks() {
        let mut cc = dctcp(&INIT);
        assert_eq!(cc.alpha, 1024);
        // RFC 8257 §3.3: 15/16 of alpha and 1/16 of F. 1024 -> 960 -> 900; for F = 1/4 a window of
        // new marks adds 64 / 4 = 16.
        after(&mut cc, 1, 40, 0);
        assert_eq!(cc.alpha, 960);
        after(&mut cc, 1, 40, 10);
        assert_eq!(cc.alpha, 960 - 60 + 16);
        // In the long run alpha is F, apart from the shift's rounding: alpha >> 4 is 16 for
        // 256..=271.
        after(&mut cc, 400, 40, 10);
        assert!((256..=271).contains(&cc.alpha), "{}", cc.alpha);
        // Without marks alpha decays to zero.
        after(&mut cc, 400, 40, 0);
        assert_eq!(cc.alpha, 0);
    }

    #[test]
    fn alpha_is_updated_once_the_observation_window_is_acknowledged() {
        let mut cc = dctcp(&INIT);
        let mut flow = crate::testing::FLOW;
        (flow.una, flow.nxt) = (1, 1001);
        let ack = Ack { delivered: 1, ..Ack::default() };
        cc.on_arrival(&flow, &ack);
        assert_eq!((cc.alpha, cc.end), (960, 1001));
        for una in [500, 1000] {
            flow.una = una;
            cc.on_arrival(&flow, &ack);
            assert_eq!(cc.alpha, 960);
        }
        flow.una = 1001;
        cc.on_arrival(&flow, &ack);
        assert_eq!(cc.alpha, 900);
    }

    #[test]
    fn a_mark_cuts_by_half_of_alpha_and_a_loss_by_half() {
        for init in [INIT, LINUX] {
            for (cause, alpha, expected) in [
                (Cause::Ecn, 1024, 50),
                // 100 - 100 * 256 / 2048 = 87.5, and 100 - floor(12.5) = 88.
                (Cause::Ecn, 256, 88),
                (Cause::Ecn, 0, 100),
                (Cause::Loss, 0, 50),
            ] {
                let mut cc = dctcp(&init);
                cc.window.set(100);
                cc.alpha = alpha;
                let event = Congestion { cause, flight: 100, again: false };
                cc.on_congestion(&crate::testing::FLOW, event);
                assert_eq!(cc.control().cwnd, expected, "{cause:?} {alpha}");
            }
        }
    }

    #[test]
    fn loss_during_an_ecn_reduction_halves_the_current_cwnd() {
        let mut cc = dctcp(&LINUX);
        cc.window.set(100);
        cc.alpha = 128;
        let event = Congestion { cause: Cause::Ecn, flight: 100, again: false };
        cc.on_congestion(&crate::testing::FLOW, event);
        // 100 - 100 * 128 / 2048 = 93.75, rounded to 94; 97 segments were left by then.
        assert_eq!(cc.control().ssthresh, Some(94));
        cc.on_deepened(97);
        assert_eq!((cc.control().ssthresh, cc.control().cwnd), (Some(48), 48));
        // max(3 >> 1, 2), which is also the window at the end of recovery: no slow start follows.
        cc.on_deepened(3);
        assert_eq!((cc.control().ssthresh, cc.control().cwnd), (Some(2), 2));
    }

    #[test]
    fn grows_like_reno() {
        let mut newreno = build("newreno", &INIT, &Params::default()).unwrap();
        let expected = windows(newreno.as_mut(), 20, &[80, 60]);
        assert_eq!(windows(&mut dctcp(&INIT), 20, &[80, 60]), expected);
    }

    #[test]
    fn mark_with_alpha_below_one_cuts_less_than_half() {
        let mut cc = dctcp(&INIT);
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        for _ in 0..3 {
            path.round();
        }
        // 10, 20, 40, 80: 70 segments are acknowledged by then. The first ACK ends a window, then
        // those of 10, 28 (with 18 in flight behind that one) and 64 (36): 1024, 960, 900,
        // 844, 792. 80 - 80 * 792 / 2048 = 49.06.
        let alpha = path.probe("alpha") * 1024.0;
        assert!((alpha - 792.0).abs() < 0.5, "{alpha}");
        path.congestion(Cause::Ecn);
        assert_eq!(path.cwnd(), 50);
    }

    #[test]
    fn parameters_beyond_kernel_limits_are_refused() {
        for (name, value) in [("dctcp_shift_g", 11), ("dctcp_alpha_on_init", 1025)] {
            let given = Params(serde_json::json!({ name: value }));
            let error = build("dctcp", &INIT, &given).unwrap_err().to_string();
            assert!(error.contains(" is not a whole number up to"), "{error}");
        }
    }
}
