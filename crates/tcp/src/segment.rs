//! A TCP segment as a small value: all header fields that matter, and the payload as a count.
//!
//! Sizes are exact: `wire_bytes` counts the IPv4 and TCP headers, with options padded as senders
//! pad them.

mod gro;

use crate::seq::SeqNumber;
pub use gro::Merged;
use tcplab_units::Time;

/// Bytes of an IPv4 header without options.
pub const IP_HEADER: u32 = 20;
/// Bytes of a TCP header without options.
pub const TCP_HEADER: u32 = 20;
/// Memory of a segment in Linux beside its data: its head and two descriptors.
pub const SEGMENT_OVERHEAD: u64 = 960;
/// Bytes of an ICMP header, and the most of an ICMP error message.
const ICMP_HEADER: u32 = 8;
const LARGEST_NOTICE: u32 = 576;
/// Bytes of the timestamps option with its padding (RFC 7323 appendix A).
pub const TIMESTAMPS_OPTION: u32 = 12;

/// The millisecond clock of the timestamps option in most stacks.
#[inline]
pub(crate) fn clock(time: Time) -> u64 {
    time.since(Time::ZERO).as_millis()
}

/// Flags of the TCP header, the ECN field of the IP header, and which options are present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(1);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(2);
    /// No more data from the sender.
    pub const FIN: Self = Self(4);
    /// Reset the connection.
    pub const RST: Self = Self(8);
    /// The sender has nothing more ready.
    pub const PUSH: Self = Self(128);
    /// The peer's data was marked; in a SYN, marks are understood (RFC 3168).
    pub const ECE: Self = Self(256);
    /// The window was made smaller for marks; in a SYN, with `ECE`.
    pub const CWR: Self = Self(512);
    /// The packet may be marked where it would wait (ECN-capable transport).
    pub const ECT: Self = Self(1024);
    /// Congestion experienced. Set beside `ECT`, which a marked packet had.
    pub const CE: Self = Self(2048);
    /// The third flag of accurate feedback (RFC 9768).
    pub const AE: Self = Self(4096);
    /// Set beside `ECT`: the flow answers each mark (ECT(1), RFC 9331).
    pub const ECT1: Self = Self(8192);
    /// A cookie is asked for (RFC 7413 §2).
    const COOKIE_REQUEST: Self = Self(16_384);
    /// A cookie is present. It lies where a segment after the handshake has its SACK blocks.
    const COOKIE: Self = Self(32_768);
    /// The timestamps option is present.
    const TIMESTAMPS: Self = Self(16);
    /// The SACK-permitted option is present.
    const SACK_PERMITTED: Self = Self(32);
    /// The window-scale option is present.
    const WINDOW_SCALE: Self = Self(64);

    /// Options whose values are lost where a segment is quoted.
    const LOST: Self =
        Self::SACK_PERMITTED.with(Self::WINDOW_SCALE).with(Self::COOKIE_REQUEST).with(Self::COOKIE);

    /// Whether all flags of `other` are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Timestamps of RFC 7323.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock, in milliseconds.
    pub value: u32,
    /// The peer's latest timestamp.
    pub echo: u32,
}

impl Timestamps {
    /// The timestamps of a segment that leaves at `now`.
    #[inline]
    pub(crate) fn at(now: Time, echo: u32) -> Self {
        // A value of 0 means that there is no timestamp.
        Self { value: (clock(now) as u32).wrapping_add(1), echo }
    }
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// The largest payload that the sender of the SYN accepts, without options (RFC 6691).
    pub mss: u16,
    /// The shift of its windows (RFC 7323).
    pub window_scale: Option<u8>,
    /// Whether it supports SACK (RFC 2018).
    pub sack_permitted: bool,
}

/// A Fast Open cookie: eight bytes, as Linux makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub u64);

/// The Fast Open option of a SYN (RFC 7413 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenOption {
    /// Requests a cookie.
    Request,
    /// A client's cookie, or one that the server grants.
    Cookie(Cookie),
}

/// The number of SACK blocks. An enum, so that its unused values leave a niche for other kinds of
/// packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum SackCount {
    None,
    One,
    Two,
    Three,
    Four,
}

impl SackCount {
    #[inline]
    fn of(blocks: usize) -> Self {
        [Self::None, Self::One, Self::Two, Self::Three, Self::Four][blocks]
    }
}

/// An ICMP "fragmentation needed" notice of a router: a segment exceeds the MTU of the next link
/// (RFC 792, RFC 1191 §4; `ICMP_FRAG_NEEDED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragNeeded {
    /// The sequence number of the dropped segment.
    pub seq: SeqNumber,
    /// The MTU of the next link.
    pub mtu: u16,
    /// Bytes of the whole message.
    pub wire_bytes: u16,
    /// The notice has the DSCP of network control: Linux sends notices with CS6 (`__icmp_send`).
    pub is_control: bool,
    quoted: Quoted,
}

/// The header of the quoted segment, with the timestamps but no other option values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quoted {
    ack: SeqNumber,
    timestamps: Timestamps,
    window: u16,
    payload: u16,
    flags: Flags,
    header: u8,
}

