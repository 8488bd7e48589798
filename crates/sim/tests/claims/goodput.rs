//! The goodput of a single flow, checked by arithmetic.

use crate::{acked_per_second, assert_within, run};

#[test]
fn goodput_of_a_full_link_is_its_rate_less_headers() {
    for (rate, mbit) in [("10 Mbit/s", 10.0), ("100 Mbit/s", 100.0), ("1 Gbit/s", 1000.0)] {
        // The receive buffer limits the window to twice the BDP: the link is always busy, the queue
        // is half full, and nothing is lost.
        let bdp = mbit * 1e6 * 0.040 / 8.0;
        let tables = run(&format!(
            r#"
            duration = "40 s"
            stack = {{ rmem = "{} B" }}
            [[network.links]]
            between = ["a", "b"]
            rate = "{rate}"
            delay = "20 ms"
            queue = "2 BDP"
            [[flows]]
            from = "a"
            to = "b"
            "#,
            (2.0 * bdp) as u64
        ));
        // A packet of 1500 bytes carries 1448: 20 of IP, 20 of TCP, 12 of timestamps.
        let expected = mbit * 1e6 / 8.0 * 1448.0 / 1500.0;
        assert_within(0.001, acked_per_second(&tables, 10.0, 40.0), expected, rate);
        assert_eq!(crate::flows(&tables, "retransmitted_segments"), [0.0]);
    }
}

#[test]
fn a_window_below_the_bdp_gives_one_window_per_rtt() {
    let tables = run(r#"
        duration = "60 s"
        stack = { rmem = "28960 B", delayed_ack = "off" }
        [[network.links]]
        between = ["a", "b"]
        rate = "100 Mbit/s"
        delay = "50 ms"
        [[flows]]
        from = "a"
        to = "b"
    "#);
    // 20 segments of 1448 bytes each round trip: 100 ms, and the transmission times of a packet of
    // 1500 bytes and an ACK of 52 bytes.
    let round_trip = 0.100 + (1500.0 + 52.0) * 8.0 / 100e6;
    let expected = 20.0 * 1448.0 / round_trip;
    assert_within(0.001, acked_per_second(&tables, 10.0, 60.0), expected, "window limited");
}

#[test]
fn a_transfer_takes_the_rounds_of_slow_start() {
    let tables = run(r#"
        duration = "5 s"
        stack = { abc = "segment" }
        [[network.links]]
        between = ["a", "b"]
        rate = "1 Gbit/s"
        delay = "50 ms"
        [[flows]]
        from = "a"
        to = "b"
        traffic = { kind = "bulk", size = "100 kB" }
    "#);
    // 100 kB are 70 segments: flights of 10, 20 and 40. One round trip for the handshake, two for
    // the first two flights, half a round trip for the last: 350 ms. Transmissions: the SYN's 60
    // bytes, the SYN-ACK's 60, the first data packet's 1500 and its ACK of 52; the ACK waits for a
    // second packet (1500 more). The second flight adds the same, and the last 40 packets less the
    // part sent while ACKs came.
    let time = crate::flows(&tables, "completion_s")[0];
    let transmission = 8.0 / 1e9;
    let least = 0.350 + (120.0 + 2.0 * (3000.0 + 52.0) + 1500.0) * transmission;
    let most = least + 70.0 * 1500.0 * transmission;
    assert!(least <= time && time <= most, "{least} <= {time} <= {most}");
}

#[test]
fn a_bulk_source_fills_whatever_one_ack_allows() {
    // One ACK of a segment of 64 kB, or of a hundred of 1448 bytes, allows more than an application
    // keeps ready at once.
    for (settings, mtu) in [("mss = 65495", 65_535), ("ack_every = 100", 1_500)] {
        let tables = run(&format!(
            r#"
            duration = "20 s"
            stack = {{ abc = "segment", {settings} }}
            [[network.links]]
            between = ["a", "b"]
            rate = "1 Gbit/s"
            delay = "5 ms"
            queue = "2 BDP"
            mtu = {mtu}
            [[flows]]
            from = "a"
            to = "b"
            "#
        ));
        let share = crate::flows(&tables, "bottleneck_share")[0];
        // Slow start overshoots at the beginning; without that, the application would be the limit
        // at 1 %.
        assert!(share > 0.8, "{settings}: {share}");
    }
}

#[test]
fn paced_slow_start_needs_no_queue() {
    let lost = |pacing: bool| {
        // The receive buffer ends slow start at 40 segments, of 83 that fill the path. Without
        // pacing each acknowledged segment releases two: 40 in 24 ms, of which 20 have to wait.
        // Twice 40 in 100 ms is the rate of the link.
        let tables = run(&format!(
            r#"
            duration = "5 s"
            stack = {{ rmem = "57920 B", abc = "segment", delayed_ack = "off", initial_window = 4, pacing = {pacing} }}
            [[network.links]]
            between = ["a", "b"]
            rate = "10 Mbit/s"
            delay = "50 ms"
            queue = "10 packets"
            [[flows]]
            from = "a"
            to = "b"
            "#
        ));
        crate::flows(&tables, "retransmitted_segments")[0]
    };
    assert!(lost(false) > 0.0);
    assert!(lost(true) == 0.0);
}
