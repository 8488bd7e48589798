//! The wire of lanes with more than a fixed delay: changing rates and delays, traces, channel
//! contention, jitter, losses, corruption, copies, reordering. Other lanes have no `Wire`.
//!
//! `crates/linux/kernel/net/lane.c` has the same rules with the same random numbers.

use crate::loss::{Loss, LossState, share_of_bits};
use crate::random::Random;
use tcplab_units::{Duration, Rate, Time};

/// The capacity of a delivery opportunity, in bytes.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// The impairments of packets on a lane. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct WireConfig {
    /// Rate changes after the initial rate: from when on, and to which rate. Zero is an outage; the
    /// last rate is not zero.
    pub rates: Vec<(Time, Rate)>,
    /// Delivery opportunities, for lanes that do not transmit at a rate.
    pub trace: Option<Trace>,
    /// Opportunities and delays under light load, instead of the trace and the delay.
    pub light: Option<Light>,
    /// The channel for which the lane contends.
    pub contention: Option<Contention>,
    /// Delay changes after the initial delay: from when on, and to which delay.
    pub delays: Vec<(Time, Duration)>,
    /// Random additions to the delay.
    pub jitter: Option<Spread>,
    /// Whether packets with a shorter delay overtake others.
    pub may_overtake: bool,
    /// The share of packets that are held back, and for how long.
    pub reordering: Option<(f64, Duration)>,
    /// The loss model, if packets are lost.
    pub loss: Option<Loss>,
    /// The packets to which the loss model applies.
    pub loss_on: Carried,
    /// The share of packets that are corrupted, and dropped for that reason.
    pub corruption: f64,
    /// The share of packets that are duplicated.
    pub duplication: f64,
}

/// Delivery opportunities, each for one full packet (Mahimahi, Netravali et al. 2015).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The milliseconds that have opportunities, ascending, with their number.
    pub opportunities: Vec<(u64, u64)>,
    /// The period after which the trace repeats, in milliseconds.
    pub period_ms: u64,
}

/// Delays and opportunities under light load (CellReplay, Sentosa et al. 2025).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Light {
    /// Trains by their time after the start. The last one ends the recording, which then repeats.
    pub trains: Vec<Train>,
    /// A packet begins a train when nothing has left for longer than this.
    pub after: Duration,
}

/// Delay and opportunities of a few packets that were sent back to back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// When the train was recorded.
    pub at: Duration,
    /// The one-way delay of the train's packets.
    pub delay: Duration,
    /// The milliseconds of the train's delivery opportunities after its first packet, in order.
    pub opportunities: Vec<u64>,
}

/// A channel that must be won before packets are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contention {
    /// The time that channel access takes.
    pub access: Spread,
    /// The most packets sent before the channel must be won again.
    pub aggregate: u64,
}

/// A distribution of times: cells of equal probability, uniform within each cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread(pub Vec<(Duration, Duration)>);

/// Classes of packets by payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carried {
    /// Packets with data.
    Data,
    /// Packets without data.
    Acks,
    /// All packets.
    #[default]
    Both,
}

/// The fate of a transmitted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The packet arrives then.
    Arrives(Time),
    /// Both the packet, which arrives then, and a copy of it arrive.
    ArrivesTwice(Time),
    /// The wire lost it.
    Lost,
    /// The packet is corrupted.
    Corrupted,
}

impl Spread {
    /// Uniform from zero to `most`.
    pub fn up_to(most: Duration) -> Self {
        Self(vec![(Duration::ZERO, most)])
    }

    pub(crate) fn draw(&self, random: &mut Random) -> Duration {
        let place = u128::from(random.bits()) * self.0.len() as u128;
        let (least, most) = self.0[(place >> 64) as usize];
        let width = (most - least).as_picos() + 1;
        let within = u128::from(place as u64) * u128::from(width);
        least + Duration::from_picos((within >> 64) as u64)
    }
}

