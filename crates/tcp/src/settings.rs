//! What an endpoint is told: options, limits and timers. The defaults are those of the RFCs.

pub(crate) use jiffies::Expiry;
use tcplab_cc::Flavour;
use tcplab_units::{Duration, Rate, Time};

/// How much window growth an ACK is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCounting {
    /// One segment, however much it acknowledges (RFC 5681 §3.1 as most stacks of its day).
    PerAck,
    /// One segment for each one delivered, as in Linux.
    PerSegment,
    /// One segment for each MSS acknowledged, at most `limit` segments an ACK in slow start
    /// (RFC 3465).
    PerByte {
        /// L of RFC 3465 §2.3.
        limit: u32,
    },
}

/// How losses are repaired without SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// The last duplicate ACK needed does what the timer would do, without waiting for it: slow start
    /// from one segment (Jacobson, 1988).
    Tahoe,
    /// Fast recovery, which ends with the first ACK of new data (RFC 2581 §3.2).
    Reno,
    /// Fast recovery until all is acknowledged that was outstanding; of the partial ACKs the first
    /// restarts the timer (RFC 6582 §3.2; "impatient" in RFC 3782 §4).
    NewReno,
    /// The same, but every partial ACK restarts the timer ("slow but steady" in RFC 3782 §4).
    NewRenoSteady,
}

/// How a window gets smaller when a loss is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// At once (RFC 5681, RFC 6675).
    AtOnce,
    /// By rate halving, as in Linux until 3.1.
    Halving,
    /// By proportional rate reduction (RFC 9937).
    Proportional,
}

/// Whether congestion can be signalled by marks (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// No.
    Off,
    /// If the peer asks for it, as servers of Linux.
    Answers,
    /// The side that connects asks for it.
    Asks,
}

/// How the receiver of marks tells of them, where both ends agree on marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// That there was one, until the sender says that it knows (RFC 3168 §6.1.3).
    Classic,
    /// How many there were: every segment tells (RFC 9768). With a peer that does not know of it, as
    /// `Classic`.
    Accurate,
    /// Every change, at once: what is acknowledged together was marked or not (RFC 8257 §3.2).
    Changes,
}

/// Which packets can be marked, where both ends agree on marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capable {
    /// Data that leaves for the first time (RFC 3168 §6.1.4, §6.1.5).
    NewData,
    /// All: nothing would be dropped in their place (RFC 8257 §3.5).
    All,
    /// All, and they say that each mark is answered (ECT(1), RFC 9331 §4.1).
    AllScalable,
}

/// Probes of a peer that has not been heard (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How long nothing was heard before the first.
    pub idle: Duration,
    /// How long each waits for an answer.
    pub interval: Duration,
    /// After how many without an answer the connection is given up; with a user timeout, that counts.
    pub probes: u32,
}

/// When larger segments are tried, to find out how large they may be (RFC 4821).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuProbing {
    /// Never.
    Off,
    /// When the path may swallow large packets, because nothing is answered for long.
    OnBlackHole,
    /// From the beginning, with small segments first.
    Always,
}

