//! Delayed ACKs of Linux: quick ACKs for every segment while the connection starts and while the
//! window grows, then one for every second segment; an ACK of a lone segment after a delay (ATO)
//! that adapts to the interval of arrivals; duplicate ACKs compressed, so that several become one.
//!
//! `tcp_event_data_recv`, `__tcp_ack_snd_check`, `tcp_send_delayed_ack`, `tcp_cleanup_rbuf`.

use crate::context::Context;
use crate::ecn::EcnSigns;
use crate::receiver::SizeClass;
use crate::settings::Settings;
use crate::timer::{OrderInWheel, WheelSlot};
use tcplab_units::{Duration, Time};

/// Milliseconds: `TCP_ATO_MIN`, `TCP_DELACK_MAX`.
const ATO_MIN: u64 = 40;
const DELAY_MAX: u64 = 200;
/// The longest delay without a tighter limit: half a second.
const ATO_MAX: u64 = 500;
/// Quick ACKs for an ECN mark: its sender's window may be very small (`tcp_enter_quickack_mode`).
const QUICKACKS_FOR_MARK: u32 = 2;
/// Duplicate ACKs that leave at once, and the most that one compressed ACK replaces
/// (`tcp_comp_sack_nr`).
const DUPLICATES_AT_ONCE: u8 = 3;
const MOST_COMPRESSED: u8 = 44;
/// A compressed ACK waits for 5 % of the RTT and at most a millisecond (`tcp_comp_sack_delay_ns`),
/// plus the slack of its timer (`tcp_comp_sack_slack_ns`).
const MOST_DELAY: Duration = Duration::from_millis(1);
pub(super) const SLACK: Duration = Duration::from_micros(100);

/// The ACK that is owed to the peer (`icsk_ack`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinuxDelayedAck {
    /// Delay of the ACK of a lone segment, in milliseconds; 0 before the first segment.
    ato: u64,
    last_arrival: u64,
    /// Quick ACKs left.
    quick: u32,
    /// Payload bytes of a full segment (`rcv_mss`).
    full: u64,
    /// Pingpong mode: the ACK waits for data that carries it, as both ends send in turn, or the
    /// peer has sent its FIN.
    is_pingpong: bool,
    /// An ACK is scheduled (`ICSK_ACK_SCHED`).
    scheduled: bool,
    /// When its delay ends, in milliseconds of the clock.
    timeout: Option<u64>,
    /// Small or pushed segments that are not acknowledged (`ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u8,
    dup_acks_sent: u8,
    compressed: u8,
    /// When the timer of compressed ACKs expires at the earliest. The ACK leaves with the next
    /// high-resolution timer after that, at the latest `SLACK` later.
    compressed_until: Time,
    /// RCV.NXT of the compressed duplicate ACKs.
    compressed_next: u64,
    /// When the last segment arrived.
    last_segment: Option<Time>,
    /// The delayed-ACK timer. An ACK that leaves earlier does not stop it.
    timer: WheelSlot,
}

/// A received data segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub size: SizeClass,
    /// Payload bytes of a full segment, with this segment taken into account.
    pub full: u64,
    pub pushed: bool,
    /// The segment was in order and carried new data.
    pub in_order: bool,
    pub ecn_signs: EcnSigns,
    /// Data is missing before data that was received.
    pub has_gap: bool,
    /// SACK blocks report out-of-order data.
    pub has_sack: bool,
    /// The segment forced out the pending compressed ACK (`tcp_sack_new_ofo_skb`).
    pub flushed_ack: bool,
    /// The segment filled the last gap.
    pub fills_gap: bool,
    /// The peer's FIN has been received in order.
    pub finished: bool,
    /// RCV.NXT, and the last acknowledgment sent.
    pub next: u64,
    pub acked: u64,
    /// The window last offered.
    pub window: u64,
    /// A window as large as that could be offered now.
    pub can_repeat_window: bool,
    /// The segment made the window grow.
    pub opened: bool,
    /// Less than half of the receive buffer is free.
    pub is_short: bool,
    /// When the connection was established.
    pub since: Time,
    /// The sender's smoothed RTT, the smaller RTT of both halves, and the RTO.
    pub srtt: Duration,
    pub rtt: Duration,
    pub rto: Duration,
}

