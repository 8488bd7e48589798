//! Analyses each TCP connection of a capture.
//!
//! | file | job |
//! |---|---|
//! | `connection` | two sides, the handshake and the close |
//! | `direction` | the data of one side: acknowledged, lost or retransmitted; what the side waits for |
//! | `remote_sender` | ACKs in transit to a sender away from the capture point |
//! | `flight` | data in flight |
//! | `recovery` | why a sender retransmits |
//! | `rtt` | round trips |
//! | `sender_limits` | a sender's time, summed by cause |
//! | `segment` | what connections see of a packet |
//! | `duplicates` | duplicate packets |
//! | `beside` | connections are followed while another thread reads the capture |
//! | `row` | the table of connections |
//! | `packets` | packets of chosen connections, one by one |
//! | `turns` | requests and responses |
//!
//! Memory depends on the number of open connections, not of packets: a closed connection becomes a
//! row.

mod beside;
mod connection;
mod direction;
mod duplicates;
mod flight;
mod packets;
mod recovery;
mod remote_sender;
mod row;
mod rtt;
mod segment;
mod sender_limits;
mod turns;

pub(crate) use beside::{Feed, follow};
pub use packets::{CapturePacketColumns, CapturePacketRow};
pub use row::{CaptureFlowColumns, CaptureFlowRow};
pub use turns::{CaptureTurnColumns, CaptureTurnRow};

use crate::decode::Flags;
use connection::{Connection, Side};
use direction::PacketKind;
use hashbrown::HashTable;
use segment::{Hashes, Segment};
use std::collections::BTreeSet;
use tcplab_tables::Table;

/// How long a closed connection waits for late packets, in nanoseconds.
const LINGER: i64 = 60_000_000_000;
/// The limit of pieces of flights of all connections together: about 200 MB.
const MAX_PIECES: usize = 4 << 20;

/// The default limit of connections followed at once.
pub const MOST_CONNECTIONS: usize = 200_000;

/// Follows the connections of a capture.
pub struct Flows {
    /// The slots of connections, by their endpoints.
    places: HashTable<u32>,
    hashes: Hashes,
    /// The connections followed, and free slots.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The connection that has been silent longest, and the one that has sent last.
    oldest: u32,
    newest: u32,
    most: usize,
    pieces: usize,
    /// The time of the first packet of the capture.
    begin: i64,
    table: Table<CaptureFlowRow>,
    /// The number of the connection in the last row, and whether all rows are in order.
    last_row: u64,
    is_in_order: bool,
    found: Found,
    /// The connections whose packets are reported one by one.
    chosen: BTreeSet<u64>,
    packets: Table<CapturePacketRow>,
    /// `None` if turns are not requested.
    turns: Option<Table<CaptureTurnRow>>,
}

