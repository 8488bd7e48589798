//! What the coordinators tell the send buffer, and when something left.

use crate::departure::data::Data;
use crate::departure::send_buffer::{SendBuffer, Sizes};
use crate::departure::tso::{MOST_BYTES, least};
use crate::departure::{Departure, Stream, Window};
use crate::settings::Settings;
use std::ops::Range;
use tcplab_units::Time;

/// A call of the application that writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub bytes: u64,
    /// The application does not wait in its calls: with so much that has not left there is no room.
    pub lowat: Option<u64>,
    /// The memory of the host runs short.
    pub is_tight: bool,
    /// Windows of data for which a buffer has room, and the MSS that both ends agreed on.
    pub windows: u64,
    pub agreed_mss: u16,
}

/// The application.
impl Departure {
    /// The application writes from its own memory, not from a file.
    pub fn expect_copied_writes(&mut self) {
        self.copies = true;
    }

    /// Writes into the send buffer up to the next moment at which something is sent. Returns how
    /// many bytes that took.
    pub fn write(
        &mut self,
        call: Call,
        stream: &Stream,
        window: Window,
        settings: &Settings,
    ) -> u64 {
        let Call { bytes, lowat, is_tight, windows, agreed_mss } = call;
        let unsent = stream.unsent();
        let sizes = Sizes {
            packet: packet_bytes(stream),
            half_window: stream.largest_window / 2,
            queued: self.queued_under_way(stream.una < stream.nxt),
        };
        let buffer = self.buffer.get_or_insert_with(|| {
            Box::new(SendBuffer::new(settings, window.cwnd, windows, agreed_mss))
        });
        (buffer.is_tight, buffer.polls) = (is_tight, lowat.is_some());
        buffer.lowat = least(lowat, settings.most_unsent);
        buffer.is_copied = self.copies;
        // Unless the ACK that may have made room found nothing that could leave.
        buffer.signal_write_space_after_ack(window.cwnd, window.has_room(), unsent);
        buffer.poll(unsent);
        let taken = buffer.write(bytes, unsent, sizes);
        if std::mem::take(&mut buffer.is_corked) {
            self.go_on_when_sent();
        }
        taken
    }

    /// A call of the application is not done.
    pub fn is_in_call(&self) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.is_in_call())
    }

    /// The application waits in a call that looks for room as well.
    pub fn look_for_room(&mut self, unsent: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.look(unsent);
        }
    }

    /// The application writes next without having been told of room.
    pub fn try_to_write(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.try_again();
        }
    }

    /// All that an ACK lets go has left: the application may hear of room. Says whether the buffer
    /// was fitted to the window.
    #[inline]
    pub fn signal_write_space_after_ack(&mut self, window: Window, unsent: u64) -> bool {
        let has_room = window.has_room();
        self.buffer.as_mut().is_some_and(|buffer| {
            buffer.signal_write_space_after_ack(window.cwnd, has_room, unsent)
        })
    }

    /// The application waits for room.
    pub fn owes_write_space(&self) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.owes_write_space())
    }

    /// Bytes of memory that written data takes, where a buffer of packets holds it.
    #[inline]
    pub fn memory(&self) -> Option<u64> {
        self.buffer.as_ref().map(|buffer| buffer.used())
    }
}

/// The largest packet that is filled with data written (`tcp_bound_to_half_wnd`).
fn packet_bytes(stream: &Stream) -> u64 {
    let mss = u64::from(stream.mss);
    (MOST_BYTES.min(stream.largest_window / 2) / mss).max(1) * mss
}

