//! UDP: datagrams, in fragments where they are larger than the path's MTU (RFC 768, RFC 791 §3.2).

use std::collections::BTreeMap;
use tcplab_units::{Duration, Time};

/// Bytes of an IPv4 header without options, and of a UDP header.
const IP_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;

/// How long the fragments of a datagram wait for the others (`ipfrag_time`).
const PATIENCE: Duration = Duration::from_secs(30);

/// A datagram on the network, or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Which of the flow's datagrams, from 0.
    pub number: u32,
    /// When that was sent, in two halves: packets are aligned to four bytes.
    sent_at: [u32; 2],
    /// It has the header of UDP.
    is_first: bool,
    /// Bytes of the datagram behind its IP header, in this fragment and in all.
    bytes: u16,
    all: u32,
}

/// A datagram that has arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Which of the flow's datagrams, from 0.
    pub number: u32,
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes of data.
    pub payload: u32,
}

impl Fragment {
    /// The packets of a datagram with so many bytes of data: one, or as many as the MTU needs. All but the
    /// last carry a multiple of eight bytes.
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
            is_first: from == 0,
            bytes: bytes(from),
            all,
        })
    }

    /// Bytes of the packet.
    #[inline]
    pub fn wire_bytes(&self) -> u32 {
        IP_HEADER + u32::from(self.bytes)
    }

    /// Bytes of data in the packet: the header of UDP is in the first fragment.
    pub fn payload(&self) -> u32 {
        u32::from(self.bytes) - if self.is_first { UDP_HEADER } else { 0 }
    }

    fn datagram(&self) -> Datagram {
        let [high, low] = self.sent_at.map(u64::from);
        let sent_at = Time::from_picos(high << 32 | low);
        Datagram { number: self.number, sent_at, payload: self.all - UDP_HEADER }
    }
}

/// Datagrams of a flow that have arrived in part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// By number: bytes that are missing, and when the first of them arrived.
    partial: BTreeMap<u32, (u32, Time)>,
}

impl Reassembly {
    /// A packet arrives: the datagram, if it is whole now.
    pub fn take(&mut self, now: Time, fragment: &Fragment) -> Option<Datagram> {
        let bytes = u32::from(fragment.bytes);
        if bytes == fragment.all {
            return Some(fragment.datagram());
        }
        // Of these the oldest are first: numbers go up with time.
        while let Some(first) = self.partial.first_entry()
            && now.since(first.get().1) > PATIENCE
        {
            first.remove();
        }
        let (missing, _) = self.partial.entry(fragment.number).or_insert((fragment.all, now));
        *missing -= bytes;
        if *missing > 0 {
            return None;
        }
        self.partial.remove(&fragment.number);
        Some(fragment.datagram())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(payload: u32, mtu: u32) -> Vec<u32> {
        Fragment::all_of(0, Time::ZERO, payload, mtu).map(|it| it.wire_bytes()).collect()
    }

    #[test]
    fn fragments_are_cut_at_multiples_of_eight() {
        // 1472 + 8 + 20 = 1500.
        assert_eq!(sizes(1472, 1500), [1500]);
        // 1481 bytes behind the IP header: 1480 of them are 185 times 8.
        assert_eq!(sizes(1473, 1500), [1500, 21]);
        // (1499 - 20) / 8 = 184 times 8 are 1472.
        assert_eq!(sizes(1472, 1499), [1492, 28]);
        // The largest datagram: 65,515 bytes behind the header; 44 times 1480, and 395.
        let largest = sizes(65_507, 1500);
        assert_eq!((largest.len(), largest[44]), (45, 415));
    }

    #[test]
    fn a_datagram_is_whole_when_its_last_fragment_is_there() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut reassembly = Reassembly::default();
        let sent: Vec<_> =
            (0..3).map(|n| Fragment::all_of(n, at(1), 2000, 1500).collect::<Vec<_>>()).collect();
        assert_eq!(reassembly.take(at(2), &sent[0][0]), None);
        // The second loses a fragment.
        assert_eq!(reassembly.take(at(2), &sent[1][0]), None);
        let whole = Some(Datagram { number: 0, sent_at: at(1), payload: 2000 });
        assert_eq!(reassembly.take(at(3), &sent[0][1]), whole);
        // 30 s later nobody waits for it any more.
        assert_eq!(reassembly.take(at(33), &sent[2][0]), None);
        assert_eq!(reassembly.partial.len(), 1);
    }
}
