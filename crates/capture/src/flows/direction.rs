//! One side of a connection: the data it sent, and whether it was acknowledged, lost or
//! retransmitted. What the side waits for: `wait_cause_given`; the sums are in `sender_limits`.

use super::flight::{Flight, Ranges, Sent};
use super::recovery::{AckInfo, Cause, Recovery, Retransmission, State};
use super::remote_sender::{RemoteSender, SenderState};
use super::rtt::{Estimate, RoundTrips};
use super::sender_limits::{TimeByCause, Wait};
use crate::decode::{Flags, Tcp};
use std::collections::VecDeque;

/// Sequence numbers further apart than this are ambiguous after wrapping.
const MAX_DISTANCE: u64 = 1 << 30;
/// The limit of pieces of data that is never acknowledged in the capture.
const MAX_UNACKNOWLEDGED: usize = 4096;
/// A segment that fills a gap within this time, in nanoseconds, was reordered rather than
/// retransmitted, where no round trip is known.
const REORDERED_WITHIN: i64 = 3_000_000;
/// The limit of retransmissions remembered until the receiver reports them as spurious.
const MAX_RETRANSMISSIONS: usize = 1024;

/// The counters of a side.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub packets: u64,
    pub wire_bytes: u64,
    pub segments: u64,
    pub payload_bytes: u64,
    pub bytes: u64,
    pub retransmitted_segments: u64,
    pub retransmitted_bytes: u64,
    /// Indexed by [`Cause`].
    pub causes: [u64; 4],
    pub spurious: u64,
    pub retransmitted_handshakes: u64,
    pub retransmitted_fins: u64,
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
struct RetransmittedRange {
    start: u64,
    end: u64,
    is_spurious: bool,
}

/// A range that was acknowledged before it was captured.
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
    pub time: TimeByCause,
    pub recovery: Recovery,
    pub estimate: Estimate,
    remote: RemoteSender,
    /// The number of loss recoveries, and whether the last began with a timeout.
    recoveries: u32,
    is_rto_recovery: bool,
    /// Whether `next` and the following fields are known.
    has_seq: bool,
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
    retransmissions: VecDeque<RetransmittedRange>,
    /// Whether the last segment with data was one byte to a closed window.
    was_window_probe: bool,
    /// Whether the last segment with new data was less than full.
    is_short: bool,
    /// The last window field, unscaled, and the last acknowledgment number.
    last_window: Option<u16>,
    last_ack: Option<u32>,
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
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
    RetransmittedControl,
    /// Retransmitted data.
    Retransmitted(Cause),
    Reset,
    /// A duplicate of a packet in the capture.
    Copy,
    /// A segment with an impossible sequence number.
    Impossible,
}

/// One side's view of the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub mss: Option<u16>,
    pub has_packets: bool,
    /// Whether both agreed on SACK.
    pub has_sack: bool,
    pub has_timestamps: bool,
}

impl Half {
    /// A sequence number unwrapped to 64 bits.
    #[inline]
    fn unwrap_seq(&self, seq: u32) -> u64 {
        let ahead = seq.wrapping_sub(self.next as u32).cast_signed();
        self.next.wrapping_add_signed(ahead.into())
    }

    #[inline]
    fn init_seq(&mut self, seq: u32) {
        if !self.has_seq {
            self.has_seq = true;
            let place = 1 << 40 | u64::from(seq);
            (self.next, self.una, self.first) = (place, place, place);
        }
    }

    /// A sequence number as shown by Wireshark: the SYN has 0, the first byte of data 1.
    pub fn relative(&self, seq: u32) -> Option<u64> {
        let place = self.has_seq.then(|| self.unwrap_seq(seq))?;
        (place + 1).checked_sub(self.first)
    }

    /// The number of remembered pieces.
    pub fn pieces(&self) -> usize {
        self.flight.len()
    }

    /// Whether a SYN with this sequence number begins another connection.
    pub fn has_another_isn(&self, seq: u32) -> bool {
        self.has_seq && self.first.wrapping_sub(1) as u32 != seq
    }

