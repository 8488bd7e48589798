//! Historical systems: Linux 2.6, FreeBSD 9, Windows 7.

use super::Table;
use crate::schema::{
    AckCounting, CongestionControl, CutBase, Ecn, Flavour, Keepalive, MtuProbing, OrOff, PathMtu,
    Recovery, Reduction, StackPlan,
};
use serde_json::json;
use tcplab_units::{Bytes, Duration};

/// Linux 2.6.26 (2008), by its source. Names are the kernel's.
pub(super) fn linux_2_6_26() -> Table {
    table! {
        flavour: Flavour::Linux, "net/ipv4/tcp_*.c; where 6.12 goes another way, options say so";
        cc: CongestionControl::named("cubic"),
            "DEFAULT_TCP_CONG in net/ipv4/Kconfig; tcp_cubic.c has beta = 717 / 1024, as today";
        sack: true, "sysctl tcp_sack = 1";
        fack: true, "sysctl tcp_fack = 1; reordering does not turn FACK off here";
        recovery: Recovery::NewRenoSteady,
            "tcp_fastretrans_alert; tcp_rearm_rto restarts the timer with each partial ACK";
        abc: AckCounting::Ack, "sysctl tcp_abc = 0";
        delayed_ack: OrOff::On(Duration::from_millis(40)),
            "TCP_DELACK_MIN; the delay adapts up to TCP_DELACK_MAX, 200 ms";
        ack_every: 2, "__tcp_ack_snd_check: at once for more than one segment";
        quick_ack: 16, "TCP_MAX_QUICKACKS";
        timestamps: true, "sysctl tcp_timestamps = 1";
        window_scaling: true, "sysctl tcp_window_scaling = 1";
        ecn: Ecn::Off, "sysctl tcp_ecn = 0";
        initial_window: 3, "tcp_init_cwnd: RFC 3390, for segments of 1096 to 1460 bytes";
        min_rto: Duration::from_millis(200), "TCP_RTO_MIN";
        max_rto: Duration::from_secs(120), "TCP_RTO_MAX";
        initial_rto: Duration::from_secs(3), "TCP_TIMEOUT_INIT";
        rmem: Bytes(4_194_304),
            "tcp_init: the most of sysctl tcp_rmem where there is memory enough";
        wmem: Bytes(4_194_304),
            "tcp_init: the most of sysctl tcp_wmem where there is memory enough";
        so_rcvbuf: OrOff::Off, "off unless SO_RCVBUF is set";
        so_sndbuf: OrOff::Off, "off unless SO_SNDBUF is set";
        rmem_max: Bytes(131_071), "sk_init, where there is memory enough";
        wmem_max: Bytes(131_071), "sk_init, where there is memory enough";
        window_clamp: OrOff::Off, "off unless TCP_WINDOW_CLAMP is set";
        initial_receive_window: OrOff::Off, "added in 2.6.34";
        notsent_lowat: OrOff::Off, "added in 3.12";
        app_win: 31, "sysctl tcp_app_win = 31";
        mem: OrOff::Off, "tcp_init: sysctl tcp_mem follows the memory of the machine";
        nagle: true, "tcp_nagle_test, unless TCP_NODELAY is set";
        limited_transmit: true,
            "tcp_packets_in_flight excludes SACKed segments, which makes room for new ones";
        restart_after_idle: true, "sysctl tcp_slow_start_after_idle = 1";
        pacing: false, "added in 3.12";
        max_pacing_rate: OrOff::Off, "added in 3.13";
        rack: false, "added in 4.4";
        tlp: false, "added in 3.10";
        reduction: Reduction::Halving, "tcp_cwnd_down; the only behaviour";
        frto: true, "sysctl tcp_frto = 2";
        undo: true, "tcp_may_undo; the only behaviour";
        dsack: true, "sysctl tcp_dsack = 1";
        tso: false, "as for a device without offload; bursts of 6.12 have another size";
        hystart: false, "added in 2.6.29";
        cut_base: CutBase::Cwnd, "tcp_reno_ssthresh, bictcp_recalc_ssthresh: from the window";
        dup_thresh: 3, "sysctl tcp_reordering = TCP_FASTRETRANS_THRESH";
        syn_retries: 5, "sysctl tcp_syn_retries = TCP_SYN_RETRIES";
        syn_linear_timeouts: 0, "added in 6.5";
        syn_ack_retries: 5, "sysctl tcp_synack_retries = TCP_SYNACK_RETRIES";
        retries: 15, "sysctl tcp_retries2 = TCP_RETR2";
        user_timeout: OrOff::Off, "TCP_USER_TIMEOUT, added in 2.6.37";
        keepalive: OrOff::Off, "off unless SO_KEEPALIVE is set";
        fast_open: false, "added in 3.6 for clients and 3.7 for servers";
        path_mtu: PathMtu::Discovered, "sysctl ip_no_pmtu_disc = 0";
        mtu_probing: MtuProbing::Off, "sysctl tcp_mtu_probing = 0";
        time_wait: Duration::from_secs(60), "TCP_TIMEWAIT_LEN";
        mss: 65_495, "tcp_sync_mss: the path's MTU minus headers; no smaller value is set";
    }
}

