//! The choices that the standards leave open and Linux makes in its own way.
//!
//! A profile picks one [`Behaviour`]; no other file of this crate asks which profile that was. Each
//! field names the kernel function that it follows when set, or the RFC section that it follows
//! when it is not.

use tcplab_cc::Flavour;
use tcplab_transport::Clock;
use tcplab_transport::RtoEstimator;
use tcplab_units::Duration;

/// The choices of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices, each named")]
pub struct Behaviour {
    // Clocks and timers.
    /// The granularity of the clock, and whether timers expire by the kernel's timer wheel
    /// (`__mod_timer`).
    pub clock: Clock,
    /// How RTT samples become an RTO: RFC 6298 §2, or `tcp_rtt_estimator` and `tcp_set_rto`.
    pub rto_estimator: RtoEstimator,
    /// Timers that wait for an ACK run longer by the time until the next paced packet
    /// (`tcp_pacing_delay`).
    pub timers_add_pacing_delay: bool,
    /// Added to waits that a tick may shorten: before a tail loss probe of several segments, and
    /// for the reordering window (`TCP_TIMEOUT_MIN_US`).
    pub timeout_min: Duration,
    /// The minimum wait before a zero-window probe (`tcp_probe0_base`, `TCP_RTO_MIN`).
    pub probe0_min: Duration,
    /// The assumed delay of the ACK of a lone segment before a tail loss probe
    /// (`TLP.max_ack_delay`, RFC 8985 §7.2). None: the minimum RTO (`tcp_schedule_loss_probe`).
    pub tlp_max_ack_delay: Option<Duration>,
    /// An ACK that only SACKs data older than the head's last transmission restarts the RTO
    /// (`tcp_clean_rtx_queue`).
    pub older_sacks_restart_rto: bool,
    /// An ACK of new data restarts the RTO from the head's departure if another timer was set in
    /// between (`tcp_rearm_rto`). Not set: from now (RFC 6298 §5.3).
    pub rto_restarts_from_head: bool,
    /// New data replaces a pending probe timer by the RTO first (`tcp_event_new_data_sent`).
    pub new_data_rearms_probe: bool,
    /// A retransmission of the head restarts the RTO (`tcp_xmit_retransmit_queue`). Not set: only
    /// the first of an episode does.
    pub head_retransmission_restarts_rto: bool,

    // Acknowledgments in.
    /// An ACK as new as the last one updates the window only if the window grows or closes
    /// (`tcp_may_update_window`), and a newer one is no duplicate. Not set: RFC 9293 §3.10.7.4.
    pub window_update_must_grow: bool,
    /// The data of a segment that is exactly the expected one is processed before its
    /// acknowledgment (`tcp_rcv_established`).
    pub header_prediction: bool,
    /// Segments that a DSACK reports count as delivered (`tcp_dsack_seen`).
    pub dsack_counts_as_delivered: bool,
    /// Where all acknowledged segments were retransmitted, the echoed timestamp gives the RTT
    /// (`tcp_ack_update_rtt`).
    pub timestamp_times_retransmissions: bool,
    /// The rate is sampled for every connection, not only for controllers that ask
    /// (`tcp_rate_gen`).
    pub always_samples_rate: bool,

    // Loss.
    /// RACK's rounds for DSACKs are counted in delivered segments (`tcp_rack_update_reo_wnd`). Not
    /// set: in sequence numbers (RFC 8985 §6.2 step 4).
    pub rack_rounds_by_delivered: bool,
    /// Without SACK, duplicate ACKs count as SACKed segments under the kernel's limits
    /// (`tcp_add_reno_sack`, `tcp_limit_reno_sacked`, `tcp_check_reno_reordering`).
    pub emulates_sack: bool,
    /// Reordering seen raises the number of duplicates that show a loss
    /// (`tcp_check_sack_reordering`); a timeout lowers it (`tcp_enter_loss`).
    pub adapts_dup_thresh: bool,
    /// With SACK and neither RACK nor FACK, segments are counted, not bytes or blocks
    /// (`tcp_time_to_recover`, `tcp_update_scoreboard`). Not set: `IsLost` of RFC 6675 §4.
    pub counts_sacked_segments: bool,
    /// With nothing else to send, segments that may be lost are resent (`NextSeg` rules 3 and 4,
    /// RFC 6675 §4). Linux does not.
    pub has_next_seg_rule3: bool,
    /// Duplicate ACKs below the last recovery point do not begin a recovery (RFC 6582 §4.1). In
    /// Linux they do.
    pub avoids_repeated_fast_retransmit: bool,
    /// When a timeout begins a new episode, and what the controller is told of it, follow
    /// `tcp_enter_loss`. Not set: RFC 5681 §3.1, by which a repeated timeout is the same episode.
    pub kernel_loss_state: bool,
    /// In a timeout, segments retransmitted without being lost stay in flight
    /// (`tcp_mark_skb_lost`).
    pub timeout_spares_unlost_retransmissions: bool,
    /// A reduction that ends early leaves the window at the value reached
    /// (`tcp_undo_cwnd_reduction`).
    pub keeps_partial_reduction: bool,
    /// Without SACK, an episode stays open until data beyond it is acknowledged
    /// (`tcp_is_non_sack_preventing_reopen`).
    pub non_sack_holds_reopen: bool,
    /// When the pacing timer expires, lost segments precede new data (`tcp_tsq_write`).
    pub pacing_timer_retransmits_first: bool,

