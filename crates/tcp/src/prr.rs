//! Proportional rate reduction: a smaller window is reached over a round trip, by sending less than is
//! delivered (RFC 6937, RFC 9937 as in Linux: packet conservation, and slow start only while nothing
//! more is found lost).

/// A reduction under way. Counts are of segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    /// The window when it began: `RecoverFS`.
    before: u64,
    /// The window it leads to.
    target: u64,
    delivered: u64,
    sent: u64,
    /// The window now.
    pub cwnd: u64,
}

impl Reduction {
    pub fn new(before: u64, target: u64) -> Self {
        Self { before: before.max(1), target, delivered: 0, sent: 0, cwnd: before }
    }

    /// An ACK delivered so many and found so many lost; `advanced`: it acknowledged data.
    pub fn on_ack(&mut self, delivered: u64, lost: u64, advanced: bool, in_flight: u64) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let mut more = if in_flight > self.target {
            // Proportionally: of each window delivered, a target's worth is sent.
            let due = (self.target * self.delivered).div_ceil(self.before);
            due.saturating_sub(self.sent)
        } else {
            let mut conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            conserved += u64::from(advanced && lost == 0);
            conserved.min(self.target - in_flight)
        };
        if self.sent == 0 {
            // The first retransmission leaves at once.
            more = more.max(1);
        }
        self.cwnd = in_flight + more;
    }

    pub fn on_sent(&mut self) {
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_a_target_for_each_window_delivered() {
        // RFC 6937 §4.1: 20 segments, one lost, target 10: every second ACK lets one go.
        let mut reduction = Reduction::new(20, 10);
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
        let mut reduction = Reduction::new(20, 10);
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
}