/// The slot of a connection, in a list by the time of the last packet.
struct Slot {
    connection: Box<Connection>,
    before: u32,
    behind: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// The results of a capture's connections.
pub struct FlowTables {
    /// A row for each connection.
    pub flows: Table<CaptureFlowRow>,
    /// A row for each packet of chosen connections.
    pub packets: Table<CapturePacketRow>,
    /// A row for each turn of each connection, if requested.
    pub turns: Table<CaptureTurnRow>,
    /// Defects of the capture that the connections show.
    pub found: Found,
}

/// Defects of a capture that its connections show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Connections.
    pub connections: u64,
    /// Connections with data of which only one side's packets were captured.
    pub one_sided: u64,
    /// Connections dropped because too many were open.
    pub given_up: u64,
    /// Bytes that were sent or acknowledged but are not in the capture.
    pub missing_bytes: u64,
    /// Packets that contain several segments.
    pub oversized: u64,
    /// Duplicate packets.
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
            places: HashTable::new(),
            hashes: Hashes::default(),
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            most: most.clamp(1, NONE as usize - 1),
            pieces: 0,
            begin: 0,
            table: Table::default(),
            last_row: 0,
            is_in_order: true,
            found: Found::default(),
            chosen: BTreeSet::new(),
            packets: Table::default(),
            turns: None,
        }
    }

    /// Also reports each packet of these connections.
    #[must_use]
    pub fn with_packets_of(mut self, chosen: &[u64]) -> Self {
        self.chosen.extend(chosen);
        self
    }

    /// Also reports the turns of all connections.
    #[must_use]
    pub fn with_turns(mut self) -> Self {
        self.turns = Some(Table::default());
        self
    }

    /// The capture begins at this time.
    pub(crate) fn begin(&mut self, time: i64) {
        self.begin = time;
    }

    /// Adds segments.
    pub(crate) fn add(&mut self, segments: &[Segment]) {
        let mut place = segments.first().and_then(|first| self.find(first));
        for (number, segment) in segments.iter().enumerate() {
            // The next one is looked up first: the processor waits for its connection while it
            // handles this one.
            let next = segments.get(number + 1);
            let mut next_place = next.and_then(|next| self.find(next));
            let connections = self.found.connections;
            self.add_to(place, segment);
            if self.found.connections != connections {
                next_place = next.and_then(|next| self.find(next));
            }
            place = next_place;
        }
    }

    /// The connection to which a segment belongs.
    #[inline]
    fn find(&self, segment: &Segment) -> Option<u32> {
        let ends = segment.ends();
        let is_between = |&place: &u32| self.slots[place as usize].connection.is_between(ends);
        self.places.find(segment.hash, is_between).copied()
    }

    /// Adds a segment to its connection, or to a new one.
    #[inline]
    fn add_to(&mut self, mut place: Option<u32>, segment: &Segment) {
        if let Some(there) = place
            && self.slots[there as usize].connection.is_replaced_by(segment)
        {
            self.end(there);
            place = None;
        }
        let place = place.unwrap_or_else(|| self.open(segment));
        self.touch(place);
        let slot = &mut self.slots[place as usize];
        let before = slot.connection.pieces();
        if segment.is_duplicate {
            self.found.duplicates += 1;
            slot.connection.duplicate(segment);
            self.pieces = self.pieces + slot.connection.pieces() - before;
            self.record_packet(place, segment, PacketKind::Copy);
            return;
        }
        let data = slot.connection.data();
        let most = before + MAX_PIECES.saturating_sub(self.pieces);
        let kind = slot.connection.segment(segment, most);
        if slot.connection.is_closed() {
            slot.connection.release();
        }
        self.pieces = self.pieces + slot.connection.pieces() - before;
        self.track_turn(place, data);
        self.record_packet(place, segment, kind);
    }

    /// All connections, in the order of their first packets, and what they show about the capture.
    pub(crate) fn finish(mut self) -> FlowTables {
        while self.oldest != NONE {
            self.end(self.oldest);
        }
        let turns = self.turns.unwrap_or_default();
        let flows = if self.is_in_order { self.table } else { row::in_order(&self.table) };
        FlowTables { flows, packets: self.packets, turns, found: self.found }
    }

    /// Follows the turns of a connection, given its bytes of data before the last packet.
    #[inline]
    fn track_turn(&mut self, place: u32, before: [u64; 2]) {
        let Some(table) = &mut self.turns else { return };
        let connection = &mut self.slots[place as usize].connection;
        let after = connection.data();
        for (side, (before, after)) in
            [Side::Client, Side::Server].into_iter().zip(before.into_iter().zip(after))
        {
            if before < after
                && let Some(over) = connection.turn.data(connection.last, side, after - before)
            {
                over.push(table, connection.number, self.begin);
            }
        }
    }

    /// Records a packet, if its connection is chosen.
    #[inline]
    fn record_packet(&mut self, place: u32, segment: &Segment, kind: PacketKind) {
        if self.chosen.is_empty() {
            return;
        }
        let connection = &self.slots[place as usize].connection;
        if self.chosen.contains(&connection.number) {
            packets::push(&mut self.packets, connection, self.begin, segment, kind);
        }
    }

    fn open(&mut self, segment: &Segment) -> u32 {
        self.retire(segment.time);
        let connection = Connection::new(self.found.connections, segment);
        self.found.connections += 1;
        if !segment.tcp.flags.has(Flags::SYN) {
            self.found.without_handshake += 1;
        }
        let place = if let Some(place) = self.free.pop() {
            *self.slots[place as usize].connection = connection;
            place
        } else {
            let connection = Box::new(connection);
            self.slots.push(Slot { connection, before: NONE, behind: NONE });
            (self.slots.len() - 1) as u32
        };
        let (slots, hashes) = (&self.slots, &self.hashes);
        let rehash = |&place: &u32| hashes.of(slots[place as usize].connection.ends());
        self.places.insert_unique(segment.hash, place, rehash);
        self.append(place);
        place
    }

    /// Ends closed connections among those that have been silent longest, and one more if there are
    /// too many.
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

    /// Turns a connection into a row.
    fn end(&mut self, place: u32) {
        self.unlink(place);
        let connection = &self.slots[place as usize].connection;
        let hash = self.hashes.of(connection.ends());
        if let Ok(entry) = self.places.find_entry(hash, |&other| other == place) {
            entry.remove();
        }
        self.pieces -= connection.pieces();
        let sides = connection.halves.each_ref().map(|half| &half.count);
        self.found.one_sided += u64::from(
            sides.iter().any(|side| side.packets == 0)
                && sides.iter().any(|side| side.segments > 0),
        );
        self.found.missing_bytes += sides.iter().map(|side| side.missing_bytes).sum::<u64>();
        self.found.oversized += sides.iter().map(|side| side.oversized).sum::<u64>();
        self.is_in_order &= self.last_row <= connection.number;
        self.last_row = connection.number;
        row::push(&mut self.table, connection, self.begin);
        if let Some(turns) = &mut self.turns {
            connection.turn.push(turns, connection.number, self.begin);
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
