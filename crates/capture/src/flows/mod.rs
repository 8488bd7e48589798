//! What happened to each TCP connection of a capture.
//!
//! | file | job |
//! |---|---|
//! | `connection` | two sides, the handshake and the close |
//! | `direction` | what one side sent, and what became of it |
//! | `away` | what a sender knows that is away from the capture |
//! | `flight` | what is sent and not acknowledged |
//! | `repair` | why a sender sends again |
//! | `rtt` | round trips |
//! | `sender_limits` | what a sender's time went by |
//! | `duplicates` | packets that are there twice |
//! | `row` | the table |
//! | `packets` | packets of chosen connections, one by one |
//! | `turns` | requests and answers |
//!
//! Memory depends on the connections that are open, not on the packets: one that is over becomes a row.

mod away;
mod connection;
mod direction;
mod duplicates;
mod flight;
mod packets;
mod repair;
mod row;
mod rtt;
mod sender_limits;
mod turns;

pub use packets::{CapturePacketColumns, CapturePacketRow};
pub use row::{CaptureFlowColumns, CaptureFlowRow};
pub use turns::{CaptureTurnColumns, CaptureTurnRow};

use crate::decode::{Address, Flags, Ip, Tcp};
use connection::{Connection, Side};
use direction::Kind;
use duplicates::Twice;
use std::collections::BTreeSet;
use tcplab_tables::Table;

/// How long after its end a connection waits for late packets, in nanoseconds.
const LINGER: i64 = 60_000_000_000;
/// Pieces of flights that all connections together may have: about 200 MB.
const MOST_PIECES: usize = 4 << 20;

/// Connections that are followed at once, unless another number is asked for.
pub const MOST_CONNECTIONS: usize = 200_000;

/// The ends of a connection, the smaller first.
type Key = ((Address, u16), (Address, u16));

/// Where connections are by their ends. Each table has a seed of its own, so that no capture can be made
/// whose connections all have the same hash.
#[expect(clippy::disallowed_types, reason = "asked by key, never gone through")]
type Places = std::collections::HashMap<Key, u32, foldhash::fast::RandomState>;

/// Follows the connections of a capture.
pub struct Flows {
    places: Places,
    /// The connections that are followed, and free places.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The connection that has been silent longest, and the one that has sent last.
    oldest: u32,
    newest: u32,
    most: usize,
    pieces: usize,
    twice: Twice,
    begin: Option<i64>,
    table: Table<CaptureFlowRow>,
    found: Found,
    /// The connections whose packets are told one by one.
    chosen: BTreeSet<u64>,
    packets: Table<CapturePacketRow>,
    /// Nothing if turns are not asked for.
    turns: Option<Table<CaptureTurnRow>>,
}

/// A place for a connection, in a list by the time of the last packet.
struct Slot {
    connection: Box<Connection>,
    before: u32,
    behind: u32,
}

/// No place.
const NONE: u32 = u32::MAX;

/// What there is to tell of the connections of a capture.
pub struct Told {
    /// A row for each connection.
    pub flows: Table<CaptureFlowRow>,
    /// A row for each packet of those that were chosen.
    pub packets: Table<CapturePacketRow>,
    /// A row for each turn of each connection, if they were asked for.
    pub turns: Table<CaptureTurnRow>,
    /// What they say about the capture.
    pub found: Found,
}

/// What the connections of a capture say about the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Connections.
    pub connections: u64,
    /// Connections of which packets of one side alone were captured, though there was data.
    pub one_sided: u64,
    /// Connections that were given up because too many were open.
    pub given_up: u64,
    /// Bytes that were sent or acknowledged, and are not in the capture.
    pub missing_bytes: u64,
    /// Packets that hold several segments.
    pub oversized: u64,
    /// Packets that are there twice.
    pub duplicates: u64,
    /// Connections whose handshake is not in the capture.
    pub without_handshake: u64,
}

impl Default for Flows {
    fn default() -> Self {
        Self::new(MOST_CONNECTIONS)
    }
}

impl Flows {
    /// Follows at most this many connections at once.
    pub fn new(most: usize) -> Self {
        Self {
            places: Places::default(),
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            most: most.clamp(1, NONE as usize - 1),
            pieces: 0,
            twice: Twice::default(),
            begin: None,
            table: Table::default(),
            found: Found::default(),
            chosen: BTreeSet::new(),
            packets: Table::default(),
            turns: None,
        }
    }

    /// Tells of each packet of these connections too.
    #[must_use]
    pub fn with_packets_of(mut self, chosen: &[u64]) -> Self {
        self.chosen.extend(chosen);
        self
    }

    /// Tells of the turns of all connections too.
    #[must_use]
    pub fn with_turns(mut self) -> Self {
        self.turns = Some(Table::default());
        self
    }

    /// The capture has so many interfaces, as far as is known.
    #[inline]
    pub fn at_interfaces(&mut self, number: usize) {
        if number > 1 {
            self.twice.expect_several();
        }
    }

    /// The capture begins.
    pub fn begin(&mut self, time: i64) {
        self.begin.get_or_insert(time);
    }

