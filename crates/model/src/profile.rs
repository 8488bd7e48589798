//! The defaults of each profile: a stack's behaviour before any option is set, with sources.
//!
//! | file | profiles |
//! |---|---|
//! | here | current ones: `rfc`, `linux-6.12`, `linux-6.1` |
//! | `systems` | historical systems: `linux-2.6.26`, `linux-2.6.20`, `freebsd-9.2`, `windows-7` |
//! | `simulators` | `ns2`, `ns3` |

use crate::schema::{
    AckCounting, CongestionControl, CutBase, Ecn, Flavour, MtuProbing, OrOff, PathMtu, Profile,
    Recovery, Reduction, StackPlan,
};
use serde_json::{Map, Value};
use tcplab_units::{Bytes, Duration};

/// One line of a profile's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The option's key in an experiment: `min_rto`.
    pub option: &'static str,
    /// The value as written in an experiment: `"200 ms"`, in quotes.
    pub value: String,
    /// The source of the value.
    pub source: &'static str,
}

/// The options of a profile, with the source of each.
struct Table {
    options: StackPlan,
    sources: Vec<(&'static str, &'static str)>,
}

/// A table from lines `option: value, "source";`. A missing option or source is a compile error.
macro_rules! table {
    ($($option:ident: $value:expr, $source:literal;)+) => {
        Table {
            options: StackPlan { $($option: $value,)+ },
            sources: vec![$((stringify!($option), $source)),+],
        }
    };
}

/// A copy of another table, except for these lines.
macro_rules! table_like {
    ($base:expr; $($option:ident: $value:expr, $source:literal;)+) => {{
        let mut table: Table = $base;
        $(
            table.options.$option = $value;
            let line = table.sources.iter_mut().find(|line| line.0 == stringify!($option));
            line.expect("a table has all options").1 = $source;
        )+
        table
    }};
}

mod simulators;
mod systems;

impl Profile {
    /// The options of the profile.
    pub fn options(self) -> StackPlan {
        self.table().options
    }

    /// The options line by line, each with its source.
    pub fn settings(self) -> Vec<Setting> {
        let table = self.table();
        let values = serde_json::to_value(&table.options).unwrap_or_default();
        let line = |(option, source): (&'static str, &'static str)| {
            let value = as_written(&values[option]);
            Setting { option, value, source }
        };
        table.sources.into_iter().map(line).collect()
    }

    fn table(self) -> Table {
        match self {
            Self::Rfc => rfc(),
            Self::Linux612 => linux_6_12(),
            Self::Linux61 => linux_6_1(),
            Self::Linux2626 => systems::linux_2_6_26(),
            Self::Linux2620 => systems::linux_2_6_20(),
            Self::FreeBsd92 => systems::freebsd_9_2(),
            Self::Windows7 => systems::windows_7(),
            Self::Ns2 => simulators::ns2(),
            Self::Ns3 => simulators::ns3(),
        }
    }
}

/// A value as written in an experiment: a congestion control is its name, or a table if it has
/// parameters.
fn as_written(value: &Value) -> String {
    let Some(table) = value.as_object() else { return value.to_string() };
    let pairs = |table: &Map<String, Value>| {
        let pairs: Vec<_> = table.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        pairs.join(", ")
    };
    match (table.get("name"), value["params"].as_object()) {
        (Some(name), Some(params)) if params.is_empty() => name.to_string(),
        (Some(name), Some(params)) => format!("{{ name = {name}, {} }}", pairs(params)),
        _ => format!("{{ {} }}", pairs(table)),
    }
}