    // The window.
    /// Window validation follows `tcp_cwnd_validate`. Not set: the window counts as used while a
    /// flight that filled it is being acknowledged (RFC 7661 §4.1).
    pub kernel_cwnd_validation: bool,
    /// The controller exists from establishment, not from the first data (`tcp_init_transfer`).
    pub controls_from_establishment: bool,
    /// A connection that was paced once stays paced when its controller changes
    /// (`sk_pacing_status`).
    pub stays_paced: bool,

    // Departure.
    /// With TSO, written data lies in packets that occupy memory (`tcp_sendmsg_locked`).
    pub send_buffer_of_packets: bool,
    /// A tail loss probe sends small new data regardless of Nagle (`tcp_send_loss_probe`).
    pub probe_ignores_nagle: bool,
    /// Retransmissions after an ICMP notice carry the time of the last departure
    /// (`tcp_v4_mtu_reduced`).
    pub notice_keeps_timestamp: bool,
    /// A black hole is suspected after a time without answers (`retransmits_timed_out`). Not set:
    /// after R1 retransmissions (RFC 9293 §3.8.3).
    pub black_hole_by_time: bool,

    // Opening and closing.
    /// The ACK of a SYN-ACK leaves by itself, before data (`tcp_rcv_synsent_state_process`).
    pub handshake_ack_leaves_first: bool,
    /// A Fast Open client with more to send lets data carry that ACK
    /// (`tcp_rcv_synsent_state_process`).
    pub fast_open_delays_ack: bool,
    /// A timed-out SYN counts as a loss (`tcp_enter_loss`).
    pub syn_timeout_is_loss: bool,
    /// Without an RTT sample of the handshake the RTO is three seconds, SYN timeout or not
    /// (`TCP_TIMEOUT_FALLBACK`). Not set: only after a SYN timeout (RFC 6298 §5.7).
    pub unsampled_rto_fallback: bool,
    /// One SYN timeout leaves the initial window as it is (`tcp_init_transfer`). Not set: RFC 5681
    /// §3.1.
    pub forgives_syn_timeout: bool,
    /// Out-of-window segments are answered at most twice a second (`tcp_oow_rate_limited`).
    pub limits_challenge_acks: bool,
    /// An old timestamp is accepted in a plain duplicate ACK (`tcp_disordered_ack`).
    pub accepts_disordered_acks: bool,
    /// The acknowledgment of a segment with old data is processed if the segment ends at or above
    /// the last ACK sent (`tcp_sequence`).
    pub takes_acks_of_old_data: bool,
    /// The ACK of a FIN that half-closes the connection is delayed (`tcp_fin`).
    pub delays_ack_of_fin: bool,
    /// An orphaned connection keeps no more than TIME-WAIT state, even before the peer's FIN
    /// (`tcp_close`, `tcp_time_wait`).
    pub time_wait_before_peer_fin: bool,
    /// The user timeout runs from the first retransmission, for a SYN from the SYN
    /// (`retrans_stamp`). Not set: from the departure of the oldest segment (RFC 5482 §3).
    pub user_timeout_from_retransmission: bool,
    /// A SYN-ACK has no user timeout (`reqsk_timer_handler`).
    pub syn_ack_has_no_user_timeout: bool,