/// The running state of a [`WireConfig`].
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    rates: Changes<Rate>,
    opportunities: Option<Opportunities>,
    light: Option<LightLoad>,
    channel: Option<Channel>,
    delays: Changes<Duration>,
    jitter: Option<(Spread, Random)>,
    may_overtake: bool,
    /// The arrival time of the last packet that was not held back; later packets keep their order
    /// after it.
    last_arrival: Time,
    reordering: Option<(Chance, Duration)>,
    loss: Option<(LossState, Carried)>,
    corruption: Option<Chance>,
    duplication: Option<Chance>,
    latest: Latest,
}

/// The packet whose transmission began last, with everything that its arrival time is made of. A
/// change of the lane finds this packet in transmission ([`Wire::decide_again`]).
#[derive(Clone, Copy, Debug)]
struct Latest {
    begins: Time,
    bytes: u32,
    jitter: Duration,
    /// By how much the packet was held back, if it was.
    held: Option<Duration>,
    /// The arrival time of the previous packet that was not held back.
    before: Time,
    /// When the packet arrives, if it does, and how often.
    arrives: Option<Time>,
    times: usize,
}

impl Latest {
    const NONE: Self = Self {
        begins: Time::ZERO,
        bytes: 0,
        jitter: Duration::ZERO,
        held: None,
        before: Time::ZERO,
        arrives: None,
        times: 1,
    };
}

/// A packet whose arrival time has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PutOff {
    pub was: Time,
    pub is: Time,
    /// How many copies of the packet arrive.
    pub times: usize,
}

/// A list of steps, and how many of them have been taken.
#[derive(Clone, Debug)]
struct Changes<T> {
    steps: Vec<(Time, T)>,
    next: usize,
}

/// A random event.
#[derive(Clone, Debug)]
struct Chance {
    below: u128,
    random: Random,
}

#[derive(Clone, Debug)]
struct Channel {
    contention: Contention,
    random: Random,
    /// Packets sent since the channel was won.
    sent: u64,
}

#[derive(Clone, Debug)]
struct Opportunities {
    trace: Trace,
    round: u64,
    /// The next millisecond with opportunities, and how many of these are used.
    next: usize,
    used: u64,
    /// Bytes left in the opportunity used last.
    left: u32,
}

/// The running state of a [`Light`].
#[derive(Clone, Debug)]
struct LightLoad {
    light: Light,
    /// The number of the current train, and when it began.
    train: usize,
    began: Time,
    /// The train's next opportunity; past the last one, packets follow the trace.
    next: usize,
    /// Bytes left in the opportunity used last.
    left: u32,
    /// Whether the last packet followed the trace.
    is_heavy: bool,
    /// When the last packet left, if there was one.
    last: Option<Time>,
}

impl Wire {
    /// `None` for a lane without impairments. `random` makes the generator for a name.
    pub fn new(config: WireConfig, random: impl Fn(&str) -> Random) -> Option<Self> {
        let chance = |share: f64, name| {
            (share > 0.0).then(|| Chance { below: share_of_bits(share), random: random(name) })
        };
        let wire = Self {
            rates: Changes { steps: config.rates, next: 0 },
            opportunities: config.trace.map(|trace| Opportunities {
                trace,
                round: 0,
                next: 0,
                used: 0,
                left: 0,
            }),
            light: config.light.map(|light| LightLoad {
                light,
                train: 0,
                began: Time::ZERO,
                next: 0,
                left: 0,
                is_heavy: false,
                last: None,
            }),
            channel: config.contention.map(|contention| Channel {
                contention,
                random: random("access"),
                sent: 0,
            }),
            delays: Changes { steps: config.delays, next: 0 },
            jitter: config.jitter.map(|spread| (spread, random("jitter"))),
            may_overtake: config.may_overtake,
            last_arrival: Time::ZERO,
            reordering: config.reordering.and_then(|(share, delay)| {
                Some((chance(share, "reordering")?, delay)).filter(|_| !delay.is_zero())
            }),
            loss: config.loss.map(|loss| (LossState::new(loss, &random), config.loss_on)),
            corruption: chance(config.corruption, "corruption"),
            duplication: chance(config.duplication, "duplication"),
            latest: Latest::NONE,
        };
        wire.does_anything().then_some(wire)
    }