/// What leaves.
impl Departure {
    /// Data begins, with this window.
    pub fn begin(&mut self, cwnd: u64, windows: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.begin(cwnd, windows);
        }
    }

    /// The SYN carries `payload` bytes (RFC 7413).
    pub fn begin_with_syn(&mut self, call: Call, cwnd: u64, settings: &Settings) {
        let Call { bytes, windows, agreed_mss, .. } = call;
        let mut buffer = SendBuffer::new(settings, cwnd, windows, agreed_mss);
        buffer.begin_with(bytes);
        self.buffer = Some(Box::new(buffer));
    }

    /// When data, a SYN or a SYN-ACK last left.
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// Data, a SYN or a SYN-ACK leaves.
    #[inline]
    pub fn note_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    /// A segment with data or a FIN leaves: it needs no leave to be small any more.
    #[inline]
    pub fn note_data_sent(&mut self, now: Time) {
        self.last_sent = now;
        self.overrides_silly_window = false;
    }

    /// Any segment leaves, ACKs included.
    #[inline]
    pub fn note_left(&mut self, now: Time) {
        self.last_left = now;
    }

    /// The persist timer ran out: the next segment may be small.
    pub fn probe_closed_window(&mut self) {
        self.overrides_silly_window = true;
        if let Some(buffer) = &mut self.buffer {
            buffer.probe();
        }
    }

    /// The device has transmitted: what was held back goes on.
    pub fn resume(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.go_on();
        }
    }

    /// What came is no reason for data to leave.
    pub fn stay(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.stay();
        }
    }

    /// New data has left, as part of a packet or as a probe.
    #[inline]
    pub fn note_new(&mut self, data: Data) {
        if let Some(buffer) = &mut self.buffer {
            buffer.catch_up(data.start + u64::from(data.payload));
        }
    }

    /// Part of a packet leaves again, as far as `most` bytes. Says whether the receiver's
    /// application is to hear of its end at once.
    pub fn note_again(&mut self, now: Time, range: &Range<u64>, most: u64) -> bool {
        self.buffer.as_mut().is_some_and(|buffer| buffer.again(now, range, most))
    }
}

/// ACKs.
impl Departure {
    /// An ACK came: the application may have room.
    #[inline]
    pub fn look_again(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.look_again();
        }
    }

    /// Data before `una` is acknowledged. Returns where the packet ends that is acknowledged in
    /// part, if one is.
    #[inline]
    pub fn acknowledge(&mut self, una: u64) -> Option<u64> {
        self.buffer.as_mut().and_then(|buffer| buffer.acknowledge(una))
    }

    /// The receiver reports a block.
    pub fn arrived(&mut self, block: &Range<u64>) {
        if let Some(buffer) = &mut self.buffer {
            buffer.arrived(block);
        }
    }

    /// All blocks of an ACK are reported.
    pub fn end_of_blocks(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.end_of_blocks();
        }
    }

    /// What the receiver reported is not believed any more.
    pub fn forget_arrivals(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.forget_arrivals();
        }
    }

    /// Segments may come so much later than others.
    pub fn expect_reordering(&mut self, segments: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.expect_reordering(segments);
        }
    }
}

/// The packets of the send buffer.
impl Departure {
    /// Whether written data is held in packets.
    #[inline]
    pub fn has_packets(&self) -> bool {
        self.buffer.is_some()
    }

    /// Where the packet ends that this place lies in.
    pub fn packet_end(&self, place: u64) -> Option<u64> {
        self.buffer.as_ref().map(|buffer| buffer.packet_end(place))
    }

    /// Where all packets end that have left.
    pub fn packet_ends(&self) -> Vec<u64> {
        self.buffer.as_ref().map_or(Vec::new(), |buffer| buffer.ends())
    }

    /// Whether a packet is just that.
    pub fn is_packet(&self, range: Range<u64>) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.is_packet(range))
    }

    /// Two packets that meet at this place become one.
    pub fn join_at(&mut self, place: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.join_at(place);
        }
    }

    /// Whether the packet that this place lies in was sent again.
    pub fn was_retransmitted(&self, place: u64) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.was_retransmitted(place))
    }

    /// Whether a packet that ends here is marked as pushed.
    pub fn ends_pushed(&self, end: u64) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.is_pushed(end))
    }
}
