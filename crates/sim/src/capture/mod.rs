//! Packet captures.
//!
//! | file | job |
//! |---|---|
//! | `wire` | packets as bytes |
//! | `numbers` | the IP identification field |
//!
//! Hosts and connections have the same addresses and ports as on `linux`, as far as a host needs no
//! other address there: see `crates/linux/src/translate/addresses.rs`.

mod numbers;
mod wire;

use crate::connections::Whose;
use crate::observer::Seen;
use crate::packet::Packet;
use numbers::{Numbers, content, number};
use std::collections::BTreeMap;
use tcplab_capture::{SNAP, Writer};
use tcplab_engine::{LaneId, Packet as _};
use tcplab_model::{FlowPlan, Plan};
use tcplab_workload::ports::{self, CLIENT_PORTS, EPHEMERAL_PORTS, SERVER_PORTS};
use wire::{ICMP, Ip, Side};

/// The address before the first host's: 10.0.0.1.
const NETWORK: u32 = 10 << 24;
/// The address of a router without an address of its own (RFC 7600 §4.8; `icmp_send` uses it too).
const NO_HOST: u32 = u32::from_be_bytes([192, 0, 0, 8]);
/// The initial TTL (`net.ipv4.ip_default_ttl`).
const HOPS: usize = 64;
/// The DSCP of routers' ICMP messages: network control, CS6.
const CONTROL: u8 = 0xc0;

/// A capture during the run.
#[derive(Clone)]
pub(crate) struct Capture {
    /// The captured lanes, in order: each is an interface of the capture.
    lanes: Vec<usize>,
    /// The address of each node.
    addresses: BTreeMap<usize, u32>,
    /// For each flow, how many connections the flows before it open.
    before: Vec<u64>,
    numbers: Numbers,
    writer: Writer,
    /// The bytes of the current packet, and of the packet quoted or carried in it.
    frame: Vec<u8>,
    inner: Vec<u8>,
}

impl Capture {
    /// The capture of a run, if the plan asks for one.
    pub fn new(plan: &Plan) -> Option<Box<Self>> {
        let lanes = plan.record.captured();
        if lanes.is_empty() {
            return None;
        }
        // In the order in which flows name the hosts: the receiver of the first flow is 10.0.0.1.
        let mut addresses = BTreeMap::new();
        for node in plan.flows.iter().flat_map(|flow| [flow.to, flow.from]) {
            let next = NETWORK + 1 + addresses.len() as u32;
            addresses.entry(node).or_insert(next);
        }
        let before = plan.flows.iter().scan(0_u64, |before, flow| {
            let opens = ports::connections(plan, flow);
            Some(std::mem::replace(before, before.saturating_add(opens)))
        });
        let before = before.collect();
        let writer = Writer::new(lanes.iter().map(|&lane| plan.lanes[lane].name.as_str()));
        let numbers = Numbers::default();
        let (frame, inner) = (Vec::new(), Vec::new());
        Some(Box::new(Self { lanes, addresses, before, numbers, writer, frame, inner }))
    }

    /// The number of captured packets.
    pub fn packets(&self) -> usize {
        self.writer.packets()
    }

    /// The contents of the capture file.
    pub fn finish(self) -> Vec<u8> {
        self.writer.finish()
    }

