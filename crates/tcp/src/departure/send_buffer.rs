//! Linux's send buffer: what the application writes lies in packets that take memory, the buffer
//! grows with the window, and the application sleeps while it is full (`tcp_sendmsg_locked`,
//! `tcp_sndbuf_expand`, `sk_stream_write_space`).

use crate::pages::{MOST_PAGES, Pages};
use crate::settings::Settings;
use sent::Sent;
use std::collections::VecDeque;
use std::ops::Range;
use tcplab_units::Time;

mod sent;

/// Bytes of memory that a packet takes beside its data (`tcp_stream_alloc_skb`).
pub(crate) const OVERHEAD: u64 = 960;
/// Headers and their description, and that of a packet: what a segment is thought to take beside
/// its data (`tcp_sndbuf_expand`).
const HEADERS: u64 = 640;
const DESCRIPTION: u64 = 256;
/// The fewest segments of a window for which the buffer has room.
const FEWEST: u64 = 10;
/// `tcp_wmem[1]`: what buffers begin with.
const FIRST: u64 = 16_384;
/// The most that a program writes at once: the pipe of `sendfile`.
const CHUNK: u64 = 65_536;

/// How what was just written is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// As far as the window allows, and as bursts are worth it.
    Pending,
    /// One burst now, whatever it is worth.
    One,
    /// The burst has left; the next waits for a write or for an ACK.
    Done,
}

/// Whether what is behind the last full segment of a packet may leave with it (`tcp_nagle_check`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Small {
    /// While no other small segment is under way.
    Alone,
    /// No: the program is about to write more (`MSG_MORE`).
    Never,
    /// Yes: the program could not wait, or not write more.
    Always,
}

/// A packet that has not left.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    bytes: u64,
    /// The receiver's application is to hear of its end at once.
    push: bool,
}

/// Written data that is not acknowledged, as memory.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    limit: u64,
    most: u64,
    /// The program has asked for a buffer of this size: it does not grow.
    is_fixed: bool,
    /// Windows for which there is room, the fewest segments of one, and the memory that a segment
    /// is thought to take.
    windows: u64,
    fewest: u64,
    per_segment: u64,
    used: u64,
    /// Packets that have not left.
    unsent: VecDeque<Packet>,
    sent: VecDeque<Sent>,
    /// The blocks that the receiver told of with the last ACK that had some, and those of this one.
    told: Vec<Range<u64>>,
    telling: Vec<Range<u64>>,
    /// When a packet was cut last to send a part of it again, and where.
    cut: Option<(Time, u64)>,
    /// Where the last of these ends.
    reached: u64,
    /// Where all that was written ends.
    end: u64,
    /// Where the program's chunk began.
    chunk: u64,
    /// The most bytes of a packet, as it was when the chunk began or the program woke.
    packet: u64,
    /// Bytes written since a packet was last pushed.
    unpushed: u64,
    /// The application waits for room.
    sleeps: bool,
    /// The application is told when there is room (`SOCK_NOSPACE`).
    owes_write_space: bool,
    /// An ACK has come since then that may have made some.
    is_acked: bool,
    /// A call of the application is not done: it goes on with what is left of it.
    is_in_call: bool,
    /// The memory of the host runs short: the buffer does not grow.
    pub is_tight: bool,
    /// With so much that has not left, there is no room (`TCP_NOTSENT_LOWAT`).
    pub lowat: Option<u64>,
    /// The application does not wait in its calls: those end where there is no room.
    pub polls: bool,
    /// The application is about to wait in a call for want of room, and sends first what it has
    /// written. Room that this makes is no reason not to wait for the next news of some (`vm_wait`
    /// of `sk_stream_wait_memory`).
    dozes: bool,
    /// The packet that is to leave next has been made larger since the last ACK or writing.
    is_filled: bool,
    pub push: Push,
    pub small: Small,
    /// The end of a call has sent nothing: the device tells when to go on.
    pub is_corked: bool,
    /// The application writes from its own memory: packets have as many pages as they need, and a
    /// call is one chunk.
    pub is_copied: bool,
}

/// The limits on packets as they are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The most bytes of a packet.
    pub packet: u64,
    /// Half of the largest window that the peer has offered.
    pub half_window: u64,
    /// The memory of what waits at the device of the host, while data is under way.
    pub queued: u64,
}

