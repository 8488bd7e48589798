//! The coordinators' calls of the send buffer, and the times of departures.

use crate::departure::data::Data;
use crate::departure::send_buffer::{SendBuffer, Sizes};
use crate::departure::tso::{MOST_BYTES, min_limit};
use crate::departure::{Departure, Stream, Window};
use crate::settings::Settings;
use std::ops::Range;
use tcplab_units::Time;

/// A write of the application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteCall {
    pub bytes: u64,
    /// For a nonblocking application: with this many unsent bytes there is no room
    /// (`TCP_NOTSENT_LOWAT`).
    pub lowat: Option<u64>,
    /// The host's memory is above `tcp_mem[0]`: the buffer does not grow.
    pub is_above_low: bool,
    /// Congestion windows of data that the buffer holds, and the agreed MSS.
    pub windows: u64,
    pub agreed_mss: u16,
}

/// The application.
impl Departure {
    /// The application writes from its own memory, not from a file.
    pub fn expect_copied_writes(&mut self) {
        self.copies = true;
    }

    /// The application writes into the send buffer, up to the next moment at which something is
    /// sent. Returns the number of bytes taken.
    pub fn write(
        &mut self,
        call: WriteCall,
        stream: &Stream,
        window: Window,
        settings: &Settings,
    ) -> u64 {
        let WriteCall { bytes, lowat, is_above_low, windows, agreed_mss } = call;
        let unsent = stream.unsent();
        let sizes = Sizes {
            packet: packet_bytes(stream),
            half_window: stream.largest_window / 2,
            queued: self.queued_under_way(stream.una < stream.nxt),
        };
        let buffer = self.buffer.get_or_insert_with(|| {
            Box::new(SendBuffer::new(settings, window.cwnd, windows, agreed_mss))
        });
        (buffer.is_above_low, buffer.is_nonblocking) = (is_above_low, lowat.is_some());
        buffer.lowat = min_limit(lowat, settings.most_unsent);
        buffer.is_copied = self.copies;
        // If the last ACK made room but let no data leave, write space is signalled now.
        buffer.signal_write_space_after_ack(window.cwnd, window.has_room(), unsent);
        buffer.poll_write_space(unsent);
        let taken = buffer.write(bytes, unsent, sizes);
        if std::mem::take(&mut buffer.is_autocorked) {
            self.resume_on_tx_completion();
        }
        taken
    }

    /// Whether a write of the application is unfinished.
    pub fn is_in_call(&self) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.is_in_call())
    }

    /// The application waits in a call that also checks for buffer space.
    pub fn on_poll(&mut self, unsent: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.on_poll(unsent);
        }
    }

    /// The application writes next without a signal of buffer space.
    pub fn wake_writer(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.wake_writer();
        }
    }

    /// Everything that an ACK lets go has left: signals write space, if there is enough. Returns
    /// whether the buffer was fitted to the window.
    #[inline]
    pub fn signal_write_space_after_ack(&mut self, window: Window, unsent: u64) -> bool {
        let has_room = window.has_room();
        self.buffer.as_mut().is_some_and(|buffer| {
            buffer.signal_write_space_after_ack(window.cwnd, has_room, unsent)
        })
    }

    /// Whether the application waits for write space.
    pub fn owes_write_space(&self) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.owes_write_space())
    }

    /// Bytes of memory that written data occupies, if there is a send buffer of packets.
    #[inline]
    pub fn memory(&self) -> Option<u64> {
        self.buffer.as_ref().map(|buffer| buffer.used())
    }
}

/// The largest packet to be filled with written data (`tcp_bound_to_half_wnd`).
fn packet_bytes(stream: &Stream) -> u64 {
    let mss = u64::from(stream.mss);
    (MOST_BYTES.min(stream.largest_window / 2) / mss).max(1) * mss
}

