//! The send buffer of Linux: written data lies in packets that occupy memory, the buffer grows with
//! the congestion window, and the application blocks while it is full (`tcp_sendmsg_locked`,
//! `tcp_sndbuf_expand`, `sk_stream_write_space`).

use crate::pages::{MOST_PAGES, Pages};
use crate::settings::Settings;
use sent::Sent;
use std::collections::VecDeque;
use std::ops::Range;
use tcplab_units::Time;

mod sent;

/// Memory of a packet beside its data (`tcp_stream_alloc_skb`).
pub(crate) const OVERHEAD: u64 = 960;
/// Headers and their descriptor, and the descriptor of a packet: the assumed memory of a segment
/// beside its data (`tcp_sndbuf_expand`).
const HEADERS: u64 = 640;
const DESCRIPTION: u64 = 256;
/// The buffer holds at least this many segments per window.
const FEWEST: u64 = 10;
/// `tcp_wmem[1]`: the initial size of the buffer.
const FIRST: u64 = 16_384;
/// The most that a program writes at once: the pipe of `sendfile`.
const CHUNK: u64 = 65_536;

/// How newly written data is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// As far as the window allows and TSO does not defer it (`tcp_push_pending_frames`).
    Pending,
    /// One burst now, of any size (`tcp_push_one`).
    One,
    /// Nothing until the next write or ACK.
    Done,
}

/// Nagle and cork: whether a segment below the MSS at the end of a packet may leave
/// (`tcp_nagle_check`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nagle {
    /// Unless another small segment is outstanding.
    Minshall,
    /// No: the program is about to write more (`MSG_MORE`, `TCP_NAGLE_CORK`).
    Corked,
    /// Yes: the program blocks, or has written everything it can (`TCP_NAGLE_PUSH`).
    Off,
}

/// A packet that has not left.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    bytes: u64,
    /// The packet ends with PSH.
    push: bool,
}

/// The application's wait for room in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writer {
    limit: u64,
    packet: u64,
    waits_for_space: bool,
    owes_write_space: bool,
}

/// Written data that is not acknowledged, and its memory.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    limit: u64,
    most: u64,
    /// The program has set the size of the buffer (`SO_SNDBUF`), and it does not grow.
    is_fixed: bool,
    /// Congestion windows of data that the buffer holds, the fewest segments of a window, and the
    /// assumed memory of a segment.
    windows: u64,
    fewest: u64,
    per_segment: u64,
    used: u64,
    /// Packets that have not left.
    unsent: VecDeque<Packet>,
    sent: VecDeque<Sent>,
    /// The SACK blocks of the last ACK that had some, and those of the present one
    /// (`recv_sack_cache`).
    sack_cache: Vec<Range<u64>>,
    sack_current: Vec<Range<u64>>,
    /// When, and at which offset, a packet was last cut to retransmit a part of it.
    last_cut: Option<(Time, u64)>,
    /// End of the packets that have left.
    sent_end: u64,
    /// End of the written data.
    written_end: u64,
    /// Start of the program's present chunk.
    chunk_start: u64,
    /// The most bytes of a packet (`size_goal`), since the chunk began or the program was woken.
    packet: u64,
    /// Bytes written since a packet was last pushed.
    unpushed: u64,
    /// The application waits for write space.
    waits_for_space: bool,
    /// The application is to be signalled when there is write space (`SOCK_NOSPACE`).
    owes_write_space: bool,
    /// An ACK that may have made room has arrived since.
    is_acked: bool,
    /// A write of the application is unfinished and continues with the rest.
    is_in_call: bool,
    /// The host's memory is above `tcp_mem[0]`: the buffer does not grow.
    pub is_above_low: bool,
    /// With this many unsent bytes there is no room (`TCP_NOTSENT_LOWAT`).
    pub lowat: Option<u64>,
    /// The application's calls do not block; they end where there is no room.
    pub is_nonblocking: bool,
    /// The application is about to block, and first sends what it has written. Room made by that
    /// does not end the wait (`vm_wait` of `sk_stream_wait_memory`).
    about_to_wait: bool,
    /// The next packet was filled up since the last ACK or write.
    is_filled: bool,
    pub push: Push,
    pub nagle: Nagle,
    /// Autocork: the end of a call has sent nothing, and the device's next completion does.
    pub is_autocorked: bool,
    /// The application writes from its own memory: packets have as many pages as they need, and
    /// each call is one chunk.
    pub is_copied: bool,
}

