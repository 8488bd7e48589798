//! `DualPI2`, the dual-queue coupled AQM of L4S (RFC 9332, appendix A): one queue for packets with
//! ECT(1) or CE, and one for all others, under one base probability p.
//!
//! A PI controller sets p by the sojourn time of the older of the two head packets. Classic packets
//! are dropped or marked with probability p^2. L4S packets are marked with probability k p or by
//! their own sojourn time, whichever probability is larger. The rate of a Reno flow is inversely
//! proportional to the square root of its loss probability, and that of a scalable flow to its
//! marking probability, so flows of both kinds with equal round trips get similar rates with k = 2
//! (§2.1).
//!
//! Other details follow `sch_dualpi2` of Linux 6.17, by its source and not by runs of it: the delay
//! is the longer one of both queues (`calculate_probability`), draws are random, nothing is
//! signalled for p while less than two full packets wait (`must_drop`), and weighted round robin
//! counts bytes as credit (`dequeue_packet`). Differences from Linux:
//!
//! - p has 56 bits, in Linux 32, and k may be a fraction. The default gains are 0.16 and 3.2, in
//!   Linux 41/256 and 819/256.
//! - No packet is marked for its sojourn time unless another one waits behind it: `Th_len` of §A.1.
//!   Linux has no such limit by default, and its optional one counts the packets found on arrival
//!   (`min_qlen_step`).
//! - The ramp and the time-shifted FIFO are only in the RFC. Linux can also count packets in place
//!   of the sojourn time, drop on enqueue, limit memory, and direct other packets to the L4S queue
//!   by filters.

use super::{Drops, Fifo, Next, Queue, QueueLimit, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use crate::random::Random;
use tcplab_units::{Duration, Time};

/// A probability of one.
const ONE: i128 = 1 << 56;

/// The sum of the scheduler's weights.
const WHOLE: i64 = 100;

/// The configuration of `DualPI2`.
#[derive(Clone, Copy, Debug)]
pub struct DualPi2Config {
    /// The target sojourn time.
    pub target: Duration,
    /// The update interval of the base probability.
    pub update: Duration,
    /// The integral gain, for the distance of the sojourn time from its target, in hertz.
    pub alpha: f64,
    /// The proportional gain, for the change of the sojourn time, in hertz.
    pub beta: f64,
    /// The coupling factor.
    pub coupling: f64,
    /// The sojourn time from which L4S packets are marked.
    pub threshold: Duration,
    /// The range above the threshold over which the marking probability rises to one.
    pub ramp: Duration,
    /// Packets that must wait behind a packet marked for its sojourn time.
    pub behind: u64,
    /// The scheduler between the two queues.
    pub scheduler: DualScheduler,
    /// Whether an overload leads to drops.
    pub drop_on_overload: bool,
    /// The largest frame, in bytes.
    pub frame: u64,
}

/// The scheduler between the two queues.
#[derive(Clone, Copy, Debug)]
pub enum DualScheduler {
    /// The L4S queue, except for this percentage of the bytes while both queues are backlogged.
    Weighted(u8),
    /// The packet that came first, with L4S packets counted as this much older.
    Shifted(Duration),
}

/// The PI controller and its base probability (RFC 9332 §A.1, `dualpi2_update`).
#[derive(Clone, Debug)]
struct Controller {
    /// Gains, in probability for each nanosecond.
    alpha: i128,
    beta: i128,
    /// In nanoseconds.
    target: i128,
    most: i128,
    probability: i128,
    /// The sojourn time at the last update, in nanoseconds.
    before: i128,
}

impl Controller {
    fn new(config: &DualPi2Config) -> Self {
        let weight = |hertz: f64| libm::round(hertz * ONE as f64 / 1e9) as i128;
        // Without drops, p is capped where all L4S packets are marked.
        let most = if config.drop_on_overload { ONE } else { scaled(ONE, 1.0 / config.coupling) };
        Self {
            alpha: weight(config.alpha),
            beta: weight(config.beta),
            target: nanos(config.target),
            most: most.min(ONE),
            probability: 0,
            before: 0,
        }
    }

    /// An update with this sojourn time of the head packet.
    fn update(&mut self, waited: Duration) {
        let waited = nanos(waited);
        let far = self.alpha * (waited - self.target);
        let moved = self.beta * (waited - self.before);
        self.before = waited;
        self.probability = (self.probability + far + moved).clamp(0, self.most);
    }

    /// So many updates while both queues are empty.
    fn rest(&mut self, updates: u64) {
        if updates > 0 {
            self.update(Duration::ZERO);
            let rest = self.alpha * self.target * i128::from(updates - 1);
            self.probability = (self.probability - rest).max(0);
        }
    }
}

fn nanos(time: Duration) -> i128 {
    i128::from(time.as_picos() / 1000)
}

fn scaled(probability: i128, factor: f64) -> i128 {
    (probability as f64 * factor) as i128
}

/// The two queues.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2<P> {
    config: DualPi2Config,
    limit: QueueLimit,
    l4s: Fifo<P>,
    classic: Fifo<P>,
    controller: Controller,
    /// When the probability is updated next.
    updates_at: Time,
    /// The bytes that the classic queue has sent beyond its share while both queues were
    /// backlogged, times [`WHOLE`].
    credit: i64,
    random: Random,
}

