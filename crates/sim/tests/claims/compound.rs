//! Algorithms that look at delay: what they gain by it, and what they leave to others.

use crate::{acked_per_second, assert_within, flows, mean, run, utilisation};
use tcplab_tables::Tables;

/// The smoothed RTTs of a flow after a time, in milliseconds.
fn rtts(tables: &Tables, flow: &str, after: f64) -> Vec<f64> {
    let names = tables.samples.texts("flow").unwrap();
    let times = tables.samples.numbers("time_s").unwrap();
    let values = tables.samples.numbers("srtt_ms").unwrap();
    (0..names.len())
        .filter(|&row| names[row] == Some(flow) && times[row].unwrap() > after)
        .map(|row| values[row].unwrap())
        .collect()
}

/// One flow alone over a link, with a queue in BDP.
fn alone(cc: &str, link: &str, queue: f64) -> Tables {
    run(&format!(
        r#"
        duration = "120 s"
        stack = {{ cc = "{cc}", pacing = true }}
        [[network.links]]
        between = ["a", "b"]
        {link}
        queue = "{queue} BDP"
        [[flows]]
        from = "a"
        to = "b"
        "#
    ))
}

#[test]
fn compound_fills_a_long_fat_path_that_newreno_does_not() {
    // 100 Mbit/s and 100 ms are 833 packets, and a quarter of that may queue. A loss leaves half of 1041:
    // 521, which is 312 too few for a full link. NewReno takes 312 round trips of 100 ms for them, 31 s;
    // with delayed ACKs RFC 3465 counts bytes, so it is no slower. Compound's window of delay grows by
    // 521^0.75 / 8 - 1 = 12.6 segments a round trip and more as it goes on: 25 round trips or less.
    let long_fat = r#"rate = "100 Mbit/s"
        delay = "50 ms""#;
    let used = |cc| utilisation(&alone(cc, long_fat, 0.25), "a>b", 30.0);
    // NewReno's share: as in `sawtooth`, with a quarter of a BDP.
    let carried = (1.25_f64 * 1.25 - 0.625 * 0.625) / 2.0;
    let possible = (1.0 - 0.625) + (1.25 * 1.25 - 1.0) / 2.0;
    let newreno = used("newreno");
    assert!(newreno < carried / possible + 0.05, "{newreno}");
    // Compound lacks at most 312 segments for 25 round trips, half of them on average, once in a cycle. A
    // cycle takes at least until 208 segments are queued, of which the last 178 are NewReno's, one in a
    // round trip, because more than 30 segments wait then: 203 round trips. So of 203 * 833 segments less
    // than 25 * 156 are missing: 2.3 %, and 3 % with what is sent twice.
    for cc in ["compound", "compound/2005"] {
        let compound = used(cc);
        assert!(compound > 0.97 && compound > newreno, "{cc}: {compound}, newreno {newreno}");
    }
}

const SLOW: &str = r#"rate = "10 Mbit/s"
        delay = "20 ms""#;

#[test]
fn ledbat_holds_its_target_of_delay_in_a_deep_queue() {
    // 40 ms and a packet of 1.2 ms and its ACK are the RTT of an empty path; ten BDP would be 400 ms.
    let tables = alone("ledbat", SLOW, 10.0);
    let queueing = mean(&rtts(&tables, "flow1", 60.0)) - 41.2;
    // RFC 6817 §2.5: 100 ms. The clocks show whole milliseconds, so one is uncertain; the least of four
    // samples is a packet of 1.2 ms or two below the mean of those that a delayed ACK answers.
    assert!((97.0..=104.0).contains(&queueing), "{queueing}");
    // There is always a queue, and nothing is lost.
    assert_within(0.01, utilisation(&tables, "a>b", 60.0), 1.0, "share of the link");
    assert_eq!(flows(&tables, "retransmitted_segments"), [0.0]);
}

#[test]
fn ledbat_yields_to_newreno() {
    // RTT 80 ms, 67 packets; a queue of four BDP holds 267. NewReno's window goes from 334 down to 167, so
    // that 100 packets or more, 120 ms, are queued at all times: beyond LEDBAT's target.
    let tables = run(r#"
        duration = "240 s"
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "40 ms"
        queue = "4 BDP"
        [[flows]]
        from = "a"
        to = "b"
        start = "60 s"
        stack = { cc = "newreno" }
        [[flows]]
        from = "a"
        to = "b"
        stack = { cc = "ledbat" }
    "#);
    let full = 10e6 / 8.0 * 1448.0 / 1500.0;
    // LEDBAT's least window is two segments: at most two of the 167 packets that are on the way at least,
    // 1.2 %. While it gets there it is more, and NewReno's slow start overshoots: after a minute it is over.
    let newreno = acked_per_second(&tables, 120.0, 240.0) / full;
    assert!(newreno > 0.97, "{newreno}");
}

#[test]
fn copa_fills_the_link_and_keeps_the_queue_short() {
    let tables = alone("copa", SLOW, 10.0);
    let queueing = mean(&rtts(&tables, "flow1", 20.0)) - 41.2;
    // The target is 1 / delta = 2 segments of its own queued. The window sees the queue of an RTT ago and
    // moves by 2 segments a round trip, so it goes 2 or 3 round trips too far, 6 segments at the most: less
    // than 8 packets of 1.2 ms. NewReno would fill 400 ms.
    assert!((0.0..8.0 * 1.2).contains(&queueing), "{queueing}");
    // A queue that empties for a moment every few round trips costs little of the link.
    let used = utilisation(&tables, "a>b", 20.0);
    assert!(used > 0.95, "{used}");
}

#[test]
fn ledbat_does_not_yield_to_a_queue_on_the_way_back_if_timestamps_tell() {
    // As above, but NewReno goes the other way, and 120 ms or more are queued there.
    let share = |timestamps: bool| {
        let tables = run(&format!(
            r#"
            duration = "240 s"
            [[network.links]]
            between = ["a", "b"]
            rate = "10 Mbit/s"
            delay = "40 ms"
            queue = "4 BDP"
            [[flows]]
            from = "a"
            to = "b"
            stack = {{ cc = "ledbat", timestamps = {timestamps} }}
            [[flows]]
            from = "b"
            to = "a"
            start = "60 s"
            stack = {{ cc = "newreno" }}
            "#
        ));
        acked_per_second(&tables, 140.0, 240.0) / (10e6 / 8.0 * 1448.0 / 1500.0)
    };
    // ACKs that wait behind data come in clusters, so two-way traffic does not fill both links (Heusse,
    // Merritt, Brown, Duda, 2011); most of it is LEDBAT's all the same.
    let with = share(true);
    assert!(with > 0.5, "{with}");
    // RTTs show the queue: two segments each 200 ms or more, of the 167 that would fill the path.
    let without = share(false);
    assert!(without < 0.05, "{without}");
}
