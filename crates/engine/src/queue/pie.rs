//! Proportional Integral controller Enhanced (RFC 8033), in the integer arithmetic of Linux
//! (`sch_pie`): times in units of 64 ns, probabilities in units of 2^-56.

use super::{Drops, Fifo, Next, Queue, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use crate::random::Random;
use tcplab_units::{Duration, Time};

/// A probability of one.
const ONE: u64 = (1 << 56) - 1;

/// Time units in a second.
const SECOND: u64 = 15_625_000;

/// The burst allowance after a time without congestion (RFC 8033 §4.4, `MAX_BURST`).
const BURST: u64 = SECOND * 150 / 1000;

/// The delay above which the probability rises faster (RFC 8033 §5.5).
const LONG: u64 = SECOND / 4;

/// The kernel's timers expire at whole jiffies.
const TICK: Duration = Duration::from_millis(1);

/// The kernel's timer wheel has one slot per tick for so many ticks ahead. Slots further ahead are
/// coarser, by three bits per level (`kernel/time/timer.c`).
const PLACES: u64 = 63;
const COARSER: u32 = 3;
/// The low bits of jiffies at which experiments begin.
const AT_BEGINNING: u64 = (1 << 24) - 298_000;

/// Settings of PIE.
#[derive(Clone, Copy, Debug)]
pub struct PieConfig {
    /// The target delay.
    pub target: Duration,
    /// The update interval of the probability, in milliseconds, rounded up.
    pub update: Duration,
    /// The integral gain, for the distance of the delay from the target, in sixteenths.
    pub alpha: u64,
    /// The proportional gain, for the change of the delay, in sixteenths.
    pub beta: u64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The probability up to which packets are marked, in 2^-56 (RFC 8033 §5.1 has a tenth).
    pub most_marked: u64,
    /// Whether smaller packets are dropped less often (RFC 8033 §4.1), in proportion to their size.
    pub bytemode: bool,
    /// The largest frame, in bytes.
    pub frame: u64,
    /// By how much a frame is larger than its packet.
    pub frame_header: u64,
}

impl PieConfig {
    /// A probability of one.
    pub const ONE: u64 = ONE;
}

fn clock(time: Time) -> u64 {
    units(time.since(Time::ZERO))
}

fn units(time: Duration) -> u64 {
    time.as_picos() / 64_000
}

/// The state of PIE for one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pie {
    /// The delay of the packet that left last, now and at the last update.
    delay: u64,
    old_delay: u64,
    /// The remaining burst allowance.
    burst: u64,
    /// When the last packet left.
    left_at: Option<u64>,
    probability: u64,
    /// The sum of probabilities since the last drop (RFC 8033 §5.4).
    sum: u64,
}

impl Default for Pie {
    fn default() -> Self {
        Self { delay: 0, old_delay: 0, burst: BURST, left_at: None, probability: 0, sum: 0 }
    }
}

impl Pie {
    /// Whether a packet may enter a queue with this backlog, possibly with a mark (RFC 8033 §4.1).
    pub fn admits<P: Packet>(
        &mut self,
        config: &PieConfig,
        backlog: u64,
        queued: &mut Queued<P>,
        random: &mut Random,
    ) -> bool {
        // Queues that do not respond to marks are controlled by drops (§5.1).
        let may_mark = config.ecn && self.probability <= config.most_marked;
        !self.signals(config, backlog, queued.bytes(), random) || may_mark && queued.packet.mark()
    }

    /// Whether a packet is to be marked or dropped (`pie_drop_early`).
    fn signals(
        &mut self,
        config: &PieConfig,
        backlog: u64,
        bytes: u32,
        random: &mut Random,
    ) -> bool {
        let is_short = self.delay < units(config.target) / 2 && self.probability < ONE / 5;
        if self.burst > 0 || is_short || backlog < 2 * config.frame {
            return false;
        }
        let size = u64::from(bytes) + config.frame_header;
        let chance = if config.bytemode && size <= config.frame {
            size * (self.probability / config.frame)
        } else {
            self.probability
        };
        // Drops are derandomized: none before the sum is 0.85, and one at 8.5 at the latest (§5.4).
        self.sum = if chance == 0 { 0 } else { self.sum.wrapping_add(chance) };
        if self.sum < ONE / 100 * 85 {
            return false;
        }
        if self.sum >= ONE / 2 * 17 {
            return true;
        }
        let is_drawn = random.bits() >> 8 < chance;
        if is_drawn {
            self.sum = 0;
        }
        is_drawn
    }

