//! When Linux acknowledges: every segment while the connection begins and while the window opens,
//! then every second; a lone one after a delay that follows the pace of arrivals; duplicates with a
//! little patience, so that several become one.
//!
//! `tcp_event_data_recv`, `__tcp_ack_snd_check`, `tcp_send_delayed_ack`, `tcp_cleanup_rbuf`.

use crate::ecn::Said;
use crate::receiver::Size;
use crate::settings::Settings;
use crate::timer::{InWheel, Place};
use tcplab_units::{Duration, Time};

/// Milliseconds: `TCP_ATO_MIN`, `TCP_DELACK_MAX`.
const ATO_MIN: u64 = 40;
const DELAY_MAX: u64 = 200;
/// How long a delayed ACK may wait at the most where nothing else says so: half a second.
const ATO_MAX: u64 = 500;
/// Quick ACKs for a mark: its sender may have next to no window (`tcp_enter_quickack_mode`).
const MARK_QUICKENS: u32 = 2;
/// Duplicates that are told at once, one by one, and the most that wait for one ACK.
const TOLD_AT_ONCE: u8 = 3;
const MOST_COMPRESSED: u8 = 44;
/// Duplicates wait for 5 % of the RTT, at most a millisecond, and the slack of the timer.
const PATIENCE: Duration = Duration::from_millis(1);
pub(super) const SLACK: Duration = Duration::from_micros(100);

/// The acknowledgments owed to the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinuxDelayedAck {
    /// Delay of lone segments, in milliseconds; 0 before there was any.
    ato: u64,
    last_arrival: u64,
    /// Segments still to be acknowledged at once.
    quick: u32,
    /// Payload bytes of a full segment.
    full: u64,
    /// The answer is to carry the ACK: both ends talk in turn, or the peer has sent its last
    /// (pingpong mode).
    is_interactive: bool,
    /// An ACK is owed.
    scheduled: bool,
    /// When the delay of that is over, in milliseconds of the clock.
    timeout: Option<u64>,
    /// Small or pushed segments that wait for their ACK.
    pushed: u8,
    duplicates_told: u8,
    compressed: u8,
    /// The earliest expiry of the timer of compressed ACKs. The ACK leaves with the next
    /// high-resolution timer after it, at the latest `SLACK` later.
    patient_until: Time,
    /// The ACK that the duplicates wait for.
    compressed_next: u64,
    /// When the last segment came.
    last_segment: Option<Time>,
    /// When the timer of delayed ACKs runs out. An ACK that leaves earlier does not stop it.
    timer: Place,
}

/// A segment with data that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub size: Size,
    /// Payload bytes of a full segment, this one included.
    pub full: u64,
    pub pushed: bool,
    /// In order, and with that of use; otherwise out of order.
    pub in_order: bool,
    pub said: Said,
    /// Data is missing before some that arrived.
    pub has_gap: bool,
    /// SACK blocks report out-of-order data.
    pub has_sack: bool,
    /// The segment forced out the pending compressed ACK (`tcp_sack_new_ofo_skb`).
    pub told: bool,
    /// The last gap was filled by it.
    pub filled: bool,
    /// All that the peer sends has arrived.
    pub finished: bool,
    /// The next offset expected, and the last that was acknowledged.
    pub next: u64,
    pub acked: u64,
    /// The window last offered.
    pub window: u64,
    /// A window as large could be offered now.
    pub holds: bool,
    /// This segment made the window larger.
    pub opened: bool,
    /// Less than half of the buffer is free.
    pub is_short: bool,
    /// When the connection was established.
    pub since: Time,
    /// The RTT as the sending half sees it, the least that any half sees, and the timeout.
    pub srtt: Duration,
    pub rtt: Duration,
    pub rto: Duration,
}

fn clock(now: Time) -> u64 {
    crate::segment::clock(now)
}

impl LinuxDelayedAck {
    /// For a connection that stands since then: pauses count from there
    /// (`tcp_create_openreq_child`).
    pub fn new(since: Time) -> Self {
        Self { last_arrival: clock(since), ..Self::default() }
    }

