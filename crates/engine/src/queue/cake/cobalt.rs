//! COBALT: `CoDel` and BLUE side by side, for flows that respond to congestion signals and for
//! those that do not (Palmei et al. 2019: Design and Evaluation of COBALT Queue Discipline). Times
//! are in nanoseconds.

use crate::packet::Packet;
use crate::queue::Queued;
use crate::random::Random;
use tcplab_units::Time;

/// The parameters that all flows of a tin share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    /// The target sojourn time, and the interval for which it may be exceeded.
    pub target: u64,
    pub interval: u64,
    /// The transmission time of the largest packet.
    pub packet_time: u64,
}

/// BLUE's increment when the queue overflows, 1/256, and its decrement when a queue is empty,
/// 1/4096.
const GROWTH: u32 = 1 << 24;
const DECAY: u32 = 1 << 20;

/// Up to this count the reciprocal of the square root takes several steps of Newton's method for
/// each signal; above it one step is precise enough.
const SMALL: u32 = 16;
const STEPS: u32 = 8;

/// The state of a flow.
#[derive(Clone, Debug)]
pub(super) struct Cobalt {
    /// The number of `CoDel` signals given and not taken back.
    count: u32,
    /// 2^32 / sqrt(count).
    reciprocal: u32,
    /// When the next signal is due; before the first signal, until when the flow is remembered.
    due: i64,
    is_dropping: bool,
    /// BLUE's drop probability, in 2^-32, and when it changed last.
    probability: u32,
    changed: i64,
}

pub(super) fn nanos(time: Time) -> i64 {
    time.in_nanos().since(Time::ZERO).as_nanos().cast_signed()
}

/// A time before all others, from which every duration can be subtracted.
const LONG_AGO: i64 = i64::MIN / 2;

impl Default for Cobalt {
    fn default() -> Self {
        Self {
            count: 0,
            reciprocal: 0,
            due: LONG_AGO,
            is_dropping: false,
            probability: 0,
            changed: LONG_AGO,
        }
    }
}

impl Cobalt {
    /// Whether the state still affects packets that come now.
    pub fn is_awake(&self, now: i64) -> bool {
        self.probability > 0 || self.count > 0 || now < self.due
    }

    /// A packet was dropped because the queue was full (`cobalt_queue_full`).
    pub fn on_overflow(&mut self, params: &Params, now: i64) {
        if now - self.changed > params.target.cast_signed() {
            self.probability = self.probability.saturating_add(GROWTH);
            self.changed = now;
        }
        self.is_dropping = true;
        self.due = now;
        self.count = self.count.max(1);
    }

    /// The flow had its turn and its queue was empty (`cobalt_queue_empty`).
    pub fn on_empty(&mut self, params: &Params, now: i64) {
        if self.probability > 0 && now - self.changed > params.target.cast_signed() {
            self.probability = self.probability.saturating_sub(DECAY);
            self.changed = now;
        }
        self.is_dropping = false;
        if self.count > 0 && now >= self.due {
            self.decrement_count(params);
        }
    }

    /// Whether a departing packet is dropped (`cobalt_should_drop`). ECN-capable packets are marked
    /// instead of dropped by `CoDel`, but not by BLUE. `bulk`: the number of bulk flows, if each of
    /// them may hold some packets.
    pub fn drops<P: Packet>(
        &mut self,
        params: &Params,
        now: i64,
        queued: &mut Queued<P>,
        bulk: u64,
        random: &mut Random,
    ) -> bool {
        let waited = (now - nanos(queued.entered)).cast_unsigned();
        let is_late = waited > params.target
            && waited > params.packet_time * bulk * 2
            && waited > params.packet_time * 4;
        let mut overdue = now - self.due;
        let is_due = self.count > 0 && overdue >= 0;
        if is_late {
            if !self.is_dropping {
                self.is_dropping = true;
                self.due = self.after(now, params);
            }
            self.count = self.count.max(1);
        } else {
            self.is_dropping = false;
        }
        let mut is_dropped = false;
        if is_due && self.is_dropping {
            is_dropped = !queued.packet.mark();
            self.count = self.count.saturating_add(1);
            self.set_reciprocal();
            self.due = self.after(self.due, params);
            overdue = now - self.due;
        } else if is_due {
            // The sojourn time is below the target again: the signal count decays at the rate at
            // which it grew.
            while self.count > 0 && overdue >= 0 {
                self.decrement_count(params);
                overdue = now - self.due;
            }
        }
        if self.probability > 0 {
            is_dropped |= word(random) < self.probability;
        }
        if self.count == 0 {
            self.due = now + params.interval.cast_signed();
        } else if overdue > 0 && !is_dropped {
            self.due = now;
        }
        is_dropped
    }

    /// Decrements the signal count.
    fn decrement_count(&mut self, params: &Params) {
        self.count -= 1;
        self.set_reciprocal();
        self.due = self.after(self.due, params);
    }

    /// The control law of `CoDel`: the next signal follows an interval over the square root of the
    /// count later. Linux takes the interval's last 32 bits (`reciprocal_scale`), up to 4.29 s.
    fn after(&self, time: i64, params: &Params) -> i64 {
        let interval = u64::from(params.interval as u32);
        time + ((interval * u64::from(self.reciprocal)) >> 32).cast_signed()
    }

    /// 2^32 / sqrt(count) by Newton's method, x (3 - count x^2) / 2. Small counts are iterated up
    /// from one, as Linux tabulates them; other counts take one step.
    fn set_reciprocal(&mut self) {
        if self.count >= SMALL {
            self.reciprocal = step(self.reciprocal, self.count);
            return;
        }
        self.reciprocal = u32::MAX;
        for count in 2..=self.count {
            for _ in 0..STEPS {
                self.reciprocal = step(self.reciprocal, count);
            }
        }
    }
}

fn step(x: u32, count: u32) -> u32 {
    let x = u64::from(x);
    let rest = (3_u64 << 32).wrapping_sub(u64::from(count) * ((x * x) >> 32));
    (((rest >> 2).wrapping_mul(x)) >> 31) as u32
}

/// 32 random bits, as the kernel draws them on the same lane (`tcplab_queue_word`).
pub(super) fn word(random: &mut Random) -> u32 {
    (random.bits() >> 32) as u32
}
