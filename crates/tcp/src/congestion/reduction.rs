//! A smaller window, reached over a round trip.
//!
//! - Proportional rate reduction: by sending less than is delivered (RFC 6937, RFC 9937 as in
//!   Linux: packet conservation, and slow start only while nothing more is found lost).
//! - Rate halving: by sending one segment for every second ACK (Mathis, Semke, Mahdavi and Lahey,
//!   1999; `tcp_cwnd_down` of Linux until 3.1).

use crate::settings::WindowReduction;

/// A reduction under way. Counts are of segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct CwndReduction {
    /// The window it leads to.
    target: u64,
    way: Way,
    /// The window now.
    pub cwnd: u64,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Proportional {
        /// The window when it began: `RecoverFS`.
        before: u64,
        delivered: u64,
        sent: u64,
    },
    Halving {
        /// Where it ends.
        floor: u64,
        /// The last ACK was the first of two.
        is_second: bool,
    },
}

impl CwndReduction {
    /// From the window `before` to `target`, unless that is to be at once. Halving ends at `floor`.
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

    /// An ACK delivered so many and found so many lost; `advanced`: it acknowledged data.
    pub fn on_ack(&mut self, delivered: u64, lost: u64, advanced: bool, in_flight: u64) {
        if delivered == 0 {
            return;
        }
        match &mut self.way {
            Way::Proportional { before, delivered: so_far, sent } => {
                *so_far += delivered;
                let mut more = if in_flight > self.target {
                    // Proportionally: of each window delivered, a target's worth is sent.
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
                // However much was found lost or delivered, an ACK brings one segment at the most.
                self.cwnd = self.cwnd.min(in_flight + 1);
            }
        }
    }

    /// Sets the window at which the reduction ends.
    pub fn set_target(&mut self, target: u64) {
        self.target = target;
    }

    pub fn on_sent(&mut self) {
        if let Way::Proportional { sent, .. } = &mut self.way {
            *sent += 1;
        }
    }

    /// The window at the end, where it depends on how the reduction went. `burst` segments may
    /// leave at once then.
    pub fn reached(&self, in_flight: u64, burst: u64) -> Option<u64> {
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
    fn sends_a_target_for_each_window_delivered() {
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
    fn below_the_target_it_sends_what_was_delivered_and_one_more_if_nothing_is_lost() {
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
    fn halving_sends_one_segment_for_two_acks_until_it_is_done() {
        // 20 segments, one of them lost: 19 in flight. The first ACK lets one go, as the window is
        // not smaller yet.
        let mut reduction = CwndReduction::begin(WindowReduction::Halving, 20, 10, 10).unwrap();
        let sent = sent_by_halves(&mut reduction, 19, 20);
        assert_eq!(sent[..6], [1, 0, 1, 0, 1, 0]);
        assert_eq!(sent[18..], [1, 1]);
        assert_eq!(reduction.cwnd, 10);
    }

    #[test]
    fn halving_goes_on_below_the_target_if_the_floor_is_lower() {
        let mut reduction = CwndReduction::begin(WindowReduction::Halving, 20, 10, 5).unwrap();
        sent_by_halves(&mut reduction, 19, 40);
        assert_eq!((reduction.cwnd, reduction.reached(5, 3)), (5, Some(5)));
    }

    #[test]
    fn halving_never_lets_a_burst_go() {
        let mut reduction = CwndReduction::begin(WindowReduction::Halving, 20, 10, 10).unwrap();
        // An ACK finds twelve lost at once: the window is what is in flight and one more, for good.
        reduction.on_ack(1, 12, false, 7);
        assert_eq!(reduction.cwnd, 8);
        reduction.on_ack(5, 0, true, 3);
        assert_eq!((reduction.cwnd, reduction.reached(0, 3)), (4, Some(3)));
    }
}
