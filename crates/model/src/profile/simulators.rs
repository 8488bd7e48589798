//! The simulators used in most studies of TCP.

use super::Table;
use crate::schema::{
    AckCounting, CongestionControl, CutBase, Ecn, Flavour, MtuProbing, OrOff, PathMtu, Recovery,
    Reduction, StackPlan,
};
use tcplab_units::{Bytes, Duration};

/// ns-2: `Agent/TCP/Newreno` and `Agent/TCPSink`, by `ns-default.tcl`, which names the variables,
/// and `tcp.cc`. Studies often changed these: always `window_`, and often the segment size and
/// delayed ACKs.
pub(super) fn ns2() -> Table {
    table! {
        flavour: Flavour::Rfc, "none of its own here";
        cc: CongestionControl::named("newreno"), "Agent/TCP/Newreno";
        sack: false, "Agent/TCP/Newreno has none; Agent/TCP/Sack1 has";
        fack: false, "Agent/TCP/Newreno has none; Agent/TCP/Fack has";
        recovery: Recovery::NewReno,
            "Agent/TCP/Newreno: newreno_changes1_ = 1; Agent/TCP is \"tahoe\", Agent/TCP/Reno \"reno\"";
        abc: AckCounting::Ack, "opencwnd: by 1 for each ACK, or increase_num_ / cwnd_";
        delayed_ack: OrOff::Off, "Agent/TCPSink; Agent/TCPSink/DelAck waits interval_ = 100 ms";
        ack_every: 2, "Agent/TCPSink/DelAck: for a second segment at once";
        quick_ack: 0, "Agent/TCPSink does not implement it";
        timestamps: false, "timestamps_ = false";
        window_scaling: true, "windows are numbers of packets, without a limit";
        ecn: Ecn::Off, "ecn_ = 0";
        initial_window: 2, "windowInit_ = 2, windowInitOption_ = 1";
        min_rto: Duration::from_millis(200), "minrto_ = 0.2";
        max_rto: Duration::from_secs(60), "maxrto_ = 60";
        initial_rto: Duration::from_secs(3), "rtxcur_init_ = 3.0";
        rmem: Bytes(20_000), "window_ = 20 packets of packetSize_ = 1000 bytes";
        wmem: Bytes(1_000_000_000), "there is no such buffer; large enough to be no limit";
        so_rcvbuf: OrOff::Off, "there is no such call";
        so_sndbuf: OrOff::Off, "there is no such call";
        rmem_max: Bytes(1_000_000_000), "there is no such limit";
        wmem_max: Bytes(1_000_000_000), "there is no such limit";
        window_clamp: OrOff::Off, "`rmem` is window_";
        initial_receive_window: OrOff::Off, "not implemented";
        notsent_lowat: OrOff::Off, "not implemented";
        app_win: 0, "not implemented";
        mem: OrOff::Off, "not implemented";
        nagle: false, "agents send whole packets";
        limited_transmit: true, "singledup_ = 1";
        restart_after_idle: true, "slow_start_restart_ = true";
        pacing: false, "not implemented in Agent/TCP";
        max_pacing_rate: OrOff::Off, "not implemented";
        rack: false, "not implemented";
        tlp: false, "not implemented";
        reduction: Reduction::AtOnce, "slowdown(CLOSE_SSTHRESH_HALF|CLOSE_CWND_HALF)";
        frto: false, "frto_enabled_ = 0";
        undo: false, "not implemented";
        dsack: false, "generateDSacks_ = false";
        tso: false, "not implemented";
        hystart: false, "not implemented";
        cut_base: CutBase::Cwnd, "slowdown: from window(), the lesser of cwnd_ and window_";
        dup_thresh: 3, "numdupacks_ = 3";
        syn_retries: 255, "max_connects_ = -1, unlimited; here the largest possible value";
        syn_linear_timeouts: 0, "rtt_backoff doubles with each";
        syn_ack_retries: 255, "unlimited, as `syn_retries`; here the largest possible value";
        retries: 255, "unlimited; here the largest possible value";
        user_timeout: OrOff::Off, "not implemented";
        keepalive: OrOff::Off, "not implemented";
        fast_open: false, "not implemented";
        path_mtu: PathMtu::Known, "packets have no largest size";
        mtu_probing: MtuProbing::Off, "not implemented";
        time_wait: Duration::from_secs(60), "Agent/TCP does not close; as in `rfc`";
        mss: 1000, "packetSize_ = 1000";
    }
}

