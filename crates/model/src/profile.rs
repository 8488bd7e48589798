//! The defaults of each profile: what a stack does before any option is set.

use crate::mistake::Problem;
use crate::schema::{AckCounting, CongestionControl, CutBase, OrOff, Profile, StackPlan};
use serde_json::Value;
use tcplab_units::{Bytes, Duration};

impl Profile {
    /// The table of this profile.
    ///
    /// # Errors
    /// It has none yet.
    pub fn options(self) -> Result<StackPlan, Problem> {
        match self {
            Self::Rfc => return Ok(rfc()),
            Self::Linux612 | Self::Linux61 => return Ok(linux()),
            _ => {}
        }
        let name = serde_json::to_value(self);
        let name = name.as_ref().ok().and_then(Value::as_str).unwrap_or_default();
        Err(Problem::NotYet {
            what: format!("the profile \"{name}\""),
            have: ["rfc", "linux-6.12", "linux-6.1"].map(|name| format!("\"{name}\"")).into(),
        })
    }
}

/// What the current standards say; where they leave a choice, what is said here.
pub(crate) fn rfc() -> StackPlan {
    StackPlan {
        // RFC 9438, on the standards track since 2023.
        cc: CongestionControl::named("cubic"),
        // RFC 2018, with the recovery of RFC 6675.
        sack: true,
        // Never standardised; RFC 6675 has a rule of its own.
        fack: false,
        // RFC 5681 §3.1, equation (2): min(N, SMSS) for each ACK.
        abc: AckCounting::Byte { limit: 1 },
        // RFC 9293 §3.8.6.3 allows up to 500 ms; 200 ms is what stacks have used since BSD.
        delayed_ack: OrOff::On(Duration::from_millis(200)),
        // RFC 9293 §3.8.6.3: an ACK for at least every second full segment.
        ack_every: 2,
        // No standard has it.
        quick_ack: 0,
        // RFC 7323.
        timestamps: true,
        window_scaling: true,
        // RFC 3168 leaves it to both ends to ask for it.
        ecn: false,
        // RFC 6928 §2.
        initial_window: 10,
        // RFC 6298 §2.4, §2.5 and §2.1.
        min_rto: Duration::from_secs(1),
        max_rto: Duration::from_secs(60),
        initial_rto: Duration::from_secs(1),
        // No standard says; large enough to be no limit.
        rmem: Bytes(1_000_000_000),
        wmem: Bytes(1_000_000_000),
        app_win: 0,
        // RFC 9293 §3.7.4.
        nagle: true,
        // RFC 3042.
        limited_transmit: true,
        // RFC 5681 §4.1.
        restart_after_idle: true,
        // RFC 5681 is clocked by ACKs.
        pacing: false,
        // Optional beside RFC 6675: RFC 8985, RFC 9937, RFC 5682.
        rack: false,
        tlp: false,
        prr: false,
        frto: false,
        // RFC 9438 §4.10: CUBIC should use HyStart++.
        hystart: true,
        // RFC 5681 §3.1, equation (4).
        cut_base: CutBase::FlightSize,
        // RFC 5681 §3.2.
        dup_thresh: 3,
        // RFC 9293 §3.8.3 wants at least 3 minutes for a SYN, 100 seconds for data: from 1 s,
        // doubled up to 60 s, these make 127 s and 15 minutes, as in Linux.
        syn_retries: 6,
        retries: 15,
        // RFC 9293 §3.4.1: twice the MSL, for which 30 s are usual.
        time_wait: Duration::from_secs(60),
        // RFC 9293 §3.7.1: what the largest packet leaves; the path's MTU is the limit.
        mss: 65_495,
    }
}

/// What Linux 6.12 does, and 6.1 where it has the same option. Names in capitals are the kernel's.
fn linux() -> StackPlan {
    StackPlan {
        // DEFAULT_TCP_CONG.
        cc: CongestionControl::named("cubic"),
        // tcp_sack, tcp_timestamps, tcp_window_scaling.
        sack: true,
        timestamps: true,
        window_scaling: true,
        // Gone since 4.15.
        fack: false,
        // tcp_slow_start and tcp_cong_avoid_ai count the segments that an ACK covers.
        abc: AckCounting::Segment,
        // TCP_DELACK_MIN; it adapts between this and TCP_DELACK_MAX, 200 ms.
        delayed_ack: OrOff::On(Duration::from_millis(40)),
        // __tcp_ack_snd_check: more than one segment.
        ack_every: 2,
        // TCP_MAX_QUICKACKS.
        quick_ack: 16,
        // tcp_ecn is 2: it answers, and does not ask.
        ecn: false,
        // TCP_INIT_CWND.
        initial_window: 10,
        // TCP_RTO_MIN, TCP_RTO_MAX, TCP_TIMEOUT_INIT.
        min_rto: Duration::from_millis(200),
        max_rto: Duration::from_secs(120),
        initial_rto: Duration::from_secs(1),
        // The most of tcp_rmem and tcp_wmem, on machines with memory enough.
        rmem: Bytes(6_291_456),
        wmem: Bytes(4_194_304),
        // tcp_app_win.
        app_win: 31,
        nagle: true,
        // tcp_sacktag_one and RACK send on the first duplicate ACKs.
        limited_transmit: true,
        // tcp_slow_start_after_idle.
        restart_after_idle: true,
        // Only algorithms that ask for it.
        pacing: false,
        // tcp_recovery is 1, tcp_early_retrans is 3, tcp_frto is 2.
        rack: true,
        tlp: true,
        frto: true,
        prr: true,
        // tcp_cubic.hystart, of 2008 and not of RFC 9406.
        hystart: true,
        // bictcp_recalc_ssthresh and the others start from snd_cwnd.
        cut_base: CutBase::Cwnd,
        // tcp_reordering.
        dup_thresh: 3,
        // tcp_syn_retries, tcp_retries2.
        syn_retries: 6,
        retries: 15,
        // TCP_TIMEWAIT_LEN.
        time_wait: Duration::from_secs(60),
        mss: 65_495,
    }
}
