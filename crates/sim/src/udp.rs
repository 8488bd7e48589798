//! UDP datagrams, fragmented where they exceed the path's MTU (RFC 768, RFC 791 §3.2).

use std::collections::{BTreeMap, VecDeque};
use tcplab_units::{Duration, Time};

/// The sizes of an IPv4 header without options, and of a UDP header.
const IP_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;

/// The reassembly timeout (`ipfrag_time`).
const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(30);
/// The memory of a host above which it accepts no fragments (`ipfrag_high_thresh`).
const MOST_MEMORY: u64 = 4 << 20;
/// Memory of a reassembly queue besides its fragments (`struct ipq`).
const QUEUE: u64 = 200;
/// The smallest allocation for a packet (`SKB_SMALL_HEAD_CACHE_SIZE`).
const SMALL_PIECE: u64 = 704;

/// A datagram on the network, or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The number of the datagram in its flow, from 0.
    pub number: u32,
    /// When the datagram was sent, in two halves: packets are aligned to four bytes.
    sent_at: [u32; 2],
    /// Bytes of the datagram behind its IP header: before this fragment, in this fragment and in
    /// total.
    before: u16,
    bytes: u16,
    all: u32,
}

/// A datagram that has arrived in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// The number of the datagram in its flow, from 0.
    pub number: u32,
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes of data.
    pub payload: u32,
}

impl Fragment {
    /// The packets of a datagram with so many bytes of data: one, or as many as the MTU requires.
    /// All but the last carry a multiple of eight bytes.
    pub fn all_of(
        number: u32,
        now: Time,
        payload: u32,
        mtu: u32,
    ) -> impl Iterator<Item = Self> + use<> {
        let all = payload + UDP_HEADER;
        let room = mtu - IP_HEADER;
        let most = if all <= room { all } else { room / 8 * 8 };
        let picos = now.as_picos();
        let sent_at = [(picos >> 32) as u32, picos as u32];
        let bytes = move |from: u32| (all - from).min(most) as u16;
        (0..all).step_by(most as usize).map(move |from| Self {
            number,
            sent_at,
            before: from as u16,
            bytes: bytes(from),
            all,
        })
    }

    /// The size of the packet.
    #[inline]
    pub fn wire_bytes(&self) -> u32 {
        IP_HEADER + u32::from(self.bytes)
    }

    /// Bytes behind the IP header.
    pub fn bytes(&self) -> u16 {
        self.bytes
    }

    /// Whether the packet is a whole datagram.
    pub fn is_whole(&self) -> bool {
        u32::from(self.bytes) == self.all
    }

    /// Bytes of the datagram behind its IP header, in this fragment and the fragments before it.
    pub fn datagram_bytes(&self) -> u32 {
        self.all
    }

    pub fn offset(&self) -> u16 {
        self.before
    }

    /// Whether the packet has the last bytes of the datagram.
    pub fn is_last(&self) -> bool {
        u32::from(self.before) + u32::from(self.bytes) == self.all
    }

    /// Bytes of data in the packet: the UDP header is in the first fragment.
    pub fn payload(&self) -> u32 {
        u32::from(self.bytes) - if self.before == 0 { UDP_HEADER } else { 0 }
    }

    fn datagram(&self) -> Datagram {
        let [high, low] = self.sent_at.map(u64::from);
        let sent_at = Time::from_picos(high << 32 | low);
        Datagram { number: self.number, sent_at, payload: self.all - UDP_HEADER }
    }
}

/// Datagrams that have arrived in part at a host. As in Linux they share a memory limit
/// (`inet_frag_find`, `ip_frag_queue`). Above the limit no fragment is accepted, not even the last
/// missing one of a datagram, until incomplete datagrams time out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// Incomplete datagrams by flow and number.
    partial: BTreeMap<Key, Partial>,
    /// The timeouts of datagrams in order; some of these have been completed.
    waiting: VecDeque<(Time, Key)>,
    /// Bytes of memory that all of them take.
    memory: u64,
}

/// The flow of a datagram, and its number.
type Key = (usize, u32);

/// A datagram that has arrived in part.
#[derive(Clone, Copy, Debug)]
struct Partial {
    /// Missing bytes.
    missing: u32,
    /// Bytes of memory that the datagram takes.
    memory: u64,
}

/// The memory of a fragment, in bytes. It is one allocation (`alloc_skb`, `__ip_append_data`) for
/// the IP header, 31 more bytes and `skb_shared_info`, rounded up to the allocator's next size;
/// `struct sk_buff` comes on top.
pub(crate) fn memory_of(bytes: u16) -> u64 {
    let wanted = (u64::from(bytes) + 20 + 31).next_multiple_of(64) + 320;
    let piece = if wanted <= SMALL_PIECE { SMALL_PIECE } else { wanted.next_power_of_two() };
    piece + 256
}