    /// Writes a packet, if its lane is captured.
    pub fn add(&mut self, plan: &Plan, seen: &Seen, whose: &Whose) {
        let lane = seen.lane.0 as usize;
        let Ok(interface) = self.lanes.binary_search(&lane) else { return };
        let flow = &plan.flows[whose.flow];
        // The sides of the packet, which goes from the first to the second.
        let sides @ (from, to) =
            (self.side(flow, whose, 1 - whose.side), self.side(flow, whose, whose.side));
        let ways = [&flow.back, &flow.forward];
        let hops = |way: &[usize], until: LaneId| routers_before(plan, way, until.0 as usize);
        let ttl = (HOPS - hops(ways[whose.side], seen.lane).min(HOPS)) as u8;
        self.inner.clear();
        let ip = match &seen.packet {
            Packet::Tcp(segment) => {
                wire::write_segment(segment, sides, &mut self.inner);
                let said = content_of(&self.inner, sides);
                wire::ip_of_segment(segment, sides, self.numbers.of(seen.lane.0, said), ttl)
            }
            Packet::Udp(fragment) => {
                wire::write_fragment(fragment, sides, &mut self.inner);
                // All fragments of a datagram have the same identification.
                let first = content_of(&[], sides) as u16;
                wire::ip_of_fragment(
                    fragment,
                    sides,
                    first.wrapping_add(fragment.number as u16),
                    ttl,
                )
            }
            Packet::Icmp(message) => {
                // The segment went the other way, up to the router before the lane that it did not
                // fit.
                let sides = (to, from);
                let (way, router) = (ways[1 - whose.side], whose.router.unwrap_or(seen.lane));
                let passed = hops(way, router).saturating_sub(1);
                let quoted = message.quoted();
                wire::write_segment(&quoted, sides, &mut self.inner);
                let id = number(content_of(&self.inner, sides), 0);
                let quoted_ip =
                    wire::ip_of_segment(&quoted, sides, id, (HOPS - passed.min(HOPS)) as u8);
                self.inner.clear();
                wire::write_notice(message, &quoted_ip, sides, &mut self.inner);
                let back = passed.saturating_sub(hops(way, LaneId(seen.lane.0 ^ 1)));
                let said = content_of(&self.inner, sides);
                Ip {
                    from: self.address(plan.lanes[router.0 as usize].from),
                    to: to.0,
                    protocol: ICMP,
                    service: if message.is_control { CONTROL } else { 0 },
                    length: seen.packet.wire_bytes(),
                    id: self.numbers.of(seen.lane.0, said),
                    fragment: 0,
                    ttl: (HOPS - back.min(HOPS)) as u8,
                }
            }
        };
        self.frame.clear();
        ip.write(&mut self.frame);
        self.frame.extend(&self.inner);
        // Payload is zeros.
        self.frame.resize(SNAP.min(ip.length as usize), 0);
        let time = seen.at.as_picos() / 1000;
        self.writer.add(interface as u32, time, ip.length, &self.frame);
    }

    /// The address and port of one side of a connection or of a datagram flow.
    fn side(&self, flow: &FlowPlan, whose: &Whose, side: usize) -> Side {
        let address = self.address([flow.from, flow.to][side]);
        let client = usize::from(ports::asks(flow));
        let (first, most, number) = if side == client {
            let number = self.before[whose.flow].saturating_add(whose.number.into());
            (CLIENT_PORTS, EPHEMERAL_PORTS - CLIENT_PORTS, number)
        } else {
            (SERVER_PORTS, CLIENT_PORTS - SERVER_PORTS, whose.flow as u64)
        };
        (address, first + (number % u64::from(most)) as u16)
    }

    fn address(&self, node: usize) -> u32 {
        self.addresses.get(&node).copied().unwrap_or(NO_HOST)
    }
}

/// The hash of a packet's content and sides.
fn content_of(inner: &[u8], (from, to): (Side, Side)) -> u64 {
    let address = |side: Side| u64::from(side.0) << 16 | u64::from(side.1);
    let ends = [address(from).to_be_bytes(), address(to).to_be_bytes()];
    content(inner) ^ content(ends.as_flattened())
}

/// The number of routers on a path before this lane. A shared medium is not a router.
fn routers_before(plan: &Plan, way: &[usize], lane: usize) -> usize {
    let place = way.iter().position(|&other| other == lane).unwrap_or(0);
    way.iter().take(place + 1).skip(1).filter(|&&lane| !plan.lanes[lane].leaves_lan()).count()
}