/// Limits on packets as they are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The most bytes of a packet.
    pub packet: u64,
    /// Half of the largest window that the peer has offered.
    pub half_window: u64,
    /// Memory of the packets at the host's device, while data is outstanding.
    pub queued: u64,
}

impl SendBuffer {
    /// A buffer for segments of `mss` bytes, options included, as both ends agreed.
    pub fn new(settings: &Settings, cwnd: u64, windows: u64, mss: u16) -> Self {
        let fixed = settings.fixed_send_buffer;
        let most = fixed.unwrap_or(settings.send_buffer);
        let mut buffer = Self {
            limit: fixed.unwrap_or(FIRST.min(most)),
            most,
            is_fixed: fixed.is_some(),
            windows,
            fewest: FEWEST,
            per_segment: (u64::from(mss) + HEADERS).next_power_of_two() + DESCRIPTION,
            used: 0,
            unsent: VecDeque::new(),
            sent: VecDeque::new(),
            sack_cache: Vec::new(),
            sack_current: Vec::new(),
            last_cut: None,
            sent_end: 1,
            written_end: 1,
            chunk_start: 1,
            packet: 0,
            unpushed: 0,
            waits_for_space: false,
            owes_write_space: false,
            is_acked: false,
            is_in_call: false,
            is_above_low: false,
            lowat: None,
            is_nonblocking: false,
            about_to_wait: false,
            is_filled: false,
            push: Push::Pending,
            nagle: Nagle::Minshall,
            is_autocorked: false,
            is_copied: false,
        };
        buffer.expect_reordering(settings.dup_thresh);
        buffer.expand(cwnd);
        buffer
    }

    /// Sets the reordering degree: the buffer holds one segment more than that
    /// (`tcp_sndbuf_expand`).
    pub fn expect_reordering(&mut self, segments: u32) {
        self.fewest = FEWEST.max(u64::from(segments) + 1);
    }

    /// The application writes without a signal of write space. Room in the last packet is used in
    /// any case.
    pub fn wake_writer(&mut self) {
        self.waits_for_space = false;
        self.packet = 0;
    }

    /// The congestion control begins, with this window, and the buffer is sized anew
    /// (`tcp_init_buffer_space`).
    pub fn init_buffer_space(&mut self, cwnd: u64, windows: u64) {
        self.windows = windows;
        if !self.is_fixed {
            self.limit = FIRST.min(self.most);
        }
        self.expand(cwnd);
    }

    /// `bytes` have left with the SYN, as a packet and as the start of the program's first chunk.
    pub fn begin_with_syn(&mut self, bytes: u64) {
        self.used += bytes + OVERHEAD;
        self.sent_end += bytes;
        self.written_end += bytes;
        self.note_sent(bytes, true);
    }

    /// Bytes of memory in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether the application is to be signalled when there is write space.
    pub fn owes_write_space(&self) -> bool {
        self.owes_write_space
    }

    fn expand(&mut self, cwnd: u64) {
        if self.is_fixed {
            return;
        }
        let wanted = self.windows * cwnd.max(self.fewest) * self.per_segment;
        self.limit = self.limit.max(wanted.min(self.most));
    }