    // The receiving half.
    /// Delayed, quick and compressed ACKs follow `__tcp_ack_snd_check`. Not set: RFC 5681 §4.2.
    pub adaptive_delayed_ack: bool,
    /// The receive window follows `tcp_select_initial_window`, `tcp_grow_window` and
    /// `tcp_rcv_space_adjust`.
    pub receive_autotuning: bool,
    /// Replies to an event leave before the application is woken (`sk_data_ready` comes last).
    pub replies_before_wakeup: bool,
}

impl Behaviour {
    /// The choices of the RFCs.
    pub const RFC: Self = Self {
        clock: Clock::Exact,
        rto_estimator: RtoEstimator::Rfc6298,
        timers_add_pacing_delay: false,
        timeout_min: Duration::ZERO,
        probe0_min: Duration::ZERO,
        tlp_max_ack_delay: Some(Duration::from_millis(200)),
        older_sacks_restart_rto: false,
        rto_restarts_from_head: false,
        new_data_rearms_probe: false,
        head_retransmission_restarts_rto: false,
        window_update_must_grow: false,
        header_prediction: false,
        dsack_counts_as_delivered: false,
        timestamp_times_retransmissions: false,
        always_samples_rate: false,
        rack_rounds_by_delivered: false,
        emulates_sack: false,
        adapts_dup_thresh: false,
        counts_sacked_segments: false,
        has_next_seg_rule3: true,
        avoids_repeated_fast_retransmit: true,
        kernel_loss_state: false,
        timeout_spares_unlost_retransmissions: false,
        keeps_partial_reduction: false,
        non_sack_holds_reopen: false,
        pacing_timer_retransmits_first: false,
        kernel_cwnd_validation: false,
        controls_from_establishment: false,
        stays_paced: false,
        send_buffer_of_packets: false,
        probe_ignores_nagle: false,
        notice_keeps_timestamp: false,
        black_hole_by_time: false,
        handshake_ack_leaves_first: false,
        fast_open_delays_ack: false,
        syn_timeout_is_loss: false,
        unsampled_rto_fallback: false,
        forgives_syn_timeout: false,
        limits_challenge_acks: false,
        accepts_disordered_acks: false,
        takes_acks_of_old_data: false,
        delays_ack_of_fin: false,
        time_wait_before_peer_fin: false,
        user_timeout_from_retransmission: false,
        syn_ack_has_no_user_timeout: false,
        adaptive_delayed_ack: false,
        receive_autotuning: false,
        replies_before_wakeup: false,
    };

    /// The choices of Linux.
    pub const LINUX: Self = Self {
        clock: Clock::Kernel,
        rto_estimator: RtoEstimator::Linux,
        timers_add_pacing_delay: true,
        timeout_min: Duration::from_millis(2),
        probe0_min: Duration::from_millis(200),
        tlp_max_ack_delay: None,
        older_sacks_restart_rto: true,
        rto_restarts_from_head: true,
        new_data_rearms_probe: true,
        head_retransmission_restarts_rto: true,
        window_update_must_grow: true,
        header_prediction: true,
        dsack_counts_as_delivered: true,
        timestamp_times_retransmissions: true,
        always_samples_rate: true,
        rack_rounds_by_delivered: true,
        emulates_sack: true,
        adapts_dup_thresh: true,
        counts_sacked_segments: true,
        has_next_seg_rule3: false,
        avoids_repeated_fast_retransmit: false,
        kernel_loss_state: true,
        timeout_spares_unlost_retransmissions: true,
        keeps_partial_reduction: true,
        non_sack_holds_reopen: true,
        pacing_timer_retransmits_first: true,
        kernel_cwnd_validation: true,
        controls_from_establishment: true,
        stays_paced: true,
        send_buffer_of_packets: true,
        probe_ignores_nagle: true,
        notice_keeps_timestamp: true,
        black_hole_by_time: true,
        handshake_ack_leaves_first: true,
        fast_open_delays_ack: true,
        syn_timeout_is_loss: true,
        unsampled_rto_fallback: true,
        forgives_syn_timeout: true,
        limits_challenge_acks: true,
        accepts_disordered_acks: true,
        takes_acks_of_old_data: true,
        delays_ack_of_fin: true,
        time_wait_before_peer_fin: true,
        user_timeout_from_retransmission: true,
        syn_ack_has_no_user_timeout: true,
        adaptive_delayed_ack: true,
        receive_autotuning: true,
        replies_before_wakeup: true,
    };
}

impl From<Flavour> for Behaviour {
    fn from(flavour: Flavour) -> Self {
        match flavour {
            Flavour::Rfc => Self::RFC,
            Flavour::Linux => Self::LINUX,
        }
    }
}
