//! Controlled Delay (RFC 8289), in the integer arithmetic of Linux (`codel_impl.h`): a clock of
//! 1024 ns, and a 16-bit reciprocal square root, improved by one step of Newton's method at a time.

use super::{Drops, Fifo, Next, Queue, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use tcplab_units::{Duration, Time};

/// The bits that the reciprocal square root lacks to 32.
const SHIFT: u32 = 16;

/// The configuration of `CoDel`.
#[derive(Clone, Debug)]
pub struct CoDelConfig {
    /// The target sojourn time.
    pub target: Duration,
    /// The interval for which the target may be exceeded.
    pub interval: Duration,
    /// The largest packet, in bytes. Nothing is signalled while the backlog is no larger.
    pub mtu: u64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

/// The queue that `CoDel` manages.
pub(crate) trait Source<P> {
    /// The first packet.
    fn first(&self) -> Option<&Queued<P>>;

    /// Takes the first packet.
    fn pop(&mut self) -> Option<Queued<P>>;

    /// The backlog of the link in bytes, including other queues.
    fn backlog(&self) -> u64;
}

/// The state of `CoDel`. Times are in units of 1024 ns.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    target: u64,
    interval: u64,
    mtu: u64,
    ecn: bool,
    /// When the sojourn time will have exceeded the target for an interval; `None` while it is
    /// below.
    first_above: Option<u64>,
    is_dropping: bool,
    /// Whether the dropping state was entered before.
    has_dropped: bool,
    drop_next: u64,
    /// Signals since the dropping state was entered, and the count at that moment.
    count: u64,
    last_count: u64,
    /// 2^16 / sqrt(count).
    reciprocal: u16,
}

fn clock(time: Time) -> u64 {
    units(time.since(Time::ZERO))
}

fn units(time: Duration) -> u64 {
    time.as_picos() / 1_024_000
}

impl CoDel {
    /// Counts packets dropped at a full queue, so that signals are as frequent as if `CoDel` had
    /// dropped them (RFC 8290 §4.1.2).
    pub fn count_drops(&mut self, packets: u64) {
        self.count += packets;
    }

    pub fn new(config: &CoDelConfig) -> Self {
        Self {
            target: units(config.target),
            interval: units(config.interval),
            mtu: config.mtu,
            ecn: config.ecn,
            first_above: None,
            is_dropping: false,
            has_dropped: false,
            drop_next: 0,
            count: 0,
            last_count: 0,
            reciprocal: 0,
        }
    }

    /// The packet to transmit now, if the queue is not empty (RFC 8289 §5.6).
    #[inline]
    pub fn next<P: Packet>(
        &mut self,
        now: Time,
        waiting: &mut impl Source<P>,
        drops: &mut Drops<P>,
    ) -> Option<Queued<P>> {
        let is_late = self.is_late(now, waiting);
        if is_late || self.is_dropping {
            return self.signal(now, is_late, waiting, drops);
        }
        waiting.pop()
    }

    /// The packet to transmit, where the first one is late, or was before: packets are marked or
    /// dropped on the way.
    #[inline(never)]
    fn signal<P: Packet>(
        &mut self,
        now: Time,
        mut is_late: bool,
        waiting: &mut impl Source<P>,
        drops: &mut Drops<P>,
    ) -> Option<Queued<P>> {
        let drop = |queued: Option<Queued<P>>| queued.map(|queued| (queued, Reason::Discipline));
        let mut next = waiting.pop();
        if next.is_none() {
            self.is_dropping = false;
            return None;
        }
        let now_units = clock(now);
        if !self.is_dropping {
            if is_late {
                if !self.mark(&mut next) {
                    drops.extend(drop(next));
                    self.is_late(now, waiting);
                    next = waiting.pop();
                }
                self.begin(now_units);
            }
            return next;
        }
        self.is_dropping = is_late;
        // At a high rate several signals may be due.
        while self.is_dropping && now_units >= self.drop_next {
            self.count += 1;
            self.improve();
            if self.mark(&mut next) {
                self.drop_next = self.after(self.drop_next);
                break;
            }
            drops.extend(drop(next));
            is_late = self.is_late(now, waiting);
            next = waiting.pop();
            if is_late {
                self.drop_next = self.after(self.drop_next);
            } else {
                self.is_dropping = false;
            }
        }
        next
    }

    /// Marks a packet, if ECN is on and the packet is ECN-capable.
    fn mark<P: Packet>(&self, queued: &mut Option<Queued<P>>) -> bool {
        self.ecn && queued.as_mut().is_some_and(|queued| queued.packet.mark())
    }

    /// Whether the target has been exceeded for an interval when the first packet leaves (§5.5).
    #[inline]
    fn is_late<P: Packet>(&mut self, now: Time, waiting: &impl Source<P>) -> bool {
        let now = clock(now);
        let is_above = waiting.first().is_some_and(|first| {
            let behind = waiting.backlog() - u64::from(first.bytes());
            now - clock(first.entered) >= self.target && behind > self.mtu
        });
        if !is_above {
            self.first_above = None;
            return false;
        }
        now > *self.first_above.get_or_insert(now + self.interval)
    }

    /// Enters the dropping state. Soon after the last time, signals resume at nearly the rate that
    /// was needed then (§5.6).
    fn begin(&mut self, now: u64) {
        self.is_dropping = true;
        let grown = self.count - self.last_count;
        let is_soon = self.has_dropped && now < self.drop_next + 16 * self.interval;
        self.has_dropped = true;
        if grown > 1 && is_soon {
            self.count = grown;
            self.improve();
        } else {
            self.count = 1;
            self.reciprocal = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(now);
    }

    /// The control law: the next signal follows an interval over the square root of the count later
    /// (§5.3).
    fn after(&self, time: u64) -> u64 {
        // For an interval of more than 73 minutes the product exceeds 64 bits.
        let scaled = u128::from(self.interval) * u128::from(u64::from(self.reciprocal) << SHIFT);
        time + (scaled >> 32) as u64
    }

    /// A step of Newton's method: x (3 - count x^2) / 2.
    fn improve(&mut self) {
        let x = u64::from(self.reciprocal) << SHIFT;
        let rest = (3_u64 << 32).wrapping_sub(self.count.wrapping_mul((x * x) >> 32));
        self.reciprocal = (((rest >> 2).wrapping_mul(x) >> 31) >> SHIFT) as u16;
    }
}

/// A queue under `CoDel`.
#[derive(Clone, Debug)]
pub(crate) struct CoDelQueue<P> {
    codel: CoDel,
    fifo: Fifo<P>,
}

impl<P: Packet> CoDelQueue<P> {
    pub fn new(config: &CoDelConfig, fifo: Fifo<P>) -> Self {
        Self { codel: CoDel::new(config), fifo }
    }
}

impl<P: Packet> Queue<P> for CoDelQueue<P> {
    fn enqueue(
        &mut self,
        _now: Time,
        queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.fifo.push(queued)
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P> {
        self.codel.next(now.in_nanos(), &mut self.fifo, drops).map_or(Next::Empty, Next::Packet)
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

    const MTU: u64 = 1500;

    fn codel(ecn: bool) -> CoDel {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        CoDel::new(&CoDelConfig { target, interval, mtu: MTU, ecn })
    }

    #[test]
    fn an_interval_of_days_is_counted_to_its_end() {
        let (target, interval) = (Duration::from_millis(5), Duration::from_secs(10 * 86_400));
        let mut codel = CoDel::new(&CoDelConfig { target, interval, mtu: MTU, ecn: false });
        codel.begin(0);
        // With a count of one, the next signal follows a whole interval later, less the rounding of
        // 16 bits.
        let ticks = interval.as_picos() / 1_024_000;
        assert!((ticks - ticks / 65_536 - 1..=ticks).contains(&codel.drop_next));
    }

    /// Dequeues a packet every millisecond, each after a sojourn time of `wait`. Returns the
    /// milliseconds of signals.
    fn signals(codel: &mut CoDel, wait: u64, millis: u64, ect: bool) -> Vec<u64> {
        let mut signals = Vec::new();
        for now in wait..wait + millis {
            let at = |millis| Time::ZERO + Duration::from_millis(millis);
            let mut waiting = Fifo::new(QueueLimit::Packets(100));
            while waiting.bytes() < 4 * MTU {
                let packet = Parcel { ect, ..Parcel::default() };
                waiting.push(queued(at(now - wait), packet)).unwrap();
            }
            let mut drops = Vec::new();
            let next = codel.next(at(now), &mut waiting, &mut drops).unwrap();
            let is_dropped = !drops.is_empty();
            if is_dropped || next.packet.ce {
                signals.push(now - wait);
            }
        }
        signals
    }

    #[test]
    fn signal_intervals_shrink_with_the_square_root_of_the_count() {
        // RFC 8289 §3.3, §5.3: the first signal after an interval of 100 ms, the others after 100 /
        // sqrt(n) ms. Newton's steps x (3 - n x^2) / 2 from x = 1 make that 100, 50 (for 70.7),
        // 56.3 (57.7), 48.8 (50), 44.2 (44.7), 40.4 (40.8). Packets leave each millisecond.
        for (ecn, ect) in [(false, false), (false, true), (true, false), (true, true)] {
            let seen = signals(&mut codel(ecn), 10, 450, ect);
            let expected = [100.0, 200.0, 250.0, 306.3, 355.0, 399.2, 439.7];
            assert_eq!(seen.len(), expected.len(), "{seen:?}");
            for (seen, expected) in seen.iter().zip(expected) {
                let late = *seen as f64 - expected;
                assert!((0.0..=2.0).contains(&late), "{seen} for {expected}");
            }
        }
    }

    #[test]
    fn sojourn_below_target_and_short_queues_are_not_signalled() {
        assert!(signals(&mut codel(false), 4, 1000, false).is_empty());
        // §5.5: no more than one packet is left in the queue.
        let (mut codel, mut waiting) = (codel(false), Fifo::new(QueueLimit::Packets(100)));
        let mut drops = Vec::new();
        for millis in 0..1000 {
            let at = |millis| Time::ZERO + Duration::from_millis(millis);
            waiting.push(queued(at(millis), Parcel::default())).unwrap();
            waiting.push(queued(at(millis), Parcel::default())).unwrap();
            codel.next(at(millis + 50), &mut waiting, &mut drops).unwrap();
            waiting.pop();
        }
        assert!(drops.is_empty());
    }

    #[test]
    fn newton_reciprocal_square_root_is_accurate_from_count_three() {
        let mut codel = codel(false);
        (codel.count, codel.reciprocal) = (1, u16::MAX);
        for count in 2..=1000_u32 {
            codel.count = count.into();
            codel.improve();
            let exact = 65_536.0 / libm::sqrt(f64::from(count));
            let off = f64::from(codel.reciprocal) / exact - 1.0;
            // The first step goes from 1 to 0.5 for 0.707, the next to 0.5625 for 0.5774.
            let most = if count == 2 { 0.30 } else { 0.03 };
            assert!(off.abs() < most, "{count}: {off}");
        }
    }
}
