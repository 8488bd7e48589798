//! Counts round trips for all congestion controllers: a round ends when the first data sent after
//! its start is acknowledged.

use tcplab_cc::{Ack, Round};
use tcplab_units::{Duration, Time};

/// The present round trip.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// The round ends when more than this is acknowledged.
    end: u64,
    started: Time,
    min: Option<Duration>,
    max: Duration,
    sum: Duration,
    samples: u32,
    delivered: u64,
    lost: u64,
    ce: u64,
}

impl Rounds {
    /// Adds the deliveries of an ACK. Returns the round if the ACK ends it. `una` is the oldest
    /// that is not acknowledged, `nxt` the next to be sent.
    #[inline]
    pub fn on_ack(&mut self, now: Time, una: u64, nxt: u64, ack: &Ack) -> Option<Round> {
        if let Some(rtt) = ack.rtt {
            self.min = Some(self.min.map_or(rtt, |least| least.min(rtt)));
            self.max = self.max.max(rtt);
            self.sum += rtt;
            self.samples += 1;
        }
        self.delivered += ack.delivered;
        self.lost += ack.lost;
        self.ce += ack.ce;
        (una > self.end).then(|| self.end(now, nxt))
    }

    /// The round is over, and the next one begins.
    #[inline(never)]
    fn end(&mut self, now: Time, nxt: u64) -> Round {
        let sampled = |value| (self.samples > 0).then_some(value);
        let round = Round {
            duration: now.since(self.started),
            min_rtt: self.min,
            mean_rtt: sampled(self.sum / u64::from(self.samples.max(1))),
            max_rtt: sampled(self.max),
            rtt_samples: self.samples,
            delivered: self.delivered,
            lost: self.lost,
            ce: self.ce,
        };
        *self = Self { end: nxt, started: now, ..Self::default() };
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn rtt(millis: u64) -> Ack {
        Ack { rtt: Some(Duration::from_millis(millis)), delivered: 1, ..Ack::default() }
    }

    #[test]
    fn a_round_ends_with_the_first_data_sent_in_it() {
        let mut rounds = Rounds::default();
        // Offsets 1..=1000 were sent at the start; each ACK lets 200 more go.
        assert!(rounds.on_ack(at(100), 101, 1_201, &rtt(100)).is_some());
        for una in [301, 501, 901, 1_201] {
            assert!(rounds.on_ack(at(150), una, una + 1_100, &rtt(120)).is_none(), "{una}");
        }
        let round = rounds.on_ack(at(200), 1_301, 2_401, &rtt(140)).unwrap();
        assert_eq!(round.duration, Duration::from_millis(100));
        assert_eq!(round.min_rtt, Some(Duration::from_millis(120)));
        assert_eq!(round.max_rtt, Some(Duration::from_millis(140)));
        // Four of 120 ms and one of 140 ms.
        assert_eq!(round.mean_rtt, Some(Duration::from_millis(124)));
        assert_eq!((round.rtt_samples, round.delivered), (5, 5));
    }
}
