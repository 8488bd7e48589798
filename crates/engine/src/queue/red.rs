//! Random Early Detection (Floyd & Jacobson 1993), in the integer arithmetic of Linux (`sch_red`,
//! `net/red.h`): lengths in bytes, the weight of the average a power of two, its idle decay from a
//! table.
//!
//! Adaptive RED moves the probability each half second, as `red_adaptative_algo` of Linux does, so
//! that the average stays about the middle between the thresholds (Floyd, Gummadi, Shenker 2001).
//!
//! With a weight of 1 and `min` equal to `max`, RED is a step: a packet that finds at least that
//! many bytes in the queue is marked, and others are not (Alizadeh et al. 2010, §3.1).

use super::pie::Updates;
use super::{Drops, Fifo, Next, Queue, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use crate::random::Random;
use tcplab_units::{Duration, Time};

/// A probability of one.
const ONE: u64 = 1 << 32;

/// The configuration of RED. Lengths are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct RedConfig {
    /// The average length from which packets are marked or dropped.
    pub min: u64,
    /// The average length at which the probability reaches `probability`.
    pub max: u64,
    /// The probability at `max`.
    pub probability: f64,
    /// The weight of the newest length in the average.
    pub weight: f64,
    /// Whether the probability rises to 1 between `max` and twice `max` instead of at once (Floyd
    /// 2000).
    pub gentle: bool,
    /// Whether the probability adapts to the average.
    pub adaptive: bool,
    /// The transmission time of a full packet, by which the average decays while the queue is idle.
    pub packet_time: Duration,
}

/// The update interval of adaptive RED.
const PERIOD: Duration = Duration::from_millis(500);

/// The bounds of adaptive RED's probability, 1 % and 50 %: below the lower one it is not decreased
/// and above the upper one not increased. 1 % is also the largest step up.
const LOW: u64 = (ONE + 50) / 100;
const HIGH: u64 = 50 * LOW;

/// The moving average of queue lengths.
#[derive(Clone, Debug)]
pub struct Averaging {
    /// The weight of the newest length is 2 to the power of minus this value.
    pub weight_log: u32,
    /// The idle time of a table entry is 2 to the power of this value, in microseconds.
    pub cell_log: u32,
    /// The right shift of the average after each idle time.
    pub table: [u8; 256],
}

impl Averaging {
    /// An average with this weight, for packets of this transmission time. While a queue is idle
    /// the average decays as if packets had passed, by a factor of 1 - weight for each.
    pub fn new(weight: f64, packet_time: Duration) -> Self {
        let weight_log = libm::round(-libm::log2(weight)).clamp(0.0, 31.0) as u32;
        if weight_log == 0 {
            // The average is the newest length, which is zero for an idle queue.
            return Self { weight_log, cell_log: 0, table: [31; 256] };
        }
        let kept = 1.0 - 1.0 / f64::from(1_u32 << weight_log);
        let packet_us = packet_time.as_picos() as f64 / 1e6;
        let shift_per_us = -libm::log2(kept) / packet_us;
        let longest_us = 31.0 / shift_per_us;
        let reaches = |log: &u32| 256.0 * f64::from(1_u32 << log) >= longest_us;
        let cell_log = (0..31).find(reaches).unwrap_or(31);
        let cell_us = f64::from(1_u32 << cell_log);
        let shift = |cell: usize| libm::round(cell as f64 * cell_us * shift_per_us).min(31.0) as u8;
        Self { weight_log, cell_log, table: std::array::from_fn(shift) }
    }

    /// The average, scaled by the weight, after an idle time.
    fn after_idle(&self, average: u64, idle: Duration) -> u64 {
        let micros = (idle.as_picos() / 1_000_000).min(255 << self.cell_log);
        match self.table[(micros >> self.cell_log) as usize] {
            // The beginning of an exponential is nearly linear.
            0 => average - ((average * micros) >> self.cell_log).min(average / 2),
            shift => average >> shift,
        }
    }
}

/// The state of RED.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    averaging: Averaging,
    min: u64,
    max: u64,
    /// The probability at `max`, in 2^-32.
    most: u64,
    /// The increase of the probability for each byte above `min`.
    per_byte: u64,
    gentle: bool,
    /// The average length, scaled by the weight.
    average: u64,
    /// Packets since the last mark or drop, while the average is above `min`.
    count: Option<u64>,
    /// The random number that decides the next mark or drop, below 2^32, and in bytes by the
    /// probability at the time of the draw (`red_random`).
    drawn: u64,
    drawn_bytes: u64,
    random: Random,
}

impl Red {
    pub fn new(config: RedConfig, random: Random) -> Self {
        let averaging = Averaging::new(config.weight, config.packet_time);
        let most = ((config.probability.clamp(0.0, 1.0) * ONE as f64) as u64).min(ONE - 1);
        let max = config.max.max(config.min);
        Self {
            min: config.min,
            max,
            most,
            per_byte: (most / (max - config.min).max(1)).max(1),
            gentle: config.gentle,
            averaging,
            average: 0,
            count: None,
            drawn: 0,
            drawn_bytes: 0,
            random,
        }
    }