/// Linux 2.6.20 (2007), by its source.
pub(super) fn linux_2_6_20() -> Table {
    let cubic = CongestionControl { name: "cubic".into(), params: json!({ "beta": 0.8 }) };
    table_like! {
        linux_2_6_26();
        cc: cubic,
            "DEFAULT_TCP_CONG; tcp_cubic.c has beta = 819 / 1024, and begins with ssthresh = 100";
        frto: false, "sysctl tcp_frto = 0";
        rmem: Bytes(1_660_224),
            "tcp_init: by tcp_mem; here as with 51,882 pages (Orosz, Sztrik and Kim)";
        wmem: Bytes(1_660_224),
            "tcp_init: by tcp_mem; here as with 51,882 pages (Orosz, Sztrik and Kim)";
    }
}

/// FreeBSD 9.2 (2013), by the source of 9.3; files are those of sys/netinet.
pub(super) fn freebsd_9_2() -> Table {
    table! {
        flavour: Flavour::Rfc, "none of its own here; the source read for this table is that of 9.3";
        cc: CongestionControl::named("newreno"), "cc/cc.c: default_cc_ptr = &newreno_cc_algo";
        sack: true, "net.inet.tcp.sack.enable = 1";
        fack: false, "tcp_sack.c does not implement it";
        recovery: Recovery::NewRenoSteady,
            "tcp_newreno_partial_ack stops the timer, and tcp_output starts it again";
        abc: AckCounting::Byte { limit: 2 },
            "net.inet.tcp.rfc3465 = 1, net.inet.tcp.abc_l_var = 2";
        delayed_ack: OrOff::On(Duration::from_millis(100)), "TCPTV_DELACK";
        ack_every: 2, "tcp_input: DELAY_ACK, at once if one waits already";
        quick_ack: 0, "tcp_input.c does not implement it";
        timestamps: true, "net.inet.tcp.rfc1323 = 1";
        window_scaling: true, "net.inet.tcp.rfc1323 = 1";
        ecn: Ecn::Off, "net.inet.tcp.ecn.enable = 0";
        initial_window: 10,
            "net.inet.tcp.experimental.initcwnd10 = 1 (since October 2012; read in 9.3)";
        min_rto: Duration::from_millis(230),
            "TCPTV_MIN, 30 ms, and TCPTV_CPU_VAR, 200 ms, which is added to every timeout";
        max_rto: Duration::from_secs(64), "TCPTV_REXMTMAX";
        initial_rto: Duration::from_secs(3), "TCPTV_RTOBASE";
        rmem: Bytes(2_097_152), "net.inet.tcp.recvbuf_max";
        wmem: Bytes(2_097_152), "net.inet.tcp.sendbuf_max";
        so_rcvbuf: OrOff::Off, "off unless SO_RCVBUF is set";
        so_sndbuf: OrOff::Off, "off unless SO_SNDBUF is set";
        rmem_max: Bytes(2_097_152), "kern.ipc.maxsockbuf";
        wmem_max: Bytes(2_097_152), "kern.ipc.maxsockbuf";
        window_clamp: OrOff::Off, "tcp_usrreq.c does not implement it";
        initial_receive_window: OrOff::Off, "tcp_usrreq.c does not implement it";
        notsent_lowat: OrOff::Off, "tcp_usrreq.c does not implement it";
        app_win: 0, "tcp_input.c does not implement it";
        mem: OrOff::Off, "without the limit kern.ipc.nmbclusters, which follows the memory of the \
                          machine";
        nagle: true, "tcp_output, unless TF_NODELAY is set";
        limited_transmit: true, "net.inet.tcp.rfc3042 = 1";
        restart_after_idle: true, "newreno_after_idle; the window is then that of RFC 3390";
        pacing: false, "tcp_output.c does not implement it";
        max_pacing_rate: OrOff::Off, "tcp_output.c does not implement it";
        rack: false, "tcp_input.c does not implement it";
        tlp: false, "tcp_timer.c does not implement it";
        reduction: Reduction::AtOnce, "cc_cong_signal, cc_post_recovery";
        frto: false, "only a first timeout is taken back, by the time of its answer (t_badrxtwin)";
        undo: false, "only a first timeout is taken back, by the time of its answer (t_badrxtwin)";
        dsack: false, "tcp_sack.c reports nothing twice";
        tso: false, "as for a device without offload (net.inet.tcp.tso = 1)";
        hystart: false, "cc/cc_cubic.c does not implement it";
        cut_base: CutBase::Cwnd, "newreno_cong_signal: from snd_cwnd";
        dup_thresh: 3, "tcprexmtthresh";
        syn_retries: 4,
            "TCPTV_KEEP_INIT gives up after 75 s: from 3 s, eight fit in, four of them doubled";
        syn_linear_timeouts: 4, "tcp_syn_backoff begins with five ones";
        syn_ack_retries: 3, "net.inet.tcp.syncache.rexmtlimit = SYNCACHE_MAXREXMTS";
        retries: 12, "TCP_MAXRXTSHIFT";
        user_timeout: OrOff::Off, "tcp_timer.c does not implement it";
        keepalive: OrOff::On(Keepalive {
            idle: Duration::from_secs(7_200),
            interval: Duration::from_secs(75),
            probes: 8,
        }),
            "net.inet.tcp.always_keepalive = 1; TCPTV_KEEP_IDLE, TCPTV_KEEPINTVL, TCPTV_KEEPCNT";
        fast_open: false, "added in 12.0 (and was in 10.3 for kernels built with it)";
        path_mtu: PathMtu::Discovered, "net.inet.tcp.path_mtu_discovery = 1";
        mtu_probing: MtuProbing::Off, "tcp_timer.c does not implement it; added in 10.2";
        time_wait: Duration::from_secs(60), "twice net.inet.tcp.msl = 30 s";
        mss: 65_495, "tcp_mss: the path's MTU minus headers";
    }
}