    /// Resets the sum after a drop.
    pub fn on_drop(&mut self) {
        self.sum = 0;
    }

    /// A packet leaves, with its arrival time and the backlog behind it (`pie_process_dequeue`).
    pub fn on_leave(&mut self, now: Time, entered: Time, backlog: u64) {
        let now = clock(now);
        self.delay = if backlog > 0 { now - clock(entered) } else { 0 };
        // The kernel keeps the time between two departures in 32 bits.
        let passed = self.left_at.map_or(0, |before| u64::from((now - before) as u32));
        self.left_at = Some(now);
        self.burst = self.burst.saturating_sub(passed);
    }

    /// Updates the probability (RFC 8033 §4.2, `pie_calculate_probability`), in the kernel's
    /// integers, which wrap.
    pub fn update(&mut self, config: &PieConfig, backlog: u64) {
        let target = units(config.target);
        let (delay, old_delay) = (self.delay, self.old_delay);
        // The backlog is too small to estimate the delay.
        let mut may_decay = delay > 0 || backlog == 0;
        let weight = |sixteenths: u64| sixteenths.wrapping_mul(ONE / SECOND) >> 4;
        let (mut alpha, mut beta) = (weight(config.alpha), weight(config.beta));
        if self.probability < ONE / 10 {
            // A small probability is adjusted in small steps (§5.2).
            let decades = (2..=6).take_while(|&decade| self.probability < ONE / 10_u64.pow(decade));
            let shift = 1 + 2 * decades.count();
            alpha >>= shift;
            beta >>= shift;
        }
        let mut step = alpha.wrapping_mul(delay.wrapping_sub(target)).cast_signed();
        step = step.wrapping_add(beta.wrapping_mul(delay.wrapping_sub(old_delay)).cast_signed());
        if step > (ONE / 50).cast_signed() && self.probability >= ONE / 10 {
            // By at most 2 % in one update (§5.5).
            step = (ONE / 100 * 2).cast_signed();
        }
        if delay > LONG {
            step = step.wrapping_add((ONE / 50).cast_signed());
        }
        let before = self.probability;
        self.probability = before.wrapping_add_signed(step);
        if step > 0 {
            if self.probability < before {
                self.probability = ONE;
                may_decay = false;
            }
        } else if self.probability > before {
            self.probability = 0;
        }
        if delay == 0 && old_delay == 0 && may_decay {
            self.probability -= self.probability / 64;
        }
        let is_short = |delay| delay < target / 2;
        if is_short(delay) && is_short(old_delay) && self.probability == 0 {
            (self.burst, self.left_at, self.sum) = (BURST, None, 0);
        }
        self.old_delay = delay;
    }
}

/// The update times of a probability. The kernel rearms its timer by so many ticks whenever it has
/// expired. A timer expires at the next wheel slot after the tick for which it is set, at least one
/// tick later.
#[derive(Clone, Debug)]
pub(crate) struct Updates {
    ticks: u64,
    next: u64,
}

impl Updates {
    pub fn new(config: &PieConfig) -> Self {
        Self::every(config.update)
    }

    /// Updates with this period, in whole ticks.
    pub fn every(period: Duration) -> Self {
        let ticks = period.as_picos().div_ceil(TICK.as_picos()).max(1);
        Self { ticks, next: Self::after(0, ticks) }
    }

    /// When a timer expires that is armed at `now` for so many ticks. Ticks are counted from the
    /// start of the run.
    fn after(now: u64, ticks: u64) -> u64 {
        let mut shift = 0;
        while ticks >= PLACES << shift && shift < 8 * COARSER {
            shift += COARSER;
        }
        ((((AT_BEGINNING + now + ticks) >> shift) + 1) << shift) - AT_BEGINNING
    }

