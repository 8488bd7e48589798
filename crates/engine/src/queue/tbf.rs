//! A token bucket filter, as in Linux `sch_tbf`: packets leave at a rate below that of the link,
//! except for bursts. Tokens are counted in whole nanoseconds, with the kernel's division by the
//! rate (`psched_l2t_ns`).

use super::{Drops, Fifo, Next, Queue, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use tcplab_units::{Duration, Rate, Time};

/// Settings of a token bucket.
#[derive(Clone, Copy, Debug)]
pub struct TbfConfig {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// The bucket size in bytes. A larger packet never passes.
    pub burst: u64,
    /// The peak rate, and the bytes that may exceed it. A larger packet never passes.
    pub peak: Option<(Rate, u64)>,
}

impl TbfConfig {
    /// The largest packet that passes.
    pub(crate) fn largest(&self) -> u64 {
        self.peak.map_or(self.burst, |(_, mtu)| self.burst.min(mtu))
    }
}

/// Transmission times at a rate, by multiplication and right shift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    factor: u64,
    shift: u32,
}

impl Pace {
    /// The pace with the largest factor of 32 bits (`psched_ratecfg_precompute`). Rates are in
    /// whole bytes a second.
    pub fn new(rate: Rate) -> Self {
        let bytes = (rate.bits_per_second() / 8).max(1);
        let mut nanos = 1_000_000_000_u64;
        let mut shift = 0;
        loop {
            let factor = nanos / bytes;
            if factor >> 31 & 1 == 1 || nanos >> 63 == 1 {
                return Self { factor, shift };
            }
            nanos <<= 1;
            shift += 1;
        }
    }

    /// The nanoseconds for so many bytes.
    pub fn nanos(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.factor)) >> self.shift) as u64
    }
}

/// A bucket of tokens, counted in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pace: Pace,
    most: i64,
    left: i64,
}

impl Tokens {
    /// A full bucket of this size in bytes.
    pub fn new(rate: Rate, bytes: u64) -> Self {
        Self::lasting(rate, Pace::new(rate).nanos(bytes))
    }

    /// A full bucket of this size in nanoseconds.
    pub fn lasting(rate: Rate, nanos: u64) -> Self {
        let most = nanos.cast_signed();
        Self { pace: Pace::new(rate), most, left: most }
    }

    /// The tokens left after a packet, with those earned in `passed` nanoseconds. Negative if
    /// tokens are missing.
    pub fn after(&self, passed: i64, bytes: u32) -> i64 {
        let price = self.pace.nanos(bytes.into()).cast_signed();
        self.left.saturating_add(passed).min(self.most) - price
    }