impl SendBuffer {
    /// For segments of `mss` bytes, options included, as both ends agreed.
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
            told: Vec::new(),
            telling: Vec::new(),
            cut: None,
            reached: 1,
            end: 1,
            chunk: 1,
            packet: 0,
            unpushed: 0,
            sleeps: false,
            owes_write_space: false,
            is_acked: false,
            is_in_call: false,
            is_tight: false,
            lowat: None,
            polls: false,
            dozes: false,
            is_filled: false,
            push: Push::Pending,
            small: Small::Alone,
            is_corked: false,
            is_copied: false,
        };
        buffer.expect_reordering(settings.dup_thresh);
        buffer.expand(cwnd);
        buffer
    }

    /// Segments may come out of order by this many: they and one more must have room
    /// (`tcp_sndbuf_expand`).
    pub fn expect_reordering(&mut self, segments: u32) {
        self.fewest = FEWEST.max(u64::from(segments) + 1);
    }

    /// The application writes without having been told of room: what the last packet can still take
    /// is looked at in any case.
    pub fn try_again(&mut self) {
        self.sleeps = false;
        self.packet = 0;
    }

    /// The congestion control has begun, with this window: there is room for so many of them
    /// (`tcp_init_buffer_space`).
    pub fn begin(&mut self, cwnd: u64, windows: u64) {
        self.windows = windows;
        if !self.is_fixed {
            self.limit = FIRST.min(self.most);
        }
        self.expand(cwnd);
    }

    /// `bytes` have left with the SYN: a packet, and the beginning of the program's first chunk.
    pub fn begin_with(&mut self, bytes: u64) {
        self.used += bytes + OVERHEAD;
        self.reached += bytes;
        self.end += bytes;
        self.note_sent(bytes, true);
    }

    /// Bytes of memory that it takes.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether the application waits for room in the buffer, and is to be told of it.
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

    /// The application writes up to the next moment at which something is sent. Returns how many
    /// bytes it could; none: it sleeps.
    ///
    /// `unsent`: bytes that have not left.
    pub fn write(&mut self, bytes: u64, unsent: u64, sizes: Sizes) -> u64 {
        let mut taken = 0;
        self.fall_asleep();
        if !self.sleeps {
            self.push = Push::Pending;
        }
        if !self.is_in_chunk() || self.packet == 0 {
            self.packet = sizes.packet;
        }
        while taken < bytes && !self.sleeps {
            let left = self.unsent.back().map_or(0, |tail| self.packet.saturating_sub(tail.bytes));
            let mut room = left;
            if room > 0 && !self.is_copied {
                room = room.min(self.page_room());
                if room == 0 {
                    // No page more fits into the packet (`skb_splice_from_iter`).
                    self.push_tail();
                }
            }
            if room == 0 {
                if self.is_full(unsent + taken) {
                    (self.sleeps, self.owes_write_space) = (true, true);
                    self.dozes = self.lowat.is_some() && !self.polls;
                    if self.is_in_chunk() {
                        self.push_tail();
                        self.small = Small::Always;
                        self.push = if self.corks(sizes) { Push::Done } else { Push::Pending };
                    }
                    if self.polls {
                        self.chunk = self.end;
                    }
                    break;
                }
                self.unsent.push_back(Packet::default());
                self.used += OVERHEAD;
                continue;
            }
            let chunk_end =
                if self.is_copied { u64::MAX } else { Pages::OfFile.start(self.chunk) + CHUNK };
            let copied = room.min(bytes - taken).min(chunk_end - self.end);
            if let Some(tail) = self.unsent.back_mut() {
                tail.bytes += copied;
                // With a new chunk there is more behind what was pushed.
                tail.push &= self.end > self.chunk;
            }
            self.used += copied;
            self.end += copied;
            taken += copied;
            self.unpushed += copied;
            let is_forced = self.unpushed > sizes.half_window;
            self.small = if taken == bytes {
                Small::Alone
            } else if self.end == chunk_end {
                Small::Never
            } else {
                Small::Always
            };
            let is_filled = copied == left;
            if taken == bytes || (is_forced && (is_filled || self.end == chunk_end)) {
                self.push_tail();
            }
            if taken == bytes || self.end == chunk_end {
                self.push = Push::Pending;
                if self.corks(sizes) {
                    // The next call follows at once.
                    self.push = Push::Done;
                    (self.chunk, self.packet) = (self.end, sizes.packet);
                    continue;
                }
            }
            if self.end == chunk_end {
                self.chunk = self.end;
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
            // The next call begins a chunk of its own.
            self.chunk = self.end;
        }
        self.is_filled &= taken == 0;
        self.is_in_call = taken < bytes && (self.is_in_chunk() || (self.sleeps && !self.polls));
        taken
    }

    /// Whether the end of a call sends nothing, for a last packet that may still grow while more
    /// than its memory waits at the device (`tcp_should_autocork`).
    fn corks(&mut self, sizes: Sizes) -> bool {
        let corks = self
            .unsent
            .back()
            .is_some_and(|tail| tail.bytes < sizes.packet && sizes.queued >= tail.bytes + OVERHEAD);
        self.is_corked |= corks;
        corks
    }

    /// Data written before the wait has left as far as it can.
    fn fall_asleep(&mut self) {
        self.owes_write_space |= std::mem::take(&mut self.dozes);
    }

    /// Whether what is written next belongs to a call that has begun.
    pub fn is_in_call(&self) -> bool {
        self.is_in_call
    }

    /// Whether such a call goes on now, and does not wait for room.
    pub fn is_writing(&self) -> bool {
        self.is_in_call && !self.sleeps
    }

    /// Some of the program's chunk has been written.
    fn is_in_chunk(&self) -> bool {
        self.end > self.chunk
    }

    /// How many bytes more fit into the pages of the last packet.
    fn page_room(&self) -> u64 {
        let bytes = self.unsent.back().map_or(0, |tail| tail.bytes);
        let begins = Pages::OfFile.start(self.end - bytes);
        begins + Pages::OfFile.bytes() * MOST_PAGES - self.end
    }

    /// The receiver's application is to hear of all that was written.
    fn push_tail(&mut self) {
        self.unpushed = 0;
        if let Some(tail) = self.unsent.back_mut() {
            tail.push = true;
        }
    }

    /// An ACK came: what waits is looked at again.
    pub fn look_again(&mut self) {
        self.fall_asleep();
        self.go_on();
        self.is_acked = self.owes_write_space;
    }

    /// The persist timer ran out: one packet leaves, and no more.
    pub fn probe(&mut self) {
        self.push = Push::One;
    }

    /// Paced data may go on.
    pub fn go_on(&mut self) {
        self.is_filled = false;
        self.push = Push::Pending;
        self.small = Small::Alone;
    }

    /// No ACK came, and nothing was written: that time has passed is no reason for data to leave.
    pub fn stay(&mut self) {
        self.push = Push::Done;
    }

    /// All that an ACK lets go has left.
    #[inline]
    pub fn signal_write_space_after_ack(
        &mut self,
        cwnd: u64,
        has_window: bool,
        unsent: u64,
    ) -> bool {
        std::mem::take(&mut self.is_acked) && self.signal_write_space(cwnd, has_window, unsent)
    }

    /// Tells an application that waits for room if there is some (`tcp_check_space`). `has_window`:
    /// the congestion window would allow more; `unsent`: bytes that have not left. Returns whether
    /// the buffer was enlarged to fit the window.
    #[inline(never)]
    pub fn signal_write_space(&mut self, cwnd: u64, has_window: bool, unsent: u64) -> bool {
        if !self.owes_write_space {
            return false;
        }
        let expands = has_window && !self.is_tight && !self.is_fixed;
        if expands {
            self.expand(cwnd);
        }
        if self.has_room(unsent) {
            self.owes_write_space = false;
            if !self.polls && !self.dozes {
                self.try_again();
            }
        }
        expands
    }

    /// An application that does not wait in its calls looks whether there is room (`tcp_poll`):
    /// what has left since it was told may have taken it.
    pub fn poll(&mut self, unsent: u64) {
        if self.sleeps && self.polls {
            if self.has_room(unsent) {
                self.try_again();
            } else {
                self.owes_write_space = true;
            }
        }
    }

    /// A program waits for data: that there is no room is noted all the same, and it is told when
    /// there is (`tcp_poll`).
    pub fn look(&mut self, unsent: u64) {
        self.owes_write_space |= !self.has_room(unsent);
    }

    /// Nothing more is taken (`sk_stream_memory_free`).
    fn is_full(&self, unsent: u64) -> bool {
        self.used >= self.limit || self.lowat.is_some_and(|most| unsent >= most)
    }

    /// There is enough to be worth waking for (`__sk_stream_is_writeable`).
    fn has_room(&self, unsent: u64) -> bool {
        let free = self.limit.saturating_sub(self.used);
        free >= self.used / 2
            && self.used < self.limit
            && self.lowat.is_none_or(|most| 2 * unsent < most)
    }

    /// Bytes of the packet that is to leave next, made as large as `wanted` with the one after it,
    /// once each time that it is looked at; and whether it is the last.
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

    /// The bytes of that packet, looked at once more.
    pub fn next_anew(&mut self, wanted: u64) -> u64 {
        self.is_filled = false;
        self.next(wanted).0
    }

    /// The first packet is cut after so many bytes, and held back all the same: `tcp_write_xmit`
    /// looks at the queue of the device last of all. The end of what was pushed stays with the
    /// rest.
    pub fn split(&mut self, bytes: u64) {
        let Some(first) = self.unsent.front_mut().filter(|first| first.bytes > bytes) else {
            return;
        };
        let rest = Packet { bytes: first.bytes - bytes, ..*first };
        (first.bytes, first.push) = (bytes, false);
        self.unsent.insert(1, rest);
        self.used += OVERHEAD;
    }

    /// Where the last packet that has left ends. Its last segments may still have to leave.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// Data before `end` has left, in a burst or as a probe.
    pub fn catch_up(&mut self, end: u64) {
        while self.reached < end && !self.unsent.is_empty() {
            self.send(end - self.reached);
        }
    }

    /// So many bytes of the first packet failed to leave: they are a packet by themselves now,
    /// which waits for what happens next.
    pub fn keep(&mut self, bytes: u64) {
        self.push = Push::Done;
        if let Some(first) = self.unsent.front_mut().filter(|first| first.bytes > bytes) {
            first.bytes -= bytes;
            self.unsent.push_front(Packet { bytes, push: false });
            self.used += OVERHEAD;
        }
    }

    /// `bytes` of the first packet leave. Says whether they end with pushed data.
    pub fn send(&mut self, bytes: u64) -> bool {
        let Some(first) = self.unsent.front_mut() else { return false };
        self.is_filled = false;
        let bytes = bytes.min(first.bytes);
        self.reached += bytes;
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

    /// A packet ends with what has left.
    fn note_sent(&mut self, bytes: u64, push: bool) {
        let (end, memory) = (self.reached, bytes + OVERHEAD);
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
    fn segments_that_may_be_out_of_order_have_room() {
        // tcp_sndbuf_expand: two windows of `reordering` + 1 segments, of 10 at least, each 4,096
        // and 256 bytes.
        for (dup_thresh, segments) in [(3, 10), (9, 10), (10, 11), (300, 301)] {
            let settings = Settings { send_buffer: 1 << 22, dup_thresh, ..Settings::default() };
            let mut buffer = SendBuffer::new(&settings, 4, 2, 1460);
            assert_eq!(buffer.limit, 2 * segments * (4096 + 256), "{dup_thresh}");
            buffer.begin(4, 2);
            assert_eq!(buffer.limit, 2 * segments * (4096 + 256), "{dup_thresh}");
        }
    }

    #[test]
    fn a_buffer_that_the_program_asked_for_stays_as_it_is() {
        // SOCK_SNDBUF_LOCK; tcp_should_expand_sndbuf does not either restart the time of an unused
        // window.
        let settings = Settings { fixed_send_buffer: Some(100_000), ..Settings::default() };
        let mut buffer = SendBuffer::new(&settings, 1000, 2, 1460);
        buffer.begin(1000, 2);
        buffer.owes_write_space = true;
        assert!(!buffer.signal_write_space(1000, true, 0));
        assert_eq!((buffer.limit, buffer.owes_write_space), (100_000, false));
    }

    #[test]
    fn a_writer_that_finds_no_room_waits_for_news_of_it() {
        // tcp_sendmsg_locked, sk_stream_wait_memory: two packets of ten segments, of which the
        // second makes 28,960 bytes that have not left, are all. What the first sends of itself as
        // it is written makes room, but the program waits (`vm_wait`) until the next ACK tells of
        // half of its limit.
        let mut buffer = with_most(1 << 22, 100);
        buffer.lowat = Some(20_000);
        let sizes = Sizes { packet: 10 * MSS, half_window: u64::MAX, queued: 0 };
        assert_eq!(buffer.write(u64::MAX, 0, sizes), 10 * MSS);
        assert_eq!(buffer.write(u64::MAX, 10 * MSS, sizes), 10 * MSS);
        assert!(buffer.sleeps && buffer.owes_write_space);
        buffer.signal_write_space(100, true, MSS);
        assert!(buffer.sleeps, "its own burst");
        assert_eq!(buffer.write(u64::MAX, MSS, sizes), 0);
        buffer.look_again();
        buffer.signal_write_space(100, true, 7 * MSS);
        assert!(buffer.sleeps, "2 * 10,136 is more than 20,000");
        buffer.signal_write_space(100, true, 6 * MSS);
        assert!(!buffer.sleeps && !buffer.owes_write_space);
    }

    #[test]
    fn what_was_pushed_goes_on_with_the_next_chunk() {
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
    fn the_end_of_a_call_sends_nothing_while_the_device_holds_more_than_the_last_packet() {
        // tcp_should_autocork: of a packet of 45 segments, which leaves by itself (tcp_push_one),
        // 26 have left. The last 376 bytes of the chunk of 65,536 go to the 19 that are left: with
        // 960 more that is 28,848 of memory. sk_wmem_alloc counts one more than what is at the
        // device, and has to be more than that.
        for (queued, is_corked) in [(28_847, false), (28_848, true)] {
            let mut buffer = with_most(1 << 20, 100);
            let sizes = Sizes { packet: 45 * MSS, half_window: u64::MAX, queued };
            assert_eq!(buffer.write(u64::MAX, 0, sizes), 45 * MSS);
            buffer.send(26 * MSS);
            // Corked, the next call follows, and makes the packet larger than what waits.
            let taken = buffer.write(376 + 10_000, 19 * MSS, sizes);
            assert_eq!(
                (taken, buffer.is_corked),
                (if is_corked { 10_376 } else { 376 }, is_corked)
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
    fn who_waits_for_data_hears_of_room_as_well() {
        // tcp_poll, __sk_stream_is_writeable: of 87,040 bytes 58,027 are in use, and half as much
        // is free; with a byte more the program is told when there is room, and the buffer follows
        // the window.
        let mut buffer = with_most(1 << 22, 10);
        buffer.used = 58_027;
        buffer.look(0);
        assert!(!buffer.owes_write_space && !buffer.signal_write_space(20, true, 0));
        buffer.used += 1;
        buffer.look(0);
        assert!(buffer.owes_write_space && buffer.signal_write_space(20, true, 0));
        assert_eq!((buffer.limit, buffer.owes_write_space), (2 * 20 * (4096 + 256), false));
    }

    /// An application that waits in `poll`, with a buffer like this.
    fn polled(limit: u64, used: u64) -> SendBuffer {
        let mut buffer = with_most(limit, 10);
        (buffer.limit, buffer.used, buffer.lowat) = (limit, used, Some(1 << 17));
        buffer.polls = true;
        (buffer.sleeps, buffer.owes_write_space) = (true, true);
        buffer
    }

    #[test]
    fn what_leaves_behind_the_news_of_room_may_take_it() {
        // tcp_poll: of 113,152 bytes 38,376 are free, more than half of the 74,776 in use; with one
        // packet more that a burst was cut off from, 37,416 are, less than half of 75,736.
        let mut buffer = polled(113_152, 74_776);
        buffer.signal_write_space(12, false, 50_000);
        assert!(!buffer.owes_write_space);
        buffer.used += OVERHEAD;
        buffer.poll(48_000);
        assert!(buffer.sleeps && buffer.owes_write_space);
        buffer.used -= 2 * OVERHEAD;
        buffer.poll(47_000);
        assert!(!buffer.sleeps);
    }

    #[test]
    fn an_application_hears_of_room_while_it_pauses() {
        // tcp_data_snd_check, after each ACK, whatever it lets go; the buffer grows where the
        // window has room: 2 windows of 80 segments, each 4,096 and 256 bytes.
        let mut buffer = polled(200_000, 180_000);
        buffer.most = 1 << 20;
        buffer.signal_write_space_after_ack(80, true, 50_000);
        assert!(buffer.owes_write_space, "no ACK has come");
        buffer.look_again();
        buffer.signal_write_space_after_ack(80, true, 50_000);
        assert_eq!((buffer.limit, buffer.owes_write_space), (2 * 80 * (4096 + 256), false));
        assert!(buffer.sleeps, "it looks when it goes on");
    }
}
