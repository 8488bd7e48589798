//! A connection: its two sides, how it was opened and how it was closed.

use super::direction::{Half, PacketKind, Peer};
use super::rtt::LONGEST;
use super::segment::Segment;
use super::sender_limits::Wait;
use super::turns::Turn;
use crate::decode::{Address, Flags, Tcp};

/// The number of consecutive missing packets at an interface after which its capture counts as
/// over.
const MAX_STRAYS: u8 = 8;

/// An address and port.
pub(super) type End = (Address, u16);

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// How a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Fin(Side),
    Reset(Side),
}

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// The number, in the order of first packets.
    pub number: u64,
    pub client: End,
    pub server: End,
    pub start: i64,
    pub last: i64,
    /// Client and server.
    pub halves: [Half; 2],
    pub closing: Option<Closing>,
    pub handshake: Option<i64>,
    pub idle: i64,
    pub longest_gap: i64,
    pub duplicates: u64,
    pub turn: Turn,
    /// For each side, the interface at which its packets are captured first, and the number of
    /// consecutive packets missing there.
    sent_at: [Option<u32>; 2],
    strays: [u8; 2],
    /// For each side, the interface at which its packets are captured last, if another one: near
    /// the other side, which receives their ACKs then.
    delivered_at: [Option<u32>; 2],
    is_open: bool,
    /// When the last SYN and SYN-ACK were seen.
    syn: Option<i64>,
    syn_ack: Option<i64>,
}

impl Connection {
    /// The connection that begins with this packet.
    pub fn new(number: u64, segment: &Segment) -> Self {
        let &Segment { time: now, ref tcp, .. } = segment;
        let [from, to] = segment.ends();
        let is_syn = tcp.flags.has(Flags::SYN);
        let is_from_client = match (is_syn, tcp.flags.has(Flags::ACK)) {
            (true, is_answer) => !is_answer,
            // Servers usually have the smaller port; of equal ports, the first side seen sending is
            // the client.
            (false, _) => tcp.to <= tcp.from,
        };
        let (client, server) = if is_from_client { (from, to) } else { (to, from) };
        Self {
            number,
            client,
            server,
            start: now,
            last: now,
            halves: Default::default(),
            closing: None,
            handshake: None,
            idle: 0,
            longest_gap: 0,
            duplicates: 0,
            turn: Turn::default(),
            sent_at: [None; 2],
            strays: [0; 2],
            delivered_at: [None; 2],
            is_open: !is_syn,
            syn: None,
            syn_ack: None,
        }
    }

    /// Whether this packet begins another connection between the same endpoints.
    pub fn is_replaced_by(&self, segment: &Segment) -> bool {
        let tcp = &segment.tcp;
        tcp.flags.has(Flags::SYN)
            && !tcp.flags.has(Flags::ACK)
            && self.halves[self.side(segment) as usize].has_another_isn(tcp.seq)
    }

    /// The endpoints.
    pub fn ends(&self) -> [End; 2] {
        [self.client, self.server]
    }

    /// Whether this is the connection between two endpoints, in either order.
    #[inline]
    pub fn is_between(&self, [from, to]: [End; 2]) -> bool {
        let ends = (self.client, self.server);
        ends == (from, to) || ends == (to, from)
    }

    /// The sender of a packet.
    pub fn side(&self, segment: &Segment) -> Side {
        let [from, _] = segment.ends();
        if self.client == from { Side::Client } else { Side::Server }
    }

