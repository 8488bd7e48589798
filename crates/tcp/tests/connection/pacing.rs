//! Pacing at the rate that Linux computes from the window, and at a controller's rate.

use crate::peer::*;
use std::sync::Arc;
use tcplab_cc::{Ack, Congestion, CongestionControl, Control, FlowState};
use tcplab_tcp::{BuildControl, Settings, Start, WindowReduction};
use tcplab_units::{Duration, Rate};

const RTT: u64 = ms(100);

fn paced(mut settings: Settings) -> Settings {
    settings.pacing = true;
    settings
}

/// A window of twenty from 100 ms on, when the first ten are acknowledged.
fn twenty(settings: Settings) -> Peer {
    let mut peer = Peer::connected(paced(settings), RTT);
    peer.writes(0, 60 * MSS);
    // tcp_update_skb_after_send: the first ten segments of a connection are not paced.
    peer.gets(0, data(1..10_001));
    peer.sends(RTT, ack(10_001));
    peer
}

#[test]
fn linux_sends_twice_the_window_a_round_trip_in_slow_start() {
    // tcp_update_pacing_rate: 200 % of 20 segments in 100 ms are 400 kB/s: two segments take 5 ms.
    // The first two could have left at 10 ms, and half of their time is credited for that wait.
    let mut peer = twenty(linux());
    peer.gets(ms(100), data(10_001..12_001).pushed());
    for burst in 1..10 {
        let (at, start) = (97_500 + burst * 5_000, 10_001 + burst * 2_000);
        peer.gets(at, data(start..start + 2_000).pushed());
    }
    let rate = peer.end.snapshot().pacing.expect("it paces");
    assert_eq!(rate.bits_per_second(), 3_200_000);
    // The window is full.
    peer.silence(ms(199));
}

#[test]
fn max_pacing_rate_limits_the_pacing_rate() {
    // min(200 % of 20 segments in 100 ms, 200 kB/s): two segments take 10 ms. The first two could
    // have left at 0 ms and left at 100 ms, for which half of their time is credited.
    let settings =
        Settings { max_pacing_rate: Some(Rate::from_bits_per_second(1_600_000)), ..linux() };
    let mut peer = twenty(settings);
    peer.gets(ms(100), data(10_001..12_001).pushed());
    for burst in 1..10 {
        let (at, start) = (95_000 + burst * 10_000, 10_001 + burst * 2_000);
        peer.gets(at, data(start..start + 2_000).pushed());
    }
    let rate = peer.end.snapshot().pacing.expect("it paces");
    assert_eq!(rate.bits_per_second(), 1_600_000);
}

/// Linux at a rate at which a segment takes this many milliseconds.
fn slow(millis: u64) -> Settings {
    let rate = Rate::from_bits_per_second(8 * MSS * 1000 / millis);
    Settings { max_pacing_rate: Some(rate), ..paced(linux()) }
}

#[test]
fn rto_after_a_tail_loss_probe_includes_the_pacing_delay() {
    let mut peer = Peer::connected(slow(100), RTT);
    peer.writes(0, 11 * MSS);
    peer.gets(0, data(1..10_001));
    // Two round trips and 2 ms, and the 200 ms of the last burst of two, at the next tick of eight.
    peer.gets(ms(408), data(10_001..11_001).pushed());
    // tcp_send_loss_probe, tcp_pacing_delay: 300 ms more, and the 50 ms until the next segment may
    // leave: it takes 100 ms, of which half is credited for the pause.
    peer.ignores(ms(759));
    peer.gets(ms(760), data(1..1001));
}

#[test]
fn pacing_timer_sends_retransmissions_before_new_data() {
    let mut peer = Peer::connected(Settings { tlp: false, ..slow(50) }, RTT);
    peer.writes(0, 30 * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(304), data(1..1001));
    // F-RTO sends new data with the ACK (tcp_process_loss); when the pacing timer expires,
    // retransmissions come first (tcp_tsq_write).
    peer.sends(ms(404), ack(1001));
    peer.gets(ms(404), data(10_001..11_001));
    peer.gets(ms(429), data(1001..2001));
}

#[test]
fn without_segmentation_offload_single_segments_are_paced() {
    let mut peer = twenty(rfc());
    peer.gets(ms(100), data(10_001..11_001));
    for segment in 1..20 {
        let (at, start) = (98_750 + segment * 2_500, 10_001 + segment * 1_000);
        peer.gets(at, data(start..start + 1_000));
    }
    peer.silence(ms(199));
}

