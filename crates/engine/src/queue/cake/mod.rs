//! CAKE, as in Linux `sch_cake` (Høiland-Jørgensen, Täht and Morton 2018: Piece of CAKE). Packets
//! are sorted into tins by their class. In each tin, hosts and their flows are served in turn
//! (DRR++), each flow under COBALT. A shaper may limit the rate to less than that of the link. When
//! the queue is full, the flow with the most bytes loses its oldest packet.

mod cobalt;
mod longest;
mod tin;

use super::flows::{HashKey, Waiting};
use super::{Drops, Next, Queue, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use crate::random::Random;
use crate::route::Flow;
use cobalt::{Params, nanos};
use longest::{Longest, entry};
use tcplab_units::{Duration, Rate, Time};
use tin::{Hashes, Tin};

/// Queues of a tin, and the most tins (`CAKE_QUEUES`, `CAKE_MAX_TINS`).
const QUEUES: usize = 1024;
const MOST_TINS: usize = 8;

/// The lowest rate, in bytes a second.
const LEAST_RATE: u64 = 64;

/// The configuration of CAKE.
#[derive(Clone, Debug)]
pub struct CakeConfig {
    /// The rate of the shaper; without one, packets leave at the link's rate.
    pub shaper: Option<Rate>,
    /// How packet sizes are counted at the shaper.
    pub framing: Framing,
    /// The target sojourn time on a fast link.
    pub target: Duration,
    /// The interval for which the target may be exceeded on a fast link.
    pub interval: Duration,
    /// The unit of fairness: flows, hosts or both.
    pub isolation: Isolation,
    /// The classes of packets.
    pub tins: Tins,
    /// Whether redundant ACKs are dropped.
    pub ack_filter: AckFilter,
    /// Packets have passed the bottleneck already: dropped ones count as sent, and bulk flows may
    /// hold two packets each.
    pub ingress: bool,
    /// Whether the DSCP is cleared once packets are sorted.
    pub wash: bool,
    /// The largest frame, in bytes.
    pub frame: u64,
    /// The memory limit of all packets together, in bytes.
    pub memory: u64,
}

/// How many bytes a packet takes on the link that the shaper models.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    /// Headers of that link.
    pub overhead: u64,
    /// The minimum packet size, headers included.
    pub least: u64,
    /// The cell framing.
    pub cells: Cells,
}

/// Cell framing of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// None: packets are carried whole.
    None,
    /// ATM: cells of 53 bytes that carry 48.
    Atm,
    /// PTM of VDSL2: one byte more for each 64.
    Ptm,
}

impl Framing {
    /// The accounted size of a packet of so many bytes (`cake_calc_overhead`).
    fn bytes(self, packet: u32) -> u64 {
        let bytes = (u64::from(packet) + self.overhead).max(self.least);
        match self.cells {
            Cells::None => bytes,
            Cells::Atm => bytes.div_ceil(48) * 53,
            Cells::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

/// How queues are told apart, and who gets equal shares. With flows and hosts, a host's share is
/// divided among its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// By flows.
    pub flows: bool,
    /// By source hosts.
    pub sources: bool,
    /// By destination hosts.
    pub targets: bool,
}

impl Isolation {
    const BLIND: Self = Self { flows: false, sources: false, targets: false };

    fn has_sources_of_flows(self) -> bool {
        self.flows && self.sources
    }

    fn has_targets_of_flows(self) -> bool {
        self.flows && self.targets
    }

    fn hashes(self, flow: &Flow, key: HashKey) -> Hashes {
        let hash = |is_asked: bool, value: u64| if is_asked { key.of(value) } else { 0 };
        let source = hash(self.sources, flow.from.into());
        let target = hash(self.targets, flow.to.into());
        let flow = if self.flows { key.of_flow(flow) } else { source ^ target };
        Hashes { flow, source, target }
    }
}

/// The classes into which packets are sorted by DSCP, which is 0 except for ICMP errors of routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tins {
    /// One tin for all.
    BestEffort,
    /// One tin for each value of the former IP precedence field.
    Precedence,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// The same and video.
    Diffserv4,
    /// Eight tins.
    Diffserv8,
}

impl Tins {
    /// Right shifts of each tin's rate and quantum relative to the first tin's, or `None` if each
    /// tin has seven eighths of the one before; and the first tin's quantum
    /// (`cake_config_diffserv3` and the others).
    fn shares(self) -> (Option<&'static [u32]>, u64) {
        match self {
            Self::BestEffort => (Some(&[0]), 65_535),
            Self::Diffserv3 => (Some(&[0, 4, 2]), 1024),
            Self::Diffserv4 => (Some(&[0, 4, 1, 2]), 1024),
            Self::Precedence | Self::Diffserv8 => (None, 256),
        }
    }