fn clock(now: Time) -> u64 {
    crate::segment::clock(now)
}

impl LinuxDelayedAck {
    /// The state of a connection that was established at `since`, from when on gaps between
    /// arrivals count (`tcp_create_openreq_child`).
    pub fn new(since: Time) -> Self {
        Self { last_arrival: clock(since), ..Self::default() }
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, now: Time) {
        self.last_segment = Some(now);
    }

    /// The delayed-ACK timer's position among the kernel's timers that expire now.
    pub fn expiry_order(&self, now: Time) -> Option<OrderInWheel> {
        self.timer.expiry_order(now)
    }

    /// The delayed-ACK timer's slot in the wheel.
    pub fn slot(&mut self) -> &mut WheelSlot {
        &mut self.timer
    }

    /// When the delayed-ACK timer expires.
    #[inline]
    pub fn pending(&self) -> Time {
        self.timer.pending()
    }

    /// Quick ACKs end.
    pub fn end_quickack(&mut self) {
        self.quick = 0;
    }

    /// Whether a compressed ACK is waiting.
    pub fn is_compressing(&self) -> bool {
        self.compressed > 0
    }

    /// When the compressed ACK may leave at the earliest.
    pub fn compressed_until(&self) -> Time {
        self.compressed_until
    }

    /// Whether the delayed-ACK timer is needed (`ICSK_ACK_TIMER`).
    pub fn is_waiting(&self) -> bool {
        self.timeout.is_some()
    }

    /// Data arrived: returns when the ACK leaves at the latest; `Time::ZERO` is now
    /// (`__tcp_ack_snd_check`).
    pub fn on_data(&mut self, context: Context<'_>, arrived: Arrived) -> Time {
        let Context { now, settings } = context;
        self.scheduled = true;
        self.full = arrived.full;
        match arrived.size {
            SizeClass::Full => self.pushed = self.pushed.max(u8::from(arrived.pushed)),
            SizeClass::Repeated => {}
            SizeClass::Small => self.pushed = (self.pushed + 1).min(2),
        }
        if arrived.in_order {
            self.update_ato(context, arrived);
        }
        if arrived.ecn_signs.marked && !arrived.flushed_ack {
            self.on_ce_mark(arrived.window);
        }
        self.quick |= u32::from(arrived.opened);
        self.is_pingpong |= arrived.finished;
        if arrived.flushed_ack {
            self.scheduled = false;
            return Time::NEVER;
        }
        let is_much = arrived.next - arrived.acked > self.full;
        if is_much && arrived.is_short {
            self.quick = 0;
        }
        let is_much = is_much && arrived.can_repeat_window;
        let is_quick = self.quick > 0 && !self.is_pingpong;
        let must_echo_now = arrived.ecn_signs.reduced || arrived.ecn_signs.changed;
        if is_much || is_quick || arrived.fills_gap || must_echo_now {
            return Time::ZERO;
        }
        if settings.delayed_ack.is_none() || settings.ack_every == 1 {
            return Time::ZERO;
        }
        if !arrived.has_gap {
            return self.delay(context, arrived);
        }
        // Without SACK the sender counts duplicate ACKs, so none is compressed.
        if !arrived.has_sack {
            return Time::ZERO;
        }
        self.compress(now, arrived)
    }

    /// A CE mark arrived, or data that is not ECN-capable (`tcp_enter_quickack_mode`).
    pub fn on_ce_mark(&mut self, window: u64) {
        self.enter_quickack(window, QUICKACKS_FOR_MARK);
        self.is_pingpong = false;
        self.ato = ATO_MIN;
    }

    /// A spurious retransmission arrived: its sender does not get our ACKs in time. The ACK for it
    /// counts as a quick ACK, unless an ACK has left since the data was new (`tcp_data_queue`, and
    /// `tcp_send_dupack` for older data).
    pub fn on_old_data(&mut self, recent: bool, window: u64, settings: &Settings) {
        self.enter_quickack(window, settings.quick_ack);
        self.is_pingpong = false;
        self.ato = ATO_MIN;
        self.scheduled |= recent;
    }

