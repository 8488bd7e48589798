//! A tin: the flows of one traffic class, each with its own queue.

use super::cobalt::{Cobalt, Params, word};
use super::{AckFilter, Isolation, QUEUES};
use crate::packet::Packet;
use crate::queue::Queued;
use crate::random::Random;
use std::collections::VecDeque;

/// The associativity of the flow hash: the queues that a hash may choose from.
const WAYS: usize = 8;

/// The hashes of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashes {
    pub flow: u32,
    pub source: u32,
    pub target: u32,
}

/// The set to which a flow belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// No packet of the flow is known.
    Idle,
    /// Sends less than its share, and goes first.
    Sparse,
    /// Counts as sparse, but waits its turn with the bulk flows.
    SparseWaiting,
    /// Always has packets.
    Bulk,
    /// Empty, while its signal count decays.
    Decaying,
}

/// Lists of flows, in the order of their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    New,
    Old,
    Decaying,
}

const NOBODY: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u16,
    last: u16,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u32,
    /// Deficit: bytes that the flow may still send in this turn.
    deficit: i64,
    cobalt: Cobalt,
    set: Set,
    /// The flow's hosts, by their places in the tin's table.
    source: u16,
    target: u16,
    /// The flow's neighbours in the list.
    before: u16,
    behind: u16,
}

impl<P> Flow<P> {
    fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            cobalt: Cobalt::default(),
            set: Set::Idle,
            source: 0,
            target: 0,
            before: NOBODY,
            behind: NOBODY,
        }
    }
}

/// A host as a source or destination: the hash in this place, and the number of bulk flows.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tag: u32,
    bulk: u16,
}

#[derive(Clone, Debug)]
pub(super) struct Tin<P> {
    pub params: Params,
    /// The quantum of a flow, and that of the tin.
    flow_quantum: u32,
    pub quantum: i64,
    pub deficit: i64,
    /// Bytes in the queues.
    pub bytes: u64,
    /// When the next packet is due at the tin's rate.
    pub due: i64,
    sparse: u32,
    pub bulk: u32,
    /// The tables are empty until a packet comes.
    flows: Vec<Flow<P>>,
    tags: Vec<u32>,
    sources: Vec<Host>,
    targets: Vec<Host>,
    lists: [Ends; 3],
}

impl<P: Packet> Tin<P> {
    pub fn new(params: Params, flow_quantum: u32, quantum: i64) -> Self {
        Self {
            params,
            flow_quantum,
            quantum,
            deficit: 0,
            bytes: 0,
            due: 0,
            sparse: 0,
            bulk: 0,
            flows: Vec::new(),
            tags: Vec::new(),
            sources: Vec::new(),
            targets: Vec::new(),
            lists: [Ends { first: NOBODY, last: NOBODY }; 3],
        }
    }

    /// Whether any flow may have packets.
    pub fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// Bytes in a flow's queue.
    pub fn bytes_of(&self, flow: u16) -> u32 {
        self.flows.get(usize::from(flow)).map_or(0, |flow| flow.bytes)
    }

    pub fn cobalt(&mut self, flow: u16) -> &mut Cobalt {
        &mut self.flows[usize::from(flow)].cobalt
    }

    /// The queue for a packet, by a set-associative hash: flows share a queue only when all eight
    /// ways of a set are taken (`cake_hash`).
    pub fn place(&mut self, hashes: Hashes, isolation: Isolation) -> u16 {
        if self.flows.is_empty() {
            self.flows = (0..QUEUES).map(|_| Flow::new()).collect();
            self.tags = vec![0; QUEUES];
            self.sources = vec![Host::default(); QUEUES];
            self.targets = self.sources.clone();
        }
        if isolation == Isolation::BLIND {
            return 0;
        }
        let wanted = hashes.flow as usize % QUEUES;
        if self.tags[wanted] == hashes.flow && self.flows[wanted].set != Set::Idle {
            return wanted as u16;
        }
        let is_idle = |at: usize| self.flows[at].set == Set::Idle;
        let (place, is_new) =
            if let Some(own) = ways(wanted).find(|&at| self.tags[at] == hashes.flow) {
                (own, is_idle(own))
            } else if let Some(free) = ways(wanted).find(|&at| is_idle(at)) {
                (free, true)
            } else {
                (wanted, true)
            };
        // A flow that joins another one's queue brings its own hosts.
        let joins = is_new && self.flows[place].set == Set::Bulk;
        if joins {
            self.count_bulk(place as u16, isolation, false);
        }
        self.tags[place] = hashes.flow;
        if is_new && isolation.has_sources_of_flows() {
            self.flows[place].source = host(&mut self.sources, hashes.source);
        }
        if is_new && isolation.has_targets_of_flows() {
            self.flows[place].target = host(&mut self.targets, hashes.target);
        }
        if joins {
            self.count_bulk(place as u16, isolation, true);
        }
        place as u16
    }

