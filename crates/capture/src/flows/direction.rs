//! One side of a connection: the data it sent, and its fate.

use super::away::{Away, Known};
use super::flight::{Flight, Ranges, Sent};
use super::repair::{Cause, Repair, Repeat, Seen, State};
use super::rtt::{Estimate, RoundTrips};
use super::sender_limits::{Spent, Wait};
use crate::decode::{Flags, Tcp};
use std::collections::VecDeque;

/// Sequence numbers further apart than this are ambiguous after wrapping.
const FARTHEST: u64 = 1 << 30;
/// The limit of pieces of data that is never acknowledged in the capture.
const MOST_UNACKNOWLEDGED: usize = 4096;
/// A segment that fills a gap within this time, in nanoseconds, was reordered rather than
/// retransmitted, where no round trip is known.
const SOON: i64 = 3_000_000;
/// The limit of retransmissions remembered until the receiver reports them as spurious.
const MOST_REPEATS: usize = 1024;

/// The counters of a side.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub packets: u64,
    pub wire_bytes: u64,
    pub segments: u64,
    pub payload_bytes: u64,
    pub bytes: u64,
    pub repeated_segments: u64,
    pub repeated_bytes: u64,
    /// Indexed by [`Cause`].
    pub causes: [u64; 4],
    pub spurious: u64,
    pub repeated_handshakes: u64,
    pub repeated_fins: u64,
    pub out_of_order: u64,
    pub missing_bytes: u64,
    pub keepalives: u64,
    pub acks: u64,
    pub duplicate_acks: u64,
    pub sack_blocks: u64,
    pub dsacks: u64,
    pub acked_segments: u64,
    pub advancing_acks: u64,
    pub zero_windows: u64,
    pub window_max: u64,
    pub window_min: Option<u64>,
    pub largest_segment: u64,
    pub initial_window: u64,
    pub ce: u64,
    pub ece: u64,
    pub cwr: u64,
    /// Segments larger than the other side's MSS.
    pub oversized: u64,
}

/// A retransmission that may turn out to be spurious.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    start: u64,
    end: u64,
    is_spurious: bool,
}

/// A range that was acknowledged before it was seen.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    from: u64,
    to: u64,
    since: i64,
}

/// One side of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Half {
    pub count: Counters,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: bool,
    pub has_syn: bool,
    pub has_fin: bool,
    pub round_trips: RoundTrips,
    pub spent: Spent,
    pub repair: Repair,
    pub estimate: Estimate,
    away: Away,
    /// The number of loss repairs, and whether the last began with a timeout.
    repairs: u32,
    is_by_timer: bool,
    /// Whether `next` and the following fields are known.
    is_placed: bool,
    /// The next new byte, and the first unacknowledged one.
    next: u64,
    una: u64,
    /// The end of the SYN.
    first: u64,
    /// The right edge of the receiver's window; `None` before it was seen.
    edge: Option<u64>,
    flight: Flight,
    sacked: Ranges,
    unseen: Option<Unseen>,
    repeats: VecDeque<Repeated>,
    /// Whether the last segment with data was one byte to a closed window.
    is_probing: bool,
    /// Whether the last segment with new data was less than full.
    is_short: bool,
    /// The last window field, unscaled, and the last acknowledgment number.
    last_window: Option<u16>,
    last_ack: Option<u32>,
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Takes no sequence numbers.
    Ack,
    /// A first SYN or FIN without data.
    Control,
    /// New data, seen in order.
    Data,
    /// Data that was reordered before the capture point.
    OutOfOrder,
    Keepalive,
    /// A window probe, sent to a closed window.
    WindowProbe,
    /// A retransmitted SYN or FIN without data.
    ControlAgain,
    /// Retransmitted data.
    Again(Cause),
    Reset,
    /// A duplicate of a packet in the capture.
    Copy,
    /// A segment with an impossible sequence number.
    Strange,
}

/// One side's view of the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    pub mss: Option<u16>,
    pub has_packets: bool,
    /// Whether both agreed on SACK.
    pub has_sack: bool,
    pub has_timestamps: bool,
}

impl Half {
    /// A sequence number unwrapped to 64 bits.
    #[inline]
    fn place(&self, seq: u32) -> u64 {
        let ahead = seq.wrapping_sub(self.next as u32).cast_signed();
        self.next.wrapping_add_signed(ahead.into())
    }