impl Reassembly {
    /// A packet of a flow arrives. Returns the datagram, if it is complete now.
    pub fn take(&mut self, now: Time, flow: usize, fragment: &Fragment) -> Option<Datagram> {
        let bytes = u32::from(fragment.bytes);
        if bytes == fragment.all {
            return Some(fragment.datagram());
        }
        self.give_up(now);
        if self.memory > MOST_MEMORY {
            return None;
        }
        let key = (flow, fragment.number);
        let (memory, waiting) = (&mut self.memory, &mut self.waiting);
        let partial = self.partial.entry(key).or_insert_with(|| {
            waiting.push_back((now + REASSEMBLY_TIMEOUT, key));
            *memory += QUEUE;
            Partial { missing: fragment.all, memory: QUEUE }
        });
        let taken = memory_of(fragment.bytes);
        *memory += taken;
        partial.memory += taken;
        partial.missing -= bytes;
        if partial.missing > 0 {
            return None;
        }
        self.memory -= partial.memory;
        self.partial.remove(&key);
        // Usually the datagram that began last.
        if self.waiting.back().is_some_and(|(_, last)| *last == key) {
            self.waiting.pop_back();
        }
        Some(fragment.datagram())
    }

    /// Drops the oldest incomplete datagrams that have timed out.
    fn give_up(&mut self, now: Time) {
        while let Some((_, key)) = self.waiting.front().copied().filter(|(until, _)| *until <= now)
        {
            self.waiting.pop_front();
            if let Some(partial) = self.partial.remove(&key) {
                self.memory -= partial.memory;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(payload: u32, mtu: u32) -> Vec<u32> {
        Fragment::all_of(0, Time::ZERO, payload, mtu).map(|it| it.wire_bytes()).collect()
    }

    #[test]
    fn fragment_sizes_are_multiples_of_eight_bytes() {
        // 1472 + 8 + 20 = 1500.
        assert_eq!(sizes(1472, 1500), [1500]);
        // 1481 bytes behind the IP header, of which 1480 are 185 times 8.
        assert_eq!(sizes(1473, 1500), [1500, 21]);
        // (1499 - 20) / 8 = 184 times 8 are 1472.
        assert_eq!(sizes(1472, 1499), [1492, 28]);
        // The largest datagram: 65,515 bytes behind the header; 44 times 1480, and 395.
        let largest = sizes(65_507, 1500);
        assert_eq!((largest.len(), largest[44]), (45, 415));
    }

    #[test]
    fn a_datagram_is_complete_with_its_last_fragment() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reassembly = Reassembly::default();
        let sent: Vec<_> =
            (0..3).map(|n| Fragment::all_of(n, at(1), 2000, 1500).collect::<Vec<_>>()).collect();
        assert_eq!(reassembly.take(at(2), 0, &sent[0][0]), None);
        // The second loses a fragment.
        assert_eq!(reassembly.take(at(2), 0, &sent[1][0]), None);
        let whole = Some(Datagram { number: 0, sent_at: at(1), payload: 2000 });
        assert_eq!(reassembly.take(at(3), 0, &sent[0][1]), whole);
        // 30 s later the datagram has timed out.
        assert_eq!(reassembly.take(at(33), 0, &sent[2][0]), None);
        assert_eq!((reassembly.partial.len(), reassembly.waiting.len()), (1, 1));
    }

    #[test]
    fn fragments_take_memory_as_in_linux() {
        // The kernel's memory (`skb->truesize`) of fragments of so many bytes: head and data in
        // allocations of 704, 1,024, 2,048 bytes and so on, and 256 for `struct sk_buff`.
        for (bytes, memory) in [
            (1, 960),
            (328, 960),
            (356, 1_280),
            (628, 1_280),
            (680, 2_304),
            (1_480, 2_304),
            (3_032, 4_352),
            (8_976, 16_640),
        ] {
            assert_eq!(memory_of(bytes), memory, "{bytes}");
        }
    }

    #[test]
    fn above_the_memory_limit_a_host_accepts_no_fragments() {
        // Datagrams of two fragments whose second is lost hold 200 + 2,304 bytes each. 1,676 of
        // them hold 4,196,704, more than 4 MiB, and one less 4,194,200. Further fragments are
        // refused, also of another flow; datagrams in one packet are not.
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reassembly = Reassembly::default();
        let fragments = |n| Fragment::all_of(n, at(0), 2000, 1500).collect::<Vec<_>>();
        for n in 0..1_675 {
            assert_eq!(reassembly.take(at(1), 0, &fragments(n)[0]), None);
        }
        assert_eq!(reassembly.memory, 4_194_200);
        let last = fragments(1_675);
        assert_eq!(reassembly.take(at(2), 1, &last[0]), None);
        assert_eq!(reassembly.memory, 4_196_704);
        assert_eq!(reassembly.take(at(2), 1, &last[1]), None, "though it would be whole");
        let small = Fragment::all_of(7, at(0), 1000, 1500).next().unwrap();
        assert!(reassembly.take(at(2), 0, &small).is_some());
        // The first datagrams time out after 30 s.
        assert!(reassembly.take(at(31), 1, &last[1]).is_some());
        assert_eq!((reassembly.memory, reassembly.partial.len()), (0, 0));
    }
}
