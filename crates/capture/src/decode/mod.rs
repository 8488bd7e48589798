//! Decodes the packet headers that matter for performance.
//!
//! | file | job |
//! |---|---|
//! | `link` | finds the IP packet behind the link headers |
//! | `ip` | IPv4 with options, IPv6 with extension headers, fragments |
//! | `fragments` | reassembles fragments by their lengths |
//! | `tcp` | the TCP header and its options |

mod fragments;
mod ip;
mod link;
mod tcp;

pub use fragments::Fragments;
pub use ip::{Address, Ip, Place};
pub use link::{Inner, inner};
pub use tcp::{Flags, Options, SackBlock, Tcp};

/// IP protocol numbers (IANA).
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// A 16-bit field of a header.
#[inline]
fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A 32-bit field of a header.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