#[test]
fn linux_paces_at_120_percent_from_half_of_ssthresh() {
    // After a loss the window is five: 120 % of that in 60 ms are 100 kB/s, and a segment takes 10
    // ms.
    let mut peer = Peer::connected(paced(Settings { tso: false, ..linux() }), ms(60));
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(60), ack(1).sack(1001..10_001));
    peer.gets(ms(60), data(1..1001));
    peer.sends(ms(120), ack(10_001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (5, Some(5)));
    peer.writes(ms(200), 4 * MSS);
    // Half of that is credited for the first.
    for (number, at) in [200, 205, 215, 225].into_iter().enumerate() {
        let start = 10_001 + number as u64 * MSS;
        peer.gets(ms(at), data(start..start + MSS));
    }
}

#[test]
fn retransmission_after_timeout_is_not_delayed_by_pacing() {
    let settings = Settings { tlp: false, ..rfc() };
    let mut peer = twenty(settings);
    peer.ignores(ms(1_099));
    peer.gets(ms(1_100), data(10_001..11_001));
    peer.ignores(ms(1_101));
}

#[test]
fn frto_sends_new_data_later_if_pacing_delays_it() {
    let mut peer = Peer::connected(Settings { tlp: false, ..paced(rfc()) }, RTT);
    peer.writes(0, 30 * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(1_000), data(1..1001));
    // At 200 kB/s the retransmission takes 5 ms, of which half is credited. RFC 5682 §3.1 step 2b:
    // then new data follows.
    peer.sends(ms(1_001), ack(1001));
    peer.gets(1_002_500, data(10_001..11_001));
    peer.ignores(1_002_501);
}

#[test]
fn retransmissions_are_paced() {
    let mut peer =
        Peer::connected(Settings { reduction: WindowReduction::AtOnce, ..paced(rfc()) }, RTT);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    // Four of ten lost: the window is five, three have arrived, three are not known to have.
    peer.sends(ms(100), ack(1).sack(4001..10_001));
    peer.gets(ms(100), data(1..1001));
    // 120 % of max(5, 10 outstanding) segments in 100 ms are 120 kB/s: 8.3 ms each, half of it
    // credited.
    peer.gets_near(104_167, data(1001..2001));
    peer.gets_near(112_500, data(2001..3001));
    peer.gets_near(120_833, data(3001..4001));
    peer.ignores(ms(121));
}

/// Twenty segments at 100 kB/s, of which each takes 10 ms.
#[derive(Clone, Debug)]
struct Steady {
    least_burst: Option<u64>,
    longest_burst: Option<Duration>,
}

impl CongestionControl for Steady {
    fn on_ack(&mut self, _flow: &FlowState, _ack: &Ack) {}

    fn on_congestion(&mut self, _flow: &FlowState, _event: Congestion) {}

    fn control(&self) -> Control {
        Control {
            cwnd: 20,
            ssthresh: None,
            pacing: Some(Rate::from_bits_per_second(800_000)),
            prr: false,
            least_burst: self.least_burst,
            longest_burst: self.longest_burst,
        }
    }

    fn buffered_windows(&self) -> u64 {
        3
    }
}

fn steady(settings: Settings, least_burst: Option<u64>, longest_burst: Option<Duration>) -> Peer {
    let control: BuildControl =
        Arc::new(move |_: Start| Box::new(Steady { least_burst, longest_burst }));
    Peer::steered(settings, RTT, control)
}

#[test]
fn congestion_control_with_a_rate_is_paced_without_pacing_option() {
    let longest = |millis| Some(Duration::from_millis(millis));
    for (settings, least_burst, longest_burst, size) in [
        (rfc(), None, None, 1),
        // Without a wish of the controller, a burst has at least two segments (tcp_min_tso_segs).
        (linux(), None, None, 2),
        (linux(), Some(1), None, 1),
        // A segment takes 10 ms.
        (linux(), None, longest(9), 1),
        (linux(), None, longest(39), 3),
    ] {
        assert!(!settings.pacing);
        let mut peer = steady(settings, least_burst, longest_burst);
        peer.writes(0, 60 * MSS);
        // At 100 ms the path is too long for larger bursts. The bursts before the tenth segment are
        // not paced.
        let free = 9 / size * size;
        peer.gets(0, data(1..free * MSS + 1));
        let mut start = free * MSS + 1;
        for burst in 0..3 {
            let at = ms(burst * size * 10);
            peer.gets(at, data(start..start + size * MSS));
            start += size * MSS;
        }
        let rate = peer.end.snapshot().pacing.expect("it paces");
        assert_eq!(rate.bits_per_second(), 800_000);
        peer.ignores(ms(3 * size * 10 - 1));
    }
}