/// Windows 7 (2009). Its source is not public: values are from Microsoft's documentation, and
/// otherwise those of `rfc`.
pub(super) fn windows_7() -> Table {
    table! {
        flavour: Flavour::Rfc, "not documented; as in `rfc`";
        cc: CongestionControl::named("newreno"),
            "netsh int tcp show global: add-on congestion control none (\"ctcp\" is Compound)";
        sack: true, "Next Generation TCP/IP stack: RFC 2883, RFC 3517";
        fack: false, "not documented; as in `rfc`";
        recovery: Recovery::NewReno, "Next Generation TCP/IP stack: RFC 2582";
        abc: AckCounting::Byte { limit: 1 }, "not documented; as in `rfc`";
        delayed_ack: OrOff::On(Duration::from_millis(200)),
            "netsh int tcp show supplemental (2008 R2, KB2472264): Delayed Ack Timeout 200";
        ack_every: 2, "TcpAckFrequency = 2";
        quick_ack: 0, "not documented; as in `rfc`";
        timestamps: false, "netsh int tcp show global: RFC 1323 timestamps disabled";
        window_scaling: true, "netsh int tcp show global: receive window auto-tuning normal";
        ecn: Ecn::Off, "netsh int tcp show global: ECN capability disabled";
        initial_window: 2,
            "netsh int tcp show supplemental (2008 R2, KB2472264): Initial Congestion Window 2";
        min_rto: Duration::from_millis(300),
            "netsh int tcp show supplemental (2008 R2, KB2472264): Minimum RTO 300";
        max_rto: Duration::from_secs(60), "not documented; as in `rfc`";
        initial_rto: Duration::from_secs(3), "netsh int tcp show global: InitialRto 3000";
        rmem: Bytes(16_777_216), "the most of auto-tuning at level normal (fasterdata.es.net)";
        wmem: Bytes(1_000_000_000), "not documented; as in `rfc`";
        so_rcvbuf: OrOff::Off, "off unless SO_RCVBUF is set";
        so_sndbuf: OrOff::Off, "off unless SO_SNDBUF is set";
        rmem_max: Bytes(1_000_000_000), "not documented; as in `rfc`";
        wmem_max: Bytes(1_000_000_000), "not documented; as in `rfc`";
        window_clamp: OrOff::Off, "not documented; as in `rfc`";
        initial_receive_window: OrOff::Off, "not documented; as in `rfc`";
        notsent_lowat: OrOff::Off, "not documented; as in `rfc`";
        app_win: 0, "not documented; as in `rfc`";
        mem: OrOff::Off, "not documented; as in `rfc`";
        nagle: true, "on unless TCP_NODELAY is set";
        limited_transmit: true, "not documented; as in `rfc`";
        restart_after_idle: true, "not documented; as in `rfc`";
        pacing: false, "not documented; as in `rfc`";
        max_pacing_rate: OrOff::Off, "not documented; as in `rfc`";
        rack: false, "added in Windows 10";
        tlp: false, "added in Windows 10";
        reduction: Reduction::AtOnce, "not documented; as in `rfc`";
        frto: true, "Next Generation TCP/IP stack: RFC 4138";
        undo: false, "not documented; as in `rfc`";
        dsack: true, "Next Generation TCP/IP stack: RFC 2883";
        tso: false, "as for a device without offload";
        hystart: false, "there is no CUBIC";
        cut_base: CutBase::FlightSize, "not documented; as in `rfc`";
        dup_thresh: 3,
            "not documented; as in `rfc` (TcpMaxDupAcks = 2 was that of Windows 2000 and XP)";
        syn_retries: 2, "fixed at 2 (Microsoft, on MaxSynRetransmissions)";
        syn_linear_timeouts: 0, "not documented; as in `rfc`";
        syn_ack_retries: 2, "TcpMaxConnectResponseRetransmissions = 2, that of Server 2003";
        retries: 5, "TcpMaxDataRetransmissions = 5";
        user_timeout: OrOff::Off, "off unless TCP_MAXRT is set";
        keepalive: OrOff::Off, "off unless SO_KEEPALIVE is set";
        fast_open: false, "added in Windows 10";
        path_mtu: PathMtu::Discovered, "EnablePMTUDiscovery = 1, that of Server 2003";
        mtu_probing: MtuProbing::Off, "EnablePMTUBHDetect = 0, that of Server 2003";
        time_wait: Duration::from_secs(120), "TcpTimedWaitDelay = 120, that of Server 2003";
        mss: 65_495, "the path's MTU minus headers";
    }
}
