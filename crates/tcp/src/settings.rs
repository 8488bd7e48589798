//! What an endpoint is told: options, limits and timers. The defaults are those of the RFCs.

use tcplab_units::Duration;

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

/// Settings of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The largest payload without options: MTU less 40 bytes.
    pub mss: u16,
    /// Offer selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Hold back small segments while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
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
    /// Bytes of send buffer: written and not yet acknowledged.
    pub send_buffer: u64,
    /// How often a SYN is repeated.
    pub syn_retries: u32,
    /// How often a segment is repeated before the connection is given up (R2 of RFC 9293 §3.8.3).
    pub retries: u32,
    /// How long TIME-WAIT lasts (2 MSL).
    pub time_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mss: 1460,
            sack: true,
            timestamps: true,
            window_scaling: true,
            nagle: true,
            limited_transmit: true,
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
            send_buffer: 1 << 30,
            syn_retries: 6,
            retries: 15,
            time_wait: Duration::from_secs(60),
        }
    }
}
