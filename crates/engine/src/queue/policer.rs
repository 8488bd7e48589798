//! A policer: packets that find no tokens are dropped, and others wait only for the link. Tokens
//! are counted as in `tbf`, as in Linux `act_police`.

use super::tbf::{Pace, Tokens};
use super::{Drops, Fifo, Next, Queue, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use tcplab_units::{Rate, Time};

/// The configuration of a policer.
#[derive(Clone, Copy, Debug)]
pub struct PolicerConfig {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// The burst size in bytes. A larger packet never passes.
    pub burst: u64,
}

/// The unit in which `act_police` takes burst durations, in nanoseconds (`PSCHED_SHIFT`).
const TICK: u64 = 64;

impl PolicerConfig {
    /// The duration of a burst, in units of 64 ns, rounded up.
    pub fn ticks(&self) -> u64 {
        Pace::new(self.rate).nanos(self.burst).div_ceil(TICK)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Policer<P> {
    tokens: Tokens,
    /// When the tokens were last counted.
    counted: Time,
    fifo: Fifo<P>,
}

impl<P: Packet> Policer<P> {
    pub fn new(config: &PolicerConfig, fifo: Fifo<P>) -> Self {
        let tokens = Tokens::lasting(config.rate, config.ticks().saturating_mul(TICK));
        Self { tokens, counted: Time::ZERO, fifo }
    }
}

impl<P: Packet> Queue<P> for Policer<P> {
    fn enqueue(
        &mut self,
        now: Time,
        queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        let passed = (now.since(self.counted).as_picos() / 1000).cast_signed();
        let left = self.tokens.after(passed, queued.bytes());
        if left < 0 {
            return Err(Reason::Discipline);
        }
        self.counted = now;
        self.tokens.keep(left);
        self.fifo.push(queued)
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Next<P> {
        self.fifo.pop().map_or(Next::Empty, Next::Packet)
    }

    fn waiting(&self) -> (u64, u64) {
        self.fifo.waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueLimit;
    use crate::queue::tests::{Parcel, queued};
    use tcplab_units::Duration;

    #[test]
    fn a_burst_is_counted_in_ticks_of_the_kernel() {
        // 1500 bytes take a millisecond at 12 Mbit/s: 15,625 times 64 ns. One more byte begins
        // another tick.
        let ticks = |burst| PolicerConfig { rate: "12 Mbit/s".parse().unwrap(), burst }.ticks();
        assert_eq!((ticks(1500), ticks(1501)), (15_625, 15_636));
    }

    #[test]
    fn packets_without_tokens_are_dropped_and_others_queue() {
        // 1500 bytes take a millisecond at 12 Mbit/s; two packets fit into the bucket. A dropped
        // packet takes no tokens.
        let config = PolicerConfig { rate: "12 Mbit/s".parse().unwrap(), burst: 3000 };
        let mut policer = Policer::new(&config, Fifo::new(QueueLimit::Packets(3)));
        let mut enter = |micros| {
            let now = Time::ZERO + Duration::from_micros(micros);
            policer.enqueue(now, queued(now, Parcel::default()), &mut Vec::new())
        };
        let dropped = Err(Reason::Discipline);
        assert_eq!(
            [0, 0, 0, 900, 1100].map(&mut enter),
            [Ok(()), Ok(()), dropped, dropped, Ok(())]
        );
        // The queue behind the policer holds three packets.
        assert_eq!(enter(9000), Err(Reason::Full));
        assert_eq!(policer.waiting(), (3, 4500));
    }
}