/// Settings of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "options that go in any combination")]
pub struct Settings {
    /// Whose way to go where the standards leave a choice: how RTTs become a timeout, when ACKs wait,
    /// the ticks of timers, when a window counts as used.
    pub flavour: Flavour,
    /// The largest payload without options: MTU less 40 bytes.
    pub mss: u16,
    /// Offer selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Report what arrived twice (RFC 2883).
    pub dsack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// How marks are told of.
    pub feedback: Feedback,
    /// Which packets can be marked.
    pub capable: Capable,
    /// Hold back small segments while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Find losses by time (RACK, RFC 8985).
    pub rack: bool,
    /// Probe for losses at the end of a flight (TLP, RFC 8985).
    pub tlp: bool,
    /// How losses are repaired without SACK.
    pub recovery: LossRecovery,
    /// With SACK, take for lost whatever is missing `dup_thresh` segments below the highest reported
    /// (Mathis and Mahdavi: Forward acknowledgement, 1996).
    pub fack: bool,
    /// How a window gets smaller when a loss is found.
    pub reduction: WindowReduction,
    /// Notice timeouts that were not needed by what they bring (F-RTO, RFC 5682).
    pub frto: bool,
    /// Take back reductions that were not needed, by timestamps (RFC 3522, RFC 4015) and DSACK.
    pub undo: bool,
    /// Send in bursts for segmentation offload, as Linux does.
    pub tso: bool,
    /// Spread bursts over the round trip, as Linux does by itself.
    pub pacing: bool,
    /// The highest rate at which bursts are spread.
    pub max_pacing_rate: Option<Rate>,
    /// Return to the initial window after an idle RTO (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// The longest an ACK is delayed; none acknowledges at once (RFC 5681 §4.2).
    pub delayed_ack: Option<Duration>,
    /// Full-sized segments that are acknowledged together.
    pub ack_every: u32,
    /// Segments acknowledged at once when the connection begins.
    pub quick_ack: u32,
    /// Segments of the first window (RFC 6928).
    pub initial_window: u64,
    /// How growth is counted.
    pub counting: AckCounting,
    /// Duplicate ACKs that show a loss (RFC 5681 §3.2).
    pub dup_thresh: u32,
    /// Before there is an RTT (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// Least RTO (RFC 6298 §2.4).
    pub min_rto: Duration,
    /// Greatest RTO (RFC 6298 §2.5).
    pub max_rto: Duration,
    /// Bytes of receive buffer, which bound the window offered.
    pub receive_buffer: u64,
    /// The largest window that the program wants to offer.
    pub window_clamp: Option<u64>,
    /// Segments of the first window offered.
    pub initial_receive_window: Option<u64>,
    /// The part of the receive buffer that is not offered is 1/2^this; 0 keeps nothing.
    pub app_win: u32,
    /// Bytes of send buffer: written and not yet acknowledged.
    pub send_buffer: u64,
    /// Bytes that may wait without having left: with so many, the application writes no more.
    pub most_unsent: Option<u64>,
    /// Of Linux: the memory of a receive buffer that a program has asked for, and that does not grow
    /// (`sk_rcvbuf` with `SOCK_RCVBUF_LOCK`).
    pub fixed_receive_buffer: Option<u64>,
    /// The same of the send buffer (`sk_sndbuf` with `SOCK_SNDBUF_LOCK`).
    pub fixed_send_buffer: Option<u64>,
    /// Of Linux: the most that a program may ask for (`net.core.rmem_max`), for which a connection without
    /// such a buffer scales its windows too.
    pub rmem_max: u64,
    /// How often a SYN is repeated.
    pub syn_retries: u32,
    /// After how many repetitions of a SYN more the timeout begins to double (Linux since 6.5).
    pub syn_linear_timeouts: u32,
    /// How often a SYN-ACK is repeated.
    pub syn_ack_retries: u32,
    /// How often a segment is repeated before the connection is given up (R2 of RFC 9293 §3.8.3).
    pub retries: u32,
    /// How long anything may stay without an answer before the connection is given up, however often it
    /// was repeated (RFC 5482).
    pub user_timeout: Option<Duration>,
    /// Probes while nothing is under way.
    pub keepalive: Option<Keepalive>,
    /// When larger segments are tried.
    pub mtu_probing: MtuProbing,
    /// How long TIME-WAIT lasts (2 MSL).
    pub time_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            flavour: Flavour::Rfc,
            mss: 1460,
            sack: true,
            dsack: false,
            timestamps: true,
            window_scaling: true,
            ecn: Ecn::Off,
            feedback: Feedback::Classic,
            capable: Capable::NewData,
            nagle: true,
            limited_transmit: true,
            rack: false,
            tlp: false,
            recovery: LossRecovery::NewReno,
            fack: false,
            reduction: WindowReduction::AtOnce,
            frto: false,
            undo: false,
            tso: false,
            pacing: false,
            max_pacing_rate: None,
            restart_after_idle: true,
            delayed_ack: Some(Duration::from_millis(200)),
            ack_every: 2,
            quick_ack: 0,
            initial_window: 10,
            counting: AckCounting::PerSegment,
            dup_thresh: 3,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(60),
            receive_buffer: 1 << 30,
            window_clamp: None,
            initial_receive_window: None,
            app_win: 0,
            send_buffer: 1 << 30,
            most_unsent: None,
            fixed_receive_buffer: None,
            fixed_send_buffer: None,
            rmem_max: 212_992,
            syn_retries: 6,
            syn_linear_timeouts: 0,
            syn_ack_retries: 6,
            retries: 15,
            user_timeout: None,
            keepalive: None,
            mtu_probing: MtuProbing::Off,
            time_wait: Duration::from_secs(60),
        }
    }
}

impl Settings {
    #[inline]
    pub(crate) fn is_linux(&self) -> bool {
        self.flavour == Flavour::Linux
    }

    /// Whether what is written goes through Linux's send buffer.
    #[inline]
    pub(crate) fn buffers_as_linux(&self) -> bool {
        self.is_linux() && self.tso
    }

    /// When a segment left, as the sender compares it with others; Linux has whole microseconds
    /// (`tcp_skb_sent_after`).
    #[inline]
    pub(crate) fn departure(&self, left_at: Time) -> Time {
        if self.is_linux() { left_at.floor_micros() } else { left_at }
    }

    /// How long ago `then` was; Linux reads a clock of microseconds for this.
    #[inline]
    pub(crate) fn elapsed(&self, now: Time, then: Time) -> Duration {
        if self.is_linux() {
            Duration::from_micros(micros(now) - micros(then))
        } else {
            now.since(then)
        }
    }