    /// A wire without impairments, for a lane that had none until its rate or delay changes. If a
    /// packet of so many bytes is in transmission, it has been since `begins` and arrives then;
    /// other packets arrive until `before`.
    pub fn bare(
        may_overtake: bool,
        (begins, bytes, arrives): (Time, u32, Option<Time>),
        before: Time,
    ) -> Self {
        Self {
            rates: Changes { steps: Vec::new(), next: 0 },
            opportunities: None,
            light: None,
            channel: None,
            delays: Changes { steps: Vec::new(), next: 0 },
            jitter: None,
            may_overtake,
            last_arrival: arrives.unwrap_or(before),
            reordering: None,
            loss: None,
            corruption: None,
            duplication: None,
            latest: Latest { begins, bytes, before, arrives, ..Latest::NONE },
        }
    }

    /// Gives the lane this rate and this delay from `at` on, as if they were steps of its changes.
    /// The packet in transmission, which would have left at `left`, continues at the new rate.
    /// Returns its new departure time, and its new arrival, if it arrives.
    pub fn decide_again(
        &mut self,
        (at, left): (Time, Time),
        (new_rate, new_delay): (Rate, Duration),
        (rate, delay, size): (&mut Rate, &mut Duration, &mut (u32, Duration)),
    ) -> (Time, Option<PutOff>) {
        let Latest { begins, bytes, jitter, held, before, arrives, times } = self.latest;
        let leaves = if *rate != new_rate && self.opportunities.is_none() {
            let mut step = Changes { steps: vec![(at, new_rate)], next: 0 };
            step.transmit(begins, bytes, rate, size)
        } else {
            left
        };
        (*rate, *delay, *size) = (new_rate, new_delay, (0, Duration::ZERO));
        let Some(was) = arrives else { return (leaves, None) };
        let mut is = leaves + *delay + jitter;
        if !self.may_overtake {
            is = is.max(before);
        }
        match held {
            Some(held) => is += held,
            None => self.last_arrival = is,
        }
        (leaves, Some(PutOff { was, is, times }))
    }

    fn does_anything(&self) -> bool {
        !self.rates.steps.is_empty()
            || self.opportunities.is_some()
            || self.channel.is_some()
            || !self.delays.steps.is_empty()
            || self.jitter.is_some()
            || self.reordering.is_some()
            || self.loss.is_some()
            || self.corruption.is_some()
            || self.duplication.is_some()
    }

    /// Whether packets may be reordered or duplicated.
    pub fn may_reorder(&self) -> bool {
        let changes = !self.delays.steps.is_empty() || self.light.is_some();
        self.is_disorderly_if(changes)
    }

    /// The same, given whether the delay changes.
    pub fn is_disorderly_if(&self, changes: bool) -> bool {
        let varies = self.jitter.is_some() || changes;
        self.reordering.is_some() || self.duplication.is_some() || (self.may_overtake && varies)
    }

    /// When a packet that holds the transmitter from `begins` on has left. `has_waited`: the packet
    /// waited for the one before. `rate` and `delay` are the lane's; `size` is the last packet size
    /// with its transmission time at that rate.
    pub fn leaves(
        &mut self,
        (begins, has_waited): (Time, bool),
        bytes: u32,
        (rate, delay, size): (&mut Rate, &mut Duration, &mut (u32, Duration)),
    ) -> Time {
        let mut free_at = begins;
        if let Some(channel) = &mut self.channel {
            // A station that has won the channel sends following packets without a gap, up to the
            // limit.
            if !has_waited || channel.sent >= channel.contention.aggregate {
                free_at += channel.contention.access.draw(&mut channel.random);
                channel.sent = 0;
            }
            channel.sent += 1;
        }
        (self.latest.begins, self.latest.bytes) = (free_at, bytes);
        match (&mut self.opportunities, &mut self.light) {
            (Some(heavy), Some(light)) => light.carry((free_at, has_waited), bytes, delay, heavy),
            (Some(opportunities), None) => opportunities.carry(free_at, bytes, has_waited),
            (None, _) => self.rates.transmit(free_at, bytes, rate, size),
        }
    }