/// The current standards; where they leave a choice, the source says which was made.
fn rfc() -> Table {
    table! {
        flavour: Flavour::Rfc, "what the standards say";
        cc: CongestionControl::named("cubic"), "RFC 9438, on the standards track since 2023";
        sack: true, "RFC 2018, with the recovery of RFC 6675";
        fack: false, "never standardised; RFC 6675 has a rule of its own";
        recovery: Recovery::NewReno, "RFC 6582";
        abc: AckCounting::Byte { limit: 1 },
            "RFC 5681 §3.1, equation (2): min(N, SMSS) for each ACK";
        delayed_ack: OrOff::On(Duration::from_millis(200)),
            "RFC 9293 §3.8.6.3 allows up to 500 ms; stacks have used 200 ms since BSD";
        ack_every: 2, "RFC 9293 §3.8.6.3: an ACK for at least every second full segment";
        quick_ack: 0, "not in any standard";
        timestamps: true, "RFC 7323 §3";
        window_scaling: true, "RFC 7323 §2";
        ecn: Ecn::Off, "RFC 3168 §6.1.1: optional for both ends";
        initial_window: 10, "RFC 6928 §2";
        min_rto: Duration::from_secs(1), "RFC 6298 §2.4";
        max_rto: Duration::from_secs(60), "RFC 6298 §2.5: at least 60 s";
        initial_rto: Duration::from_secs(1), "RFC 6298 §2.1";
        rmem: Bytes(1_000_000_000), "not specified by any standard; large enough to be no limit";
        wmem: Bytes(1_000_000_000), "not specified by any standard; large enough to be no limit";
        so_rcvbuf: OrOff::Off, "off unless SO_RCVBUF is set";
        so_sndbuf: OrOff::Off, "off unless SO_SNDBUF is set";
        rmem_max: Bytes(1_000_000_000), "not specified by any standard; large enough to be no limit";
        wmem_max: Bytes(1_000_000_000), "not specified by any standard; large enough to be no limit";
        window_clamp: OrOff::Off, "not in any standard";
        initial_receive_window: OrOff::Off, "not in any standard";
        notsent_lowat: OrOff::Off, "not in any standard";
        app_win: 0, "not in any standard";
        mem: OrOff::Off, "not specified by any standard";
        nagle: true, "RFC 9293 §3.7.4";
        limited_transmit: true, "RFC 3042";
        restart_after_idle: true, "RFC 5681 §4.1";
        pacing: false, "RFC 5681 is clocked by ACKs";
        max_pacing_rate: OrOff::Off, "not in any standard";
        rack: false, "RFC 8985, optional beside RFC 6675";
        tlp: false, "RFC 8985 §7, optional beside RFC 6675";
        reduction: Reduction::AtOnce, "RFC 5681 §3.2; RFC 9937 is optional";
        frto: false, "RFC 5682, optional beside RFC 6298";
        undo: false, "RFC 4015, optional beside RFC 5681";
        dsack: false, "RFC 2883, optional beside RFC 2018";
        tso: false, "not in any standard";
        hystart: true, "RFC 9438 §4.10: CUBIC should use HyStart++";
        cut_base: CutBase::FlightSize, "RFC 5681 §3.1, equation (4)";
        dup_thresh: 3, "RFC 5681 §3.2";
        syn_retries: 6,
            "RFC 9293 §3.8.3 wants 3 minutes; from 1 s, doubled, these make 127 s, as in Linux";
        syn_linear_timeouts: 0, "RFC 6298 §5.5 doubles with each";
        syn_ack_retries: 6, "RFC 9293 §3.8.3 treats all SYNs alike; as `syn_retries`";
        retries: 15,
            "RFC 9293 §3.8.3 wants 100 s; from 1 s, doubled up to 60 s, these make 15 minutes";
        user_timeout: OrOff::Off,
            "RFC 9293 §3.9.1.1: an argument of OPEN; without it, `retries` counts";
        keepalive: OrOff::Off, "RFC 9293 §3.8.4: off unless an application asks for it";
        fast_open: false, "RFC 7413, an experiment beside RFC 9293";
        path_mtu: PathMtu::Discovered, "RFC 9293 §3.7.2, by RFC 1191";
        mtu_probing: MtuProbing::Off, "RFC 4821, optional beside RFC 1191";
        time_wait: Duration::from_secs(60),
            "RFC 9293 §3.4.1: twice the MSL, for which 30 s are usual";
        mss: 65_495, "RFC 9293 §3.7.1: the largest packet minus headers; the path's MTU is the \
                      limit";
    }
}