    /// The rate of each tin, with 0 for unlimited, and its quantum.
    fn all(self, rate: u64) -> Vec<(u64, u64)> {
        let (shifts, quantum) = self.shares();
        let less = |&(rate, quantum): &(u64, u64)| Some((rate * 7 / 8, quantum * 7 / 8));
        match shifts {
            Some(shifts) => shifts.iter().map(|by| (rate >> by, quantum >> by)).collect(),
            None => std::iter::successors(Some((rate, quantum)), less).take(MOST_TINS).collect(),
        }
    }

    /// The tin of a packet with DSCP 0 or CS6, network control.
    fn of(self, is_control: bool) -> usize {
        let (best_effort, control) = match self {
            Self::BestEffort => (0, 0),
            Self::Precedence => (0, 6),
            Self::Diffserv3 => (0, 2),
            Self::Diffserv4 => (0, 3),
            Self::Diffserv8 => (2, 7),
        };
        if is_control { control } else { best_effort }
    }
}

/// Which redundant ACKs are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFilter {
    /// None.
    Off,
    /// ACKs made redundant by two others.
    On,
    /// ACKs made redundant by one other.
    Aggressive,
}

/// Transmission times at a rate, with the precision of `cake_set_rate`.
#[derive(Clone, Copy, Debug)]
struct Pace {
    factor: u64,
    shift: u32,
}

impl Pace {
    /// The pace for so many bytes a second; 0 takes no time.
    fn new(rate: u64) -> Self {
        if rate == 0 {
            return Self { factor: 0, shift: 0 };
        }
        let (mut factor, mut shift) = ((1_000_000_000 << 34) / rate.max(LEAST_RATE), 34);
        while factor >> 34 != 0 {
            factor >>= 1;
            shift -= 1;
        }
        Self { factor, shift }
    }

    fn nanos(self, bytes: u64) -> i64 {
        (bytes.wrapping_mul(self.factor) >> self.shift).cast_signed()
    }
}

/// The shaper of all tins together. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Shaper {
    pace: Pace,
    /// When the next packet may leave; the second value bounds how far dropped packets delay
    /// others.
    due: i64,
    failsafe: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Cake<P> {
    config: CakeConfig,
    key: HashKey,
    random: Random,
    tins: Vec<(Tin<P>, Pace)>,
    /// The tin being served.
    current: usize,
    shaper: Option<Shaper>,
    longest: Option<Box<Longest>>,
    /// Memory taken by all packets.
    memory: u64,
    waiting: Waiting,
}

impl<P: Packet> Cake<P> {
    pub fn new(config: &CakeConfig, key: HashKey, random: Random) -> Self {
        let rate = config.shaper.map_or(0, |rate| (rate.bits_per_second() / 8).max(1));
        let tins = config.tins.all(rate).into_iter().map(|(rate, quantum)| {
            let pace = Pace::new(rate);
            let flow_quantum = if rate > 0 { (rate >> 12).clamp(300, 1514) } else { 1514 };
            (Tin::new(params(config, pace), flow_quantum as u32, quantum.cast_signed()), pace)
        });
        Self {
            key,
            random,
            tins: tins.collect(),
            current: 0,
            shaper: (rate > 0).then(|| Shaper { pace: Pace::new(rate), due: 0, failsafe: 0 }),
            longest: None,
            memory: 0,
            waiting: Waiting::default(),
            config: config.clone(),
        }
    }