    /// The application writes up to the next moment at which something is sent. Returns the number
    /// of bytes taken; 0: it blocks.
    ///
    /// `unsent`: bytes that have not left.
    pub fn write(&mut self, bytes: u64, unsent: u64, sizes: Sizes) -> u64 {
        let mut taken = 0;
        self.begin_wait();
        if !self.waits_for_space {
            self.push = Push::Pending;
        }
        if !self.is_in_chunk() || self.packet == 0 {
            self.packet = sizes.packet;
        }
        while taken < bytes && !self.waits_for_space {
            let left = self.unsent.back().map_or(0, |tail| self.packet.saturating_sub(tail.bytes));
            let mut room = left;
            if room > 0 && !self.is_copied {
                room = room.min(self.page_room());
                if room == 0 {
                    // The packet has no room for another page (`skb_splice_from_iter`).
                    self.push_tail();
                }
            }
            if room == 0 {
                if self.is_full(unsent + taken) {
                    (self.waits_for_space, self.owes_write_space) = (true, true);
                    self.about_to_wait = self.lowat.is_some() && !self.is_nonblocking;
                    if self.is_in_chunk() {
                        self.push_tail();
                        self.nagle = Nagle::Off;
                        self.push =
                            if self.should_autocork(sizes) { Push::Done } else { Push::Pending };
                    }
                    if self.is_nonblocking {
                        self.chunk_start = self.written_end;
                    }
                    break;
                }
                self.unsent.push_back(Packet::default());
                self.used += OVERHEAD;
                continue;
            }
            let chunk_end = if self.is_copied {
                u64::MAX
            } else {
                Pages::OfFile.start(self.chunk_start) + CHUNK
            };
            let copied = room.min(bytes - taken).min(chunk_end - self.written_end);
            if let Some(tail) = self.unsent.back_mut() {
                tail.bytes += copied;
                // A new chunk continues behind pushed data.
                tail.push &= self.written_end > self.chunk_start;
            }
            self.used += copied;
            self.written_end += copied;
            taken += copied;
            self.unpushed += copied;
            let is_forced = self.unpushed > sizes.half_window;
            self.nagle = if taken == bytes {
                Nagle::Minshall
            } else if self.written_end == chunk_end {
                Nagle::Corked
            } else {
                Nagle::Off
            };
            let is_filled = copied == left;
            if taken == bytes || (is_forced && (is_filled || self.written_end == chunk_end)) {
                self.push_tail();
            }
            if taken == bytes || self.written_end == chunk_end {
                self.push = Push::Pending;
                if self.should_autocork(sizes) {
                    // The next call follows immediately.
                    self.push = Push::Done;
                    (self.chunk_start, self.packet) = (self.written_end, sizes.packet);
                    continue;
                }
            }
            if self.written_end == chunk_end {
                self.chunk_start = self.written_end;
                break;
            }
            if is_forced && is_filled {
                self.push = Push::Pending;
                break;
            }
            if is_filled && self.unsent.len() == 1 {
                self.push = Push::One;
                break;
            }
        }
        if taken == bytes {
            // The next call begins a new chunk.
            self.chunk_start = self.written_end;
        }
        self.is_filled &= taken == 0;
        self.is_in_call =
            taken < bytes && (self.is_in_chunk() || (self.waits_for_space && !self.is_nonblocking));
        taken
    }

    /// Whether the end of a call sends nothing, because its last packet may still grow while more
    /// memory than that packet's is queued at the device (`tcp_should_autocork`).
    fn should_autocork(&mut self, sizes: Sizes) -> bool {
        let corks = self
            .unsent
            .back()
            .is_some_and(|tail| tail.bytes < sizes.packet && sizes.queued >= tail.bytes + OVERHEAD);
        self.is_autocorked |= corks;
        corks
    }

    /// The data written before the wait has left as far as possible; the wait begins.
    fn begin_wait(&mut self) {
        self.owes_write_space |= std::mem::take(&mut self.about_to_wait);
    }

    /// Whether a write of the application is unfinished.
    pub fn is_in_call(&self) -> bool {
        self.is_in_call
    }

    /// Whether an unfinished write continues now and does not wait for space.
    pub fn is_writing(&self) -> bool {
        self.is_in_call && !self.waits_for_space
    }