    /// Whether this side has sent only a SYN, and an ACK acknowledges something else.
    #[inline]
    pub fn is_ack_of_unsent(&self, ack: u32) -> bool {
        self.has_syn && self.next == self.first && ack != self.next as u32
    }

    /// Sets the round trip from the capture to this side and back.
    pub fn set_sender_rtt(&mut self, rtt: i64) {
        self.recovery.sender_rtt = rtt;
        self.remote.set(rtt, self.snapshot());
    }

    /// The ACK point, window edge and recoveries as captured so far.
    fn snapshot(&self) -> SenderState {
        let is_open = self.recovery.state() == State::Open;
        let completed_recoveries = self.recoveries - u32::from(!is_open);
        SenderState { una: self.una, edge: self.edge, completed_recoveries }
    }

    /// The other side's ACK, just captured, is in transit to this side.
    #[inline]
    pub fn queue_ack(&mut self, now: i64, tcp: &Tcp) {
        if self.remote.is_remote() {
            let timestamp = tcp.options.timestamps.map(|(own, _)| own);
            let state = self.snapshot();
            self.remote.on_captured_ack(now, timestamp, state);
        }
    }

    /// A segment of this side shows which ACKs the side has received.
    #[inline]
    pub fn on_echo(&mut self, now: i64, tcp: &Tcp) {
        if self.remote.is_remote() {
            self.on_remote_echo(now, tcp);
        }
    }

    #[inline(never)]
    fn on_remote_echo(&mut self, now: i64, tcp: &Tcp) {
        let mut has_advanced =
            tcp.options.timestamps.is_some_and(|(_, echo)| self.remote.on_echo(now, echo));
        // Data is sent only after the handshake.
        while tcp.payload > 0 && self.remote.state.una < self.first && self.remote.receive_ack() {
            has_advanced = true;
        }
        if has_advanced {
            self.time.end_burst();
            self.time.progress();
        }
    }

    /// Accounts for waiting time in an open connection.
    #[inline]
    pub fn account_wait(&mut self, from: i64, to: i64, is_closing: bool) {
        if self.remote.is_remote() {
            return self.account_remote(from, to, is_closing);
        }
        // Data sent in response to an ACK is captured only after the ACK has reached the sender.
        let may_be_in_transit = self.may_be_in_transit(to - from);
        let wait =
            if may_be_in_transit { Wait::CongestionWindow } else { self.wait_cause(is_closing) };
        self.time.add(wait, to - from);
    }

    #[inline]
    fn account_remote(&mut self, mut from: i64, to: i64, is_closing: bool) {
        while let Some(at) = self.remote.next_ack_at(to) {
            let at = at.max(from);
            self.account_until_ack(at - from, is_closing);
            from = at;
        }
        let wait = self.remote_wait_cause(is_closing);
        self.time.add_remote(wait, to - from);
    }

