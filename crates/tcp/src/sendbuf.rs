//! Linux's send buffer: what the application writes lies in packets that take memory, the buffer
//! grows with the window, and the application sleeps while it is full (`tcp_sendmsg_locked`,
//! `tcp_sndbuf_expand`, `sk_stream_write_space`).

use std::collections::VecDeque;
use std::ops::Range;
use tcplab_units::Time;

/// Bytes of memory that a packet takes beside its data (`tcp_stream_alloc_skb`).
const OVERHEAD: u64 = 960;
/// What a segment is thought to take: with its headers more than 2048, so 4096, and a description
/// (`tcp_sndbuf_expand`).
const PER_SEGMENT: u64 = 4352;
/// The fewest segments of a window for which the buffer has room.
const FEWEST: u64 = 10;
/// `tcp_wmem[1]`: what buffers begin with.
const FIRST: u64 = 16_384;
/// The most that a program writes at once: the pipe of `sendfile`.
const CHUNK: u64 = 65_536;
/// Pages that a packet can refer to (`MAX_SKB_FRAGS`), and their size.
const MOST_PAGES: u64 = 17;
const PAGE: u64 = 4096;

/// How what was just written is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// As far as the window allows, and as bursts are worth it.
    Pending,
    /// One burst now, whatever it is worth.
    One,
    /// That burst has left; more waits for more to be written, or for an ACK.
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

/// A packet that has left, as what is not acknowledged of it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    memory: u64,
    push: bool,
}

/// What was written and is not acknowledged, as memory.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    limit: u64,
    most: u64,
    /// Windows for which there is room.
    windows: u64,
    used: u64,
    /// What has not left.
    unsent: VecDeque<Packet>,
    sent: VecDeque<Sent>,
    /// When a packet was cut last to send a part of it again, and where.
    cut: Option<(Time, u64)>,
    /// Where the last of these ends.
    reached: u64,
    /// Written of the program's chunk.
    chunk: u64,
    /// The most bytes of a packet, as it was when the chunk began or the program woke.
    packet: u64,
    /// Bytes written since a packet was last pushed.
    unpushed: u64,
    /// The application sleeps until there is room.
    is_full: bool,
    /// A call of the application is not done: it goes on with what is left of it.
    is_in_call: bool,
    pub push: Push,
    pub small: Small,
}

/// What limits packets as they are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The most bytes of a packet.
    pub packet: u64,
    /// Half of the largest window that the peer has offered.
    pub half_window: u64,
}

impl SendBuffer {
    pub fn new(most: u64, cwnd: u64, windows: u64) -> Self {
        let mut buffer = Self {
            limit: FIRST.min(most),
            most,
            windows,
            used: 0,
            unsent: VecDeque::new(),
            sent: VecDeque::new(),
            cut: None,
            reached: 1,
            chunk: 0,
            packet: 0,
            unpushed: 0,
            is_full: false,
            is_in_call: false,
            push: Push::Pending,
            small: Small::Alone,
        };
        buffer.expand(cwnd);
        buffer
    }

    /// From now on there is room for so many windows.
    pub fn widen(&mut self, cwnd: u64, windows: u64) {
        self.windows = windows;
        self.expand(cwnd);
    }

    fn expand(&mut self, cwnd: u64) {
        let wanted = self.windows * cwnd.max(FEWEST) * PER_SEGMENT;
        self.limit = self.limit.max(wanted.min(self.most));
    }

    /// The application writes up to the next moment at which something is sent. Returns how many bytes
    /// it could; none: it sleeps.
    pub fn write(&mut self, bytes: u64, sizes: Sizes) -> u64 {
        let mut taken = 0;
        self.push = Push::Pending;
        if self.chunk == 0 || self.packet == 0 {
            self.packet = sizes.packet;
        }
        while taken < bytes && !self.is_full {
            let room = self.unsent.back().map_or(0, |tail| self.packet.saturating_sub(tail.bytes));
            if room == 0 {
                if self.used >= self.limit {
                    self.is_full = true;
                    if self.chunk > 0 {
                        self.push_tail();
                        self.small = Small::Always;
                    }
                    break;
                }
                self.unsent.push_back(Packet::default());
                self.used += OVERHEAD;
                continue;
            }
            let copied = room.min(bytes - taken).min(CHUNK - self.chunk);
            if let Some(tail) = self.unsent.back_mut() {
                tail.bytes += copied;
                // With a new chunk there is more behind what was pushed.
                tail.push &= self.chunk > 0;
            }
            self.used += copied;
            taken += copied;
            self.chunk += copied;
            self.unpushed += copied;
            let is_forced = self.unpushed > sizes.half_window;
            self.small = if taken == bytes {
                Small::Alone
            } else if self.chunk == CHUNK {
                Small::Never
            } else {
                Small::Always
            };
            if taken == bytes || (is_forced && (copied == room || self.chunk == CHUNK)) {
                self.push_tail();
            }
            if self.chunk == CHUNK {
                self.chunk = 0;
                break;
            }
            if is_forced && copied == room {
                break;
            }
            if copied == room && self.unsent.len() == 1 {
                self.push = Push::One;
                break;
            }
        }
        self.is_in_call = taken < bytes && (self.is_full || self.chunk > 0);
        taken
    }

