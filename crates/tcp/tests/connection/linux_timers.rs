//! Linux's retransmission timers, in ticks: of SYNs and of data.
//!
//! `kernel/time/timer.c`: up to 62 ticks are counted one by one, up to 503 in eights, up to 4031 in
//! 64, up to 32,255 in 512, and then in 4096. A timer expires at the first such tick after its
//! time.

use crate::peer::*;
use tcplab_tcp::{Ended, Flags, Settings};
use tcplab_units::Duration;

const RTT: u64 = ms(100);

/// When a timer expires that is set at tick `now` for `ticks` more.
fn wheel(now: u64, ticks: u64) -> u64 {
    let unit = match ticks {
        0..63 => 1,
        63..504 => 8,
        504..4_032 => 64,
        4_032..32_256 => 512,
        _ => 4_096,
    };
    ms(((now / 1_000 + ticks) / unit + 1) * unit)
}

#[test]
fn linux_repeats_a_syn_each_second_and_then_doubles() {
    // tcp_retransmit_timer: the timeout stays as it is for tcp_syn_linear_timeouts = 4, and so for
    // the fifth, too; then it doubles. tcp_write_timeout: tcp_syn_retries more than those four.
    let mut peer = Peer::connecting(Settings { syn_linear_timeouts: 4, ..linux() });
    peer.gets(0, syn());
    let mut now = 0;
    for seconds in [1, 1, 1, 1, 1, 2, 4, 8, 16, 32] {
        now = wheel(now, seconds * 1_000);
        peer.gets(now, syn());
    }
    now = wheel(now, 64_000);
    peer.silence(now - 1);
    assert_eq!(peer.end.ended(), None);
    peer.silence(now);
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn syn_timeout_doubles_without_linear_timeouts() {
    // RFC 6298 §5.5, and Linux before 6.5.
    for settings in [rfc(), linux()] {
        let is_linux = settings.tso;
        let mut peer = Peer::connecting(settings);
        peer.gets(0, syn());
        let mut now = 0;
        for seconds in [1, 2, 4, 8, 16, 32] {
            now = if is_linux { wheel(now, seconds * 1_000) } else { now + ms(seconds * 1_000) };
            peer.gets(now, syn());
        }
        now = if is_linux { wheel(now, 64_000) } else { now + ms(60_000) };
        peer.silence(now);
        assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
    }
}

#[test]
fn linux_repeats_a_syn_ack_five_times() {
    // reqsk_timer_handler: tcp_synack_retries = 5, each after twice the time.
    let mut peer = Peer::listening(Settings { syn_ack_retries: 5, ..linux() }, syn());
    peer.gets(0, syn().with(Flags::ACK).acking(1));
    let mut now = 0;
    for seconds in [1, 2, 4, 8, 16] {
        now = wheel(now, seconds * 1_000);
        peer.gets(now, syn().with(Flags::ACK).acking(1));
    }
    now = wheel(now, 32_000);
    peer.silence(now);
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn lost_syn_reduces_initial_cwnd_to_one_in_linux_only_after_two() {
    // RFC 5681 §3.1; tcp_init_transfer: the window is one segment if more than one SYN was
    // retransmitted, because the first timeout may have been too short (RFC 6298 appendix A).
    for (settings, lost, cwnd) in [(rfc(), 1, 1), (linux(), 1, 10), (linux(), 2, 1)] {
        let mut peer = Peer::connecting(settings);
        peer.gets(0, syn());
        let answer = ms(if lost == 1 { 2_000 } else { 3_500 });
        peer.ignores(answer);
        peer.sends(answer, syn().acking(1));
        peer.gets(answer, ack(1));
        peer.writes(answer, 30 * MSS);
        peer.gets(answer, data(1..cwnd * MSS + 1));
    }
}

#[test]
fn linux_keeps_initial_cwnd_after_spurious_syn_retransmissions() {
    // tcp_try_undo_spurious_syn: the echo is that of the first SYN, so the window is the initial
    // one. Without timestamps nothing shows that, and with the echo of a later SYN the timeout was
    // genuine.
    let timestamps = Settings { timestamps: true, mss: MSS as u16 + 12, ..linux() };
    let without_undo = Settings { undo: false, ..timestamps.clone() };
    let second = wheel(0, 1_000);
    for (settings, echo, cwnd) in [
        (timestamps.clone(), Some(0), 10),
        (timestamps, Some(second), 1),
        (without_undo, Some(0), 1),
        (linux(), None, 1),
    ] {
        let mut peer = Peer::connecting(settings);
        peer.gets(0, syn());
        peer.ignores(ms(3_500));
        let answer = syn().acking(1);
        peer.sends(ms(3_500), echo.map_or(answer.clone(), |sent| answer.echoing(sent)));
        peer.gets(ms(3_500), ack(1));
        peer.writes(ms(3_500), 30 * MSS);
        peer.gets(ms(3_500), data(1..cwnd * MSS + 1));
    }
}

#[test]
fn linux_keeps_initial_cwnd_after_spurious_syn_ack_retransmissions() {
    // tcp_create_openreq_child, and then the same.
    let second = wheel(0, 1_000);
    for (echo, cwnd) in [(0, 10), (second, 1)] {
        let settings = Settings { timestamps: true, mss: MSS as u16 + 12, ..linux() };
        let mut peer = Peer::listening(settings, syn());
        peer.gets(0, syn().with(Flags::ACK).acking(1));
        peer.ignores(ms(3_500));
        peer.sends(ms(3_500), ack(1).echoing(echo));
        peer.writes(ms(3_500), 30 * MSS);
        peer.gets(ms(3_500), data(1..cwnd * MSS + 1));
    }
}

#[test]
fn linux_counts_a_syn_ack_resent_for_a_repeated_syn_as_retransmission() {
    // inet_rtx_syn_ack: of two repetitions one was for a timeout, the other for the client's SYN,
    // which had timed out too. tcp_init_transfer: more than one, so the window is one segment.
    // Without a timeout there is no undo_marker (tcp_create_openreq_child), and the window is the
    // initial one.
    for (times_out, cwnd) in [(true, 1), (false, 10)] {
        let settings = Settings { timestamps: true, mss: MSS as u16 + 12, ..linux() };
        let mut peer = Peer::listening(settings, syn());
        peer.gets(0, syn().with(Flags::ACK).acking(1));
        let times = if times_out { [wheel(0, 1_000), ms(1_200)] } else { [ms(300), ms(800)] };
        for (time, is_timeout) in times.into_iter().zip([times_out, false]) {
            if !is_timeout {
                peer.sends(time, syn().from(0));
            }
            peer.gets(time, syn().with(Flags::ACK).acking(1));
        }
        peer.sends(ms(1_250), ack(1).echoing(times[1]));
        peer.writes(ms(1_250), 30 * MSS);
        peer.gets(ms(1_250), data(1..cwnd * MSS + 1));
    }
}

#[test]
fn linux_rto_after_a_lost_syn_is_from_timestamps_or_three_seconds() {
    // tcp_ack_update_rtt: the echo says which SYN was answered: RTO = 100 + 200 ms.
    // tcp_init_metrics: without one, TCP_TIMEOUT_FALLBACK.
    let timestamps = Settings { timestamps: true, mss: MSS as u16 + 12, ..linux() };
    for (settings, ticks) in [(timestamps, 300), (linux(), 3_000)] {
        let mut peer = Peer::connecting(Settings { tlp: false, ..settings });
        peer.gets(0, syn());
        peer.gets(ms(1_024), syn());
        peer.sends(ms(1_124), syn().acking(1));
        peer.gets(ms(1_124), ack(1));
        peer.writes(ms(1_124), MSS);
        peer.gets(ms(1_124), data(1..1001));
        let again = wheel(ms(1_124), ticks);
        peer.gets(again, data(1..1001));
    }
}

#[test]
fn linux_rto_is_rounded_up_to_wheel_levels_of_8_and_64_ticks() {
    // RTO = 100 + 200 ms; then twice that, in 64ths.
    let mut peer = Peer::connected(Settings { tlp: false, ..linux() }, RTT);
    peer.writes(5_300, MSS);
    peer.gets(5_300, data(1..1001));
    let first = wheel(5_300, 300);
    assert_eq!(first, ms(312));
    peer.gets(first, data(1..1001));
    let second = wheel(first, 600);
    assert_eq!(second, ms(960));
    peer.gets(second, data(1..1001));
}

#[test]
fn linux_syn_ack_timer_expires_before_other_timers_of_the_tick() {
    // reqsk_timer_handler: TIMER_PINNED, so in a wheel of its own (BASE_LOCAL), which runs first.
    // In the same wheel, the timer that was set later would expire first.
    let mut request = Peer::listening(linux(), syn());
    request.gets(0, syn());
    let settings = Settings { tlp: false, min_rto: Duration::from_millis(850), ..linux() };
    let mut other = Peer::connected(settings, RTT);
    other.writes(ms(10), MSS);
    other.gets(ms(10), data(1..1001));
    let due = request.end.next_timer();
    assert_eq!(due, other.end.next_timer(), "1 s from 0 on, and 950 ms from 10 ms on");
    let [one, two] = [&request, &other].map(|peer| peer.end.expiry_order(due).unwrap());
    assert!(one < two, "{one:?} {two:?}");
}

#[test]
fn linux_retransmits_a_fin_with_a_preceding_small_packet() {
    // __tcp_retransmit_skb: tcp_retrans_try_collapse applies to a packet smaller than a segment. Of
    // a packet with a segment and 390 bytes, both are retransmitted, and the FIN by itself.
    for calls in [&[1_000, 1_390][..], &[1_000, 1_000, 390]] {
        let mut peer = Peer::connected(Settings { tlp: false, ..linux() }, RTT);
        let mut end = 1;
        for &bytes in calls {
            peer.writes(0, bytes);
            peer.gets(0, data(end..end + bytes));
            end += bytes;
        }
        peer.end.close();
        peer.writes(0, 0);
        peer.gets(0, ack(1).from(2391).with(Flags::FIN));
        let again = wheel(0, 300);
        peer.gets(again, data(1..1001));
        // The window is of two segments.
        peer.sends(again + RTT, ack(1001));
        peer.gets(again + RTT, data(1001..2001));
        let is_small = calls.len() == 3;
        let last = data(2001..2391);
        let last = if is_small { last.with(Flags::FIN) } else { last.without(Flags::FIN) };
        peer.gets(again + RTT, last);
        peer.sends(again + 2 * RTT, ack(if is_small { 2392 } else { 2391 }));
        if !is_small {
            peer.gets(again + 2 * RTT, ack(1).from(2391).with(Flags::FIN));
        }
    }
}

#[test]
fn tail_loss_probe_of_data_with_fin_keeps_psh() {
    // tcp_send_loss_probe retransmits the last packet, which has PSH as the end of the written
    // data.
    let mut peer = Peer::connected(linux(), RTT);
    peer.writes(0, 12 * MSS);
    peer.gets(0, data(1..10_001));
    peer.end.close();
    peer.sends(ms(100), ack(10_001));
    peer.gets(ms(100), data(10_001..11_001));
    peer.gets(ms(100), data(11_001..12_001).with(Flags::FIN).pushed());
    // 2 * SRTT and 2 ms after that.
    peer.gets(wheel(ms(100), 202), data(11_001..12_001).with(Flags::FIN).pushed());
}

#[test]
fn linux_restarts_rto_on_sack_of_data_sent_before_retransmission() {
    // tcp_clean_rtx_queue: the segment SACKed at 150 ms left at 0, the retransmission of the head
    // at 100 ms. The head has no answer yet, so the timer restarts. The RTT of 150 ms makes SRTT
    // 106.25 ms, and with 200 ms more that is a timeout of 307 ticks.
    let mut peer = Peer::connected(linux(), RTT);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(1).sack(1001..4001));
    peer.gets(ms(100), data(1..1001));
    peer.sends(ms(150), ack(1).sack(1001..5001));
    peer.gets(wheel(ms(150), 307), data(1..1001));
    assert_eq!(peer.end.counters().timeouts, 1);
}

#[test]
fn linux_timer_rearmed_for_the_same_tick_keeps_its_wheel_slot() {
    // The probe of the tail is due after two RTTs and 2 ms: at tick 82, in eights 88. At 70 ms the
    // reordering window, a quarter of the least RTT, and 2 ms more lead to tick 82 as well, for
    // which __mod_timer does nothing.
    let mut peer = Peer::connected(linux(), ms(40));
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(70), ack(1).sack(1_001..2_001));
    peer.gets(ms(88), data(1..1_001));
    peer.ignores(ms(88));
}

#[test]
fn new_data_in_disorder_replaces_tail_loss_probe_timer_with_rto() {
    // tcp_event_new_data_sent: tcp_rearm_rto replaces a pending probe timer. The probe was due at
    // tick 42, two RTTs and 2 ms after the ten segments left. The SACK makes the state Disorder, in
    // which tcp_schedule_loss_probe sets no other. RTO = 20 + 200 ms after the oldest segment left:
    // from tick 20 on 200 ticks, in eights.
    let mut peer = Peer::connected(Settings { rack: false, ..linux() }, ms(20));
    peer.writes(0, 11 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(20), ack(1).sack(1_001..2_001));
    peer.gets(ms(20), data(10_001..11_001));
    let timeout = wheel(ms(20), 200);
    assert_eq!(timeout, ms(224));
    peer.gets(timeout, data(1..1_001));
    assert_eq!(peer.end.counters().timeouts, 1);
}