    /// Whether part of the program's chunk has been written.
    fn is_in_chunk(&self) -> bool {
        self.written_end > self.chunk_start
    }

    /// Bytes that still fit into the pages of the last packet.
    fn page_room(&self) -> u64 {
        let bytes = self.unsent.back().map_or(0, |tail| tail.bytes);
        let begins = Pages::OfFile.start(self.written_end - bytes);
        begins + Pages::OfFile.bytes() * MOST_PAGES - self.written_end
    }

    /// Pushes all written data (`tcp_mark_push`).
    fn push_tail(&mut self) {
        self.unpushed = 0;
        if let Some(tail) = self.unsent.back_mut() {
            tail.push = true;
        }
    }

    /// An ACK arrived: waiting data is considered again.
    pub fn on_ack_received(&mut self) {
        self.begin_wait();
        self.resume();
        self.is_acked = self.owes_write_space;
    }

    /// The persist timer expired: one packet leaves.
    pub fn probe(&mut self) {
        self.push = Push::One;
    }

    /// Paced or throttled data may continue.
    pub fn resume(&mut self) {
        self.is_filled = false;
        self.push = Push::Pending;
        self.nagle = Nagle::Minshall;
    }

    /// The present event, neither an ACK nor a write, is no reason to send data.
    pub fn suppress_sending(&mut self) {
        self.push = Push::Done;
    }

    /// Everything that an ACK lets go has left: signals write space, if there is enough.
    #[inline]
    pub fn signal_write_space_after_ack(
        &mut self,
        cwnd: u64,
        has_window: bool,
        unsent: u64,
    ) -> bool {
        std::mem::take(&mut self.is_acked) && self.signal_write_space(cwnd, has_window, unsent)
    }

    /// Signals write space to a waiting application, if there is enough (`tcp_check_space`).
    /// `has_window`: the congestion window has room. Returns whether the buffer was fitted to the
    /// window.
    ///
    /// `unsent`: bytes that have not left.
    #[inline(never)]
    pub fn signal_write_space(&mut self, cwnd: u64, has_window: bool, unsent: u64) -> bool {
        if !self.owes_write_space {
            return false;
        }
        let expands = has_window && !self.is_above_low && !self.is_fixed;
        if expands {
            self.expand(cwnd);
        }
        if self.has_room(unsent) {
            self.owes_write_space = false;
            if !self.is_nonblocking && !self.about_to_wait {
                self.wake_writer();
            }
        }
        expands
    }

    /// A nonblocking application checks for write space (`tcp_poll`): data that left since the
    /// signal may have taken it.
    pub fn poll_write_space(&mut self, unsent: u64) {
        if self.waits_for_space && self.is_nonblocking {
            if self.has_room(unsent) {
                self.wake_writer();
            } else {
                self.owes_write_space = true;
            }
        }
    }

    /// A program that waits for data also registers for write space, if there is none (`tcp_poll`).
    pub fn on_poll(&mut self, unsent: u64) {
        self.owes_write_space |= !self.has_room(unsent);
    }

    /// Whether no more data is accepted (`sk_stream_memory_free`).
    fn is_full(&self, unsent: u64) -> bool {
        self.used >= self.limit || self.lowat.is_some_and(|most| unsent >= most)
    }

    /// Whether there is enough space to wake the application (`__sk_stream_is_writeable`).
    fn has_room(&self, unsent: u64) -> bool {
        let free = self.limit.saturating_sub(self.used);
        free >= self.used / 2
            && self.used < self.limit
            && self.lowat.is_none_or(|most| 2 * unsent < most)
    }