#[test]
fn send_buffer_holds_sndbuf_expand_windows_of_congestion_control() {
    let written = |mut peer: Peer| {
        peer.writes(0, 1000 * MSS);
        peer.ignores(0);
        peer.end.unsent() + 10 * MSS
    };
    let (three, two) = (steady(linux(), None, None), Peer::connected(linux(), RTT));
    // tcp_sndbuf_expand: 1000 and 640 for headers make 2048, and 256 more, for each segment of
    // three windows of twenty, or two of ten. What is written beyond it is the rest of a packet of
    // 65,000 bytes, and memory beside data takes 960 of each.
    for (peer, limit) in [(three, 3 * 20 * 2304), (two, 2 * 10 * 2304)] {
        let written = written(peer);
        assert!((limit - 10_000..limit + 66_000).contains(&written), "{written}: {limit}");
    }
}

#[test]
fn linux_rto_starts_at_the_next_paced_departure() {
    let rto = Duration::from_millis(40);
    let settings = Settings { tlp: false, tso: false, min_rto: rto, max_rto: rto, ..linux() };
    let mut peer = steady(settings, None, None);
    peer.writes(0, 12 * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(10), data(10_001..11_001));
    peer.gets(ms(20), data(11_001..12_001));
    // tcp_pacing_delay: at 25 ms the next may leave in 5 ms, so that the 40 ms begin at 30. A timer
    // runs out a tick late rather than early.
    peer.sends(ms(25), ack(10_001));
    peer.gets(ms(71), data(10_001..11_001));
}

#[test]
fn backed_off_rto_excludes_the_pacing_delay() {
    // tcp_retransmit_timer calls inet_csk_reset_xmit_timer itself, without tcp_pacing_delay. The
    // RTO of 300 ms runs out at a tick of 8 ms, and twice that at 904 ms, rounded up to one of 64.
    // The last burst of two takes 400 ms and the repair 200 more: until 600, by which the second
    // timeout would be later.
    let mut peer = Peer::connected(Settings { tlp: false, ..slow(200) }, RTT);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(304), data(1..1001));
    peer.gets(ms(960), data(1..1001));
}

/// Bytes a second at which the first data leaves under this congestion control, when the SYN was
/// sent twice and this answers after 1120 ms.
fn rate_after_two_syns(cc: &'static str, answer: Line) -> u64 {
    let settings = paced(Settings { timestamps: true, ..linux() });
    let mut peer = Peer::steered_connecting(settings, linux_control(cc));
    peer.gets(0, syn());
    peer.gets(ms(1024), syn());
    peer.sends(ms(1120), answer);
    peer.gets(ms(1120), ack(1));
    peer.writes(ms(1120), 60 * MSS);
    peer.ignores(ms(1120));
    peer.end.snapshot().pacing.expect("it paces").bits_per_second() / 8
}

#[test]
fn initial_pacing_rate_after_a_lost_syn_uses_cwnd_of_one() {
    // tcp_enter_loss leaves a window of one, by which the SYN-ACK sets the rate
    // (tcp_update_pacing_rate) before tcp_init_transfer makes the window ten: 200 % of a segment in
    // an RTT of 96 ms, which the timestamps tell in milliseconds.
    let rate = rate_after_two_syns("newreno", syn().acking(1));
    assert_eq!(rate, 2 * 988 * 1_000_000 / 96_000);
    // That the first SYN has arrived after all takes only the mark back by which the window would
    // begin with one (tcp_try_undo_spurious_syn). Its RTT is of 1120 ms.
    let rate = rate_after_two_syns("newreno", syn().acking(1).echoing(0));
    assert_eq!(rate, 2 * 988 * 1_000_000 / 1_120_000);
}

#[test]
fn westwood_paces_at_120_percent_after_a_lost_syn() {
    // tcp_westwood_event: a threshold of no bandwidth, at least two segments. The window of one is
    // not below half of it, so the rate is 120 % (tcp_update_pacing_rate).
    let rate = rate_after_two_syns("westwood+", syn().acking(1));
    assert_eq!(rate, 120 * 988 * 10_000 / 96_000);
}

#[test]
fn lp_initial_pacing_rate_is_that_of_half_the_initial_window() {
    // tcp_lp_pkts_acked runs for the SYN-ACK before tcp_lp_init has run. Its state is zero, and a
    // delay of zero is not below a least one of zero: it halves the window of ten for the rate,
    // which is of 200 %.
    for (cc, window) in [("newreno", 10), ("lp", 5)] {
        let mut peer = Peer::steered(paced(linux()), RTT, linux_control(cc));
        peer.writes(0, 60 * MSS);
        peer.ignores(0);
        let rate = peer.end.snapshot().pacing.expect("it paces");
        assert_eq!(rate.bits_per_second() / 8, 2 * window * MSS * 1_000 / 100);
    }
}
