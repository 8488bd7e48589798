//! What an endpoint is told: options, limits and timers. The defaults are those of the RFCs.

mod behaviour;

pub use behaviour::Behaviour;

use tcplab_transport::RtoLimits;
use tcplab_units::{Duration, Rate};

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
    /// The choices that the standards leave open: those of the RFCs, or those of Linux.
    pub behaviour: Behaviour,
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
            behaviour: Behaviour::RFC,
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
    /// Whether written data goes through a send buffer of packets, as in Linux.
    #[inline]
    pub(crate) fn has_packet_buffer(&self) -> bool {
        self.behaviour.send_buffer_of_packets && self.tso
    }

    /// The estimator and the bounds of the RTO.
    #[inline]
    pub(crate) fn rto_limits(&self) -> RtoLimits {
        RtoLimits {
            estimator: self.behaviour.rto_estimator,
            initial: self.initial_rto,
            min: self.min_rto,
            max: self.max_rto,
        }
    }
}