/// Departures.
impl Departure {
    /// Data begins, with this congestion window (`tcp_init_buffer_space`).
    pub fn init_buffer_space(&mut self, cwnd: u64, windows: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.init_buffer_space(cwnd, windows);
        }
    }

    /// The SYN carries `payload` bytes (RFC 7413).
    pub fn begin_with_syn(&mut self, call: WriteCall, cwnd: u64, settings: &Settings) {
        let WriteCall { bytes, windows, agreed_mss, .. } = call;
        let mut buffer = SendBuffer::new(settings, cwnd, windows, agreed_mss);
        buffer.begin_with_syn(bytes);
        self.buffer = Some(Box::new(buffer));
    }

    /// When data, a SYN or a SYN-ACK last left.
    pub fn last_data_sent(&self) -> Time {
        self.last_data_sent
    }

    /// Data, a SYN or a SYN-ACK leaves.
    #[inline]
    pub fn note_sent(&mut self, now: Time) {
        self.last_data_sent = now;
    }

    /// A segment with data or a FIN leaves. Permission for a small segment ends with it.
    #[inline]
    pub fn note_data_sent(&mut self, now: Time) {
        self.last_data_sent = now;
        self.overrides_silly_window = false;
    }

    /// Any segment leaves, a pure ACK included.
    #[inline]
    pub fn note_segment_sent(&mut self, now: Time) {
        self.last_segment_sent = now;
    }

    /// The persist timer expired: the next segment may be small.
    pub fn probe_closed_window(&mut self) {
        self.overrides_silly_window = true;
        if let Some(buffer) = &mut self.buffer {
            buffer.probe();
        }
    }

    /// The device has transmitted: throttled data continues.
    pub fn resume(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.resume();
        }
    }

    /// The present event is no reason to send data.
    pub fn suppress_sending(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.suppress_sending();
        }
    }

    /// New data has left, in a packet or as a probe.
    #[inline]
    pub fn note_new(&mut self, data: Data) {
        if let Some(buffer) = &mut self.buffer {
            buffer.mark_sent_up_to(data.start + u64::from(data.payload));
        }
    }

    /// Part of a packet is retransmitted, in a burst of at most `most` bytes. Returns whether the
    /// segment is pushed.
    pub fn note_retransmission(&mut self, now: Time, range: &Range<u64>, most: u64) -> bool {
        self.buffer.as_mut().is_some_and(|buffer| buffer.retransmit(now, range, most))
    }
}

/// ACKs.
impl Departure {
    /// An ACK arrived: data may leave, and the application may get write space.
    #[inline]
    pub fn on_ack_received(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.on_ack_received();
        }
    }

    /// Data below `una` is acknowledged. Returns the end of a packet that is partly acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, una: u64) -> Option<u64> {
        self.buffer.as_mut().and_then(|buffer| buffer.acknowledge(una))
    }

    /// A SACK block arrived.
    pub fn on_sack_block(&mut self, block: &Range<u64>) {
        if let Some(buffer) = &mut self.buffer {
            buffer.on_sack_block(block);
        }
    }

    /// All SACK blocks of an ACK are processed.
    pub fn end_of_blocks(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.end_of_blocks();
        }
    }

    /// Discards all SACK information, after reneging.
    pub fn forget_sacks(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.forget_sacks();
        }
    }

    /// Sets the reordering degree in segments.
    pub fn expect_reordering(&mut self, segments: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.expect_reordering(segments);
        }
    }
}

/// The packets of the send buffer.
impl Departure {
    /// Whether a send buffer holds written data in packets.
    #[inline]
    pub fn has_packets(&self) -> bool {
        self.buffer.is_some()
    }

    /// The end of the packet that contains this offset.
    pub fn packet_end(&self, place: u64) -> Option<u64> {
        self.buffer.as_ref().map(|buffer| buffer.packet_end(place))
    }

    /// The ends of all packets that have left.
    pub fn packet_ends(&self) -> Vec<u64> {
        self.buffer.as_ref().map_or(Vec::new(), |buffer| buffer.ends())
    }

    /// Whether one packet consists of exactly this range.
    pub fn is_packet(&self, range: Range<u64>) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.is_packet(range))
    }

    /// Joins the two packets that meet at this offset.
    pub fn join_at(&mut self, place: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.join_at(place);
        }
    }

    /// Whether the packet that contains this offset was retransmitted.
    pub fn was_retransmitted(&self, place: u64) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.was_retransmitted(place))
    }

    /// Whether a packet that ends here is pushed.
    pub fn ends_pushed(&self, end: u64) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.is_pushed(end))
    }
}