    /// The fate of a packet whose transmission lasts from `begins` to `left`.
    pub fn outcome(
        &mut self,
        begins: Time,
        left: Time,
        delay: &mut Duration,
        has_payload: impl FnOnce() -> bool,
    ) -> Outcome {
        while let Some((_, next)) = self.delays.due(left) {
            *delay = next;
        }
        let mut arrives = left + *delay;
        (self.latest.before, self.latest.arrives) = (self.last_arrival, None);
        if let Some((spread, random)) = &mut self.jitter {
            self.latest.jitter = spread.draw(random);
            arrives += self.latest.jitter;
        }
        if !self.may_overtake {
            arrives = arrives.max(self.last_arrival);
        }
        if let Some((loss, on)) = &mut self.loss {
            let has_payload = has_payload();
            let concerns = match on {
                Carried::Data => has_payload,
                Carried::Acks => !has_payload,
                Carried::Both => true,
            };
            if concerns && loss.takes(has_payload, begins) {
                return Outcome::Lost;
            }
        }
        if self.corruption.as_mut().is_some_and(Chance::happens) {
            return Outcome::Corrupted;
        }
        let is_copied = self.duplication.as_mut().is_some_and(Chance::happens);
        let held =
            self.reordering.as_mut().and_then(|(chance, held)| chance.happens().then_some(*held));
        match held {
            Some(held) => arrives += held,
            None => self.last_arrival = arrives,
        }
        self.latest.held = held;
        (self.latest.arrives, self.latest.times) = (Some(arrives), 1 + usize::from(is_copied));
        if is_copied { Outcome::ArrivesTwice(arrives) } else { Outcome::Arrives(arrives) }
    }
}

impl Chance {
    fn happens(&mut self) -> bool {
        u128::from(self.random.bits()) < self.below
    }
}

impl<T: Copy> Changes<T> {
    /// Takes the next step if its time has come.
    fn due(&mut self, now: Time) -> Option<(Time, T)> {
        let step = *self.steps.get(self.next).filter(|step| step.0 <= now)?;
        self.next += 1;
        Some(step)
    }
}

impl Changes<Rate> {
    /// When the transmission of so many bytes ends.
    fn transmit(
        &mut self,
        mut begins: Time,
        bytes: u32,
        rate: &mut Rate,
        size: &mut (u32, Duration),
    ) -> Time {
        const PICOS: u128 = 1_000_000_000_000;
        let mut left = u128::from(bytes) * 8 * PICOS;
        let mut is_whole = true;
        while let Some(&(until, next)) = self.steps.get(self.next) {
            if begins < until {
                let room =
                    u128::from(until.since(begins).as_picos()) * u128::from(rate.bits_per_second());
                if left <= room {
                    break;
                }
                left -= room;
                begins = until;
                is_whole &= room == 0;
            }
            *rate = next;
            *size = (0, Duration::ZERO);
            self.next += 1;
        }
        if is_whole {
            if size.0 != bytes {
                *size = (bytes, rate.time_for(u64::from(bytes)));
            }
            return begins + size.1;
        }
        let rate = u128::from(rate.bits_per_second()).max(1);
        begins + Duration::from_picos(((left + rate / 2) / rate) as u64)
    }
}