    /// A segment arrived.
    pub fn note_segment(&mut self, now: Time) {
        self.last_segment = Some(now);
    }

    /// The turn of the timer of delayed ACKs among those that run out now.
    pub fn turn_at(&self, now: Time) -> Option<InWheel> {
        self.timer.turn_at(now)
    }

    /// The place of that timer.
    pub fn place(&mut self) -> &mut Place {
        &mut self.timer
    }

    /// When that runs out.
    #[inline]
    pub fn pending(&self) -> Time {
        self.timer.pending()
    }

    /// No more quick ACKs.
    pub fn end_quickack(&mut self) {
        self.quick = 0;
    }

    /// Whether duplicates wait for their ACK.
    pub fn holds_back(&self) -> bool {
        self.compressed > 0
    }

    /// Until when they wait whatever happens.
    pub fn patient_until(&self) -> Time {
        self.patient_until
    }

    /// Whether the timer of delayed ACKs runs (`ICSK_ACK_TIMER`).
    pub fn is_waiting(&self) -> bool {
        self.timeout.is_some()
    }

    /// When the ACK must have left; `Time::ZERO` is now.
    pub fn on_data(&mut self, now: Time, arrived: Arrived, settings: &Settings) -> Time {
        self.scheduled = true;
        self.full = arrived.full;
        match arrived.size {
            Size::Full => self.pushed = self.pushed.max(u8::from(arrived.pushed)),
            Size::Repeated => {}
            Size::Small => self.pushed = (self.pushed + 1).min(2),
        }
        if arrived.in_order {
            self.adapt(now, arrived, settings);
        }
        if arrived.said.marked && !arrived.told {
            self.on_mark(arrived.window);
        }
        self.quick |= u32::from(arrived.opened);
        self.is_interactive |= arrived.finished;
        if arrived.told {
            self.scheduled = false;
            return Time::NEVER;
        }
        let is_much = arrived.next - arrived.acked > self.full;
        if is_much && arrived.is_short {
            self.quick = 0;
        }
        let is_much = is_much && arrived.holds;
        let is_quick = self.quick > 0 && !self.is_interactive;
        let is_told_at_once = arrived.said.reduced || arrived.said.changed;
        if is_much || is_quick || arrived.filled || is_told_at_once {
            return Time::ZERO;
        }
        if settings.delayed_ack.is_none() || settings.ack_every == 1 {
            return Time::ZERO;
        }
        if !arrived.has_gap {
            return self.delay(now, arrived, settings);
        }
        // Duplicates are counted where there is no SACK, so none is held back.
        if !arrived.has_sack {
            return Time::ZERO;
        }
        self.compress(now, arrived)
    }

    /// The first mark came, or what could not be marked.
    pub fn on_mark(&mut self, window: u64) {
        self.enter_quickack(window, MARK_QUICKENS);
        self.is_interactive = false;
        self.ato = ATO_MIN;
    }

    /// A repair came that was not needed: its sender does not get our ACKs, or not in time. The ACK
    /// for it counts among the quick ones unless an ACK has left since the segment was new
    /// (`tcp_data_queue`, and `tcp_send_dupack` for what is older).
    pub fn on_old(&mut self, recent: bool, window: u64, settings: &Settings) {
        self.enter_quickack(window, settings.quick_ack);
        self.is_interactive = false;
        self.ato = ATO_MIN;
        self.scheduled |= recent;
    }

    fn enter_quickack(&mut self, window: u64, most: u32) {
        let segments = window / (2 * self.full);
        let segments = if segments == 0 { 2 } else { segments }.min(u64::from(most));
        self.quick = self.quick.max(segments as u32);
    }