    #[inline]
    fn place_at(&mut self, seq: u32) {
        if !self.is_placed {
            self.is_placed = true;
            let place = 1 << 40 | u64::from(seq);
            (self.next, self.una, self.first) = (place, place, place);
        }
    }

    /// A sequence number as shown by Wireshark: the SYN has 0, the first byte of data 1.
    pub fn relative(&self, seq: u32) -> Option<u64> {
        let place = self.is_placed.then(|| self.place(seq))?;
        (place + 1).checked_sub(self.first)
    }

    /// The number of remembered pieces.
    pub fn pieces(&self) -> usize {
        self.flight.len()
    }

    /// Whether a SYN begins another connection.
    pub fn is_another(&self, seq: u32) -> bool {
        self.is_placed && self.first.wrapping_sub(1) as u32 != seq
    }

    /// Whether the side has sent only a SYN, and an ACK is not for that.
    #[inline]
    pub fn did_not_send(&self, ack: u32) -> bool {
        self.has_syn && self.next == self.first && ack != self.next as u32
    }

    /// Sets the round trip from the capture to this side and back.
    pub fn is_away_by(&mut self, round: i64) {
        self.repair.near = round;
        self.away.set(round, self.told());
    }

    /// The ACK point, window edge and repairs as captured so far.
    fn told(&self) -> Known {
        let is_open = self.repair.state() == State::Open;
        let repaired = self.repairs - u32::from(!is_open);
        Known { una: self.una, edge: self.edge, repaired }
    }

    /// The other side's ACK, just captured, is on its way to this side.
    #[inline]
    pub fn will_hear(&mut self, now: i64, tcp: &Tcp) {
        if self.away.is_away() {
            let clock = tcp.options.timestamps.map(|(clock, _)| clock);
            let known = self.told();
            self.away.sees(now, clock, known);
        }
    }

    /// A segment of this side shows what it has heard.
    #[inline]
    pub fn shows_heard(&mut self, now: i64, tcp: &Tcp) {
        if self.away.is_away() {
            self.shows_heard_away(now, tcp);
        }
    }

    #[inline(never)]
    fn shows_heard_away(&mut self, now: i64, tcp: &Tcp) {
        let mut has_advanced =
            tcp.options.timestamps.is_some_and(|(_, echo)| self.away.is_echoed(now, echo));
        // Data is sent only after the handshake.
        while tcp.payload > 0 && self.away.known.una < self.first && self.away.hears() {
            has_advanced = true;
        }
        if has_advanced {
            self.spent.end_burst();
            self.spent.progress();
        }
    }

    /// Accounts for waiting time in an open connection.
    #[inline]
    pub fn waits(&mut self, from: i64, to: i64, is_closing: bool) {
        if self.away.is_away() {
            return self.waits_away(from, to, is_closing);
        }
        // Data sent in response to an ACK is captured only after the ACK has reached the sender.
        let is_on_its_way = self.is_on_its_way(to - from);
        let wait = if is_on_its_way { Wait::Window } else { self.waits_for(is_closing) };
        self.spent.add(wait, to - from);
    }

    #[inline]
    fn waits_away(&mut self, mut from: i64, to: i64, is_closing: bool) {
        while let Some(at) = self.away.next(to) {
            let at = at.max(from);
            self.waits_until_it_hears(at - from, is_closing);
            from = at;
        }
        let wait = self.waits_for_away(is_closing);
        self.spent.add_away(wait, to - from);
    }

    #[inline(never)]
    fn waits_until_it_hears(&mut self, time: i64, is_closing: bool) {
        let wait = self.waits_for_away(is_closing);
        self.spent.add_away(wait, time);
        if self.away.hears() {
            self.spent.end_burst();
            self.spent.progress();
        }
    }

    /// Whether this side's SYN is not acknowledged.
    #[inline]
    pub fn is_opening(&self) -> bool {
        self.una < self.first
    }