    /// Calls `update` at all times up to `now`, until it returns that nothing changes any more. In
    /// the nanosecond of an update, a packet that leaves has left before it, and one that comes
    /// does so after it.
    pub fn pass(&mut self, now: Time, comes: bool, mut update: impl FnMut(Time) -> bool) {
        let picos = now.since(Time::ZERO).as_picos();
        let is_due = |next: u64| {
            let next = next.saturating_mul(TICK.as_picos());
            next < picos || (comes && next == picos)
        };
        while is_due(self.next) {
            let at = Duration::from_picos(self.next.saturating_mul(TICK.as_picos()));
            let changes = update(Time::ZERO + at);
            self.next = Self::after(self.next, self.ticks);
            if !changes {
                // Timer slots are evenly spaced.
                let period = Self::after(self.next, self.ticks) - self.next;
                let passed = (picos / TICK.as_picos()).saturating_sub(self.next);
                self.next += passed / period * period;
            }
        }
    }
}

/// A queue under PIE.
#[derive(Clone, Debug)]
pub(crate) struct PieQueue<P> {
    config: PieConfig,
    pie: Pie,
    updates: Updates,
    random: Random,
    fifo: Fifo<P>,
}

impl<P: Packet> PieQueue<P> {
    pub fn new(config: &PieConfig, fifo: Fifo<P>, random: Random) -> Self {
        let (pie, updates) = (Pie::default(), Updates::new(config));
        Self { config: *config, pie, updates, random, fifo }
    }

    fn catch_up(&mut self, now: Time, comes: bool) {
        let (pie, config, backlog) = (&mut self.pie, &self.config, self.fifo.bytes());
        self.updates.pass(now, comes, |_| {
            let before = pie.clone();
            pie.update(config, backlog);
            *pie != before
        });
    }
}

