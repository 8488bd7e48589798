//! The versions of Vegas besides the kernel's, which decide once a round trip whether the ACKs of
//! the next one grow the window.

use super::{Rules, Vegas};
use crate::FlowState;

impl Vegas {
    /// Follows the papers, also as read by `tcp-vegas.cc` of ns-2.
    pub(super) fn go_on_by_the_paper(&mut self, flow: &FlowState, credit: u64) {
        if self.delays.is_round_over(flow) {
            if self.count > 0 {
                self.decide_by_the_paper(flow);
            }
            self.begin_round(flow);
        }
        self.grow(flow, credit);
    }

    /// Expected throughput is the outstanding data per `base_rtt`; actual throughput is the data
    /// sent between a segment and its ACK, per RTT of that segment. Their difference times
    /// `base_rtt` is the queue.
    fn decide_by_the_paper(&mut self, flow: &FlowState) {
        let is_mean = self.config.rules == Rules::Ns2;
        let rtt = if is_mean { self.sum / self.count } else { self.newest };
        let rtt = rtt.saturating_add(1).max(self.delays.base());
        let share = self.delays.base() as f64 / rtt as f64;
        let segments = |bytes: u64| bytes as f64 / flow.mss.max(1) as f64;
        let expected = segments(flow.nxt.saturating_sub(flow.una));
        let actual = segments(flow.nxt.saturating_sub(self.delays.begin())) * share;
        (self.diff, self.rtt) = (expected - actual, rtt);
        let diff = libm::floor(self.diff + 0.5);
        let cwnd = self.window.cwnd();
        if self.window.in_slow_start() {
            self.grows = !self.grows;
            // The round trip that ends was one without growth, so its delay is that of the window.
            if self.grows && diff > self.config.gamma as f64 {
                let cut = if self.config.rules == Rules::Ns2 { cwnd / 8 } else { 0 };
                self.slow_down_to((cwnd - cut).max(2));
                self.grows = false;
            }
        } else if diff > self.config.beta as f64 {
            self.slow_down_to((cwnd - 1).max(2).min(cwnd));
            self.grows = false;
        } else {
            self.grows = diff < self.config.alpha as f64;
        }
    }

    /// Follows `cc_vegas.c` of FreeBSD, with the measurements of `h_ertt.c`.
    pub(super) fn go_on_like_freebsd(&mut self, flow: &FlowState, credit: u64) {
        if self.delays.is_round_over(flow) {
            if self.count > 0 {
                self.decide_like_freebsd(flow);
            }
            self.begin_round(flow);
        }
        self.grow(flow, credit);
    }

    fn decide_like_freebsd(&mut self, flow: &FlowState) {
        // Ticks are milliseconds, and the current one counts.
        let [base, rtt] =
            [self.delays.base() - 1, self.newest].map(|rtt| i128::from(rtt / 1000 + 1));
        let (cwnd, mss) = (self.window.cwnd(), i128::from(flow.mss.max(1)));
        let expected = i128::from(cwnd).saturating_mul(mss) / base;
        let actual = i128::from(flow.nxt.saturating_sub(self.delays.begin())) / rtt;
        let diff = (expected - actual).saturating_mul(base) / mss;
        (self.diff, self.rtt) = (diff as f64, self.newest.saturating_add(1));
        if diff < i128::from(self.config.alpha) {
            if cwnd <= self.window.ssthresh() {
                self.grows = !self.grows;
            } else {
                self.grows = false;
                self.window.set(cwnd.saturating_add(1));
            }
        } else if diff > i128::from(self.config.beta) {
            self.slow_down_to((cwnd - 1).max(2).min(cwnd));
            self.grows = false;
        }
    }

    fn begin_round(&mut self, flow: &FlowState) {
        self.delays.begin_round(flow);
        (self.sum, self.count) = (0, 0);
    }

    fn grow(&mut self, flow: &FlowState, credit: u64) {
        if self.grows {
            self.go_on_like_reno(flow, credit);
        }
    }
}