impl Opportunities {
    /// When the last byte of a packet leaves. Small packets share an opportunity, a large one takes
    /// several. An opportunity at which nothing waits is wasted; `has_waited`: this packet waited
    /// for the one before.
    fn carry(&mut self, begins: Time, mut bytes: u32, has_waited: bool) -> Time {
        let Trace { opportunities, period_ms } = &self.trace;
        let after = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        if !has_waited {
            let round = begins.since(Time::ZERO).as_millis() / period_ms;
            self.left = 0;
            if round > self.round {
                (self.round, self.next, self.used) = (round, 0, 0);
            }
        }
        let mut at = begins;
        while bytes > self.left {
            bytes -= self.left;
            self.left = 0;
            let (ms, count) = opportunities[self.next];
            at = after(self.round * period_ms + ms);
            if !has_waited && at <= begins {
                self.used = count;
            } else {
                self.left = OPPORTUNITY_BYTES;
                self.used += 1;
            }
            if self.used >= count {
                self.used = 0;
                self.next += 1;
                if self.next == opportunities.len() {
                    self.next = 0;
                    self.round += 1;
                }
            }
        }
        self.left -= bytes;
        at
    }
}

impl LightLoad {
    /// When a packet leaves; `delay` becomes its propagation delay.
    fn carry(
        &mut self,
        (begins, has_waited): (Time, bool),
        bytes: u32,
        delay: &mut Duration,
        heavy: &mut Opportunities,
    ) -> Time {
        if self.last.is_none_or(|last| begins > last + self.light.after) {
            *delay = self.begin(begins);
        }
        let left = self.follow((begins, has_waited), bytes).unwrap_or_else(|| {
            // The trace has the times at the far end. Earlier packets left by the train, and no
            // packet has waited for an opportunity of the trace.
            let there = begins + *delay;
            let left = heavy.carry(there, bytes, has_waited && self.is_heavy);
            self.is_heavy = true;
            begins + left.since(there)
        });
        self.last = Some(left);
        left
    }

    /// Begins a train. Returns the delay of its packets, interpolated between two recorded trains.
    fn begin(&mut self, now: Time) -> Duration {
        let trains = &self.light.trains;
        let period = trains[trains.len() - 1].at;
        let into =
            Duration::from_picos(now.since(Time::ZERO).as_picos() % period.as_picos().max(1));
        self.train = trains[..trains.len() - 1].partition_point(|train| train.at <= into) - 1;
        self.began = now;
        (self.next, self.left, self.is_heavy) = (0, 0, false);
        let (one, other) = (&trains[self.train], &trains[self.train + 1]);
        let (whole, part) = ((other.at - one.at).as_micros(), (into - one.at).as_micros());
        // In whole microseconds, so that products fit 64 bits.
        let sum = one.delay.as_micros() * (whole - part) + other.delay.as_micros() * part;
        Duration::from_micros(sum / whole.max(1))
    }

    /// When a packet leaves by an opportunity of the train, if one is left: the first whose time
    /// has not passed. Small packets share an opportunity; bytes that do not fit take the next one.
    fn follow(&mut self, (begins, has_waited): (Time, bool), mut bytes: u32) -> Option<Time> {
        if self.is_heavy {
            return None;
        }
        let opportunities = &self.light.trains[self.train].opportunities;
        let at = |ms: u64| self.began + Duration::from_millis(ms);
        let passed = |ms: &&u64| !has_waited && at(**ms) < begins;
        // The opportunity used last has passed as well.
        if self.next > 0 && passed(&&opportunities[self.next - 1]) {
            self.left = 0;
        }
        if bytes > self.left {
            while opportunities.get(self.next).as_ref().is_some_and(passed) {
                self.next += 1;
            }
            self.left = 0;
        }
        while bytes > self.left {
            bytes -= self.left;
            opportunities.get(self.next)?;
            self.next += 1;
            self.left = OPPORTUNITY_BYTES;
        }
        self.left -= bytes;
        Some(at(opportunities[self.next - 1]))
    }
}

#[cfg(test)]
mod tests;
