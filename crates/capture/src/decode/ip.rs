//! IPv4 (RFC 791) with options, IPv6 (RFC 8200) with extension headers.

use super::{short, word};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 or IPv6 address; IPv4 addresses are mapped (RFC 4291 §2.5.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u128);

impl From<Ipv4Addr> for Address {
    fn from(address: Ipv4Addr) -> Self {
        Self(address.to_ipv6_mapped().to_bits())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from_bits(self.0);
        match address.to_ipv4_mapped() {
            Some(address) => address.fmt(f),
            None => address.fmt(f),
        }
    }
}

/// The place of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The offset of its first byte, behind the IP header.
    pub from: u32,
    /// Whether more fragments follow.
    pub has_more: bool,
    /// The identification of the packet.
    pub id: u32,
}

/// The header fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip<'a> {
    /// The source address.
    pub from: Address,
    /// The destination address.
    pub to: Address,
    /// The version: 4 or 6.
    pub version: u8,
    /// The transport protocol.
    pub protocol: u8,
    /// The ECN field.
    pub ecn: u8,
    /// The identification field of IPv4.
    pub id: Option<u16>,
    /// The place of a fragment.
    pub place: Option<Place>,
    /// Bytes behind the header and its extensions, by the header's length field.
    pub length: u32,
    /// The size of the whole packet.
    pub whole: u32,
    /// The captured bytes behind the headers.
    pub content: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Reads a packet of `length` bytes on the wire.
    #[inline]
    pub fn read(bytes: &'a [u8], length: u32) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => Self::read_4(bytes, length),
            6 => Self::read_6(bytes, length),
            _ => None,
        }
    }

    #[inline]
    fn read_4(bytes: &'a [u8], length: u32) -> Option<Self> {
        let header = bytes.first_chunk::<20>()?;
        let header_bytes = usize::from(header[0] & 0xf) * 4;
        if header_bytes < 20 {
            return None;
        }
        // A packet that a network card is to segment may have no length.
        let whole = match short(header, 2)?.into() {
            0 => length,
            whole => whole,
        };
        let place = short(header, 6)?;
        let (has_more, from) = (place & 0x2000 != 0, u32::from(place & 0x1fff) * 8);
        let id = short(header, 4)?;
        let address = |at: usize| Address::from(Ipv4Addr::from_bits(word(header, at).unwrap_or(0)));
        Some(Self {
            from: address(12),
            to: address(16),
            version: 4,
            protocol: header[9],
            ecn: header[1] & 3,
            id: Some(id),
            place: (has_more || from > 0).then_some(Place { from, has_more, id: id.into() }),
            length: whole.checked_sub(header_bytes as u32)?,
            whole,
            content: kept(bytes, header_bytes, whole),
        })
    }

    fn read_6(bytes: &'a [u8], length: u32) -> Option<Self> {
        let header = bytes.first_chunk::<40>()?;
        let whole = match short(header, 4)?.into() {
            // A jumbogram (RFC 2675), or a packet without a length as above.
            0_u32 => length,
            payload => payload + 40,
        };
        let address = |at: usize| {
            let bytes: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes");
            Address(u128::from_be_bytes(bytes))
        };
        let (mut protocol, mut at, mut place) = (header[6], 40_usize, None);
        // Each extension has at least eight bytes, so the loop ends.
        while let Some(extension) = bytes.get(at..at + 8) {
            let bytes = match protocol {
                // Hop-by-hop and destination options, routing, mobility, HIP and shim6.
                0 | 43 | 60 | 135 | 139 | 140 => (usize::from(extension[1]) + 1) * 8,
                // Authentication (RFC 4302 §2.2).
                51 => (usize::from(extension[1]) + 2) * 4,
                44 => {
                    let field = short(extension, 2)?;
                    let (from, has_more) = (u32::from(field & 0xfff8), field & 1 != 0);
                    if from > 0 || has_more {
                        place = Some(Place { from, has_more, id: word(extension, 4)? });
                    }
                    8
                }
                _ => break,
            };
            protocol = extension[0];
            at += bytes;
            // There are no further headers behind that of a later fragment.
            if place.is_some_and(|place| place.from > 0) {
                break;
            }
        }
        Some(Self {
            from: address(8),
            to: address(24),
            version: 6,
            protocol,
            ecn: header[1] >> 4 & 3,
            id: None,
            place,
            length: whole.checked_sub(at as u32)?,
            whole,
            content: kept(bytes, at, whole),
        })
    }
}

/// The captured bytes behind the headers, without the link's padding.
#[inline]
fn kept(bytes: &[u8], from: usize, whole: u32) -> &[u8] {
    let to = bytes.len().min(whole as usize);
    bytes.get(from..to).unwrap_or_default()
}