/// Linux 6.12. Names are the kernel's.
fn linux_6_12() -> Table {
    table! {
        flavour: Flavour::Linux, "net/ipv4/tcp_*.c";
        cc: CongestionControl::named("cubic"), "DEFAULT_TCP_CONG in net/ipv4/Kconfig";
        sack: true, "sysctl tcp_sack = 1";
        timestamps: true, "sysctl tcp_timestamps = 1";
        window_scaling: true, "sysctl tcp_window_scaling = 1";
        fack: false, "sysctl tcp_fack does nothing since 4.15";
        recovery: Recovery::NewRenoSteady,
            "tcp_fastretrans_alert; tcp_rearm_rto restarts the timer with each partial ACK";
        abc: AckCounting::Segment,
            "tcp_slow_start and tcp_cong_avoid_ai count the segments that an ACK covers";
        delayed_ack: OrOff::On(Duration::from_millis(40)),
            "TCP_DELACK_MIN; the delay adapts up to TCP_DELACK_MAX, 200 ms";
        ack_every: 2, "__tcp_ack_snd_check: at once for more than one segment";
        quick_ack: 16, "TCP_MAX_QUICKACKS";
        ecn: Ecn::Off, "sysctl tcp_ecn = 2: accepts ECN, does not request it";
        initial_window: 10, "TCP_INIT_CWND";
        min_rto: Duration::from_millis(200), "TCP_RTO_MIN";
        max_rto: Duration::from_secs(120), "TCP_RTO_MAX";
        initial_rto: Duration::from_secs(1), "TCP_TIMEOUT_INIT";
        rmem: Bytes(6_291_456),
            "tcp_init: the most of sysctl tcp_rmem where there is memory enough";
        wmem: Bytes(4_194_304),
            "tcp_init: the most of sysctl tcp_wmem where there is memory enough";
        so_rcvbuf: OrOff::Off, "off unless SO_RCVBUF is set";
        so_sndbuf: OrOff::Off, "off unless SO_SNDBUF is set";
        rmem_max: Bytes(212_992), "SK_RMEM_MAX: the memory of 256 packets of 256 bytes";
        wmem_max: Bytes(212_992), "SK_WMEM_MAX: the memory of 256 packets of 256 bytes";
        window_clamp: OrOff::Off, "off unless TCP_WINDOW_CLAMP is set";
        initial_receive_window: OrOff::Off, "off unless a route has initrwnd";
        notsent_lowat: OrOff::Off, "sysctl tcp_notsent_lowat = 4294967295";
        app_win: 31, "sysctl tcp_app_win = 31";
        mem: OrOff::Off,
            "tcp_init_mem: sysctl tcp_mem follows the memory of the machine, high at about 9 % of it";
        nagle: true, "tcp_nagle_test, unless TCP_NODELAY is set";
        limited_transmit: true,
            "tcp_packets_in_flight excludes SACKed segments, which makes room for new ones";
        restart_after_idle: true, "sysctl tcp_slow_start_after_idle = 1";
        pacing: false,
            "sk_pacing_status is SK_PACING_NONE unless an algorithm like BBR asks for it";
        max_pacing_rate: OrOff::Off, "off unless SO_MAX_PACING_RATE is set";
        rack: true, "sysctl tcp_recovery = TCP_RACK_LOSS_DETECTION";
        tlp: true, "sysctl tcp_early_retrans = 3";
        frto: true, "sysctl tcp_frto = 2";
        reduction: Reduction::Proportional, "tcp_cwnd_reduction; the only behaviour";
        undo: true, "tcp_may_undo; the only behaviour";
        dsack: true, "sysctl tcp_dsack = 1";
        tso: true, "tcp_write_xmit, tcp_tso_should_defer; the only behaviour";
        hystart: true, "tcp_cubic.hystart = 1; that of 2008 and not of RFC 9406";
        cut_base: CutBase::Cwnd, "tcp_reno_ssthresh, cubictcp_recalc_ssthresh: from the window";
        dup_thresh: 3, "sysctl tcp_reordering = TCP_FASTRETRANS_THRESH";
        syn_retries: 6, "sysctl tcp_syn_retries = TCP_SYN_RETRIES";
        syn_linear_timeouts: 4, "sysctl tcp_syn_linear_timeouts = 4, since 6.5";
        syn_ack_retries: 5, "sysctl tcp_synack_retries = TCP_SYNACK_RETRIES";
        retries: 15, "sysctl tcp_retries2 = TCP_RETR2";
        user_timeout: OrOff::Off, "off unless TCP_USER_TIMEOUT is set";
        keepalive: OrOff::Off,
            "off unless SO_KEEPALIVE is set; its numbers are sysctl tcp_keepalive_time = 2 h, \
             tcp_keepalive_intvl = 75 s, tcp_keepalive_probes = 9";
        fast_open: false,
            "sysctl tcp_fastopen = 1: clients may, but for applications that ask (TCP_FASTOPEN_CONNECT)";
        path_mtu: PathMtu::Discovered, "sysctl ip_no_pmtu_disc = 0";
        mtu_probing: MtuProbing::Off, "sysctl tcp_mtu_probing = 0";
        time_wait: Duration::from_secs(60), "TCP_TIMEWAIT_LEN";
        mss: 65_495, "tcp_sync_mss: the path's MTU minus headers; no smaller value is set";
    }
}

/// Linux 6.1.
fn linux_6_1() -> Table {
    table_like! {
        linux_6_12();
        syn_linear_timeouts: 0, "added in 6.5";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_option_is_explained_once_with_a_source() {
        for profile in Profile::ALL {
            let settings = profile.settings();
            let explained: BTreeSet<_> = settings.iter().map(|line| line.option).collect();
            assert_eq!(explained.len(), settings.len());
            let options = serde_json::to_value(profile.options()).unwrap();
            let options = options.as_object().unwrap();
            assert_eq!(explained, options.keys().map(String::as_str).collect());
            assert!(settings.iter().all(|line| !line.source.is_empty()));
        }
    }

    #[test]
    fn values_are_written_as_in_an_experiment() {
        let value_in = |profile: Profile, option: &str| {
            let lines = profile.settings();
            lines.into_iter().find(|line| line.option == option).map(|line| line.value).unwrap()
        };
        let value = |option| value_in(Profile::Linux612, option);
        assert_eq!(value("cc"), "\"cubic\"");
        assert_eq!(value_in(Profile::Linux2620, "cc"), "{ name = \"cubic\", beta = 0.8 }");
        assert_eq!(value("min_rto"), "\"200 ms\"");
        assert_eq!(value("sack"), "true");
        assert_eq!(value("abc"), "\"segment\"");
        assert_eq!(
            value_in(Profile::FreeBsd92, "keepalive"),
            "{ idle = \"7200 s\", interval = \"75 s\", probes = 8 }"
        );
    }
}