    /// Charges a packet that leaves the tin, or is dropped where drops count
    /// (`cake_advance_shaper`). Returns the accounted bytes.
    fn charge(&mut self, tin: usize, packet: u32, now: i64, is_dropped: bool) -> u64 {
        let bytes = self.config.framing.bytes(packet);
        let Some(shaper) = &mut self.shaper else { return bytes };
        let (tin, pace) = &mut self.tins[tin];
        let time = pace.nanos(bytes);
        if tin.due < now {
            tin.due += time;
        } else if tin.due < now + time {
            tin.due = now + time;
        }
        let time = shaper.pace.nanos(bytes);
        shaper.due += time;
        if !is_dropped {
            shaper.failsafe += time + (time >> 1);
        }
        bytes
    }

    /// Takes the first packet of a flow.
    fn pop(&mut self, tin: usize, flow: u16) -> Option<Queued<P>> {
        let first = self.tins[tin].0.pop(flow)?;
        self.forget(&first);
        Some(first)
    }

    fn forget(&mut self, queued: &Queued<P>) {
        self.memory -= queued.packet.memory_bytes();
        self.waiting.remove(queued.bytes());
    }

    /// Drops the oldest packet of the flow with the most bytes (`cake_drop`).
    fn make_room(&mut self, now: i64, drops: &mut Drops<P>) {
        let longest = self.longest.get_or_insert_with(|| Box::new(Longest::new()));
        let (tin, flow) = longest.first(|entry| bytes_of(&self.tins, entry));
        let Some(first) = self.pop(tin, flow) else {
            self.longest.iter_mut().for_each(|longest| longest.discard_heap());
            return;
        };
        let owner = &mut self.tins[tin].0;
        let params = owner.params;
        owner.cobalt(flow).on_overflow(&params, now);
        if self.config.ingress {
            self.charge(tin, first.bytes(), now, true);
        }
        drops.push((first, Reason::Full));
        self.shrunk(tin, flow);
    }

    fn shrunk(&mut self, tin: usize, flow: u16) {
        if let Some(longest) = &mut self.longest {
            longest.shrunk(entry(tin, flow), |entry| bytes_of(&self.tins, entry));
        }
    }