impl<P: Packet> Queue<P> for PieQueue<P> {
    fn enqueue(
        &mut self,
        now: Time,
        mut queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.catch_up(now, true);
        let Self { config, pie, random, fifo, .. } = self;
        let reason = if !fifo.has_room(queued.bytes()) {
            Reason::Full
        } else if !pie.admits(config, fifo.bytes(), &mut queued, random) {
            Reason::Discipline
        } else {
            return fifo.push(queued);
        };
        pie.on_drop();
        Err(reason)
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Next<P> {
        let now = now.in_nanos();
        self.catch_up(now, false);
        let Some(first) = self.fifo.pop() else { return Next::Empty };
        self.pie.on_leave(now, first.entered, self.fifo.bytes());
        Next::Packet(first)
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

    fn config() -> PieConfig {
        PieConfig {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            most_marked: ONE / 10,
            bytemode: false,
            frame: 1514,
            frame_header: 14,
        }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn share(probability: u64) -> f64 {
        probability as f64 / ONE as f64
    }

    #[test]
    fn the_probability_follows_delay_and_its_derivative() {
        // RFC 8033 §4.2: alpha (delay - target) + beta (delay - old delay), with 1/8 and 5/4 Hz,
        // and a 2048th of that while the probability is below a millionth.
        let delay = units(Duration::from_millis(35));
        let mut pie = Pie { delay, old_delay: delay, ..Pie::default() };
        pie.update(&config(), 100_000);
        let expected = 0.125 * 0.020 / 2048.0;
        assert!((share(pie.probability) / expected - 1.0).abs() < 1e-3);
        // From a tenth on in full: 0.0025 + 1.25 * 0.010.
        let old_delay = units(Duration::from_millis(25));
        let mut pie = Pie { delay, old_delay, probability: ONE / 2, ..Pie::default() };
        pie.update(&config(), 100_000);
        assert!((share(pie.probability) - 0.515).abs() < 1e-6);
        // §5.5: by at most 0.02, and by as much again with a delay of more than 250 ms.
        let delay = units(Duration::from_millis(300));
        let mut pie = Pie { delay, old_delay: 0, probability: ONE / 2, ..Pie::default() };
        pie.update(&config(), 100_000);
        assert!((share(pie.probability) - 0.54).abs() < 1e-6);
    }

    #[test]
    fn without_delay_the_probability_decays_and_bursts_pass_again() {
        // RFC 8033 §4.2 has a factor of 1 - 1/50 for each update, Linux 1 - 1/64.
        let mut pie = Pie { burst: 0, probability: ONE / 2, ..Pie::default() };
        pie.update(&PieConfig { alpha: 0, ..config() }, 0);
        assert!((share(pie.probability) - 0.5 * 63.0 / 64.0).abs() < 1e-6);
        for _ in 0..10_000 {
            pie.update(&config(), 0);
        }
        assert_eq!((pie.probability, pie.burst), (0, BURST));
    }

    #[test]
    fn after_the_burst_allowance_drops_follow_the_probability() {
        let mut random = Random::new(1, "test");
        let mut pie = Pie { probability: ONE / 20, delay: SECOND / 10, ..Pie::default() };
        let mut drops = |pie: &mut Pie, backlog| {
            let dropped = (0..10_000).filter(|_| {
                let admitted = pie.admits(
                    &config(),
                    backlog,
                    &mut queued(at(0), Parcel::default()),
                    &mut random,
                );
                if !admitted {
                    pie.on_drop();
                }
                !admitted
            });
            dropped.count()
        };
        assert_eq!(drops(&mut pie, 100_000), 0);
        pie.burst = 0;
        // No drops while at most two packets wait (§4.1).
        assert_eq!(drops(&mut pie, 3000), 0);
        // §5.4: no drop before the sum is 0.85, at the 17th packet. From there each packet is
        // dropped with a chance of 1/20, up to the 170th, where the sum is 8.5. The mean distance
        // is 16 + 20 = 36, so 278 of 10,000 are dropped. Distances have a standard deviation below
        // 20, and their sum one of 20 sqrt(278) = 333 packets, which is 9 drops; the bound is five
        // of those.
        let dropped = drops(&mut pie, 100_000);
        assert!(dropped.abs_diff(278) < 45, "{dropped}");
        // §4.1: no drops with little delay and a low probability.
        pie.delay = units(Duration::from_millis(7));
        assert_eq!(drops(&mut pie, 100_000), 0);
    }

    #[test]
    fn updates_happen_at_the_granularity_of_kernel_timers() {
        // One tick after the requested time; from 63 ticks on at the next multiple of eight after
        // it.
        let first = Updates::after(0, 15);
        assert_eq!([first, Updates::after(first, 15)], [16, 32]);
        assert_eq!(Updates::after(0, 100), 104);
        // The times are the same after a long period without changes.
        for (update, expected) in [(15, 16), (100, 104)] {
            let update = Duration::from_millis(update);
            let mut updates = Updates::new(&PieConfig { update, ..config() });
            updates.pass(at(1_000_000), true, |_| false);
            assert!((1_000_001..=1_000_000 + expected).contains(&updates.next));
            assert_eq!(updates.next % expected, 0);
        }
        // Part of a tick counts as one.
        let update = Duration::from_micros(1);
        assert_eq!(Updates::new(&PieConfig { update, ..config() }).next, 2);
    }

    #[test]
    fn ecn_marks_replace_drops_up_to_a_probability_of_a_tenth() {
        for (probability, marked) in [(ONE / 10, true), (ONE / 10 + 1, false)] {
            let mut random = Random::new(1, "test");
            let sum = ONE / 2 * 17;
            let delay = SECOND / 10;
            let mut pie = Pie { burst: 0, probability, sum, delay, ..Pie::default() };
            let mut packet = queued(at(0), Parcel { ect: true, ..Parcel::default() });
            let config = PieConfig { ecn: true, ..config() };
            assert_eq!(pie.admits(&config, 100_000, &mut packet, &mut random), marked);
            assert_eq!(packet.packet.ce, marked);
        }
    }

    #[test]
    fn a_full_queue_drops_by_its_limit() {
        let fifo = Fifo::new(QueueLimit::Packets(2));
        let mut queue = PieQueue::new(&config(), fifo, Random::new(1, "test"));
        let enter = |queue: &mut PieQueue<Parcel>| {
            queue.enqueue(at(0), queued(at(0), Parcel::default()), &mut Vec::new())
        };
        assert_eq!([enter(&mut queue), enter(&mut queue)], [Ok(()), Ok(())]);
        assert_eq!(enter(&mut queue), Err(Reason::Full));
        assert!(matches!(queue.dequeue(at(3), &mut Vec::new()), Next::Packet(_)));
        // The packet waited for 3 ms, with another one behind it.
        assert_eq!(queue.pie.delay, units(Duration::from_millis(3)));
    }
}
