//! Settings of an endpoint: options, limits and timers. The defaults are those of the RFCs.

mod behaviour;

pub use behaviour::Behaviour;

use tcplab_transport::RtoLimits;
use tcplab_units::{Duration, Rate};

/// How much window growth an ACK is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCounting {
    /// One segment per ACK, however much it acknowledges (RFC 5681 §3.1, as in most stacks of its
    /// day).
    PerAck,
    /// One segment for each segment delivered, as in Linux.
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
    /// On the last duplicate ACK needed, slow start restarts from one segment, as after a timeout
    /// (Jacobson, 1988).
    Tahoe,
    /// Fast recovery, which ends with the first ACK of new data (RFC 2581 §3.2).
    Reno,
    /// Fast recovery until everything outstanding at its start is acknowledged. Of the partial
    /// ACKs, the first restarts the timer (RFC 6582 §3.2; "impatient" in RFC 3782 §4).
    NewReno,
    /// NewReno, but every partial ACK restarts the timer ("slow but steady" in RFC 3782 §4).
    NewRenoSteady,
}

/// How the window is reduced when a loss is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// At once (RFC 5681, RFC 6675).
    AtOnce,
    /// By rate halving, as in Linux until 3.1.
    Halving,
    /// By proportional rate reduction (RFC 9937).
    Proportional,
}

/// Whether ECN is negotiated (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// No.
    Off,
    /// If the peer asks for it, as Linux servers do by default.
    Answers,
    /// Active opens ask for it.
    Asks,
}

/// How the receiver reports CE marks, if ECN is negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// ECE on every ACK from a mark until CWR (RFC 3168 §6.1.3).
    Classic,
    /// Accurate ECN: every segment carries a count of marked packets (RFC 9768). With a peer that
    /// does not support it, as `Classic`.
    Accurate,
    /// DCTCP: every change of the CE state at once, so that the data of an ACK was marked or not
    /// marked as a whole (RFC 8257 §3.2).
    Changes,
}

/// Which packets are ECN-capable, if ECN is negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capable {
    /// Data sent for the first time (RFC 3168 §6.1.4, §6.1.5).
    NewData,
    /// All packets (RFC 8257 §3.5).
    All,
    /// All packets, with ECT(1): the response to marks is scalable (RFC 9331 §4.1).
    AllScalable,
}

/// Keepalive probes (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Interval between probes.
    pub interval: Duration,
    /// The connection is aborted after this many unanswered probes; with a user timeout, by that
    /// instead.
    pub probes: u32,
}

/// When MTU probes look for the path MTU (RFC 4821; `tcp_mtu_probing`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuProbing {
    /// Never.
    Off,
    /// After a black hole is suspected.
    OnBlackHole,
    /// From the start, beginning with small segments.
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
    /// Report duplicates (DSACK, RFC 2883).
    pub dsack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// How the receiver reports CE marks.
    pub feedback: Feedback,
    /// Which packets are ECN-capable.
    pub capable: Capable,
    /// Nagle's algorithm: hold small segments back while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Detect losses by time (RACK, RFC 8985).
    pub rack: bool,
    /// Tail loss probes (TLP, RFC 8985 §7).
    pub tlp: bool,
    /// How losses are repaired without SACK.
    pub recovery: LossRecovery,
    /// With SACK, everything `dup_thresh` segments or more below the highest SACKed one is lost
    /// (Mathis and Mahdavi: Forward acknowledgement, 1996).
    pub fack: bool,
    /// How the window is reduced when a loss is detected.
    pub reduction: WindowReduction,
    /// Detect spurious timeouts by the data delivered after them (F-RTO, RFC 5682).
    pub frto: bool,
    /// Undo spurious reductions, by timestamps (RFC 3522, RFC 4015) and DSACK.
    pub undo: bool,
    /// Send in bursts for segmentation offload (TSO), as Linux does.
    pub tso: bool,
    /// Pace bursts over the round trip, at the rate that Linux computes.
    pub pacing: bool,
    /// The highest pacing rate (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: Option<Rate>,
    /// Return to the initial window after an idle time of an RTO (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// The longest delay of an ACK; none acknowledges at once (RFC 5681 §4.2).
    pub delayed_ack: Option<Duration>,
    /// Full-sized segments per ACK.
    pub ack_every: u32,
    /// Quick ACKs at the start of a connection.
    pub quick_ack: u32,
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u64,
    /// How window growth is counted.
    pub counting: AckCounting,
    /// Number of duplicate ACKs that shows a loss (RFC 5681 §3.2).
    pub dup_thresh: u32,
    /// RTO before the first RTT sample (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// Minimum RTO (RFC 6298 §2.4).
    pub min_rto: Duration,
    /// Maximum RTO (RFC 6298 §2.5).
    pub max_rto: Duration,
    /// Bytes of receive buffer, which limit the receive window.
    pub receive_buffer: u64,
    /// The largest receive window that the program allows (`TCP_WINDOW_CLAMP`).
    pub window_clamp: Option<u64>,
    /// Initial receive window in segments (`initrwnd`).
    pub initial_receive_window: Option<u64>,
    /// 1/2^this of the receive buffer is reserved and not offered; 0 reserves nothing
    /// (`tcp_app_win`).
    pub app_win: u32,
    /// Bytes of send buffer: written and not yet acknowledged.
    pub send_buffer: u64,
    /// With this many unsent bytes the application writes no more (`TCP_NOTSENT_LOWAT`).
    pub most_unsent: Option<u64>,
    /// Linux: memory of a fixed receive buffer that the program has set (`sk_rcvbuf` with
    /// `SOCK_RCVBUF_LOCK`).
    pub fixed_receive_buffer: Option<u64>,
    /// Memory of a fixed send buffer that the program has set (`sk_sndbuf` with
    /// `SOCK_SNDBUF_LOCK`).
    pub fixed_send_buffer: Option<u64>,
    /// Linux: the largest receive buffer that a program can set (`net.core.rmem_max`). The window
    /// scale of other connections allows for it, too.
    pub rmem_max: u64,
    /// How often a SYN is retransmitted.
    pub syn_retries: u32,
    /// How many further retransmissions of a SYN precede the exponential backoff (Linux since 6.5).
    pub syn_linear_timeouts: u32,
    /// How often a SYN-ACK is retransmitted.
    pub syn_ack_retries: u32,
    /// How often a segment is retransmitted before the connection is aborted (R2 of RFC 9293
    /// §3.8.3).
    pub retries: u32,
    /// The connection is aborted after this time without an acknowledgment, whatever the number of
    /// retransmissions (RFC 5482).
    pub user_timeout: Option<Duration>,
    /// Keepalive probes of an idle connection.
    pub keepalive: Option<Keepalive>,
    /// When MTU probes are sent.
    pub mtu_probing: MtuProbing,
    /// Length of TIME-WAIT (2 MSL).
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