    /// The bytes of the next packet, filled up to `wanted` from the packet after it, once for each
    /// occasion to send; and whether it is the last packet.
    pub fn next(&mut self, wanted: u64) -> (u64, bool) {
        let Some(first) = self.unsent.front().copied() else { return (0, true) };
        if !std::mem::replace(&mut self.is_filled, true)
            && first.bytes < wanted
            && let Some(second) = self.unsent.get_mut(1)
        {
            let moved = (wanted - first.bytes).min(second.bytes);
            second.bytes -= moved;
            let rest = *second;
            self.unsent[0].bytes += moved;
            if rest.bytes == 0 {
                self.unsent[0].push |= rest.push;
                self.unsent.remove(1);
                self.used -= OVERHEAD;
            }
        }
        (self.unsent[0].bytes, self.unsent.len() == 1)
    }

    /// The bytes of the next packet, filled up again.
    pub fn head_packet_anew(&mut self, wanted: u64) -> u64 {
        self.is_filled = false;
        self.next(wanted).0
    }

    /// Cuts the first packet after `bytes`, though it does not leave: `tcp_write_xmit` checks the
    /// small queue last. A push at its end stays with the rest.
    pub fn split(&mut self, bytes: u64) {
        let Some(first) = self.unsent.front_mut().filter(|first| first.bytes > bytes) else {
            return;
        };
        let rest = Packet { bytes: first.bytes - bytes, ..*first };
        (first.bytes, first.push) = (bytes, false);
        self.unsent.insert(1, rest);
        self.used += OVERHEAD;
    }

    /// End of the last packet that has left. Its last segments may still have to leave.
    pub fn sent_end(&self) -> u64 {
        self.sent_end
    }

    /// Data below `end` has left, in a burst or as a probe.
    pub fn mark_sent_up_to(&mut self, end: u64) {
        while self.sent_end < end && !self.unsent.is_empty() {
            self.send(end - self.sent_end);
        }
    }

    /// The host dropped `bytes` of the first packet: they become a packet of their own, which waits
    /// for the next event.
    pub fn requeue_dropped(&mut self, bytes: u64) {
        self.push = Push::Done;
        if let Some(first) = self.unsent.front_mut().filter(|first| first.bytes > bytes) {
            first.bytes -= bytes;
            self.unsent.push_front(Packet { bytes, push: false });
            self.used += OVERHEAD;
        }
    }

    /// The state of the application's wait before a burst, which may end it.
    pub fn writer(&self) -> Writer {
        Writer {
            limit: self.limit,
            packet: self.packet,
            waits_for_space: self.waits_for_space,
            owes_write_space: self.owes_write_space,
        }
    }

    /// The data sent from `nxt` on has not left after all, and waits as packets of its own. The
    /// application waits as before, in the state `writer`.
    pub fn take_back(&mut self, nxt: u64, writer: Writer) {
        while self.sent_end > nxt
            && let Some(Sent { memory, push, .. }) = self.sent.pop_back()
        {
            let bytes = memory - OVERHEAD;
            self.sent_end -= bytes;
            self.unsent.push_front(Packet { bytes, push });
        }
        (self.limit, self.packet) = (writer.limit, writer.packet);
        self.waits_for_space = writer.waits_for_space;
        self.owes_write_space = writer.owes_write_space;
        self.push = Push::Done;
    }

    /// `bytes` of the first packet leave. Returns whether they end with pushed data.
    pub fn send(&mut self, bytes: u64) -> bool {
        let Some(first) = self.unsent.front_mut() else { return false };
        self.is_filled = false;
        let bytes = bytes.min(first.bytes);
        self.sent_end += bytes;
        let is_all = bytes >= first.bytes;
        let push = is_all && first.push;
        if is_all {
            self.unsent.pop_front();
        } else {
            first.bytes -= bytes;
            self.used += OVERHEAD;
        }
        self.note_sent(bytes, push);
        push
    }