    /// Adapts the probability to keep the average in the middle fifth between the thresholds.
    /// Returns whether the probability would change further while no packet comes.
    fn adapt(&mut self, idle: Option<Duration>) -> bool {
        let log = self.averaging.weight_log;
        let average =
            idle.map_or(self.average, |idle| self.averaging.after_idle(self.average, idle));
        let average = average >> log;
        let fifth = (self.max - self.min) / 5;
        if average > self.min + 3 * fifth && self.most <= HIGH {
            self.most += (self.most / 4).min(LOW);
        } else if average < self.min + 2 * fifth && self.most >= LOW {
            self.most = self.most / 10 * 9;
        }
        // Rounded here; truncated when RED is configured.
        let length = (self.max - self.min).max(1);
        self.per_byte = ((self.most + length / 2) / length).max(1);
        average > 0 || self.most >= LOW
    }

    /// Whether an arriving packet is to be marked or dropped.
    pub fn signals(&mut self, waiting_bytes: u64, idle: Option<Duration>) -> bool {
        let log = self.averaging.weight_log;
        self.average = match idle {
            None => (self.average + waiting_bytes).saturating_sub(self.average >> log),
            Some(idle) => self.averaging.after_idle(self.average, idle),
        };
        let length = self.average >> log;
        if self.average < self.min << log {
            self.count = None;
            return false;
        }
        let is_above = self.average >= self.max << log;
        if is_above && (!self.gentle || length >= 2 * self.max) {
            self.count = None;
            return true;
        }
        let Some(count) = self.count else {
            self.count = Some(0);
            self.draw();
            return false;
        };
        let count = count + 1;
        self.count = Some(count);
        // Signals are spaced uniformly rather than by an independent draw for each packet (Floyd &
        // Jacobson 1993, §7).
        let is_due = if is_above {
            let above = u128::from(ONE - self.most) * u128::from(length - self.max);
            let chance = u128::from(self.most) + above / u128::from(self.max.max(1));
            chance * u128::from(count) >= u128::from(self.drawn)
        } else {
            (length - self.min).saturating_mul(count) >= self.drawn_bytes
        };
        if is_due {
            self.count = Some(0);
            self.draw();
        }
        is_due
    }

    fn draw(&mut self) {
        self.drawn = self.random.bits() >> 32;
        self.drawn_bytes = self.drawn / self.per_byte;
    }
}

/// A queue under RED.
#[derive(Clone, Debug)]
pub(crate) struct RedQueue<P> {
    red: Box<Red>,
    /// Whether ECN-capable packets are marked instead of dropped.
    ecn: bool,
    fifo: Fifo<P>,
    /// When adaptive RED updates its probability.
    updates: Option<Updates>,
    /// When the queue became idle, if it has been idle since.
    idle_since: Option<Time>,
}

impl<P: Packet> RedQueue<P> {
    pub fn new(red: Red, config: &RedConfig, ecn: bool, fifo: Fifo<P>) -> Self {
        let updates = config.adaptive.then(|| Updates::every(PERIOD));
        Self { red: Box::new(red), ecn, fifo, updates, idle_since: None }
    }

    /// Performs the updates that were due.
    fn catch_up(&mut self, now: Time, comes: bool) {
        let Some(updates) = &mut self.updates else { return };
        let (red, since) = (&mut self.red, self.idle_since);
        updates.pass(now, comes, |at| red.adapt(since.map(|since| at.since(since))));
    }
}

