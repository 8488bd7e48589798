//! Reassembles fragments by their lengths alone. The transport header in the first fragment applies
//! to the whole packet, which arrives with its last missing fragment.

use super::{Address, Ip, Place};
use std::collections::{BTreeMap, VecDeque};

/// The limit of incomplete packets; beyond it the oldest is discarded.
const MOST: usize = 4096;
/// The bytes kept of a first fragment: the longest transport header.
const HEADERS: usize = 60;

/// Incomplete packets.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: BTreeMap<Key, Waiting>,
    order: VecDeque<Key>,
    given_up: u64,
}

type Key = (Address, Address, u32, u8);

#[derive(Debug, Default)]
struct Waiting {
    /// Bytes received; overlapping fragments count twice.
    bytes: u32,
    /// The total size, once the last fragment is there.
    all: Option<u32>,
    first: Option<([u8; HEADERS], usize)>,
}

impl Fragments {
    /// Adds a fragment. The one that completes a packet returns its headers and the length behind
    /// the IP header.
    pub fn add(&mut self, ip: &Ip<'_>, place: Place) -> Option<(Vec<u8>, u32)> {
        // An IPv6 fragment names the first header behind it, which all fragments share.
        let key = (ip.from, ip.to, place.id, if ip.version == 4 { ip.protocol } else { 0 });
        if !self.waiting.contains_key(&key) {
            if self.order.len() == MOST
                && let Some(oldest) = self.order.pop_front()
                && self.waiting.remove(&oldest).is_some()
            {
                self.given_up += 1;
            }
            self.order.push_back(key);
        }
        let waiting = self.waiting.entry(key).or_default();
        waiting.bytes = waiting.bytes.saturating_add(ip.length);
        if place.from == 0 {
            let mut headers = [0; HEADERS];
            let length = ip.content.len().min(HEADERS);
            headers[..length].copy_from_slice(&ip.content[..length]);
            waiting.first = Some((headers, length));
        }
        if !place.has_more {
            waiting.all = Some(place.from.saturating_add(ip.length));
        }
        let (all, (headers, length)) = waiting.all.zip(waiting.first)?;
        if waiting.bytes < all {
            return None;
        }
        self.waiting.remove(&key);
        Some((headers[..length].to_vec(), all))
    }

    /// The number of packets that stayed incomplete to the end, or for too long.
    pub fn incomplete(&self) -> u64 {
        self.given_up + self.waiting.len() as u64
    }
}