    /// Records a packet that ends with the data that has left.
    fn note_sent(&mut self, bytes: u64, push: bool) {
        let (end, memory) = (self.sent_end, bytes + OVERHEAD);
        self.sent.push_back(Sent {
            end,
            memory,
            push,
            has_arrived: false,
            was_retransmitted: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn with_most(most: u64, cwnd: u64) -> SendBuffer {
        let settings = Settings { send_buffer: most, ..Settings::default() };
        SendBuffer::new(&settings, cwnd, 2, 1460)
    }

    #[test]
    fn send_buffer_has_room_for_reordering_plus_one_segments() {
        // tcp_sndbuf_expand: two windows of `reordering` + 1 segments, of 10 at least, each 4,096
        // and 256 bytes.
        for (dup_thresh, segments) in [(3, 10), (9, 10), (10, 11), (300, 301)] {
            let settings = Settings { send_buffer: 1 << 22, dup_thresh, ..Settings::default() };
            let mut buffer = SendBuffer::new(&settings, 4, 2, 1460);
            assert_eq!(buffer.limit, 2 * segments * (4096 + 256), "{dup_thresh}");
            buffer.init_buffer_space(4, 2);
            assert_eq!(buffer.limit, 2 * segments * (4096 + 256), "{dup_thresh}");
        }
    }

    #[test]
    fn fixed_send_buffer_is_never_resized() {
        // SOCK_SNDBUF_LOCK; tcp_should_expand_sndbuf does not either restart the time of an unused
        // window.
        let settings = Settings { fixed_send_buffer: Some(100_000), ..Settings::default() };
        let mut buffer = SendBuffer::new(&settings, 1000, 2, 1460);
        buffer.init_buffer_space(1000, 2);
        buffer.owes_write_space = true;
        assert!(!buffer.signal_write_space(1000, true, 0));
        assert_eq!((buffer.limit, buffer.owes_write_space), (100_000, false));
    }

    #[test]
    fn blocked_write_resumes_only_after_write_space_is_signalled() {
        // tcp_sendmsg_locked, sk_stream_wait_memory: two packets of ten segments, of which the
        // second makes 28,960 bytes that have not left, are all. What the first sends of itself as
        // it is written makes room, but the program waits (`vm_wait`) until the next ACK tells of
        // half of its limit.
        let mut buffer = with_most(1 << 22, 100);
        buffer.lowat = Some(20_000);
        let sizes = Sizes { packet: 10 * MSS, half_window: u64::MAX, queued: 0 };
        assert_eq!(buffer.write(u64::MAX, 0, sizes), 10 * MSS);
        assert_eq!(buffer.write(u64::MAX, 10 * MSS, sizes), 10 * MSS);
        assert!(buffer.waits_for_space && buffer.owes_write_space);
        buffer.signal_write_space(100, true, MSS);
        assert!(buffer.waits_for_space, "its own burst");
        assert_eq!(buffer.write(u64::MAX, MSS, sizes), 0);
        buffer.on_ack_received();
        buffer.signal_write_space(100, true, 7 * MSS);
        assert!(buffer.waits_for_space, "2 * 10,136 is more than 20,000");
        buffer.signal_write_space(100, true, 6 * MSS);
        assert!(!buffer.waits_for_space && !buffer.owes_write_space);
    }

    #[test]
    fn appending_the_next_chunk_clears_psh_of_the_last_packet() {
        // tcp_sendmsg_locked: the first that it copies takes PSH from the packet it goes to.
        let mut buffer = with_most(1 << 20, 100);
        let forced = Sizes { packet: 45 * MSS, half_window: 100, queued: 0 };
        // 65,160 bytes, and the rest of the program's 65,536.
        assert_eq!(buffer.write(u64::MAX, 0, forced), 45 * MSS);
        assert_eq!(buffer.write(u64::MAX, 0, forced), CHUNK - 45 * MSS);
        assert!(buffer.unsent[1].push);
        buffer.write(u64::MAX, 0, Sizes { half_window: u64::MAX, ..forced });
        assert!(!buffer.unsent[1].push);
    }

    #[test]
    fn autocork_holds_the_last_packet_while_the_device_queue_is_larger() {
        // tcp_should_autocork: of a packet of 45 segments, which leaves by itself (tcp_push_one),
        // 26 have left. The last 376 bytes of the chunk of 65,536 go to the 19 that are left: with
        // 960 more that is 28,848 of memory. sk_wmem_alloc counts one more than what is at the
        // device, and has to be more than that.
        for (queued, is_autocorked) in [(28_847, false), (28_848, true)] {
            let mut buffer = with_most(1 << 20, 100);
            let sizes = Sizes { packet: 45 * MSS, half_window: u64::MAX, queued };
            assert_eq!(buffer.write(u64::MAX, 0, sizes), 45 * MSS);
            buffer.send(26 * MSS);
            // Corked, the next call follows, and makes the packet larger than what waits.
            let taken = buffer.write(376 + 10_000, 19 * MSS, sizes);
            assert_eq!(
                (taken, buffer.is_autocorked),
                (if is_autocorked { 10_376 } else { 376 }, is_autocorked)
            );
            assert_eq!(buffer.push, Push::Pending);
            // Where the end of that call finds as much at the device again, it sends nothing
            // either.
            let sizes = Sizes { queued: u64::MAX, ..sizes };
            buffer.write(100, 19 * MSS + taken, sizes);
            assert_eq!(buffer.push, Push::Done);
        }
    }

    #[test]
    fn poll_without_write_space_requests_a_write_space_signal() {
        // tcp_poll, __sk_stream_is_writeable: of 87,040 bytes 58,027 are in use, and half as much
        // is free; with a byte more the program is told when there is room, and the buffer follows
        // the window.
        let mut buffer = with_most(1 << 22, 10);
        buffer.used = 58_027;
        buffer.on_poll(0);
        assert!(!buffer.owes_write_space && !buffer.signal_write_space(20, true, 0));
        buffer.used += 1;
        buffer.on_poll(0);
        assert!(buffer.owes_write_space && buffer.signal_write_space(20, true, 0));
        assert_eq!((buffer.limit, buffer.owes_write_space), (2 * 20 * (4096 + 256), false));
    }

    /// An application that waits in `poll_write_space`, with a buffer like this.
    fn polled(limit: u64, used: u64) -> SendBuffer {
        let mut buffer = with_most(limit, 10);
        (buffer.limit, buffer.used, buffer.lowat) = (limit, used, Some(1 << 17));
        buffer.is_nonblocking = true;
        (buffer.waits_for_space, buffer.owes_write_space) = (true, true);
        buffer
    }

    #[test]
    fn split_after_write_space_signal_may_make_poll_unwritable() {
        // tcp_poll: of 113,152 bytes 38,376 are free, more than half of the 74,776 in use; with one
        // packet more that a burst was cut off from, 37,416 are, less than half of 75,736.
        let mut buffer = polled(113_152, 74_776);
        buffer.signal_write_space(12, false, 50_000);
        assert!(!buffer.owes_write_space);
        buffer.used += OVERHEAD;
        buffer.poll_write_space(48_000);
        assert!(buffer.waits_for_space && buffer.owes_write_space);
        buffer.used -= 2 * OVERHEAD;
        buffer.poll_write_space(47_000);
        assert!(!buffer.waits_for_space);
    }

    #[test]
    fn write_space_is_signalled_after_an_ack_while_application_pauses() {
        // tcp_data_snd_check, after each ACK, whatever it lets go; the buffer grows where the
        // window has room: 2 windows of 80 segments, each 4,096 and 256 bytes.
        let mut buffer = polled(200_000, 180_000);
        buffer.most = 1 << 20;
        buffer.signal_write_space_after_ack(80, true, 50_000);
        assert!(buffer.owes_write_space, "no ACK has come");
        buffer.on_ack_received();
        buffer.signal_write_space_after_ack(80, true, 50_000);
        assert_eq!((buffer.limit, buffer.owes_write_space), (2 * 80 * (4096 + 256), false));
        assert!(buffer.waits_for_space, "it looks when it goes on");
    }
}