impl<P: Packet> Queue<P> for RedQueue<P> {
    fn enqueue(
        &mut self,
        now: Time,
        mut queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.catch_up(now, true);
        let idle = self.idle_since.map(|since| now.since(since));
        // A dropped packet also ends the idle time, and another one begins (`red_enqueue`).
        self.idle_since = idle.map(|_| now);
        if self.red.signals(self.fifo.bytes(), idle) && !(self.ecn && queued.packet.mark()) {
            return Err(Reason::Discipline);
        }
        self.fifo.push(queued)?;
        self.idle_since = None;
        Ok(())
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Next<P> {
        self.catch_up(now, false);
        let Some(first) = self.fifo.pop() else {
            self.idle_since.get_or_insert(now.in_nanos());
            return Next::Empty;
        };
        Next::Packet(first)
    }

    fn waiting(&self) -> (u64, u64) {
        self.fifo.waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(config: RedConfig) -> Red {
        Red::new(config, Random::new(1, "test"))
    }

    fn config(weight: f64) -> RedConfig {
        let packet_time = Duration::from_micros(1200);
        RedConfig {
            min: 15_000,
            max: 45_000,
            probability: 0.1,
            weight,
            gentle: false,
            adaptive: false,
            packet_time,
        }
    }

    #[test]
    fn the_average_follows_the_queue_by_its_weight() {
        let mut red = red(config(0.25));
        // The average gains a quarter of the difference each time: 4000, 7000, 9250 of 16,000.
        for expected in [4_000, 7_000, 9_250] {
            red.signals(16_000, None);
            assert_eq!(red.average >> 2, expected);
        }
    }

    #[test]
    fn the_average_decays_over_idle_time() {
        // Floyd & Jacobson 1993, §4: decay by (1 - w)^m. 0.75^10 = 0.056. A shift is a power of
        // two, so the result lies within a factor of the square root of two.
        let averaging = Averaging::new(0.25, Duration::from_micros(1200));
        let left = averaging.after_idle(1 << 20, Duration::from_millis(12)) as f64;
        let expected = libm::pow(0.75, 10.0) * libm::exp2(20.0);
        assert!((0.7..=1.42).contains(&(left / expected)), "{left} for {expected}");
        assert_eq!(averaging.after_idle(1 << 20, Duration::from_secs(10)), 0);
        assert_eq!(averaging.after_idle(1 << 20, Duration::ZERO), 1 << 20);
    }

    #[test]
    fn below_min_nothing_is_signalled_and_from_max_everything() {
        let mut red = red(config(1.0));
        assert!((0..1000).all(|_| !red.signals(14_999, None)));
        assert!((0..1000).all(|_| red.signals(45_000, None)));
    }

    #[test]
    fn between_min_and_max_the_share_grows_with_the_average() {
        // Halfway between the thresholds p is 0.05. Distances between signals are uniform over
        // 1..=1/p, with a mean of (1/p + 1) / 2 = 10.5 packets (§7); the first packet only draws.
        // 20,000 packets hold 1,905 signals. A distance has the standard deviation 20 / sqrt(12) =
        // 5.8, so five deviations of their number are 5 * 5.8 * sqrt(1905) / 10.5 = 120.
        let mut red = red(config(1.0));
        let signals = (0..20_000).filter(|_| red.signals(30_000, None)).count();
        assert!(signals.abs_diff(1_905) < 120, "{signals}");
    }

    #[test]
    fn gentle_mode_rises_to_one_at_twice_max() {
        let mut red = red(RedConfig { gentle: true, ..config(1.0) });
        // At 1.5 max, p is 0.1 + 0.9 / 2 = 0.55, so distances have a mean of (1 / 0.55 + 1) / 2 =
        // 1.4 packets. With one random number for each distance that is 1 with probability 0.55 and
        // 2 otherwise, 1.45 on average.
        let signals = (0..14_500).filter(|_| red.signals(67_500, None)).count();
        // The standard deviation of a distance is 0.5, that of their number 0.5 * sqrt(10000) /
        // 1.45 = 34; the bound is five of them.
        assert!(signals.abs_diff(10_000) < 172, "{signals}");
        assert!((0..100).all(|_| red.signals(90_000, None)));
    }

    #[test]
    fn adaptive_mode_moves_max_p_by_the_average() {
        // Floyd et al. 2001, §3: with the average above the middle fifth, here from 33,000 bytes
        // on, up by a quarter but at most 1 %, to 50 %; below it, from 27,000 on, down by a tenth,
        // to 1 %.
        let mut red = red(RedConfig { adaptive: true, ..config(1.0) });
        let mut after = |length: u64, times: usize| {
            red.average = length;
            (0..times).for_each(|_| _ = red.adapt(None));
            red.most as f64 / ONE as f64
        };
        assert!((after(33_001, 1) - 0.11).abs() < 1e-6);
        assert!((after(30_000, 9) - 0.11).abs() < 1e-6);
        assert!((after(26_999, 1) - 0.099).abs() < 1e-6);
        assert!((after(26_999, 1) - 0.0891).abs() < 1e-6);
        assert!(after(26_999, 100) < 0.01 && after(26_999, 100) > 0.009);
        // From below 1 % up by a quarter each time, to the first value above 50 %.
        let most = after(40_000, 1000);
        assert!((0.5..0.51).contains(&most), "{most}");
    }

    #[test]
    fn a_new_probability_applies_from_the_next_draw() {
        // `red_random` divides by the probability, and `red_adaptative_algo` does not draw again.
        let mut red = red(RedConfig { adaptive: true, ..config(1.0) });
        red.signals(40_000, None);
        let waited = red.drawn_bytes;
        red.adapt(None);
        assert_eq!((red.drawn_bytes, waited), (waited, red.drawn / 14_316));
        while !red.signals(40_000, None) {}
        assert_eq!(red.drawn_bytes, red.drawn / red.per_byte);
    }

    #[test]
    fn weight_one_and_equal_thresholds_make_a_step() {
        let mut red = red(RedConfig { max: 15_000, ..config(1.0) });
        for (length, expected) in [(14_999, false), (15_000, true), (14_000, false), (99_000, true)]
        {
            assert_eq!(red.signals(length, None), expected, "{length}");
        }
        assert!(!red.signals(0, Some(Duration::ZERO)));
    }
}