    /// Counts a flow as a bulk flow of its hosts, or stops counting it.
    fn count_bulk(&mut self, flow: u16, isolation: Isolation, is_one: bool) {
        let Flow { source, target, .. } = self.flows[usize::from(flow)];
        let hosts = [
            (isolation.has_sources_of_flows(), &mut self.sources[usize::from(source)]),
            (isolation.has_targets_of_flows(), &mut self.targets[usize::from(target)]),
        ];
        for (is_counted, host) in hosts {
            if is_counted && is_one {
                host.bulk = (host.bulk + 1).min(QUEUES as u16);
            } else if is_counted {
                host.bulk = host.bulk.saturating_sub(1);
            }
        }
    }

    /// The quantum of a flow: a host's quantum is divided among its bulk flows. The remainder of
    /// the division is made up for at random (`cake_get_flow_quantum`).
    fn share(&self, flow: u16, isolation: Isolation, random: &mut Random) -> i64 {
        let Flow { source, target, .. } = self.flows[usize::from(flow)];
        let mut load = 1;
        if isolation.has_sources_of_flows() {
            load = load.max(self.sources[usize::from(source)].bulk);
        }
        if isolation.has_targets_of_flows() {
            load = load.max(self.targets[usize::from(target)].bulk);
        }
        let whole = self.flow_quantum * (65_535 / u32::from(load));
        i64::from((whole + (word(random) & 0xffff)) >> 16)
    }

    /// Appends a packet to a flow's queue.
    pub fn push(&mut self, flow: u16, queued: Queued<P>) {
        self.bytes += u64::from(queued.bytes());
        let flow = &mut self.flows[usize::from(flow)];
        flow.bytes += queued.bytes();
        flow.packets.push_back(queued);
    }

    /// Takes the first packet of a flow.
    pub fn pop(&mut self, flow: u16) -> Option<Queued<P>> {
        let flow = &mut self.flows[usize::from(flow)];
        let first = flow.packets.pop_front()?;
        flow.bytes -= first.bytes();
        self.bytes -= u64::from(first.bytes());
        Some(first)
    }

    /// Whether a flow's queue is empty.
    pub fn is_empty(&self, flow: u16) -> bool {
        self.flows[usize::from(flow)].packets.is_empty()
    }

    /// A packet has come to a flow, which becomes sparse unless it is in a list of active flows
    /// already.
    pub fn enlist(&mut self, number: u16, isolation: Isolation, random: &mut Random) {
        match self.flows[usize::from(number)].set {
            set @ (Set::Idle | Set::Decaying) => {
                if set == Set::Decaying {
                    self.remove(List::Decaying, number);
                }
                self.append(List::New, number);
                self.sparse += 1;
                let deficit = self.share(number, isolation, random);
                let flow = &mut self.flows[usize::from(number)];
                (flow.set, flow.deficit) = (Set::Sparse, deficit);
            }
            Set::SparseWaiting => self.become_bulk(number, isolation),
            Set::Sparse | Set::Bulk => {}
        }
    }

    fn become_bulk(&mut self, flow: u16, isolation: Isolation) {
        self.flows[usize::from(flow)].set = Set::Bulk;
        self.sparse -= 1;
        self.bulk += 1;
        self.count_bulk(flow, isolation, true);
    }

    /// The flow whose turn it is, and the list that it heads.
    pub fn first(&self, with_decaying: bool) -> Option<(List, u16)> {
        let lists = [List::New, List::Old, List::Decaying];
        let decaying = with_decaying.then_some(List::Decaying);
        let mut all = decaying.into_iter().chain(lists);
        all.find_map(|list| {
            let first = self.lists[list as usize].first;
            (first != NOBODY).then_some((list, first))
        })
    }

    /// Whether a flow has used up its deficit. If so, the flow moves to the end of the old flows.
    pub fn has_spent(
        &mut self,
        list: List,
        flow: u16,
        isolation: Isolation,
        random: &mut Random,
    ) -> bool {
        let number = usize::from(flow);
        if self.flows[number].deficit > 0 {
            return false;
        }
        if self.flows[number].set == Set::Sparse {
            if self.is_empty(flow) {
                self.flows[number].set = Set::SparseWaiting;
            } else {
                self.become_bulk(flow, isolation);
            }
        }
        self.flows[number].deficit += self.share(flow, isolation, random);
        self.remove(list, flow);
        self.append(List::Old, flow);
        true
    }