    #[inline(never)]
    fn account_until_ack(&mut self, time: i64, is_closing: bool) {
        let wait = self.remote_wait_cause(is_closing);
        self.time.add_remote(wait, time);
        if self.remote.receive_ack() {
            self.time.end_burst();
            self.time.progress();
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

    /// Frees the memory of what is empty.
    pub fn release(&mut self) {
        self.flight.release();
        self.sacked.release();
        self.remote.release();
    }

    /// Whether data sent after an ACK of everything may have been in transit for this time: the
    /// last segment was full, and the sender is away from the capture.
    #[inline]
    fn may_be_in_transit(&self, waited: i64) -> bool {
        self.una == self.next
            && self.next > 1
            && !self.is_short
            && !self.has_fin
            && waited <= self.recovery.sender_rtt + self.recovery.sender_rtt / 4
    }

    /// The reason that this side waits, while the connection is open.
    #[inline]
    fn wait_cause(&self, is_closing: bool) -> Wait {
        let recovery = match self.recovery.state() {
            State::Loss { .. } => Some(Wait::Timeout),
            State::Fast { .. } => Some(Wait::Recovery),
            State::Open => None,
        };
        self.wait_cause_given(self.una, self.edge, recovery, is_closing)
    }

    /// The same for a sender away from the capture, by the ACKs that it has received.
    fn remote_wait_cause(&self, is_closing: bool) -> Wait {
        let SenderState { una, edge, completed_recoveries } = self.remote.state;
        if una < self.first {
            return Wait::Handshake;
        }
        let recovery = if self.is_rto_recovery { Wait::Timeout } else { Wait::Recovery };
        let recovery = (completed_recoveries < self.recoveries).then_some(recovery);
        self.wait_cause_given(una, edge, recovery, is_closing)
    }

    /// The cause of a wait, given the ACK point, the receiver's window and the recovery in
    /// progress.
    #[inline]
    fn wait_cause_given(
        &self,
        una: u64,
        edge: Option<u64>,
        recovery: Option<Wait>,
        is_closing: bool,
    ) -> Wait {
        let full = self.count.largest_segment.max(1);
        let has_room = edge.is_none_or(|edge| self.next + full <= edge);
        // A FIN alone is not data.
        let is_sending = una + u64::from(self.has_fin) < self.next;
        match recovery {
            _ if !is_sending => match () {
                () if is_closing || self.has_fin => Wait::Close,
                () if has_room => Wait::Application,
                () => Wait::PeerWindow,
            },
            Some(recovery) => recovery,
            None if !has_room => Wait::PeerWindow,
            None if self.is_short || self.has_fin => Wait::Application,
            None => Wait::CongestionWindow,
        }
    }

    /// How many segments a packet with this much data was on the wire: a network card may segment
    /// it later, or have merged it before the capture.
    #[inline]
    fn segments_of(payload: u64, other: Peer) -> u64 {
        let Some(mss) = other.mss else { return 1 };
        let full = u64::from(mss).saturating_sub(if other.has_timestamps { 12 } else { 0 }).max(1);
        if payload <= full { 1 } else { payload.div_ceil(full) }
    }

    /// Whether the receiver's window is closed, as far as known.
    #[inline]
    fn is_window_closed(&self) -> bool {
        self.edge.is_some_and(|edge| edge <= self.una)
    }

    /// A segment without data is a probe if its sequence number is one below the next: a keepalive
    /// (RFC 9293 §3.8.4), or Linux's window probe while the receiver's window is closed.
    #[inline]
    pub fn probe_kind(&mut self, tcp: &Tcp) -> Option<PacketKind> {
        let is_probe =
            self.una == self.next && self.has_seq && tcp.seq == (self.next as u32).wrapping_sub(1);
        if !is_probe {
            return None;
        }
        if self.is_window_closed() {
            return Some(PacketKind::WindowProbe);
        }
        self.count.keepalives += 1;
        Some(PacketKind::Keepalive)
    }

    /// A segment with sequence numbers is about to be sent. If the sender sent it in one burst with
    /// the last one, takes out the time between them.
    #[inline]
    pub fn take_burst_gap(&mut self, tcp: &Tcp) -> i64 {
        if !self.remote.is_remote() {
            return 0;
        }
        let between = match tcp.options.timestamps {
            Some(timestamps) if self.remote.is_same_burst(timestamps) => self.time.take_burst(),
            _ => 0,
        };
        self.time.end_burst();
        between
    }

    /// Accounts the time between the last two segments of a burst by the cause of the next wait.
    #[inline]
    pub fn account_burst_gap(&mut self, between: i64) {
        if between > 0 {
            let wait = self.remote_wait_cause(false);
            self.time.add_remote(wait, between);
        }
    }

    /// A segment that takes sequence numbers is sent.
    pub fn on_segment(&mut self, now: i64, tcp: &Tcp, other: Peer, most: usize) -> PacketKind {
        let length = u64::from(tcp.sequence_length());
        let payload = u64::from(tcp.payload);
        self.init_seq(tcp.seq);
        let (start, end) = (self.unwrap_seq(tcp.seq), self.unwrap_seq(tcp.seq) + length);
        if start > self.next + MAX_DISTANCE {
            return PacketKind::Impossible;
        }
        if payload > 0 {
            let segments = Self::segments_of(payload, other);
            self.count.segments += segments;
            self.count.payload_bytes += payload;
            let largest = if segments > 1 { payload.div_ceil(segments) } else { payload };
            self.count.largest_segment = self.count.largest_segment.max(largest);
            self.count.oversized += u64::from(segments > 1);
        }
        let mut kind = if payload > 0 { PacketKind::Data } else { PacketKind::Control };
        self.forget_window_probe(start);
        // The byte beyond a closed window, which the receiver may discard (RFC 9293 §3.8.6.1).
        let is_probe = payload == 1 && length == 1 && start == self.next && self.is_window_closed();
        if start < self.next {
            if payload <= 1 && start + 1 == self.next && self.una == self.next && payload == length
            {
                self.count.keepalives += 1;
                return PacketKind::Keepalive;
            }
            if let Some(late) = self.end_of_late_original(now, start, end) {
                let seen = late - start;
                self.count.missing_bytes = self.count.missing_bytes.saturating_sub(seen);
                self.count.bytes += seen.min(payload);
                if payload > 0 && end <= self.next {
                    self.count.out_of_order += 1;
                    kind = PacketKind::OutOfOrder;
                }
            } else {
                kind = self.on_retransmission(now, (start, end.min(self.next)), tcp, other);
            }
        }
        if end > self.next {
            let most = if other.has_packets { most } else { most.min(MAX_UNACKNOWLEDGED) };
            self.on_new_data(now, (start, end), tcp, most);
        }
        self.was_window_probe = is_probe;
        if is_probe { PacketKind::WindowProbe } else { kind }
    }

    /// If a range was acknowledged before it was captured, and is captured now, soon enough to be
    /// the original: the end of the range. A capture of several queues, or of two points, may have
    /// a segment behind its ACK, and a network card may merge segments of which the first are
    /// already acknowledged.
    #[inline]
    fn end_of_late_original(&mut self, now: i64, start: u64, end: u64) -> Option<u64> {
        let unseen = self.unseen.as_mut()?;
        let is_original = start == unseen.from
            && start < unseen.to
            && (end <= unseen.to || unseen.to == self.next)
            && now - unseen.since < REORDERED_WITHIN;
        if !is_original {
            return None;
        }
        unseen.from = end.min(unseen.to);
        Some(unseen.from)
    }

    /// The unacknowledged byte of a window probe is sent again. The receiver had no room for it, so
    /// this is not a retransmission.
    #[inline]
    fn forget_window_probe(&mut self, start: u64) {
        if self.was_window_probe && start == self.una && start + 1 == self.next {
            while self.flight.take_until(self.next).is_some() {}
            self.next = start;
            self.count.bytes -= 1;
        }
    }

    #[inline]
    fn on_new_data(&mut self, now: i64, (start, end): (u64, u64), tcp: &Tcp, most: usize) {
        let was_busy = self.is_busy();
        if !was_busy {
            self.recovery.on_restart(now);
        }
        let una = if self.remote.is_remote() { self.remote.state.una } else { self.una };
        if una >= self.next {
            self.time.progress();
        }
        let piece = Sent {
            start: self.next,
            end,
            first: now,
            last: now,
            retransmission_timestamp: 0,
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
                self.recovery.on_new_data(now, end, was_busy, &self.estimate);
            }
            self.is_short =
                u64::from(tcp.payload) < self.count.largest_segment && tcp.flags.has(Flags::PUSH);
        }
        self.next = end;
    }

    /// A range below `next` is captured: retransmitted, or reordered before the capture.
    fn on_retransmission(
        &mut self,
        now: i64,
        (start, end): (u64, u64),
        tcp: &Tcp,
        other: Peer,
    ) -> PacketKind {
        if tcp.flags.has(Flags::SYN) {
            self.count.retransmitted_handshakes += 1;
            if self.remote.is_remote() && self.count.bytes == 0 {
                // The sender has not received the end of its handshake yet.
                self.remote
                    .set(self.recovery.sender_rtt, SenderState { una: start, ..self.snapshot() });
                self.time.restart_handshake();
            }
            self.flight.within(start, end, |piece| {
                piece.last = now;
                piece.times = piece.times.saturating_add(1);
            });
            return PacketKind::RetransmittedControl;
        }
        let timestamp = tcp.options.timestamps.map_or(0, |(own, _)| own);
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
                if piece.retransmission_timestamp == 0 {
                    piece.retransmission_timestamp = timestamp;
                }
                piece.times = piece.times.max(1).saturating_add(1);
            }
            piece.last = now;
        });
        let payload = (end - start).min(tcp.payload.into());
        if is_late && gap_since > i64::MIN {
            // The data is captured for the first time. Reordered data comes soon.
            self.count.missing_bytes = self.count.missing_bytes.saturating_sub(end - start);
            self.count.bytes += payload;
            let rtt = self.estimate.smoothed() + self.recovery.sender_rtt;
            let soon = if rtt > 0 { rtt - rtt / 8 } else { REORDERED_WITHIN };
            if now - gap_since < soon {
                self.count.out_of_order += 1;
                return PacketKind::OutOfOrder;
            }
        } else if filled > 0 {
            self.count.missing_bytes = self.count.missing_bytes.saturating_sub(filled);
            self.count.bytes += filled.min(payload);
        }
        let sent = Retransmission {
            now,
            is_head,
            head_last,
            is_tail: end == self.next,
            has_sacked: !self.sacked.is_empty(),
            has_sack: other.has_sack,
            next: self.next,
            timestamp: tcp.options.timestamps.map(|(own, _)| own),
        };
        let was_open = self.recovery.state() == State::Open;
        let cause = self.recovery.on_retransmission(sent, &self.estimate);
        self.recoveries += u32::from(was_open && self.recovery.state() != State::Open);
        self.is_rto_recovery = matches!(self.recovery.state(), State::Loss { .. });
        if cause == Cause::Timeout {
            self.time.on_timeout();
        } else if is_head {
            self.time.progress();
        }
        if payload == 0 {
            self.count.retransmitted_fins += 1;
            return PacketKind::RetransmittedControl;
        }
        let segments = Self::segments_of(payload, other);
        self.count.retransmitted_segments += segments;
        self.count.retransmitted_bytes += payload;
        self.count.causes[cause as usize] += segments;
        if self.retransmissions.len() == MAX_RETRANSMISSIONS {
            self.retransmissions.pop_front();
        }
        self.retransmissions.push_back(RetransmittedRange { start, end, is_spurious: false });
        PacketKind::Retransmitted(cause)
    }

    /// An ACK of the other side is captured.
    #[inline]
    pub fn on_ack(&mut self, now: i64, tcp: &Tcp, is_bare: bool) -> AckOutcome {
        self.init_seq(tcp.ack);
        let ack = self.unwrap_seq(tcp.ack);
        let mut outcome = AckOutcome::default();
        if ack > self.next + MAX_DISTANCE || ack + MAX_DISTANCE < self.una {
            return outcome;
        }
        if ack > self.next {
            // The acknowledged data is missing from the capture, or captured after its ACK.
            self.count.missing_bytes += ack - self.next;
            self.unseen = Some(Unseen { from: self.next, to: ack, since: now });
            self.next = ack;
        }
        let blocks = tcp.options.sack();
        if ack == self.una && !is_bare && blocks.is_empty() && self.recovery.is_calm() {
            // As with nearly all data of the only sending side.
            self.recovery.on_repeated_ack(now);
            return outcome;
        }
        let has_dsack = !blocks.is_empty() && self.on_dsack_block(ack, blocks);
        let echo = tcp.options.timestamps.map(|(_, echo)| echo);
        let mut info =
            AckInfo { now, number: ack, next: self.next, has_dsack, echo, ..AckInfo::default() };
        let before_timeout = self.recovery.before_timeout();
        let mut newest = None;
        if ack > self.una {
            info.has_advanced = true;
            if self.is_spurious_by_eifel(echo)
                && let Some(head) = self.flight.head().copied()
            {
                self.mark_spurious(head.start, head.end);
            }
            while let Some(piece) = self.flight.take_until(ack) {
                // A SYN or a FIN alone takes one number.
                outcome.segments += u64::from(piece.times > 0 && piece.end > piece.start + 1);
                info.has_retransmitted |= piece.times > 1;
                if piece.times == 1 && !piece.is_sacked {
                    newest = Some(piece.first);
                    info.has_original |= piece.end <= before_timeout;
                }
            }
            if info.has_retransmitted {
                // Data behind a gap was acknowledged when the gap was filled, not when it arrived.
                newest = None;
            }
            self.una = ack;
            self.sacked.trim(ack);
            if !self.remote.is_remote() {
                self.time.progress();
            }
            outcome.has_advanced = true;
        }
        for &(from, to) in &blocks[usize::from(has_dsack)..] {
            let (from, to) =
                (self.unwrap_seq(from).max(self.una), self.unwrap_seq(to).min(self.next));
            if from < to {
                let flight = &mut self.flight;
                self.sacked.add((from, to), |from, to| {
                    info.has_new_sack = true;
                    flight.within(from, to, |piece| {
                        if piece.times == 1 && !piece.is_sacked {
                            newest = newest.max(Some(piece.first));
                            info.has_original |= piece.end <= before_timeout;
                        }
                        piece.is_sacked = true;
                    });
                });
            }
        }
        info.is_duplicate = is_bare && ack == self.una && !info.has_advanced && self.is_busy();
        outcome.is_duplicate = info.is_duplicate;
        outcome.has_new_sack = info.has_new_sack;
        outcome.has_dsack = has_dsack;
        if let Some(first) = newest {
            let sample = now - first;
            // A SYN or FIN alone is no RTT sample of data.
            if self.count.segments > 0 && sample >= 0 {
                self.round_trips.add(sample);
            }
            self.estimate.add(sample, self.una, self.next);
        }
        self.recovery.on_ack(info);
        outcome
    }

    /// Whether the first unacknowledged segment was retransmitted, and the other side echoes an
    /// older timestamp (Eifel, RFC 3522 §3.2).
    fn is_spurious_by_eifel(&self, echo: Option<u32>) -> bool {
        let Some(echo) = echo else { return false };
        self.flight.head().is_some_and(|head| {
            head.times > 1
                && head.retransmission_timestamp != 0
                && !head.is_sacked
                && echo != 0
                && echo.wrapping_sub(head.retransmission_timestamp).cast_signed() < 0
        })
    }

    /// Whether the first block is a DSACK, for data that the receiver already had (RFC 2883 §4).
    fn on_dsack_block(&mut self, ack: u64, blocks: &[(u32, u32)]) -> bool {
        let unwrap = |(from, to)| (self.unwrap_seq(from), self.unwrap_seq(to));
        let (from, to) = unwrap(blocks[0]);
        let is_dsack = from < to
            && (to <= ack
                || blocks.get(1).is_some_and(|&second| {
                    let second = unwrap(second);
                    second.0 <= from && to <= second.1
                }));
        if is_dsack {
            self.recovery.on_dsack(1);
            self.mark_spurious(from, to);
        }
        is_dsack
    }

    /// The first retransmission in this range, not yet marked, was spurious.
    fn mark_spurious(&mut self, from: u64, to: u64) {
        for range in &mut self.retransmissions {
            if !range.is_spurious && from <= range.start && range.end <= to {
                range.is_spurious = true;
                self.count.spurious += 1;
                // A receiver reports each retransmission once.
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
    pub fn record_window(&mut self, tcp: &Tcp, is_scaled: bool) -> u64 {
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
    pub fn on_window(&mut self, ack: u32, window: u64) {
        let edge = self.unwrap_seq(ack) + window;
        // A window may grow, and it may shrink with an ACK that is not older.
        if self.unwrap_seq(ack) >= self.una || self.edge.is_none_or(|known| edge > known) {
            self.edge = Some(edge);
        }
    }

    /// Whether an ACK is a duplicate: neither its number nor its window has changed.
    #[inline]
    pub fn is_same_as_last_ack(&mut self, tcp: &Tcp) -> bool {
        let is_same = self.last_ack == Some(tcp.ack) && self.last_window == Some(tcp.window);
        (self.last_ack, self.last_window) = (Some(tcp.ack), Some(tcp.window));
        is_same
    }
}

/// The effect of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckOutcome {
    pub segments: u64,
    pub has_advanced: bool,
    pub is_duplicate: bool,
    pub has_new_sack: bool,
    pub has_dsack: bool,
}
