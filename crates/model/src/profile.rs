//! The defaults of each profile: what a stack does before any option is set.

use crate::mistake::Problem;
use crate::schema::{AckCounting, CongestionControl, CutBase, OrOff, Profile, StackPlan};
use serde_json::Value;
use tcplab_units::{Bytes, Duration};

impl Profile {
    /// The table of this profile.
    pub(crate) fn options(self) -> Result<StackPlan, Problem> {
        if self == Self::Rfc {
            return Ok(rfc());
        }
        let name = serde_json::to_value(self);
        let name = name.as_ref().ok().and_then(Value::as_str).unwrap_or_default();
        Err(Problem::NotYet {
            what: format!("the profile \"{name}\""),
            have: vec!["\"rfc\"".into()],
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