    /// Starts quick ACKs (`tcp_incr_quickack`).
    fn enter_quickack(&mut self, window: u64, most: u32) {
        let segments = window / (2 * self.full);
        let segments = if segments == 0 { 2 } else { segments }.min(u64::from(most));
        self.quick = self.quick.max(segments as u32);
    }

    /// Adapts the ATO to the interval of arrivals (`tcp_event_data_recv`).
    fn update_ato(&mut self, context: Context<'_>, arrived: Arrived) {
        let Context { now, settings } = context;
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

    /// Schedules a delayed ACK (`tcp_send_delayed_ack`).
    fn delay(&mut self, context: Context<'_>, arrived: Arrived) -> Time {
        let Context { now, settings } = context;
        let mut ato = self.ato;
        if ato > ATO_MIN {
            let is_short = self.pushed > 0 || self.is_pingpong;
            let mut most = if is_short { DELAY_MAX } else { ATO_MAX };
            if !arrived.srtt.is_zero() {
                most = most.min(arrived.srtt.as_picos().div_ceil(1_000_000_000).max(ATO_MIN));
            }
            ato = ato.min(most);
        }
        // A tick less than the peer's minimum RTO, which is assumed to equal ours
        // (`tcp_delack_max`).
        ato = ato.min(DELAY_MAX).min(settings.min_rto.as_millis().max(2) - 1);
        let mut timeout = clock(now) + ato;
        if let Some(earlier) = self.timeout {
            if earlier <= clock(now) + (ato >> 2) {
                return Time::ZERO;
            }
            timeout = timeout.min(earlier);
        }
        self.timeout = Some(timeout);
        self.timer.set(context, Duration::from_millis(timeout - clock(now)))
    }

    /// Compresses duplicate ACKs into one.
    fn compress(&mut self, now: Time, arrived: Arrived) -> Time {
        if self.compressed >= MOST_COMPRESSED {
            return Time::ZERO;
        }
        if self.compressed_next != arrived.next {
            self.compressed_next = arrived.next;
            self.dup_acks_sent = 0;
        }
        if self.dup_acks_sent < DUPLICATES_AT_ONCE {
            self.dup_acks_sent += 1;
            return Time::ZERO;
        }
        if self.compressed == 0 {
            let request = Duration::from_nanos((arrived.rtt / 20).as_nanos());
            self.compressed_until = now + MOST_DELAY.min(request);
        }
        self.compressed += 1;
        let due = self.compressed_until + SLACK;
        // The delayed-ACK timer also sends the compressed ACK.
        if self.timer.expires_after(now) { self.timer.expires().min(due) } else { due }
    }

    /// The application has read everything. Returns whether an ACK is due for it
    /// (`tcp_cleanup_rbuf`).
    pub fn on_read(&self, next: u64, acked: u64, holds_nothing: bool) -> bool {
        let is_pushed = self.pushed > u8::from(self.is_pingpong);
        self.scheduled && (next - acked > self.full || (is_pushed && holds_nothing))
    }

    /// The time in an ACK's timestamps option: of a compressed ACK, when the last segment arrived.
    pub fn timestamp_clock(&self, now: Time) -> Time {
        let is_late = self.compressed > 0 && self.timer.expires() != now;
        self.last_segment.filter(|_| is_late).unwrap_or(now)
    }

    /// The delay is over (`tcp_delack_timer_handler`).
    pub fn on_timer(&mut self, now: Time, rto: Duration) {
        if self.timeout.take_if(|timeout| *timeout <= clock(now)).is_some() {
            if self.is_pingpong && self.scheduled {
                // No data came in time to carry the ACK.
                self.is_pingpong = false;
                self.ato = ATO_MIN;
            } else {
                self.ato = (self.ato << 1).min(rto.as_millis()).min(DELAY_MAX);
            }
        }
    }

    /// Data left. Soon after an arrival, it starts pingpong mode (`tcp_event_data_sent`).
    pub fn on_data_sent(&mut self, now: Time) {
        self.is_pingpong |= clock(now) - self.last_arrival < self.ato;
    }

    /// An ACK left, alone or with data.
    pub fn on_ack_sent(&mut self) {
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