    /// The tin whose turn it is, if any has packets.
    fn choose(&mut self, now: i64) -> Option<usize> {
        if self.shaper.is_some() {
            // The last of those that are on schedule, or else the one that is least ahead of its
            // schedule.
            let mut best: Option<(i64, usize)> = None;
            for (number, (tin, _)) in
                self.tins.iter().enumerate().filter(|(_, tin)| tin.0.is_active())
            {
                let ahead = tin.due - now;
                if ahead <= 0 || best.is_none_or(|(least, _)| ahead <= least) {
                    best = Some((ahead, number));
                }
            }
            self.current = best.map_or(0, |(_, number)| number);
            return best.map(|(_, number)| number);
        }
        if !self.tins.iter().any(|(tin, _)| tin.is_active()) {
            return None;
        }
        // Tins are served in turn, each for its quantum.
        loop {
            let (tin, _) = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.is_active() {
                return Some(self.current);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }

    /// The next packet of a tin; none if its first flow turned out to be empty. `with_decaying`:
    /// decaying flows are looked at first, once for each packet.
    fn serve(
        &mut self,
        number: usize,
        with_decaying: &mut bool,
        now: i64,
        drops: &mut Drops<P>,
    ) -> Option<Queued<P>> {
        let CakeConfig { isolation, ingress, .. } = self.config;
        'turn: loop {
            let tin = &mut self.tins[number].0;
            let (list, flow) = tin.first(std::mem::take(with_decaying))?;
            if tin.has_spent(list, flow, isolation, &mut self.random) {
                continue;
            }
            loop {
                let first = self.pop(number, flow);
                let Some(mut next) = first else {
                    self.tins[number].0.retire(list, flow, now, isolation);
                    return None;
                };
                self.shrunk(number, flow);
                let tin = &mut self.tins[number].0;
                let (params, bulk) = (tin.params, if ingress { tin.bulk } else { 0 });
                let cobalt = tin.cobalt(flow);
                let is_dropped =
                    cobalt.drops(&params, now, &mut next, bulk.into(), &mut self.random);
                if !is_dropped || self.tins[number].0.is_empty(flow) {
                    let bytes = self.charge(number, next.bytes(), now, false);
                    self.tins[number].0.charge(flow, bytes);
                    return Some(next);
                }
                let bytes = next.bytes();
                drops.push((next, Reason::Discipline));
                if ingress {
                    let bytes = self.charge(number, bytes, now, true);
                    self.tins[number].0.charge(flow, bytes);
                    continue 'turn;
                }
            }
        }
    }
}

/// On a slow link the target is the time of one and a half packets, and the interval grows with it
/// (`cake_set_rate`).
fn params(config: &CakeConfig, pace: Pace) -> Params {
    let packet_time = pace.nanos(config.frame).cast_unsigned();
    let asked = config.target.as_nanos();
    let target = asked.max(packet_time * 3 / 2);
    let interval = (config.interval.as_nanos() + target - asked).max(2 * target);
    Params { target, interval, packet_time }
}

fn bytes_of<P: Packet>(tins: &[(Tin<P>, Pace)], entry: u16) -> u32 {
    let entry = usize::from(entry);
    let flow = (entry / MOST_TINS) as u16;
    tins.get(entry % MOST_TINS).map_or(0, |(tin, _)| tin.bytes_of(flow))
}

impl<P: Packet> Queue<P> for Cake<P> {
    fn enqueue(
        &mut self,
        now: Time,
        mut queued: Queued<P>,
        drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        let now = nanos(now);
        let CakeConfig { isolation, ack_filter, ingress, memory, wash, .. } = self.config;
        let number = self.config.tins.of(queued.packet.is_control());
        if wash {
            queued.packet.wash();
        }
        let tin = &mut self.tins[number].0;
        let flow = tin.place(isolation.hashes(&queued.flow, self.key), isolation);
        // A tin that was idle has no credit.
        if tin.bytes == 0 {
            tin.due = tin.due.max(now);
            if self.waiting.packets == 0
                && let Some(shaper) = self.shaper.as_mut().filter(|shaper| shaper.due < now)
            {
                (shaper.due, shaper.failsafe) = (now, now);
            }
        }
        self.memory += queued.packet.memory_bytes();
        self.waiting.add(queued.bytes());
        tin.push(flow, queued);
        let superseded = match ack_filter {
            AckFilter::Off => None,
            filter => tin.filter(flow, filter),
        };
        if let Some(ack) = superseded {
            self.forget(&ack);
            if ingress {
                self.charge(number, ack.bytes(), now, true);
            }
            drops.push((ack, Reason::Discipline));
        }
        if let Some(longest) = &mut self.longest {
            longest.grown(entry(number, flow), |entry| bytes_of(&self.tins, entry));
        }
        self.tins[number].0.enlist(flow, isolation, &mut self.random);
        while self.memory > memory {
            self.make_room(now, drops);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P> {
        let now = nanos(now);
        let mut with_decaying = true;
        while self.waiting.packets > 0 {
            if let Some(Shaper { due, failsafe, .. }) = self.shaper {
                let next = due.min(failsafe);
                if next > now {
                    return Next::NotBefore(
                        Time::ZERO + Duration::from_nanos(next.cast_unsigned()),
                    );
                }
            }
            let Some(number) = self.choose(now) else { break };
            if let Some(next) = self.serve(number, &mut with_decaying, now, drops) {
                if let Some(longest) = &mut self.longest {
                    longest.on_dequeue();
                }
                return Next::Packet(next);
            }
        }
        Next::Empty
    }

    fn waiting(&self) -> (u64, u64) {
        (self.waiting.packets, self.waiting.bytes)
    }
}

#[cfg(test)]
mod tests;