    fn adapt(&mut self, now: Time, arrived: Arrived, settings: &Settings) {
        let rto = arrived.rto.as_millis();
        if self.ato == 0 {
            self.enter_quickack(arrived.window, settings.quick_ack);
            self.ato = ATO_MIN;
        } else {
            let gap = clock(now) - self.last_arrival;
            if gap <= ATO_MIN / 2 {
                self.ato = (self.ato >> 1) + ATO_MIN / 2;
            } else if gap < self.ato {
                self.ato = ((self.ato >> 1) + gap).min(rto).min(DELAY_MAX);
            } else if gap > rto {
                self.enter_quickack(arrived.window, settings.quick_ack);
            }
        }
        self.last_arrival = clock(now);
    }

    fn delay(&mut self, now: Time, arrived: Arrived, settings: &Settings) -> Time {
        let mut ato = self.ato;
        if ato > ATO_MIN {
            let is_short = self.pushed > 0 || self.is_interactive;
            let mut most = if is_short { DELAY_MAX } else { ATO_MAX };
            if !arrived.srtt.is_zero() {
                most = most.min(arrived.srtt.as_picos().div_ceil(1_000_000_000).max(ATO_MIN));
            }
            ato = ato.min(most);
        }
        // A tick less than the peer's least timeout, which is taken to be ours (`tcp_delack_max`).
        ato = ato.min(DELAY_MAX).min(settings.min_rto.as_millis().max(2) - 1);
        let mut timeout = clock(now) + ato;
        if let Some(earlier) = self.timeout {
            if earlier <= clock(now) + (ato >> 2) {
                return Time::ZERO;
            }
            timeout = timeout.min(earlier);
        }
        self.timeout = Some(timeout);
        self.timer.set(now, Duration::from_millis(timeout - clock(now)), settings)
    }

    /// Several duplicates become one ACK.
    fn compress(&mut self, now: Time, arrived: Arrived) -> Time {
        if self.compressed >= MOST_COMPRESSED {
            return Time::ZERO;
        }
        if self.compressed_next != arrived.next {
            self.compressed_next = arrived.next;
            self.duplicates_told = 0;
        }
        if self.duplicates_told < TOLD_AT_ONCE {
            self.duplicates_told += 1;
            return Time::ZERO;
        }
        if self.compressed == 0 {
            let patience = Duration::from_nanos((arrived.rtt / 20).as_nanos());
            self.patient_until = now + PATIENCE.min(patience);
        }
        self.compressed += 1;
        let due = self.patient_until + SLACK;
        // The timer of delayed ACKs lets go what is held back, whatever it was set for.
        if self.timer.is_ahead(now) { self.timer.out().min(due) } else { due }
    }

    /// The application has read all there is to read. Says whether an ACK is due for it.
    pub fn on_read(&self, next: u64, acked: u64, holds_nothing: bool) -> bool {
        let is_pushed = self.pushed > u8::from(self.is_interactive);
        self.scheduled && (next - acked > self.full || (is_pushed && holds_nothing))
    }

    /// The time that an ACK says it is: one that was held back, when the last segment came.
    pub fn stamp(&self, now: Time) -> Time {
        let is_late = self.compressed > 0 && self.timer.out() != now;
        self.last_segment.filter(|_| is_late).unwrap_or(now)
    }

    /// The delay is over.
    pub fn on_timer(&mut self, now: Time, rto: Duration) {
        if self.timeout.take_if(|timeout| *timeout <= clock(now)).is_some() {
            if self.is_interactive && self.scheduled {
                // No answer came in time to carry it.
                self.is_interactive = false;
                self.ato = ATO_MIN;
            } else {
                self.ato = (self.ato << 1).min(rto.as_millis()).min(DELAY_MAX);
            }
        }
    }

    /// Data left. Soon after some arrived, it is an answer (`tcp_event_data_sent`).
    pub fn on_data_sent(&mut self, now: Time) {
        self.is_interactive |= clock(now) - self.last_arrival < self.ato;
    }

    /// An ACK left, alone or with data.
    pub fn on_sent(&mut self) {
        if self.quick > 0 && self.scheduled {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        self.scheduled = false;
        self.timeout = None;
        self.pushed = 0;
        self.compressed = 0;
    }
}