    /// Whether what is written next belongs to a call that has begun.
    pub fn is_in_call(&self) -> bool {
        self.is_in_call
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
        self.push = Push::Pending;
        self.small = Small::Alone;
    }

    /// An ACK has been dealt with: there may be room. `has_window`: the sender could send more.
    pub fn make_room(&mut self, cwnd: u64, has_window: bool) {
        if !self.is_full {
            return;
        }
        if has_window {
            self.expand(cwnd);
        }
        let free = self.limit.saturating_sub(self.used);
        self.is_full = free < self.used / 2 || self.used >= self.limit;
        if !self.is_full {
            self.packet = 0;
        }
    }

    /// Bytes of the packet that is to leave next, made as large as `wanted` with the one after it, and
    /// whether it is the last.
    pub fn next(&mut self, wanted: u64) -> (u64, bool) {
        let Some(first) = self.unsent.front().copied() else { return (0, true) };
        if first.bytes < wanted
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

    /// Where the last packet that has left ends. Its last segments may still have to leave.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// What comes before `end` has left, in a burst or as a probe.
    pub fn catch_up(&mut self, end: u64) {
        while self.reached < end && !self.unsent.is_empty() {
            self.send(end - self.reached);
        }
    }

    /// So many bytes of the first packet leave. Says whether they end with what was pushed.
    pub fn send(&mut self, bytes: u64) -> bool {
        let Some(first) = self.unsent.front_mut() else { return false };
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
        self.sent.push_back(Sent { end: self.reached, memory: bytes + OVERHEAD, push });
        push
    }

    /// What comes before `una` is acknowledged.
    pub fn acknowledge(&mut self, una: u64) {
        while let Some(&mut Sent { end, ref mut memory, .. }) = self.sent.front_mut() {
            if end > una {
                // The beginning of a packet is given back at once.
                let left = (end - una) + OVERHEAD;
                self.used -= memory.saturating_sub(left);
                *memory = left.min(*memory);
                break;
            }
            self.used -= *memory;
            self.sent.pop_front();
        }
    }

    /// A part of what has left arrived: what was cut off at its ends is a packet by itself, and the
    /// packets within become one (`tcp_match_skb_to_sack`, `tcp_shift_skb_data`).
    pub fn arrived(&mut self, range: &Range<u64>) {
        self.cut_at(range.start);
        self.cut_at(range.end);
        let mut at = self.ending_behind(range.start);
        let mut start = range.start;
        while let (Some(&first), Some(&second)) = (self.sent.get(at), self.sent.get(at + 1))
            && second.end <= range.end
        {
            // Offsets begin with 1.
            let pages = (second.end - 2) / PAGE - (start - 1) / PAGE + 1;
            if pages > MOST_PAGES {
                at += 1;
                start = first.end;
                continue;
            }
            self.join(at);
        }
    }

    /// A part of what has left leaves again, as a packet by itself with what leaves at the same time,
    /// `most` bytes of it (`__tcp_retransmit_skb`). Says whether the receiver's application is to hear
    /// of its end: several segments end there, or what was pushed.
    pub fn again(&mut self, now: Time, range: &Range<u64>, most: u64) -> bool {
        self.cut_at(range.start);
        let follows = self.cut == Some((now, range.start));
        if follows {
            self.join_at(range.start);
        }
        let is_cut = self.cut_at(range.end);
        let at = self.ending_behind(range.start);
        let Some(packet) = self.sent.get(at) else { return false };
        let is_end = !is_cut || packet.memory - OVERHEAD >= most;
        self.cut = (!is_end).then_some((now, range.end));
        is_end && (follows || packet.push)
    }

    /// Whether what was pushed ends here.
    pub fn is_pushed(&self, end: u64) -> bool {
        let at = self.sent.partition_point(|packet| packet.end < end);
        self.sent.get(at).is_some_and(|packet| packet.end == end && packet.push)
    }

    /// Where the packet ends that this place is part of; there, if it has not left.
    pub fn packet_end(&self, place: u64) -> u64 {
        self.sent.get(self.ending_behind(place)).map_or(place, |packet| packet.end)
    }

    /// The packet, by number, that ends behind this place.
    fn ending_behind(&self, place: u64) -> usize {
        self.sent.partition_point(|packet| packet.end <= place)
    }

    /// No packet reaches over this place. Says whether one did (`tcp_fragment`).
    fn cut_at(&mut self, place: u64) -> bool {
        let at = self.ending_behind(place);
        let Some(packet) = self.sent.get_mut(at) else { return false };
        let memory = packet.memory;
        let rest = packet.end - place + OVERHEAD;
        // A packet begins here, or behind here if what is here is acknowledged.
        if memory <= rest {
            return false;
        }
        packet.memory = rest;
        let first = memory - (rest - OVERHEAD);
        self.sent.insert(at, Sent { end: place, memory: first, push: false });
        self.used += OVERHEAD;
        true
    }

    fn join_at(&mut self, place: u64) {
        let at = self.ending_behind(place);
        if at > 0 && at < self.sent.len() && self.sent[at - 1].end == place {
            self.join(at - 1);
        }
    }

    /// This packet and the one behind it become one.
    fn join(&mut self, at: usize) {
        if let Some(first) = self.sent.remove(at) {
            self.sent[at].memory += first.memory - OVERHEAD;
            self.used -= OVERHEAD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// So many packets of so many segments have left, from offset 1 on.
    fn having_sent(packets: u64, segments: u64) -> SendBuffer {
        let mut buffer = SendBuffer::new(1 << 20, 10, 2);
        for _ in 0..packets {
            buffer.unsent.push_back(Packet { bytes: segments * MSS, push: false });
            buffer.used += segments * MSS + OVERHEAD;
            buffer.send(segments * MSS);
        }
        buffer
    }

    /// Memory of 20 segments in so many packets.
    fn memory(packets: u64) -> u64 {
        20 * MSS + packets * OVERHEAD
    }

    #[test]
    fn what_arrives_in_the_middle_of_a_packet_is_cut_off_and_joins_its_neighbours() {
        let mut buffer = having_sent(10, 2);
        assert_eq!(buffer.used, memory(10));
        // The second segment of the first packet: tcp_fragment makes two of it.
        buffer.arrived(&(1 + MSS..1 + 2 * MSS));
        assert_eq!(buffer.used, memory(11));
        // The next one moves over to it, and the rest of its packet keeps its own memory.
        buffer.arrived(&(1 + MSS..1 + 3 * MSS));
        assert_eq!(buffer.used, memory(11));
        // That too: a packet less.
        buffer.arrived(&(1 + MSS..1 + 4 * MSS));
        assert_eq!(buffer.used, memory(10));
        buffer.acknowledge(1 + 20 * MSS);
        assert_eq!(buffer.used, 0);
    }

    #[test]
    fn packets_grow_together_up_to_seventeen_pages() {
        let mut buffer = having_sent(60, 1);
        buffer.arrived(&(1..buffer.reached));
        // 17 pages of 4096 bytes hold 48 segments of 1448 (69,504 of 69,632); 12 are left.
        let ends = buffer.sent.iter().map(|packet| (packet.end - 1) / MSS);
        assert_eq!(ends.collect::<Vec<_>>(), [48, 60]);
    }

    #[test]
    fn segments_that_leave_again_at_once_are_one_packet() {
        let at = |millis| Time::ZERO + tcplab_units::Duration::from_millis(millis);
        let mut buffer = having_sent(1, 4);
        let packets = |buffer: &SendBuffer| buffer.sent.len();
        buffer.again(at(1), &(1..1 + MSS), u64::MAX);
        assert_eq!(packets(&buffer), 2);
        buffer.again(at(1), &(1 + MSS..1 + 2 * MSS), u64::MAX);
        assert_eq!(packets(&buffer), 2);
        buffer.again(at(2), &(1 + 2 * MSS..1 + 3 * MSS), u64::MAX);
        assert_eq!((packets(&buffer), buffer.used), (3, 4 * MSS + 3 * OVERHEAD));
    }

    #[test]
    fn what_was_pushed_goes_on_with_the_next_chunk() {
        // tcp_sendmsg_locked: the first that it copies takes PSH from the packet it goes to.
        let mut buffer = SendBuffer::new(1 << 20, 100);
        let forced = Sizes { packet: 45 * MSS, half_window: 100 };
        // 65,160 bytes, and the rest of the program's 65,536.
        assert_eq!(buffer.write(u64::MAX, forced), 45 * MSS);
        assert_eq!(buffer.write(u64::MAX, forced), CHUNK - 45 * MSS);
        assert!(buffer.unsent[1].push);
        buffer.write(u64::MAX, Sizes { half_window: u64::MAX, ..forced });
        assert!(!buffer.unsent[1].push);
    }
}