impl<P: Packet> DualPi2<P> {
    pub fn new(config: &DualPi2Config, limit: QueueLimit, random: Random) -> Self {
        let unlimited = || Fifo::new(QueueLimit::Packets(u64::MAX));
        Self {
            config: *config,
            limit,
            l4s: unlimited(),
            classic: unlimited(),
            controller: Controller::new(config),
            updates_at: Time::ZERO + config.update,
            credit: Self::first_credit(config),
            random,
        }
    }

    /// The initial credit favours the L4S queue by one MTU.
    fn first_credit(config: &DualPi2Config) -> i64 {
        match config.scheduler {
            DualScheduler::Weighted(classic) => {
                config.frame as i64 * (2 * i64::from(classic) - WHOLE)
            }
            DualScheduler::Shifted(_) => 0,
        }
    }

    /// Updates the probability as often as was due until now. In the nanosecond of an update, a
    /// packet that comes does so after it, and one that leaves has left before.
    fn catch_up(&mut self, now: Time, comes: bool) {
        while self.updates_at < now || (comes && self.updates_at == now) {
            let at = self.updates_at;
            let firsts = [self.l4s.first(), self.classic.first()];
            let Some(came) = firsts.into_iter().flatten().map(|first| first.entered).min() else {
                // The queues have been empty since this update, and thus at all updates that were
                // due.
                let due = now.since(at).as_picos();
                let period = self.config.update.as_picos();
                let updates = due / period + u64::from(comes || !due.is_multiple_of(period));
                self.controller.rest(updates);
                self.updates_at = at + self.config.update.saturating_mul(updates);
                return;
            };
            self.controller.update(at.since(came));
            self.updates_at = at + self.config.update;
        }
    }

    /// Whether the L4S queue is served next, if any packet waits.
    fn serves_l4s(&self) -> Option<bool> {
        match (self.l4s.first(), self.classic.first(), self.config.scheduler) {
            (None, None, _) => None,
            (l4s, None, _) | (l4s @ None, _, _) => Some(l4s.is_some()),
            (Some(_), Some(_), DualScheduler::Weighted(_)) => Some(self.credit <= 0),
            (Some(l4s), Some(classic), DualScheduler::Shifted(shift)) => {
                Some(l4s.entered <= classic.entered + shift)
            }
        }
    }

    /// Charges a packet sent from the L4S queue or from the classic one. While only one of them is
    /// backlogged, neither is served at the other's expense.
    fn charge(&mut self, is_l4s: bool, bytes: u32) {
        let DualScheduler::Weighted(classic) = self.config.scheduler else { return };
        let (classic, bytes) = (i64::from(classic), i64::from(bytes));
        if is_l4s && self.classic.first().is_some() {
            self.credit += classic * bytes;
        } else if !is_l4s && self.l4s.first().is_some() {
            self.credit -= (WHOLE - classic) * bytes;
        }
    }