    /// Charges bytes sent to a flow and its tin.
    pub fn charge(&mut self, flow: u16, bytes: u64) {
        self.flows[usize::from(flow)].deficit -= bytes.cast_signed();
        self.deficit -= bytes.cast_signed();
    }

    /// Ends the turn of a flow with an empty queue, which is remembered while its COBALT state
    /// matters.
    pub fn retire(&mut self, list: List, flow: u16, now: i64, isolation: Isolation) {
        let Flow { cobalt, set, .. } = &mut self.flows[usize::from(flow)];
        cobalt.on_empty(&self.params, now);
        let is_awake = cobalt.is_awake(now);
        let was = std::mem::replace(set, if is_awake { Set::Decaying } else { Set::Idle });
        match was {
            Set::Bulk => {
                self.bulk -= 1;
                self.count_bulk(flow, isolation, false);
            }
            Set::Sparse | Set::SparseWaiting => self.sparse -= 1,
            Set::Decaying | Set::Idle => {}
        }
        self.remove(list, flow);
        if is_awake {
            self.append(List::Decaying, flow);
        }
    }

    fn append(&mut self, list: List, number: u16) {
        let ends = &mut self.lists[list as usize];
        let before = std::mem::replace(&mut ends.last, number);
        match self.flows.get_mut(usize::from(before)) {
            Some(before) => before.behind = number,
            None => ends.first = number,
        }
        let flow = &mut self.flows[usize::from(number)];
        (flow.before, flow.behind) = (before, NOBODY);
    }

    fn remove(&mut self, list: List, number: u16) {
        let Flow { before, behind, .. } = self.flows[usize::from(number)];
        let ends = &mut self.lists[list as usize];
        match self.flows.get_mut(usize::from(before)) {
            Some(before) => before.behind = behind,
            None => ends.first = behind,
        }
        match self.flows.get_mut(usize::from(behind)) {
            Some(behind) => behind.before = before,
            None => ends.last = before,
        }
    }

    /// Removes an ACK that the last packet of a flow makes redundant (`cake_ack_filter`): of two
    /// such ACKs, the one nearer to the head. A single ACK is removed only if the filter is
    /// aggressive and the last packet follows it directly. ACKs between which the ECN echo changes
    /// are kept.
    pub fn filter(&mut self, flow: u16, filter: AckFilter) -> Option<Queued<P>> {
        let flow = &mut self.flows[usize::from(flow)];
        let last = flow.packets.len().checked_sub(1)?;
        let newest = *flow.packets.back()?;
        let echo = newest.packet.echo().filter(|_| newest.packet.is_ack())?;
        let mut eligible: Option<(usize, u8)> = None;
        let mut found = 0;
        for (place, older) in flow.packets.iter().enumerate().take(last) {
            let Some(echo) = older.packet.echo() else { continue };
            if older.flow.key != newest.flow.key {
                continue;
            }
            if eligible.is_some_and(|(_, before)| before != echo) {
                eligible = None;
                found -= 1;
            }
            if !older.packet.is_superseded(&newest.packet) {
                continue;
            }
            eligible.get_or_insert((place, echo));
            found += 1;
            if found > 1 {
                break;
            }
        }
        let is_next = |(place, before)| place + 1 == last && before == echo;
        let (place, _) =
            eligible.filter(|&one| found > 1 || filter == AckFilter::Aggressive && is_next(one))?;
        let ack = flow.packets.remove(place)?;
        flow.bytes -= ack.bytes();
        self.bytes -= u64::from(ack.bytes());
        Some(ack)
    }
}

/// The ways of a hash, its own place first.
fn ways(wanted: usize) -> impl Iterator<Item = usize> {
    let base = wanted - wanted % WAYS;
    (0..WAYS).map(move |step| base + (wanted + step) % WAYS)
}

/// The place of a host, which may replace a host without bulk flows.
fn host(hosts: &mut [Host], hash: u32) -> u16 {
    let wanted = hash as usize % QUEUES;
    let own = ways(wanted).find(|&at| hosts[at].tag == hash);
    let free = || ways(wanted).find(|&at| hosts[at].bulk == 0);
    let place = own.or_else(free).unwrap_or(wanted);
    hosts[place].tag = hash;
    place as u16
}
