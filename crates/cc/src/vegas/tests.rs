//! Vegas's rules, on a path whose delay the test sets: a longer delay is a queue.
//!
//! The first ACK of a round trip here ends Vegas's round trip, so a delay takes effect in the round
//! trip after the first one that has it.

use super::*;
use crate::testing::{INIT, LINUX, Path};

fn vegas(preset: &str) -> Vegas {
    let params = match preset {
        "" => crate::Params::default(),
        preset => ALGORITHM.preset(preset).unwrap(),
    };
    Vegas::new(&INIT, params.parse().unwrap())
}

/// The windows after round trips with these delays.
fn after(cc: &mut Vegas, rtts_ms: &[u64]) -> Vec<u64> {
    let mut path = Path::new(cc, Duration::from_millis(100));
    let round = |&rtt: &u64| {
        path.rtt = Duration::from_millis(rtt);
        path.round()
    };
    rtts_ms.iter().map(round).collect()
}

#[test]
fn slow_start_ends_at_the_rate_measured_and_then_the_window_shrinks_by_one() {
    // With 80 segments and 10 ms of queue on 100 ms, diff = 80 * 10 / 100 = 8 > gamma: the window
    // is 80 * 100 / 110 + 1 = 73. Then diff = 73 * 10 / 100 = 7 > beta, and so on.
    let seen = after(&mut vegas(""), &[100, 100, 110, 110, 110, 110]);
    assert_eq!(seen, [20, 40, 80, 73, 72, 71]);
}

#[test]
fn the_window_holds_from_alpha_to_beta_and_grows_below() {
    // With 73 segments after slow start: 73 * 5 / 100 = 3 is neither below 2 nor above 4, and 73 *
    // 1 / 100 = 0 is below. The minimum RTT counts, so a shorter delay takes effect with the first
    // ACK.
    let mut cc = vegas("");
    let seen = after(&mut cc, &[100, 100, 110, 110, 105, 105, 105, 101, 101, 101]);
    assert_eq!(seen[3..], [73, 73, 73, 73, 74, 75, 76]);
    assert_eq!((cc.diff, in_ms(cc.rtt)), (0.0, 101.0));
}

#[test]
fn with_two_samples_it_is_reno() {
    // Three RTTs of 300 ms with eight segments in slow start: 8 * 200 / 100 = 16 in the queue, and
    // the window is 8 * 100 / 300 + 1 = 3. The round trip before has only two samples.
    let init = Init { initial_window: 2, ..INIT };
    let mut cc = Vegas::new(&init, Config::default());
    assert_eq!(after(&mut cc, &[100, 300, 300]), [4, 8, 3]);
}

#[test]
fn a_loss_halves() {
    for (preset, kept) in [("", 20), ("1994", 20), ("freebsd-9.2", 20), ("ns2", 30)] {
        let mut cc = vegas(preset);
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        while path.cwnd() < 40 {
            path.round();
        }
        path.congestion(Cause::Loss);
        assert_eq!(path.cwnd(), kept, "{preset}");
    }
}

#[test]
fn linux_cwnd_times_rtt_overflows_at_32_bits() {
    // 10,000 * 430,000 = 4,300,000,000 = 2^32 + 5,032,704.
    let times = |init| Vegas::new(init, Config::default()).times(10_000, 430_000);
    assert_eq!((times(&LINUX), times(&INIT)), (5_032_704, 4_300_000_000));
}

#[test]
fn vegas_1994_slow_start_doubles_every_other_round_trip() {
    // With 40 segments and 10 of 110 ms in the queue, diff = 39 - 40 * 100 / 110 = 2.6 > gamma. The
    // paper only says that slow start ends; ns-2 takes an eighth.
    let delays = [100, 100, 100, 100, 110, 110];
    assert_eq!(after(&mut vegas("1994"), &delays), [10, 20, 20, 40, 40, 40]);
    assert_eq!(after(&mut vegas("ns2"), &delays), [10, 20, 20, 40, 40, 35]);
}

#[test]
fn vegas_1994_keeps_one_to_three_segments_queued() {
    // 39 - 40 * 100 / 110 = 2.6, rounded to 3, is not above beta; at 115 ms it is 4.2. The mean of
    // the round trip before includes one ACK with 115 ms.
    let delays = [100, 100, 100, 100, 110, 110, 110, 110, 115, 115, 115];
    assert_eq!(after(&mut vegas("1994"), &delays)[6..], [40, 40, 39, 38, 37]);
    // 34 - 35 * 100 / 110 = 2.2 holds, 34 - 35 * 100 / 115 = 3.6 is above, 33 - 34 * 100 / 115 =
    // 3.4 holds.
    assert_eq!(after(&mut vegas("ns2"), &delays)[6..], [35, 35, 35, 34, 34]);
}

#[test]
fn freebsd_counts_whole_milliseconds() {
    // 40 segments of 1460 bytes: 101 ms expected, 111 ms measured, both with the current
    // millisecond. 58,400 / 101 = 578 and 58,400 / 111 = 526; 52 * 101 / 1460 = 3 is not above
    // beta, so growth continues. With 80: (1156 - 1052) * 101 / 1460 = 7 is.
    let seen = after(&mut vegas("freebsd-9.2"), &[100, 100, 100, 100, 110, 110, 110]);
    assert_eq!(seen, [10, 20, 20, 40, 80, 79, 78]);
}

#[test]
fn only_linux_resets_base_rtt_after_idle() {
    for (preset, base_rtt) in [("", 0.0), ("ns2", 100.0)] {
        let mut cc = vegas(preset);
        after(&mut cc, &[100]);
        cc.on_transmit_start(&crate::testing::FLOW, Duration::from_secs(1));
        let found = crate::testing::probe(&cc, "base_rtt_ms");
        assert!((found - base_rtt).abs() < 1e-9, "{preset}: {found}");
    }
}