impl FragNeeded {
    /// The quoted segment. Of its options only timestamps have values; the others only take space.
    pub fn quoted(&self) -> Segment {
        let Quoted { ack, timestamps, window, payload, flags, header } = self.quoted;
        let flags = Flags(flags.0 & !Flags::LOST.0);
        Segment { timestamps, payload, window, header, ..Segment::new(flags, self.seq, ack) }
    }
}

/// A range of out-of-order data: its first byte, and the byte behind its last.
pub type SackBlock = (SeqNumber, SeqNumber);

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN or FIN.
    pub seq: SeqNumber,
    /// The next byte expected from the peer, if the ACK flag is set.
    pub ack: SeqNumber,
    timestamps: Timestamps,
    sack: [SackBlock; 4],
    /// Bytes of data.
    pub payload: u16,
    /// The window as it stands in the header: scaled, except in a SYN.
    pub window: u16,
    /// Of a SYN the option; otherwise what each segment carries that became part of this one, if
    /// several did.
    mss: u16,
    /// The flags.
    pub flags: Flags,
    sack_count: SackCount,
    window_scale: u8,
    header: u8,
}

impl Segment {
    /// A segment without options.
    #[inline]
    pub fn new(flags: Flags, seq: SeqNumber, ack: SeqNumber) -> Self {
        Self {
            seq,
            ack,
            timestamps: Timestamps::default(),
            sack: Default::default(),
            payload: 0,
            window: 0,
            mss: 0,
            flags,
            sack_count: SackCount::None,
            window_scale: 0,
            header: (IP_HEADER + TCP_HEADER) as u8,
        }
    }

    /// With this many bytes of data.
    #[inline]
    #[must_use]
    pub fn with_payload(self, payload: u16) -> Self {
        Self { payload, ..self }
    }

    /// With this window.
    #[inline]
    #[must_use]
    pub fn with_window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    /// With the options of a SYN. Timestamps are to be added before.
    #[must_use]
    pub fn with_syn_options(self, options: SynOptions) -> Self {
        let mut flags = self.flags;
        // MSS takes four bytes; window scale three, and one of padding. SACK-permitted takes two:
        // in the padding of the timestamps, or with two bytes of padding of its own.
        let mut header = self.header + 4;
        if options.window_scale.is_some() {
            flags = flags.with(Flags::WINDOW_SCALE);
            header += 4;
        }
        if options.sack_permitted {
            header += if flags.has(Flags::TIMESTAMPS) { 0 } else { 4 };
            flags = flags.with(Flags::SACK_PERMITTED);
        }
        let window_scale = options.window_scale.unwrap_or(0);
        Self { mss: options.mss, window_scale, flags, header, ..self }
    }

    /// With the Fast Open option, padded: two bytes, and eight of a cookie.
    #[must_use]
    pub fn with_fast_open(mut self, option: FastOpenOption) -> Self {
        let flag = match option {
            FastOpenOption::Request => Flags::COOKIE_REQUEST,
            FastOpenOption::Cookie(Cookie(bits)) => {
                self.sack[0] = (SeqNumber((bits >> 32) as u32), SeqNumber(bits as u32));
                self.header += 8;
                Flags::COOKIE
            }
        };
        Self { flags: self.flags.with(flag), header: self.header + 4, ..self }
    }

    /// The Fast Open option, if present.
    pub fn fast_open(&self) -> Option<FastOpenOption> {
        if self.flags.has(Flags::COOKIE_REQUEST) {
            return Some(FastOpenOption::Request);
        }
        let (high, low) = self.sack[0];
        let bits = u64::from(high.0) << 32 | u64::from(low.0);
        self.flags.has(Flags::COOKIE).then_some(FastOpenOption::Cookie(Cookie(bits)))
    }

    /// With timestamps.
    #[inline]
    #[must_use]
    pub fn with_timestamps(self, timestamps: Timestamps) -> Self {
        let flags = self.flags.with(Flags::TIMESTAMPS);
        Self { timestamps, flags, header: self.header + TIMESTAMPS_OPTION as u8, ..self }
    }

    /// With as many of these SACK blocks as fit: three with timestamps, else four (RFC 2018 §3).
    #[inline]
    #[must_use]
    pub fn with_sack(self, blocks: impl IntoIterator<Item = SackBlock>) -> Self {
        let room = if self.flags.has(Flags::TIMESTAMPS) { 3 } else { 4 };
        let mut sack: [SackBlock; 4] = Default::default();
        let mut count = 0;
        for (place, block) in sack.iter_mut().zip(blocks.into_iter().take(room)) {
            *place = block;
            count += 1;
        }
        self.with_sack_option(sack, count)
    }

    /// With the first `count` of these SACK blocks. The array is copied whole, so that a segment
    /// under construction stays in registers.
    #[inline]
    #[must_use]
    pub(crate) fn with_sack_option(self, sack: [SackBlock; 4], count: usize) -> Self {
        if count == 0 {
            return self;
        }
        let header = self.header + 4 + 8 * count as u8;
        Self { sack, sack_count: SackCount::of(count), header, ..self }
    }