    /// Whether both sides have closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        match self.closing {
            None => false,
            Some(Closing::Reset(_)) => true,
            Some(Closing::Fin(_)) => self.halves.iter().all(Half::is_done),
        }
    }

    /// Frees the memory of data in flight, once the connection is closed.
    pub fn release(&mut self) {
        self.halves.iter_mut().for_each(Half::release);
    }

    /// The number of remembered pieces of flights.
    pub fn pieces(&self) -> usize {
        self.halves[0].pieces() + self.halves[1].pieces()
    }

    /// Handles a duplicate of a packet.
    pub fn duplicate(&mut self, segment: &Segment) {
        let &Segment { time: now, interface, wire_bytes, ref tcp, .. } = segment;
        self.duplicates += 1;
        let side = self.side(segment);
        let me = &mut self.halves[side as usize];
        me.count.packets += 1;
        me.count.wire_bytes += u64::from(wire_bytes);
        if self.sent_at[side as usize] == Some(interface) {
            self.strays[side as usize] = 0;
            return;
        }
        let at = &mut self.delivered_at[side as usize];
        let is_last = *at == Some(interface);
        if !self.is_open {
            // Of several interfaces, the last one that a packet of the handshake reaches.
            *at = Some(interface);
        } else if at.is_none() {
            *at = Some(interface);
            return;
        }
        let now = now.max(self.last);
        match (tcp.flags.has(Flags::SYN), side) {
            (true, Side::Client) => self.syn = Some(now),
            (true, Side::Server) => self.syn_ack = Some(now),
            _ => {}
        }
        if is_last && tcp.flags.has(Flags::ACK) && !tcp.flags.has(Flags::RST) {
            // After the last ACK of a connection, its sender no longer waits.
            let is_end = self.halves[side as usize].is_done() && tcp.sequence_length() == 0;
            if !is_end {
                self.account_time(now);
            }
            self.apply_ack(now, side, tcp);
        }
    }

    /// The first copy of a packet of a side is captured at an interface. The captures in a file may
    /// not begin and end together: once the capture beside a side is over, arrivals at that side
    /// are not captured there either.
    #[inline]
    fn on_first_copy(&mut self, side: Side, interface: u32) {
        let (own, strays) = (&mut self.sent_at[side as usize], &mut self.strays[side as usize]);
        if *own.get_or_insert(interface) == interface {
            *strays = 0;
            return;
        }
        *strays += 1;
        if *strays == MAX_STRAYS {
            (*own, *strays) = (Some(interface), 0);
            self.delivered_at[1 - side as usize] = None;
        }
    }

    /// Applies the acknowledgement of a segment to the other side.
    fn apply_ack(&mut self, now: i64, side: Side, tcp: &Tcp) {
        let has_scale = self.has_scale();
        let [client, server] = &mut self.halves;
        let (me, other) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let is_same = me.is_same_as_last_ack(tcp);
        let is_bare = tcp.sequence_length() == 0;
        let outcome = other.on_ack(now, tcp, is_bare);
        let is_duplicate = outcome.is_duplicate && (is_same || outcome.has_new_sack);
        me.count.duplicate_acks += u64::from(is_duplicate);
        me.count.dsacks += u64::from(outcome.has_dsack);
        me.count.advancing_acks += u64::from(outcome.has_advanced && outcome.segments > 0);
        me.count.acked_segments += outcome.segments;
        let window = me.record_window(tcp, has_scale);
        other.on_window(tcp.ack, window);
        other.queue_ack(now, tcp);
    }

    /// Handles a segment. `most`: the limit of pieces in a flight.
    pub fn segment(&mut self, segment: &Segment, most: usize) -> PacketKind {
        let &Segment { interface, wire_bytes, ref tcp, .. } = segment;
        let side = self.side(segment);
        // Clocks may go back; waiting times are never negative.
        let now = segment.time.max(self.last);
        self.account_time(now);
        self.track_handshake(now, side, tcp);
        self.on_first_copy(side, interface);
        let [client, server] = &mut self.halves;
        let (me, other) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        me.count.packets += 1;
        me.count.wire_bytes += u64::from(wire_bytes);
        me.count.ce += u64::from(segment.ecn == 3);
        me.timestamps |= tcp.options.timestamps.is_some();
        let is_syn = tcp.flags.has(Flags::SYN);
        if !is_syn {
            me.count.ece += u64::from(tcp.flags.has(Flags::ECE));
            me.count.cwr += u64::from(tcp.flags.has(Flags::CWR));
        }
        if tcp.flags.has(Flags::RST) {
            self.closing.get_or_insert(Closing::Reset(side));
            return PacketKind::Reset;
        }
        // A challenge ACK: the peer still has an earlier connection, and acknowledges that one
        // (RFC 5961 §4.2).
        let is_challenge =
            tcp.flags.has(Flags::ACK) && !me.has_syn && other.is_ack_of_unsent(tcp.ack);
        if is_challenge {
            me.count.acks += 1;
            return PacketKind::Impossible;
        }
        me.on_echo(now, tcp);
        if tcp.flags.has(Flags::ACK) {
            me.count.acks += 1;
            me.count.sack_blocks += tcp.options.sack().len() as u64;
            if self.delivered_at[side as usize].is_none_or(|at| at == interface) {
                self.apply_ack(now, side, tcp);
            }
        } else if is_syn {
            me.record_window(tcp, false);
        }
        let [client, server] = &mut self.halves;
        let (me, other) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let mut kind = PacketKind::Ack;
        if tcp.sequence_length() > 0 {
            let may_sack = |half: &Half| half.sack_permitted || !half.has_syn;
            let seen = Peer {
                mss: other.mss,
                has_packets: other.count.packets > 0,
                has_sack: may_sack(me) && may_sack(other),
                has_timestamps: me.timestamps && other.timestamps,
            };
            let gap = me.take_burst_gap(tcp);
            kind = me.on_segment(now, tcp, seen, most);
            me.account_burst_gap(gap);
        } else if let Some(probe) = me.probe_kind(tcp) {
            kind = probe;
        }
        if tcp.flags.has(Flags::FIN) {
            me.has_fin = true;
            self.closing.get_or_insert(Closing::Fin(side));
        }
        kind
    }

    /// Whether windows are scaled: both sides agreed, or their handshake was not seen.
    fn has_scale(&self) -> bool {
        self.halves.iter().all(|half| half.scale.is_some() || !half.has_syn)
    }

    /// The window advertised by a segment of this side.
    pub fn window(&self, side: Side, tcp: &Tcp) -> u64 {
        self.halves[side as usize].window(tcp, self.has_scale())
    }

    /// Accounts for the time since the last packet.
    fn account_time(&mut self, now: i64) {
        let from = std::mem::replace(&mut self.last, now);
        let waited = now - from;
        self.longest_gap = self.longest_gap.max(waited);
        let is_closing = self.closing.is_some();
        let is_delivered = self.delivered_at.map(|at| at.is_some());
        for (side, half) in self.halves.iter_mut().enumerate() {
            // The ACK that ends the handshake may be in transit to this side.
            if !self.is_open || is_delivered[1 - side] && half.is_opening() {
                half.time.add(Wait::Handshake, waited);
            } else {
                half.account_wait(from, now, is_closing);
            }
        }
        if self.is_open && !is_closing && !self.halves.iter().any(Half::is_busy) {
            self.idle += waited;
        }
    }

    /// Tracks the handshake by a segment.
    fn track_handshake(&mut self, now: i64, side: Side, tcp: &Tcp) {
        let is_syn = tcp.flags.has(Flags::SYN);
        if self.is_open && !is_syn {
            return;
        }
        let me = &mut self.halves[side as usize];
        if is_syn {
            me.has_syn = true;
            me.mss = tcp.options.mss.or(me.mss);
            me.scale = tcp.options.window_scale;
            me.sack_permitted = tcp.options.sack_permitted;
        }
        match (is_syn, side) {
            (true, Side::Client) => self.syn = Some(now),
            (true, Side::Server) => {
                let before = self.syn_ack.replace(now);
                // The time of a retransmitted SYN-ACK is that of a timer.
                if let Some(syn) = self.syn.filter(|&syn| before.is_none_or(|at| at < syn)) {
                    self.halves[1].set_sender_rtt((now - syn).min(LONGEST));
                }
            }
            (false, Side::Client) if tcp.flags.has(Flags::ACK) => {
                self.is_open = true;
                if let Some(syn_ack) = self.syn_ack {
                    self.halves[0].set_sender_rtt((now - syn_ack).min(LONGEST));
                    self.handshake = self.syn.map(|_| now - self.start);
                }
            }
            // Data of the server without a SYN-ACK: the rest of the handshake is not in the
            // capture.
            (false, Side::Server) if tcp.payload > 0 && self.syn_ack.is_none() => {
                self.is_open = true;
            }
            (false, _) => {}
        }
    }

    /// The side that sent more data.
    pub fn sender(&self) -> Side {
        let [client, server] = &self.halves;
        if client.count.bytes >= server.count.bytes { Side::Client } else { Side::Server }
    }

    /// How the connection was closed, in a word or two.
    pub fn closed(&self) -> &'static str {
        let [client, server] = &self.halves;
        match self.closing {
            Some(Closing::Reset(Side::Server)) if self.syn.is_some() && !server.has_syn => {
                "refused"
            }
            Some(Closing::Reset(Side::Client)) => "reset by client",
            Some(Closing::Reset(Side::Server)) => "reset by server",
            Some(Closing::Fin(_)) if !(client.has_fin && server.has_fin) => "half closed",
            Some(Closing::Fin(Side::Client)) => "closed by client",
            Some(Closing::Fin(Side::Server)) => "closed by server",
            None if client.has_syn && server.count.packets == 0 && !self.is_open => "unanswered",
            None => "open",
        }
    }
}
