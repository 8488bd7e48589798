//! The identification field of IP packets.
//!
//! A simulated segment has no identification (a sender may leave it out where packets may not be
//! fragmented, RFC 6864 §4.1). Readers of captures need it to tell a packet that is captured at two
//! links from one that is retransmitted. The field is therefore derived from the packet's content
//! and from how often this link has carried the same content before.

/// The number of remembered packets, as a power of two.
const BITS: u32 = 13;

/// Recent packets: the content of each, and how often a link has carried it.
#[derive(Clone, Debug)]
pub struct Numbers {
    seen: Vec<(u64, u16)>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { seen: vec![(0, 0); 1 << BITS] }
    }
}

impl Numbers {
    /// The identification of a packet with this content on this lane.
    pub fn of(&mut self, lane: u32, content: u64) -> u16 {
        let here = mix(content ^ u64::from(lane) << 32);
        let (last, times) = &mut self.seen[(here >> (64 - BITS)) as usize];
        if std::mem::replace(last, here) == here {
            *times = times.wrapping_add(1);
        } else {
            *times = 0;
        }
        number(content, *times)
    }
}

/// The identification of a packet whose content was carried so often before; never zero, which
/// means none.
pub fn number(content: u64, times: u16) -> u16 {
    ((content >> 48) as u16).wrapping_add(times).max(1)
}

/// The hash of bytes.
pub fn content(bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    bytes.chunks(8).fold(bytes.len() as u64, |content, bytes| mix(content ^ word(bytes)))
}

/// One step of `SplitMix64` (Steele, Lea, Flood 2014): every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
#[test]
fn a_packet_keeps_its_ip_id_on_all_links_and_a_retransmission_has_another() {
    let mut numbers = Numbers::default();
    let [one, other] = [content(b"one"), content(b"other")];
    let first = [0, 1].map(|lane| numbers.of(lane, one));
    assert_eq!(first[0], first[1]);
    let apart = [0, 1].map(|lane| numbers.of(lane, other));
    assert!(apart[0] == apart[1] && apart[0] != first[0]);
    let again = [0, 1].map(|lane| numbers.of(lane, one));
    assert!(again[0] == again[1] && again[0] != first[0]);
    assert_eq!((number(0, 0), number(0, u16::MAX)), (1, u16::MAX));
}