    fn rolls(&mut self, probability: i128) -> bool {
        probability > 0 && i128::from(self.random.bits() >> 8) < probability
    }

    /// The probability that an L4S packet is marked for its own sojourn time (§A.1, `laqm`).
    fn native(&self, waited: Duration) -> i128 {
        if waited < self.config.threshold || self.l4s.waiting().0 < self.config.behind {
            return 0;
        }
        let above = (waited - self.config.threshold).as_picos();
        match self.config.ramp.as_picos() {
            ramp if above >= ramp => ONE,
            ramp => ONE * i128::from(above) / i128::from(ramp),
        }
    }

    /// Decides whether a packet that leaves its queue passes, possibly with a mark (§A.2).
    fn passes(&mut self, now: Time, is_l4s: bool, queued: &mut Queued<P>) -> bool {
        let is_short = self.waiting().1 < 2 * self.config.frame;
        let base = if is_short { 0 } else { self.controller.probability };
        let coupled = scaled(base, self.config.coupling);
        // Marking is saturated: drops apply to all packets alike (§4.2.3).
        let is_overload = coupled >= ONE && self.config.drop_on_overload;
        if !is_l4s {
            let is_signalled = self.rolls(base) && self.rolls(base);
            return !is_signalled || !is_overload && queued.packet.mark();
        }
        if is_overload && self.rolls(base) && self.rolls(base) {
            return false;
        }
        let chance = self.native(now.since(queued.entered)).max(coupled);
        if self.rolls(chance) {
            queued.packet.mark();
        }
        true
    }
}