    /// How long nothing has happened since `then`; Linux counts jiffies.
    pub(crate) fn idle(&self, now: Time, then: Time) -> Duration {
        if self.is_linux() {
            let jiffies = |time: Time| time.as_picos() / 1_000_000_000;
            Duration::from_millis(jiffies(now) - jiffies(then))
        } else {
            now.since(then)
        }
    }

    /// A timeout as it is kept: Linux keeps whole jiffies, rounded up.
    pub(crate) fn in_jiffies(&self, timeout: Duration) -> Duration {
        if self.is_linux() {
            Duration::from_millis(timeout.as_picos().div_ceil(1_000_000_000))
        } else {
            timeout
        }
    }

    /// A length of time as that clock counts it.
    #[inline]
    pub(crate) fn in_ticks(&self, length: Duration) -> Duration {
        if self.is_linux() { Duration::from_micros(length.as_picos() / 1_000_000) } else { length }
    }

    /// The last moment that is as long ago as that, as [`Self::elapsed`] measures it.
    pub(crate) fn before(&self, now: Time, ago: Duration) -> Time {
        if !self.is_linux() {
            return Time::ZERO + now.since(Time::ZERO).saturating_sub(ago);
        }
        let ticks = (micros(now) + 1).saturating_sub(ago.as_picos() / 1_000_000);
        Time::from_picos((ticks * 1_000_000).saturating_sub(1))
    }

    /// When a timer that is set now runs out by the wheel of Linux.
    #[inline]
    pub(crate) fn expiry(&self, now: Time, delay: Duration) -> Option<Expiry> {
        self.is_linux().then(|| Expiry::new(now, delay))
    }

    /// When a wait of this length ends that begins now.
    pub(crate) fn waits_until(now: Time, wait: Duration, is_linux: bool) -> Time {
        if is_linux { Expiry::new(now, wait).runs_out(false).0 } else { now + wait }
    }
}

fn micros(time: Time) -> u64 {
    time.as_picos() / 1_000_000
}

/// Timers that count ticks of a millisecond and run out late rather than early (`kernel/time/timer.c`).
mod jiffies {
    use crate::timer::TICK;
    use tcplab_units::{Duration, Time};

    /// Places in each ring of the wheel, and how many bits coarser each ring is than the one before.
    const PLACES: u64 = 63;
    const COARSER: u32 = 3;
    /// Jiffies at the beginning of an experiment, as far as the rings of the wheel can tell: they count
    /// from five minutes before boot (`INITIAL_JIFFIES`), and experiments begin two seconds after.
    const AT_BEGINNING: u64 = (1 << 24) - 298_000;

    /// When a timer is to run out.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Expiry {
        /// Ticks from now on.
        ticks: u64,
        /// The tick for which it is set.
        pub tick: u64,
    }

    impl Expiry {
        #[inline]
        pub fn new(now: Time, delay: Duration) -> Self {
            let ticks = delay.as_picos().div_ceil(TICK.as_picos());
            Self { ticks, tick: AT_BEGINNING + now.as_picos() / TICK.as_picos() + ticks }
        }

        /// When the timer does run out, and how coarse the ring of the wheel is in which it waits.
        /// If another one has run out in this tick, the wheel has turned to the next already
        /// (`__run_timers`).
        #[inline]
        pub fn runs_out(self, has_turned: bool) -> (Time, u32) {
            let ticks = self.ticks.saturating_sub(has_turned.into());
            let mut shift = 0;
            while ticks >= PLACES << shift && shift < 8 * COARSER {
                shift += COARSER;
            }
            let rings = ((self.tick >> shift) + 1) << shift;
            (Time::ZERO + TICK.saturating_mul(rings - AT_BEGINNING), shift)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn runs_out(now: Time, delay: Duration, has_turned: bool) -> (Time, u32) {
            Expiry::new(now, delay).runs_out(has_turned)
        }

        #[test]
        fn a_timer_runs_out_at_the_tick_behind_and_never_early() {
            let at = |micros| Time::ZERO + Duration::from_micros(micros);
            let out = |micros, millis| runs_out(at(micros), Duration::from_millis(millis), false).0;
            // 40 ms from 0.2 ms: the tick of 40 ms may be early, the one of 41 ms is not.
            assert_eq!(out(200, 40), at(41_000));
            // The second ring has places of 8 ms: 5 + 240 = 245, so 248 ms.
            assert_eq!(out(5_000, 240), at(248_000));
            // The third has places of 64 ms, which begin at 16 ms: 600 -> 656 = 16 + 10 * 64.
            assert_eq!(out(0, 600), at(656_000));
            // 63 ticks are for the second ring, or as 62 more for the first: 8 + 63, or 9 + 62.
            let delay = Duration::from_millis(63);
            assert_eq!(runs_out(at(9_300), delay, false), (at(80_000), 3));
            assert_eq!(runs_out(at(9_300), delay, true), (at(73_000), 0));
        }
    }
}
