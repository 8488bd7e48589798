//! Puts fragments together, by their lengths alone: what the first of them says of its transport holds
//! for the whole packet, which arrives with the last that was missing.

use super::{Address, Ip, Place};
use std::collections::{BTreeMap, VecDeque};

/// Packets that wait for fragments; beyond, the oldest is given up.
const MOST: usize = 4096;
/// As much of the first fragment as headers of a transport can have.
const HEADERS: usize = 60;

/// Packets of which fragments are missing.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: BTreeMap<Key, Waiting>,
    order: VecDeque<Key>,
    given_up: u64,
}

type Key = (Address, Address, u32, u8);

#[derive(Debug, Default)]
struct Waiting {
    /// Bytes that are there; fragments that overlap count twice.
    bytes: u32,
    /// All bytes, once the last fragment is there.
    all: Option<u32>,
    first: Option<([u8; HEADERS], usize)>,
}

impl Fragments {
    /// A fragment: with the last one missing, the headers and the length of what is behind IP.
    pub fn add(&mut self, ip: &Ip<'_>, place: Place) -> Option<(Vec<u8>, u32)> {
        // A fragment of IPv6 names the protocol of the first header behind it, all of them the same.
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

    /// Packets of which fragments were missing to the end, or for too long.
    pub fn incomplete(&self) -> u64 {
        self.given_up + self.waiting.len() as u64
    }
}