    /// Whether data is in flight.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.una < self.next
    }

    /// Whether this side's FIN is acknowledged.
    pub fn is_done(&self) -> bool {
        self.has_fin && !self.is_busy()
    }

    /// Whether data sent after an ACK of everything may have been on its way for this time: the
    /// last segment was full, and the sender is away from the capture.
    #[inline]
    fn is_on_its_way(&self, waited: i64) -> bool {
        self.una == self.next
            && self.next > 1
            && !self.is_short
            && !self.has_fin
            && waited <= self.repair.near + self.repair.near / 4
    }

    /// The reason that this side waits, while the connection is open.
    #[inline]
    fn waits_for(&self, is_closing: bool) -> Wait {
        let repair = match self.repair.state() {
            State::Loss { .. } => Some(Wait::Timeout),
            State::Fast { .. } => Some(Wait::Recovery),
            State::Open => None,
        };
        self.waits_knowing(self.una, self.edge, repair, is_closing)
    }

    /// The same for a sender away from the capture, by what it has heard.
    fn waits_for_away(&self, is_closing: bool) -> Wait {
        let Known { una, edge, repaired } = self.away.known;
        if una < self.first {
            return Wait::Handshake;
        }
        let repair = if self.is_by_timer { Wait::Timeout } else { Wait::Recovery };
        let repair = (repaired < self.repairs).then_some(repair);
        self.waits_knowing(una, edge, repair, is_closing)
    }

    #[inline]
    fn waits_knowing(
        &self,
        una: u64,
        edge: Option<u64>,
        repair: Option<Wait>,
        is_closing: bool,
    ) -> Wait {
        let full = self.count.largest_segment.max(1);
        let has_room = edge.is_none_or(|edge| self.next + full <= edge);
        // A FIN alone is not data.
        let is_sending = una + u64::from(self.has_fin) < self.next;
        match repair {
            _ if !is_sending => match () {
                () if is_closing || self.has_fin => Wait::Close,
                () if has_room => Wait::Application,
                () => Wait::PeerWindow,
            },
            Some(repair) => repair,
            None if !has_room => Wait::PeerWindow,
            None if self.is_short || self.has_fin => Wait::Application,
            None => Wait::Window,
        }
    }

    /// How many segments a packet with this much data was on the wire: a network card may segment
    /// it later, or have merged it before the capture.
    #[inline]
    fn segments_of(payload: u64, other: Other) -> u64 {
        let Some(mss) = other.mss else { return 1 };
        let full = u64::from(mss).saturating_sub(if other.has_timestamps { 12 } else { 0 }).max(1);
        if payload <= full { 1 } else { payload.div_ceil(full) }
    }

    /// Whether the receiver's window is closed, as far as known.
    #[inline]
    fn is_shut(&self) -> bool {
        self.edge.is_some_and(|edge| edge <= self.una)
    }

    /// A segment without data is a probe if its sequence number is one below the next: a keepalive
    /// (RFC 9293 §3.8.4), or Linux's window probe while the receiver's window is closed.
    #[inline]
    pub fn probes(&mut self, tcp: &Tcp) -> Option<Kind> {
        let is_probe = self.una == self.next
            && self.is_placed
            && tcp.seq == (self.next as u32).wrapping_sub(1);
        if !is_probe {
            return None;
        }
        if self.is_shut() {
            return Some(Kind::WindowProbe);
        }
        self.count.keepalives += 1;
        Some(Kind::Keepalive)
    }

    /// A segment with sequence numbers is about to be sent. If it was sent together with the last
    /// one, takes out the time between them.
    #[inline]
    pub fn begins(&mut self, tcp: &Tcp) -> i64 {
        if !self.away.is_away() {
            return 0;
        }
        let between = match tcp.options.timestamps {
            Some(clocks) if self.away.is_burst(clocks) => self.spent.take_burst(),
            _ => 0,
        };
        self.spent.end_burst();
        between
    }

    /// Accounts the time between the last two segments by what the side waits for afterwards.
    #[inline]
    pub fn has_sent(&mut self, between: i64) {
        if between > 0 {
            let wait = self.waits_for_away(false);
            self.spent.add_away(wait, between);
        }
    }

    /// A segment that takes sequence numbers is sent.
    pub fn sends(&mut self, now: i64, tcp: &Tcp, other: Other, most: usize) -> Kind {
        let length = u64::from(tcp.sequence_length());
        let payload = u64::from(tcp.payload);
        self.place_at(tcp.seq);
        let (start, end) = (self.place(tcp.seq), self.place(tcp.seq) + length);
        if start > self.next + FARTHEST {
            return Kind::Strange;
        }
        if payload > 0 {
            let segments = Self::segments_of(payload, other);
            self.count.segments += segments;
            self.count.payload_bytes += payload;
            self.count.largest_segment = self.count.largest_segment.max(payload.div_ceil(segments));
            self.count.oversized += u64::from(segments > 1);
        }
        let mut kind = if payload > 0 { Kind::Data } else { Kind::Control };
        self.takes_probe_back(start);
        // The byte beyond a closed window, which the receiver may discard (RFC 9293 §3.8.6.1).
        let is_probe = payload == 1 && length == 1 && start == self.next && self.is_shut();
        if start < self.next {
            if payload <= 1 && start + 1 == self.next && self.una == self.next && payload == length
            {
                self.count.keepalives += 1;
                return Kind::Keepalive;
            }
            if let Some(late) = self.behind_its_ack(now, start, end) {
                let seen = late - start;
                self.count.missing_bytes = self.count.missing_bytes.saturating_sub(seen);
                self.count.bytes += seen.min(payload);
                if payload > 0 && end <= self.next {
                    self.count.out_of_order += 1;
                    kind = Kind::OutOfOrder;
                }
            } else {
                kind = self.repeats(now, (start, end.min(self.next)), tcp, other);
            }
        }
        if end > self.next {
            let most = if other.has_packets { most } else { most.min(MOST_UNACKNOWLEDGED) };
            self.sends_new(now, (start, end), tcp, most);
        }
        self.is_probing = is_probe;
        if is_probe { Kind::WindowProbe } else { kind }
    }

    /// If a range was acknowledged before it was seen and comes now, soon enough to be the
    /// original: the end of the range. A capture of several queues, or of two points, may have a
    /// segment behind its ACK, and a network card may merge segments of which the first are already
    /// acknowledged.
    #[inline]
    fn behind_its_ack(&mut self, now: i64, start: u64, end: u64) -> Option<u64> {
        let unseen = self.unseen.as_mut()?;
        let is_it = start == unseen.from
            && start < unseen.to
            && (end <= unseen.to || unseen.to == self.next)
            && now - unseen.since < SOON;
        if !is_it {
            return None;
        }
        unseen.from = end.min(unseen.to);
        Some(unseen.from)
    }

    /// The unacknowledged byte of a window probe is sent again. The receiver had no room for it, so
    /// this is not a retransmission.
    #[inline]
    fn takes_probe_back(&mut self, start: u64) {
        if self.is_probing && start == self.una && start + 1 == self.next {
            while self.flight.take_until(self.next).is_some() {}
            self.next = start;
            self.count.bytes -= 1;
        }
    }

    #[inline]
    fn sends_new(&mut self, now: i64, (start, end): (u64, u64), tcp: &Tcp, most: usize) {
        let was_busy = self.is_busy();
        if !was_busy {
            self.repair.begin(now);
        }
        let known = if self.away.is_away() { self.away.known.una } else { self.una };
        if known >= self.next {
            self.spent.progress();
        }
        let piece = Sent {
            start: self.next,
            end,
            first: now,
            last: now,
            repeat_clock: 0,
            times: 1,
            is_sacked: false,
        };
        if start > self.next {
            self.count.missing_bytes += start - self.next;
            self.flight.push(Sent { end: start, times: 0, ..piece }, most);
        }
        let start = start.max(self.next);
        let payload = (end - start).saturating_sub(
            u64::from(tcp.flags.has(Flags::SYN)) + u64::from(tcp.flags.has(Flags::FIN)),
        );
        self.flight.push(Sent { start, ..piece }, most);
        self.count.bytes += payload;
        if self.una <= self.first {
            self.count.initial_window += payload;
        }
        if tcp.flags.has(Flags::SYN) {
            self.first = start + 1;
        }
        if payload > 0 {
            if !self.is_short {
                self.repair.new_data(now, end, was_busy, &self.estimate);
            }
            self.is_short =
                u64::from(tcp.payload) < self.count.largest_segment && tcp.flags.has(Flags::PUSH);
        }
        self.next = end;
    }

    /// A range is sent again, or seen for the first time.
    fn repeats(&mut self, now: i64, (start, end): (u64, u64), tcp: &Tcp, other: Other) -> Kind {
        if tcp.flags.has(Flags::SYN) {
            self.count.repeated_handshakes += 1;
            if self.away.is_away() && self.count.bytes == 0 {
                // The sender has not heard of the end of its handshake yet.
                self.away.set(self.repair.near, Known { una: start, ..self.told() });
                self.spent.opens_again();
            }
            self.flight.within(start, end, |piece| {
                piece.last = now;
                piece.times = piece.times.saturating_add(1);
            });
            return Kind::ControlAgain;
        }
        let clock = tcp.options.timestamps.map_or(0, |(clock, _)| clock);
        let head_last = self.flight.head().map_or(now, |head| head.last);
        let (mut is_late, mut gap_since) = (self.una < end, i64::MIN);
        // Bytes seen for the first time.
        let mut filled = 0;
        let is_head = start <= self.una;
        self.flight.within(start, end, |piece| {
            if piece.times == 0 {
                gap_since = gap_since.max(piece.first);
                filled += piece.end - piece.start;
                piece.times = 1;
                // The time of the first transmission is unknown.
                piece.is_sacked = true;
            } else {
                is_late = false;
                if piece.repeat_clock == 0 {
                    piece.repeat_clock = clock;
                }
                piece.times = piece.times.max(1).saturating_add(1);
            }
            piece.last = now;
        });
        let payload = (end - start).min(tcp.payload.into());
        if is_late && gap_since > i64::MIN {
            // The data is seen for the first time. Reordered data comes soon.
            self.count.missing_bytes = self.count.missing_bytes.saturating_sub(end - start);
            self.count.bytes += payload;
            let round = self.estimate.smoothed() + self.repair.near;
            let soon = if round > 0 { round - round / 8 } else { SOON };
            if now - gap_since < soon {
                self.count.out_of_order += 1;
                return Kind::OutOfOrder;
            }
        } else if filled > 0 {
            self.count.missing_bytes = self.count.missing_bytes.saturating_sub(filled);
            self.count.bytes += filled.min(payload);
        }
        let seen = Repeat {
            now,
            is_head,
            head_last,
            is_tail: end == self.next,
            has_sacked: !self.sacked.is_empty(),
            has_sack: other.has_sack,
            next: self.next,
            clock: tcp.options.timestamps.map(|(clock, _)| clock),
        };
        let was_open = self.repair.state() == State::Open;
        let cause = self.repair.repeat(seen, &self.estimate);
        self.repairs += u32::from(was_open && self.repair.state() != State::Open);
        self.is_by_timer = matches!(self.repair.state(), State::Loss { .. });
        if cause == Cause::Timeout {
            self.spent.timed_out();
        } else if is_head {
            self.spent.progress();
        }
        if payload == 0 {
            self.count.repeated_fins += 1;
            return Kind::ControlAgain;
        }
        let segments = Self::segments_of(payload, other);
        self.count.repeated_segments += segments;
        self.count.repeated_bytes += payload;
        self.count.causes[cause as usize] += segments;
        if self.repeats.len() == MOST_REPEATS {
            self.repeats.pop_front();
        }
        self.repeats.push_back(Repeated { start, end, is_spurious: false });
        Kind::Again(cause)
    }

    /// The other side acknowledges.
    #[inline]
    pub fn is_acknowledged(&mut self, now: i64, tcp: &Tcp, is_bare: bool) -> Heard {
        self.place_at(tcp.ack);
        let ack = self.place(tcp.ack);
        let mut heard = Heard::default();
        if ack > self.next + FARTHEST || ack + FARTHEST < self.una {
            return heard;
        }
        if ack > self.next {
            // The acknowledged data is missing from the capture, or behind its ACK.
            self.count.missing_bytes += ack - self.next;
            self.unseen = Some(Unseen { from: self.next, to: ack, since: now });
            self.next = ack;
        }
        let blocks = tcp.options.sack();
        let has_dsack = !blocks.is_empty() && self.hears_dsack(ack, blocks);
        let echo = tcp.options.timestamps.map(|(_, echo)| echo);
        let mut seen = Seen { now, ack, next: self.next, has_dsack, echo, ..Seen::default() };
        let before_timeout = self.repair.before_timeout();
        let mut newest = None;
        if ack > self.una {
            seen.has_advanced = true;
            if self.is_eifel(echo)
                && let Some(head) = self.flight.head().copied()
            {
                self.is_spurious(head.start, head.end);
            }
            while let Some(piece) = self.flight.take_until(ack) {
                // A SYN or a FIN alone takes one number.
                heard.segments += u64::from(piece.times > 0 && piece.end > piece.start + 1);
                seen.is_repeat |= piece.times > 1;
                if piece.times == 1 && !piece.is_sacked {
                    newest = Some(piece.first);
                    seen.is_original |= piece.end <= before_timeout;
                }
            }
            if seen.is_repeat {
                // Data behind a gap was acknowledged when the gap was filled, not when it arrived.
                newest = None;
            }
            self.una = ack;
            self.sacked.trim(ack);
            if !self.away.is_away() {
                self.spent.progress();
            }
            heard.has_advanced = true;
        }
        for &(from, to) in &blocks[usize::from(has_dsack)..] {
            let (from, to) = (self.place(from).max(self.una), self.place(to).min(self.next));
            if from < to {
                let flight = &mut self.flight;
                self.sacked.add((from, to), |from, to| {
                    seen.has_new_sack = true;
                    flight.within(from, to, |piece| {
                        if piece.times == 1 && !piece.is_sacked {
                            newest = newest.max(Some(piece.first));
                            seen.is_original |= piece.end <= before_timeout;
                        }
                        piece.is_sacked = true;
                    });
                });
            }
        }
        seen.is_duplicate = is_bare && ack == self.una && !seen.has_advanced && self.is_busy();
        heard.is_duplicate = seen.is_duplicate;
        heard.has_new_sack = seen.has_new_sack;
        heard.has_dsack = has_dsack;
        if let Some(first) = newest {
            let sample = now - first;
            // A SYN or FIN alone is no RTT sample of data.
            if self.count.segments > 0 && sample >= 0 {
                self.round_trips.add(sample);
            }
            self.estimate.add(sample, self.una, self.next);
        }
        self.repair.acknowledged(seen);
        heard
    }

    /// Whether the first unacknowledged segment was retransmitted, and the other side echoes an
    /// older timestamp (Eifel, RFC 3522 §3.2).
    fn is_eifel(&self, echo: Option<u32>) -> bool {
        let Some(echo) = echo else { return false };
        self.flight.head().is_some_and(|head| {
            head.times > 1
                && head.repeat_clock != 0
                && !head.is_sacked
                && echo != 0
                && echo.wrapping_sub(head.repeat_clock).cast_signed() < 0
        })
    }

    /// Whether the first block is a DSACK, for data that had arrived before (RFC 2883 §4).
    fn hears_dsack(&mut self, ack: u64, blocks: &[(u32, u32)]) -> bool {
        let place = |(from, to)| (self.place(from), self.place(to));
        let (from, to) = place(blocks[0]);
        let is_dsack = from < to
            && (to <= ack
                || blocks.get(1).is_some_and(|&second| {
                    let second = place(second);
                    second.0 <= from && to <= second.1
                }));
        if is_dsack {
            self.repair.told_of(1);
            self.is_spurious(from, to);
        }
        is_dsack
    }

    /// Retransmissions in a range were spurious.
    fn is_spurious(&mut self, from: u64, to: u64) {
        for repeat in &mut self.repeats {
            if !repeat.is_spurious && from <= repeat.start && repeat.end <= to {
                repeat.is_spurious = true;
                self.count.spurious += 1;
                // A receiver reports each of them once.
                break;
            }
        }
    }

    /// The window advertised by a segment.
    #[inline]
    pub fn window(&self, tcp: &Tcp, is_scaled: bool) -> u64 {
        let has_shift = is_scaled && !tcp.flags.has(Flags::SYN);
        u64::from(tcp.window) << if has_shift { self.scale.unwrap_or(0) } else { 0 }
    }

    /// Records the window that this side advertises.
    #[inline]
    pub fn offers(&mut self, tcp: &Tcp, is_scaled: bool) -> u64 {
        let window = self.window(tcp, is_scaled);
        self.count.window_max = self.count.window_max.max(window);
        if !tcp.flags.has(Flags::SYN) {
            let least = self.count.window_min.map_or(window, |least| least.min(window));
            self.count.window_min = Some(least);
        }
        if window == 0 {
            self.count.zero_windows += 1;
        }
        window
    }

    /// The other side's window, relative to its acknowledgment.
    #[inline]
    pub fn may_send(&mut self, ack: u32, window: u64) {
        let edge = self.place(ack) + window;
        // A window may grow, and it may shrink with an ACK that is not older.
        if self.place(ack) >= self.una || self.edge.is_none_or(|known| edge > known) {
            self.edge = Some(edge);
        }
    }

    /// Whether an ACK is a duplicate: neither its number nor its window has changed.
    #[inline]
    pub fn repeats_ack(&mut self, tcp: &Tcp) -> bool {
        let is_same = self.last_ack == Some(tcp.ack) && self.last_window == Some(tcp.window);
        (self.last_ack, self.last_window) = (Some(tcp.ack), Some(tcp.window));
        is_same
    }
}

/// The effect of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    pub segments: u64,
    pub has_advanced: bool,
    pub is_duplicate: bool,
    pub has_new_sack: bool,
    pub has_dsack: bool,
}
