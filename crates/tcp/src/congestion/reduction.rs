//! Window reduction spread over a round trip.
//!
//! - Proportional rate reduction: by sending less than is delivered (RFC 6937, RFC 9937 as in
//!   Linux: packet conservation, and slow start only while nothing more is found lost).
//! - Rate halving: by sending one segment for every second ACK (Mathis, Semke, Mahdavi and Lahey,
//!   1999; `tcp_cwnd_down` of Linux until 3.1).

use crate::settings::WindowReduction;

/// A reduction in progress. Counts are of segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct CwndReduction {
    /// The window at its end.
    target: u64,
    way: Way,
    /// The present window.
    pub cwnd: u64,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Proportional {
        /// The window when the reduction began: `RecoverFS`.
        before: u64,
        delivered: u64,
        sent: u64,
    },
    Halving {
        /// The window below which it does not halve.
        floor: u64,
        /// The last ACK was the first of a pair.
        is_second: bool,
    },
}

impl CwndReduction {
    /// A reduction from the window `before` to `target`; none if the reduction is immediate. Rate
    /// halving ends at `floor`.
    pub fn begin(way: WindowReduction, before: u64, target: u64, floor: u64) -> Option<Self> {
        let way = match way {
            WindowReduction::AtOnce => return None,
            WindowReduction::Halving => Way::Halving { floor, is_second: false },
            WindowReduction::Proportional => {
                Way::Proportional { before: before.max(1), delivered: 0, sent: 0 }
            }
        };
        Some(Self { target, way, cwnd: before })
    }

    /// An ACK delivered and lost this many segments. `advanced`: it acknowledged data.
    pub fn on_ack(&mut self, delivered: u64, lost: u64, advanced: bool, in_flight: u64) {
        if delivered == 0 {
            return;
        }
        match &mut self.way {
            Way::Proportional { before, delivered: so_far, sent } => {
                *so_far += delivered;
                let mut more = if in_flight > self.target {
                    // Proportional: for each `before` segments delivered, `target` segments are
                    // sent.
                    let due = (self.target * *so_far).div_ceil(*before);
                    due.saturating_sub(*sent)
                } else {
                    let mut conserved = so_far.saturating_sub(*sent).max(delivered);
                    conserved += u64::from(advanced && lost == 0);
                    conserved.min(self.target - in_flight)
                };
                if *sent == 0 {
                    // The first retransmission leaves at once.
                    more = more.max(1);
                }
                self.cwnd = in_flight + more;
            }
            Way::Halving { floor, is_second } => {
                if std::mem::replace(is_second, !*is_second) && self.cwnd > *floor {
                    self.cwnd -= 1;
                }
                // An ACK releases at most one segment, however much it delivers or finds lost.
                self.cwnd = self.cwnd.min(in_flight + 1);
            }
        }
    }

    /// Changes the target.
    pub fn set_target(&mut self, target: u64) {
        self.target = target;
    }

    pub fn on_sent(&mut self) {
        if let Way::Proportional { sent, .. } = &mut self.way {
            *sent += 1;
        }
    }

    /// The window at the end of rate halving, which allows a burst of at most `burst` segments.
    pub fn final_cwnd(&self, in_flight: u64, burst: u64) -> Option<u64> {
        let is_halving = matches!(self.way, Way::Halving { .. });
        is_halving.then(|| self.cwnd.min(self.target).min(in_flight + burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proportional() -> CwndReduction {
        CwndReduction::begin(WindowReduction::Proportional, 20, 10, 10).unwrap()
    }

    #[test]
    fn prr_sends_ssthresh_segments_per_window_delivered() {
        // RFC 6937 §4.1: 20 segments, one lost, target 10: every second ACK lets one go.
        let mut reduction = proportional();
        let mut in_flight = 19;
        let mut sent = Vec::new();
        for _ in 0..10 {
            in_flight -= 1;
            reduction.on_ack(1, 0, false, in_flight);
            let may = reduction.cwnd - in_flight;
            (0..may).for_each(|_| reduction.on_sent());
            in_flight += may;
            sent.push(may);
        }
        // ceil(delivered / 2) have left after each.
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn prr_below_ssthresh_sends_as_delivered_plus_one_without_new_loss() {
        let mut reduction = proportional();
        reduction.on_ack(1, 12, false, 4);
        assert_eq!(reduction.cwnd - 4, 1);
        reduction.on_sent();
        reduction.on_ack(2, 1, true, 4);
        assert_eq!(reduction.cwnd - 4, 2);
        reduction.on_sent();
        reduction.on_sent();
        reduction.on_ack(2, 0, true, 4);
        assert_eq!(reduction.cwnd - 4, 3);
    }

    /// The segments that each of `acks` ACKs lets go, each delivering one, with `in_flight` before.
    fn sent_by_halves(reduction: &mut CwndReduction, mut in_flight: u64, acks: usize) -> Vec<u64> {
        let mut sent = Vec::new();
        for _ in 0..acks {
            in_flight -= 1;
            reduction.on_ack(1, 0, false, in_flight);
            let may = reduction.cwnd.saturating_sub(in_flight);
            in_flight += may;
            sent.push(may);
        }
        sent
    }

    #[test]
    fn rate_halving_sends_one_segment_per_two_acks_until_ssthresh() {
        // 20 segments, one of them lost: 19 in flight. The first ACK lets one go, as the window is
        // not smaller yet.
        let mut reduction = CwndReduction::begin(WindowReduction::Halving, 20, 10, 10).unwrap();
        let sent = sent_by_halves(&mut reduction, 19, 20);
        assert_eq!(sent[..6], [1, 0, 1, 0, 1, 0]);
        assert_eq!(sent[18..], [1, 1]);
        assert_eq!(reduction.cwnd, 10);
    }

    #[test]
    fn rate_halving_continues_below_ssthresh_to_a_lower_floor() {
        let mut reduction = CwndReduction::begin(WindowReduction::Halving, 20, 10, 5).unwrap();
        sent_by_halves(&mut reduction, 19, 40);
        assert_eq!((reduction.cwnd, reduction.final_cwnd(5, 3)), (5, Some(5)));
    }

    #[test]
    fn rate_halving_limits_cwnd_to_in_flight_plus_one() {
        let mut reduction = CwndReduction::begin(WindowReduction::Halving, 20, 10, 10).unwrap();
        // An ACK finds twelve lost at once: the window is what is in flight and one more, for good.
        reduction.on_ack(1, 12, false, 7);
        assert_eq!(reduction.cwnd, 8);
        reduction.on_ack(5, 0, true, 3);
        assert_eq!((reduction.cwnd, reduction.final_cwnd(0, 3)), (4, Some(3)));
    }
}