    /// Sets the tokens left after a packet has passed.
    pub fn keep(&mut self, left: i64) {
        self.left = left;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct TokenBucket<P> {
    /// The largest packet.
    largest: u64,
    tokens: Tokens,
    peak: Option<Tokens>,
    /// When the tokens were last counted.
    counted: Time,
    fifo: Fifo<P>,
}

impl<P: Packet> TokenBucket<P> {
    pub fn new(config: &TbfConfig, fifo: Fifo<P>) -> Self {
        Self {
            largest: config.largest(),
            tokens: Tokens::new(config.rate, config.burst),
            peak: config.peak.map(|(rate, mtu)| Tokens::new(rate, mtu)),
            counted: Time::ZERO,
            fifo,
        }
    }
}

impl<P: Packet> Queue<P> for TokenBucket<P> {
    fn enqueue(
        &mut self,
        _now: Time,
        queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        if u64::from(queued.bytes()) > self.largest {
            return Err(Reason::Discipline);
        }
        self.fifo.push(queued)
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Next<P> {
        let now = now.in_nanos();
        let Some(first) = self.fifo.first() else { return Next::Empty };
        let passed = (now.since(self.counted).as_picos() / 1000).cast_signed();
        let left = self.tokens.after(passed, first.bytes());
        let left_of_peak = self.peak.map_or(0, |peak| peak.after(passed, first.bytes()));
        let missing = left.min(left_of_peak);
        if missing < 0 {
            return Next::NotBefore(now + Duration::from_nanos(missing.unsigned_abs()));
        }
        self.counted = now;
        self.tokens.keep(left);
        if let Some(peak) = &mut self.peak {
            peak.keep(left_of_peak);
        }
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

    fn bucket(burst: u64) -> TokenBucket<Parcel> {
        let rate = "12 Mbit/s".parse().unwrap();
        let fifo = Fifo::new(QueueLimit::Bytes(10 * 1500));
        TokenBucket::new(&TbfConfig { rate, burst, peak: None }, fifo)
    }

    fn at(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    /// The time if a packet leaves then, or when one may leave, in microseconds: the kernel's
    /// division loses some nanoseconds.
    fn leave(bucket: &mut TokenBucket<Parcel>, now: Time) -> Option<u64> {
        let micros = |time: Time| (time.since(Time::ZERO).as_picos() + 10_000) / 1_000_000;
        match bucket.dequeue(now, &mut Vec::new()) {
            Next::Packet(_) => Some(micros(now)),
            Next::NotBefore(then) => Some(micros(then)),
            Next::Empty => None,
        }
    }

    #[test]
    fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        // 1500 bytes take a millisecond at 12 Mbit/s; two packets fit into the bucket.
        let mut bucket = bucket(3000);
        for _ in 0..5 {
            bucket.enqueue(at(0), queued(at(0), Parcel::default()), &mut Vec::new()).unwrap();
        }
        assert_eq!([leave(&mut bucket, at(0)), leave(&mut bucket, at(0))], [Some(0); 2]);
        assert_eq!(leave(&mut bucket, at(0)), Some(1000));
        assert_eq!(leave(&mut bucket, at(600)), Some(1000));
        assert_eq!(leave(&mut bucket, at(1000)), Some(1000));
        // A late dequeue finds the tokens earned meanwhile.
        assert_eq!(leave(&mut bucket, at(2700)), Some(2700));
        assert_eq!(leave(&mut bucket, at(2700)), Some(3000));
        assert_eq!(leave(&mut bucket, at(3000)), Some(3000));
        assert_eq!(leave(&mut bucket, at(9000)), None);
    }

    #[test]
    fn a_peak_rate_spreads_the_burst() {
        // The bucket holds two packets, which may leave a quarter of a millisecond apart.
        let peak = Some(("48 Mbit/s".parse().unwrap(), 1500));
        let config = TbfConfig { rate: "12 Mbit/s".parse().unwrap(), burst: 3000, peak };
        let mut bucket = TokenBucket::new(&config, Fifo::new(QueueLimit::Packets(10)));
        for _ in 0..3 {
            bucket.enqueue(at(0), queued(at(0), Parcel::default()), &mut Vec::new()).unwrap();
        }
        assert_eq!([leave(&mut bucket, at(0)), leave(&mut bucket, at(0))], [Some(0), Some(250)]);
        assert_eq!(leave(&mut bucket, at(250)), Some(250));
        // The third packet needs a millisecond of tokens, of which a quarter has come.
        assert_eq!(leave(&mut bucket, at(250)), Some(1000));
        assert_eq!(leave(&mut bucket, at(1000)), Some(1000));
        let config = TbfConfig { peak: config.peak.map(|(rate, _)| (rate, 1499)), ..config };
        let mut bucket = TokenBucket::new(&config, Fifo::new(QueueLimit::Packets(10)));
        let refused = bucket.enqueue(at(0), queued(at(0), Parcel::default()), &mut Vec::new());
        assert_eq!(refused, Err(Reason::Discipline));
    }

    #[test]
    fn a_packet_larger_than_the_bucket_never_passes() {
        let enter = |bucket: &mut TokenBucket<Parcel>| {
            bucket.enqueue(at(0), queued(at(0), Parcel::default()), &mut Vec::new())
        };
        assert_eq!(enter(&mut bucket(1499)), Err(Reason::Discipline));
        let mut bucket = bucket(1500);
        let taken = (0..11).filter(|_| enter(&mut bucket).is_ok()).count();
        // The queue holds ten packets.
        assert_eq!((taken, enter(&mut bucket)), (10, Err(Reason::Full)));
    }

    #[test]
    fn rate_division_is_as_precise_as_32_bits_allow() {
        for bits in [8_000_u64, 1_000_000, 12_345_678, 100_000_000_000] {
            let pace = Pace::new(Rate::from_bits_per_second(bits));
            let exact = 1500.0 * 8e9 / bits as f64;
            let seen = pace.nanos(1500) as f64;
            assert!((seen - exact).abs() <= exact / 2e9 + 1.0, "{bits}: {seen} for {exact}");
        }
    }
}