impl<P: Packet> Queue<P> for DualPi2<P> {
    fn enqueue(
        &mut self,
        now: Time,
        queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.catch_up(now, true);
        let (packets, bytes) = self.waiting();
        if self.limit.is_below(packets + 1, bytes + u64::from(queued.bytes())) {
            return Err(Reason::Full);
        }
        let is_l4s = queued.packet.is_l4s();
        if is_l4s { &mut self.l4s } else { &mut self.classic }.push(queued)
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P> {
        self.catch_up(now, false);
        while let Some(is_l4s) = self.serves_l4s() {
            let queue = if is_l4s { &mut self.l4s } else { &mut self.classic };
            let Some(mut queued) = queue.pop() else { break };
            if self.passes(now, is_l4s, &mut queued) {
                self.charge(is_l4s, queued.bytes());
                return Next::Packet(queued);
            }
            drops.push((queued, Reason::Discipline));
        }
        self.credit = Self::first_credit(&self.config);
        Next::Empty
    }

    fn waiting(&self) -> (u64, u64) {
        let ((l4s, l4s_bytes), (classic, bytes)) = (self.l4s.waiting(), self.classic.waiting());
        (l4s + classic, l4s_bytes + bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::{Parcel, of_flow};
    use crate::route::Flow;

    const L4S: u64 = 1;
    const CLASSIC: u64 = 2;
    const CLASSIC_ECN: u64 = 3;

    fn config() -> DualPi2Config {
        DualPi2Config {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            threshold: Duration::from_millis(1),
            ramp: Duration::ZERO,
            behind: 1,
            scheduler: DualScheduler::Weighted(10),
            drop_on_overload: true,
            frame: 1514,
        }
    }

    fn queue(config: &DualPi2Config) -> DualPi2<Parcel> {
        DualPi2::new(config, QueueLimit::Packets(100_000), Random::new(1, "test"))
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn enter(queue: &mut DualPi2<Parcel>, flow: u64, now: Time) -> Result<(), Reason> {
        let is_l4s = flow == L4S;
        let parcel = Parcel { ect: flow != CLASSIC, l4s: is_l4s, ce: false };
        let queued = of_flow(Flow { key: flow, ..Flow::default() }, now, parcel);
        queue.enqueue(now, queued, &mut Vec::new())
    }

    /// The flow of the packet that leaves then, and whether it is marked.
    fn leave(queue: &mut DualPi2<Parcel>, now: Time) -> Option<(u64, bool)> {
        match queue.dequeue(now, &mut Vec::new()) {
            Next::Packet(queued) => Some((queued.flow.key, queued.packet.ce)),
            Next::NotBefore(_) | Next::Empty => None,
        }
    }

    fn probability(queue: &DualPi2<Parcel>) -> f64 {
        queue.controller.probability as f64 / ONE as f64
    }

    #[test]
    fn the_base_probability_follows_the_larger_head_sojourn() {
        let mut queue = queue(&config());
        enter(&mut queue, CLASSIC, at(6)).unwrap();
        enter(&mut queue, L4S, at(12)).unwrap();
        // §A.1: p += alpha (sojourn - target) + beta (sojourn - sojourn before). At 16 ms the head
        // packet has waited for 10 ms: 0.16 * -0.005 + 3.2 * 0.01; at 32 ms for 26: 0.16 * 0.011 +
        // 3.2 * 0.016.
        queue.catch_up(at(16), true);
        assert!((probability(&queue) - 0.0312).abs() < 1e-9);
        queue.catch_up(at(32), false);
        assert!((probability(&queue) - 0.0312).abs() < 1e-9);
        queue.catch_up(at(32), true);
        assert!((probability(&queue) - (0.0312 + 0.00176 + 0.0512)).abs() < 1e-9);
    }

    #[test]
    fn an_idle_period_applies_all_missed_updates() {
        let mut one = queue(&config());
        one.controller.probability = ONE / 10;
        one.controller.before = 20_000_000;
        let mut other = queue(&config());
        other.controller = one.controller.clone();
        // Down by 3.2 * 0.02 at first, and by 0.16 * 0.015 each time: 0.0336 is left, worth 14 more
        // updates.
        for millis in (16..=160).step_by(16) {
            one.catch_up(at(millis), true);
        }
        other.catch_up(at(160), true);
        assert_eq!(one.controller.probability, other.controller.probability);
        assert!((probability(&other) - (0.1 - 0.064 - 10.0 * 0.0024)).abs() < 1e-9);
        other.catch_up(at(1_000_000), true);
        assert_eq!((probability(&other), other.updates_at), (0.0, at(1_000_016)));
    }

    /// The shares of a flow's packets that are marked and dropped at this base probability, over
    /// 100,000 packets that have not waited.
    fn signalled(flow: u64, base: f64, config: &DualPi2Config) -> (f64, f64) {
        let mut queue = DualPi2::new(config, QueueLimit::Packets(u64::MAX), Random::new(1, "test"));
        queue.controller.probability = scaled(ONE, base);
        for _ in 0..100_003 {
            enter(&mut queue, flow, at(0)).unwrap();
        }
        let (mut drops, mut marks) = (Vec::new(), 0);
        while queue.waiting().0 > 3
            && let Next::Packet(queued) = queue.dequeue(at(0), &mut drops)
        {
            marks += usize::from(queued.packet.ce);
        }
        (marks as f64 / 1e5, drops.len() as f64 / 1e5)
    }

    #[test]
    fn classic_probability_is_squared_and_l4s_probability_is_coupled() {
        // §A.1: p_C = p^2, p_L = k p. Five standard deviations of 100,000 draws are 0.004 at 0.07.
        let (marked, dropped) = signalled(L4S, 0.035, &config());
        assert!((marked - 0.07).abs() < 0.004 && dropped == 0.0, "{marked}");
        let (marked, _) = signalled(L4S, 0.035, &DualPi2Config { coupling: 4.0, ..config() });
        assert!((marked - 0.14).abs() < 0.0055, "{marked}");
        let (marked, dropped) = signalled(CLASSIC, 0.265, &config());
        assert!((dropped - 0.070_225).abs() < 0.004 && marked == 0.0, "{dropped}");
        let (marked, dropped) = signalled(CLASSIC_ECN, 0.265, &config());
        assert!((marked - 0.070_225).abs() < 0.004 && dropped == 0.0, "{marked}");
    }

    #[test]
    fn overload_drops_classic_and_l4s_packets_alike() {
        // §4.2.3: with k p = 1 all L4S packets are marked, and a quarter of all packets is dropped.
        // Five standard deviations are 0.007.
        for flow in [L4S, CLASSIC, CLASSIC_ECN] {
            let (marked, dropped) = signalled(flow, 0.5, &config());
            assert!((dropped - 0.25).abs() < 0.007, "{flow}: {dropped}");
            let expected = if flow == L4S { 1.0 - dropped } else { 0.0 };
            assert!((marked - expected).abs() < 1e-4, "{flow}: {marked}");
        }
        // Without drops, p ends at 1 / k, where all L4S packets are marked.
        let config = DualPi2Config { drop_on_overload: false, ..config() };
        assert_eq!(signalled(L4S, 0.5, &config), (1.0, 0.0));
        let mut queue = queue(&config);
        enter(&mut queue, CLASSIC, at(0)).unwrap();
        queue.catch_up(at(10_000), true);
        assert!((probability(&queue) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn wrr_gives_the_classic_queue_its_share() {
        let mut queue = queue(&config());
        for _ in 0..1000 {
            enter(&mut queue, CLASSIC, at(0)).unwrap();
            enter(&mut queue, L4S, at(0)).unwrap();
        }
        let left: Vec<u64> = (0..100).filter_map(|_| Some(leave(&mut queue, at(0))?.0)).collect();
        // The credit of 1514 * -80 is worth 80.7 packets at a tenth: 9 packets of 1500 * 10 pass
        // first.
        assert_eq!(left.iter().position(|&flow| flow == CLASSIC), Some(9));
        let classic = left.iter().skip(9).filter(|&&flow| flow == CLASSIC).count();
        assert!((9..=10).contains(&classic), "{classic}");
    }

    #[test]
    fn the_time_shifted_scheduler_prefers_l4s_by_its_shift() {
        let scheduler = DualScheduler::Shifted(Duration::from_millis(50));
        let mut queue = queue(&DualPi2Config { scheduler, ..config() });
        for (flow, millis) in [(CLASSIC, 10), (CLASSIC, 40), (L4S, 60), (L4S, 61)] {
            enter(&mut queue, flow, at(millis)).unwrap();
        }
        let left: Vec<u64> = (0..4).filter_map(|_| Some(leave(&mut queue, at(61))?.0)).collect();
        assert_eq!(left, [L4S, CLASSIC, L4S, CLASSIC]);
    }

    #[test]
    fn the_step_marks_l4s_packets_unless_the_queue_is_then_empty() {
        let mut queue = queue(&config());
        for millis in [0, 0, 0] {
            enter(&mut queue, L4S, at(millis)).unwrap();
        }
        let just_before = Time::ZERO + Duration::from_nanos(999_999);
        assert_eq!(leave(&mut queue, just_before), Some((L4S, false)));
        assert_eq!(leave(&mut queue, at(1)), Some((L4S, true)));
        assert_eq!(leave(&mut queue, at(9)), Some((L4S, false)));
        // §A.1: with a threshold of 0.8 ms and a ramp of 0.4 ms, half of the packets with a sojourn
        // time of 1 ms are marked.
        let [threshold, ramp] = [800, 400].map(Duration::from_micros);
        let queue =
            DualPi2 { config: DualPi2Config { threshold, ramp, behind: 0, ..config() }, ..queue };
        assert_eq!(queue.native(Duration::from_millis(1)), ONE / 2);
        assert_eq!(queue.native(Duration::from_micros(1200)), ONE);
    }

    #[test]
    fn both_queues_share_one_limit() {
        let mut queue: DualPi2<Parcel> =
            DualPi2::new(&config(), QueueLimit::Packets(2), Random::new(1, "test"));
        let accepted = [L4S, CLASSIC, L4S, CLASSIC].map(|flow| enter(&mut queue, flow, at(0)));
        assert_eq!(accepted, [Ok(()), Ok(()), Err(Reason::Full), Err(Reason::Full)]);
        assert_eq!(queue.waiting(), (2, 3000));
    }
}