    /// The ICMP notice of a router whose next link has this `mtu`. It quotes as much of the segment
    /// as fits into 576 bytes (RFC 1812 §4.3.2.3) and into `room`, the MTU of the way back
    /// (`icmp_send`).
    #[must_use]
    pub fn frag_needed(&self, mtu: u16, room: u16) -> FragNeeded {
        let header = IP_HEADER + ICMP_HEADER;
        let most = LARGEST_NOTICE.min(room.into());
        let quoted = self.wire_bytes().min(most.saturating_sub(header));
        // No link has an MTU below 68 bytes.
        let wire_bytes = (header + quoted) as u16;
        let &Self { seq, ack, timestamps, window, payload, flags, header, .. } = self;
        let quoted = Quoted { ack, timestamps, window, payload, flags, header };
        FragNeeded { seq, mtu, wire_bytes, is_control: true, quoted }
    }

    /// The timestamps, if present.
    #[inline]
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.flags.has(Flags::TIMESTAMPS).then_some(self.timestamps)
    }

    /// The SACK blocks, the most recent first.
    #[inline]
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..self.sack_count as usize]
    }

    /// The options that the SYN offers.
    pub fn syn_options(&self) -> Option<SynOptions> {
        self.flags.has(Flags::SYN).then_some(SynOptions {
            mss: self.mss,
            window_scale: self.flags.has(Flags::WINDOW_SCALE).then_some(self.window_scale),
            sack_permitted: self.flags.has(Flags::SACK_PERMITTED),
        })
    }

    /// Sequence numbers of the segment: its data, and one each for SYN and FIN.
    #[inline]
    pub fn sequence_length(&self) -> u64 {
        u64::from(self.payload)
            + u64::from(self.flags.has(Flags::SYN))
            + u64::from(self.flags.has(Flags::FIN))
    }

    /// Bytes of headers and options.
    #[inline]
    pub fn header_bytes(&self) -> u32 {
        u32::from(self.header)
    }

    /// Bytes of the whole packet.
    #[inline]
    pub fn wire_bytes(&self) -> u32 {
        u32::from(self.payload) + u32::from(self.header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare() -> Segment {
        Segment::new(Flags::ACK, SeqNumber(1), SeqNumber(1))
    }

    #[test]
    fn segment_leaves_room_for_its_route_position_in_a_cache_line() {
        assert_eq!(size_of::<Segment>(), 60);
    }

    #[test]
    fn wire_bytes_include_ip_tcp_headers_and_padded_options() {
        let timestamps = Timestamps { value: 1, echo: 2 };
        assert_eq!(bare().with_payload(1460).wire_bytes(), 1500);
        assert_eq!(bare().with_timestamps(timestamps).with_payload(1448).wire_bytes(), 1500);
        let blocks = [(SeqNumber(5), SeqNumber(9)); 4];
        // 2 bytes and 8 for each block, padded to a multiple of four.
        assert_eq!(bare().with_sack(blocks).wire_bytes(), 40 + 36);
        let three = bare().with_timestamps(timestamps).with_sack(blocks);
        assert_eq!((three.sack().len(), three.wire_bytes()), (3, 40 + 12 + 28));
        assert_eq!(bare().with_sack([]).wire_bytes(), 40);
    }

    #[test]
    fn a_syn_with_all_options_takes_twenty_bytes_more() {
        let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
        let syn = Segment::new(Flags::SYN, SeqNumber(1), SeqNumber(0));
        let full = syn.with_timestamps(Timestamps::default()).with_syn_options(options);
        assert_eq!(full.wire_bytes(), 60);
        assert_eq!(full.syn_options(), Some(options));
        assert_eq!(syn.with_syn_options(options).wire_bytes(), 40 + 4 + 4 + 4);
    }

    #[test]
    fn frag_needed_quotes_as_much_of_the_packet_as_fits() {
        // RFC 1812 §4.3.2.3: 576 bytes at the most. 20 of IP and 8 of ICMP.
        for (payload, room, bytes) in
            [(1460, 1500, 576), (100, 1500, 20 + 8 + 140), (1460, 552, 552), (100, 68, 68)]
        {
            let segment = bare().with_payload(payload);
            let notice = segment.frag_needed(1400, room);
            assert_eq!((notice.seq, notice.mtu, notice.wire_bytes), (SeqNumber(1), 1400, bytes));
            assert!(notice.is_control);
            assert_eq!(notice.quoted(), segment);
        }
    }

    #[test]
    fn fast_open_cookie_option_takes_ten_bytes_and_padding() {
        let syn = Segment::new(Flags::SYN, SeqNumber(1), SeqNumber(0));
        assert_eq!(syn.fast_open(), None);
        let cookie = FastOpenOption::Cookie(Cookie(0x0123_4567_89ab_cdef));
        for (option, bytes) in [(FastOpenOption::Request, 4), (cookie, 12)] {
            let segment = syn.with_fast_open(option);
            assert_eq!((segment.fast_open(), segment.wire_bytes()), (Some(option), 40 + bytes));
            assert!(segment.sack().is_empty());
        }
    }
}