/// ns-3 as of ns-3.33 (2021), by the attribute defaults in `src/internet/model`.
pub(super) fn ns3() -> Table {
    table! {
        flavour: Flavour::Rfc, "none of its own here";
        cc: CongestionControl::named("newreno"), "TcpL4Protocol::SocketType (from 3.34 on CUBIC)";
        sack: true, "TcpSocketBase::Sack";
        fack: false, "TcpTxBuffer::IsLostRFC";
        recovery: Recovery::NewReno, "TcpSocketBase: m_isFirstPartialAck";
        abc: AckCounting::Ack, "TcpNewReno::SlowStart: by a segment for each ACK";
        delayed_ack: OrOff::On(Duration::from_millis(200)), "TcpSocket::DelAckTimeout";
        ack_every: 2, "TcpSocket::DelAckCount";
        quick_ack: 0, "not implemented";
        timestamps: true, "TcpSocketBase::Timestamp";
        window_scaling: true, "TcpSocketBase::WindowScaling";
        ecn: Ecn::Off, "TcpSocketBase::UseEcn";
        initial_window: 10, "TcpSocket::InitialCwnd";
        min_rto: Duration::from_secs(1), "TcpSocketBase::MinRto";
        max_rto: Duration::from_secs(60), "TcpSocketBase::ReTxTimeout: at most 60 s when doubled";
        initial_rto: Duration::from_secs(3), "TcpSocket::ConnTimeout";
        rmem: Bytes(131_072), "TcpSocket::RcvBufSize";
        wmem: Bytes(131_072), "TcpSocket::SndBufSize";
        so_rcvbuf: OrOff::Off, "there is no such call";
        so_sndbuf: OrOff::Off, "there is no such call";
        rmem_max: Bytes(1_000_000_000), "there is no such limit";
        wmem_max: Bytes(1_000_000_000), "there is no such limit";
        window_clamp: OrOff::Off, "not implemented";
        initial_receive_window: OrOff::Off, "not implemented";
        notsent_lowat: OrOff::Off, "not implemented";
        app_win: 0, "not implemented";
        mem: OrOff::Off, "not implemented";
        nagle: false, "TcpSocket::TcpNoDelay = true";
        limited_transmit: true, "TcpSocketBase::LimitedTransmit";
        restart_after_idle: false, "not implemented";
        pacing: false, "TcpSocketState::EnablePacing";
        max_pacing_rate: OrOff::Off, "TcpSocketState::MaxPacingRate = 4 Gb/s, without EnablePacing";
        rack: false, "not implemented";
        tlp: false, "not implemented";
        reduction: Reduction::Proportional, "TcpL4Protocol::RecoveryType: TcpPrrRecovery";
        frto: false, "not implemented";
        undo: false, "not implemented";
        dsack: false, "not implemented";
        tso: false, "not implemented";
        hystart: true, "TcpCubic::HyStart; TcpNewReno does not implement it";
        cut_base: CutBase::FlightSize, "TcpNewReno::GetSsThresh: from the bytes in flight";
        dup_thresh: 3, "TcpSocketBase::ReTxThreshold";
        syn_retries: 6, "TcpSocket::ConnCount";
        syn_linear_timeouts: 0, "TcpSocketBase::SendEmptyPacket doubles with each";
        syn_ack_retries: 6, "TcpSocket::ConnCount; TcpSocketBase::SendEmptyPacket is that of both";
        retries: 6, "TcpSocket::DataRetries";
        user_timeout: OrOff::Off, "not implemented";
        keepalive: OrOff::Off, "not implemented";
        fast_open: false, "not implemented";
        path_mtu: PathMtu::Known, "there is no discovery for IPv4; its routers divide packets";
        mtu_probing: MtuProbing::Off, "not implemented";
        time_wait: Duration::from_secs(240), "twice TcpSocketBase::MaxSegLifetime";
        mss: 536, "TcpSocket::SegmentSize";
    }
}