    /// A segment, captured at `time` on an interface, in a frame of so many bytes.
    pub fn add(&mut self, time: i64, interface: u32, ip: &Ip<'_>, tcp: &Tcp, wire_bytes: u32) {
        self.begin(time);
        let (from, to) = ((ip.from, tcp.from), (ip.to, tcp.to));
        let key = if from <= to { (from, to) } else { (to, from) };
        let mut place = self.places.get(&key).copied();
        if let Some(there) = place
            && self.slots[there as usize].connection.is_over_with(ip, tcp)
        {
            self.end(there);
            place = None;
        }
        let place = place.unwrap_or_else(|| self.open(key, time, ip, tcp));
        self.touch(place);
        let slot = &mut self.slots[place as usize];
        if self.twice.has_seen(time, interface, ip, tcp) {
            self.found.duplicates += 1;
            let before = slot.connection.pieces();
            slot.connection.duplicate((time, interface), ip, tcp, wire_bytes);
            self.pieces = self.pieces + slot.connection.pieces() - before;
            self.tell(place, time, ip, tcp, Kind::Copy);
            return;
        }
        let data = slot.connection.data();
        let before = slot.connection.pieces();
        let most = before + MOST_PIECES.saturating_sub(self.pieces);
        let kind = slot.connection.segment((time, interface), ip, tcp, wire_bytes, most);
        self.pieces = self.pieces + slot.connection.pieces() - before;
        self.turn(place, data);
        self.tell(place, time, ip, tcp, kind);
    }

    /// All connections, in the order of their first packets, and what they say about the capture.
    pub fn finish(mut self) -> Told {
        while self.oldest != NONE {
            self.end(self.oldest);
        }
        let turns = self.turns.unwrap_or_default();
        Told { flows: self.table, packets: self.packets, turns, found: self.found }
    }

    /// Follows the turns of a connection, which had so many bytes of data before the last packet.
    #[inline]
    fn turn(&mut self, place: u32, before: [u64; 2]) {
        let Some(table) = &mut self.turns else { return };
        let connection = &mut self.slots[place as usize].connection;
        let after = connection.data();
        for (side, (before, after)) in
            [Side::Client, Side::Server].into_iter().zip(before.into_iter().zip(after))
        {
            if before < after
                && let Some(over) = connection.turn.data(connection.last, side, after - before)
            {
                over.push(table, connection.number, self.begin.unwrap_or(0));
            }
        }
    }

    /// Writes a packet down, if its connection is one of those that are chosen.
    #[inline]
    fn tell(&mut self, place: u32, time: i64, ip: &Ip<'_>, tcp: &Tcp, kind: Kind) {
        if self.chosen.is_empty() {
            return;
        }
        let connection = &self.slots[place as usize].connection;
        if self.chosen.contains(&connection.number) {
            let time = time - self.begin.unwrap_or(time);
            packets::push(&mut self.packets, connection, time, ip, tcp, kind);
        }
    }

    fn open(&mut self, key: Key, time: i64, ip: &Ip<'_>, tcp: &Tcp) -> u32 {
        self.retire(time);
        let connection = Box::new(Connection::new(self.found.connections, time, ip, tcp));
        self.found.connections += 1;
        if !tcp.flags.has(Flags::SYN) {
            self.found.without_handshake += 1;
        }
        let slot = Slot { connection, before: NONE, behind: NONE };
        let place = if let Some(place) = self.free.pop() {
            self.slots[place as usize] = slot;
            place
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        self.places.insert(key, place);
        self.append(place);
        place
    }

    /// Ends connections that are over, as far as they are those that have been silent longest, and one more
    /// if there are too many.
    fn retire(&mut self, now: i64) {
        while self.oldest != NONE {
            let connection = &self.slots[self.oldest as usize].connection;
            let is_over = connection.is_closed() && now - connection.last > LINGER;
            let is_full = self.places.len() >= self.most;
            if is_full && !connection.is_closed() {
                self.found.given_up += 1;
            }
            if !is_over && !is_full {
                break;
            }
            self.end(self.oldest);
        }
    }

    /// A connection becomes a row.
    fn end(&mut self, place: u32) {
        self.unlink(place);
        let connection = &self.slots[place as usize].connection;
        let (from, to) = (connection.client, connection.server);
        self.places.remove(&if from <= to { (from, to) } else { (to, from) });
        self.pieces -= connection.pieces();
        let sides = connection.halves.each_ref().map(|half| &half.count);
        self.found.one_sided += u64::from(
            sides.iter().any(|side| side.packets == 0)
                && sides.iter().any(|side| side.segments > 0),
        );
        self.found.missing_bytes += sides.iter().map(|side| side.missing_bytes).sum::<u64>();
        self.found.oversized += sides.iter().map(|side| side.oversized).sum::<u64>();
        row::push(&mut self.table, connection, self.begin.unwrap_or(0));
        if let Some(turns) = &mut self.turns {
            connection.turn.push(turns, connection.number, self.begin.unwrap_or(0));
        }
        self.free.push(place);
    }

    fn touch(&mut self, place: u32) {
        if self.newest != place {
            self.unlink(place);
            self.append(place);
        }
    }

    fn append(&mut self, place: u32) {
        let newest = std::mem::replace(&mut self.newest, place);
        match self.slots.get_mut(newest as usize) {
            Some(slot) => slot.behind = place,
            None => self.oldest = place,
        }
        let slot = &mut self.slots[place as usize];
        (slot.before, slot.behind) = (newest, NONE);
    }

    fn unlink(&mut self, place: u32) {
        let Slot { before, behind, .. } = self.slots[place as usize];
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.behind = behind,
            None => self.oldest = behind,
        }
        match self.slots.get_mut(behind as usize) {
            Some(slot) => slot.before = before,
            None => self.newest = before,
        }
    }
}
