//! Delay-based algorithms: their gains, and their effect on other flows.

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
    // 100 Mbit/s and 100 ms are 833 packets, and a quarter of that fits the queue. A loss halves
    // the window from 1041 to 521, which is 312 too few for a full link. NewReno takes 312 round
    // trips of 100 ms for them, 31 s; with delayed ACKs it counts bytes (RFC 3465), so it is no
    // slower. Compound's delay window grows by at least 521^0.75 / 8 - 1 = 12.6 segments a round
    // trip: 25 round trips or less.
    // 521^0.75 / 8 - 1 = 12.6 segments a round trip and more as it goes on: 25 round trips or less.
    let long_fat = r#"rate = "100 Mbit/s"
        delay = "50 ms""#;
    let used = |cc| utilisation(&alone(cc, long_fat, 0.25), "a>b", 30.0);
    // NewReno's share follows from the area under the sawtooth, as in `sawtooth`, with a quarter of
    // a BDP.
    let carried = (1.25_f64 * 1.25 - 0.625 * 0.625) / 2.0;
    let possible = (1.0 - 0.625) + (1.25 * 1.25 - 1.0) / 2.0;
    let newreno = used("newreno");
    assert!(newreno < carried / possible + 0.05, "{newreno}");
    // Once in a cycle, Compound lacks at most 312 segments for 25 round trips, half of them on
    // average. A cycle lasts until 208 segments are queued, of which the last 178 grow as in
    // NewReno, one in a round trip, because more than 30 segments wait then: 203 round trips. So
    // less than 25 * 156 of 203 * 833 segments are missing: 2.3 %, and 3 % with retransmissions.
    for cc in ["compound", "compound/2005"] {
        let compound = used(cc);
        assert!(compound > 0.97 && compound > newreno, "{cc}: {compound}, newreno {newreno}");
    }
}

const SLOW: &str = r#"rate = "10 Mbit/s"
        delay = "20 ms""#;

#[test]
fn ledbat_holds_its_target_of_delay_in_a_deep_queue() {
    // The RTT of an empty path is 40 ms, a packet of 1.2 ms and its ACK. A queue of ten BDP would
    // be 400 ms.
    let tables = alone("ledbat", SLOW, 10.0);
    let queueing = mean(&rtts(&tables, "flow1", 60.0)) - 41.2;
    // RFC 6817 §2.5: 100 ms. Timestamps have whole milliseconds, so one is uncertain. The least of
    // four samples is one or two packets of 1.2 ms below the mean of the samples of delayed ACKs.
    assert!((97.0..=104.0).contains(&queueing), "{queueing}");
    // The queue is never empty, and no packet is lost.
    assert_within(0.01, utilisation(&tables, "a>b", 60.0), 1.0, "share of the link");
    assert_eq!(flows(&tables, "retransmitted_segments"), [0.0]);
}

#[test]
fn ledbat_yields_to_newreno() {
    // RTT 80 ms, 67 packets; a queue of four BDP holds 267. NewReno's window goes from 334 down to
    // 167, so at least 100 packets, 120 ms, are queued at all times: beyond LEDBAT's target.
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
    // LEDBAT's minimum window is two segments: at most two of at least 167 packets in flight, 1.2
    // %. While LEDBAT gets there its share is larger, and NewReno's slow start overshoots; both are
    // over after a minute.
    let newreno = acked_per_second(&tables, 120.0, 240.0) / full;
    assert!(newreno > 0.97, "{newreno}");
}

#[test]
fn copa_fills_the_link_and_keeps_the_queue_short() {
    let tables = alone("copa", SLOW, 10.0);
    let queueing = mean(&rtts(&tables, "flow1", 20.0)) - 41.2;
    // The target is 1 / delta = 2 queued segments of the flow's own. The window reacts to the queue
    // of an RTT ago and moves by 2 segments a round trip, so it overshoots by 2 or 3 round trips, 6
    // segments at the most: less than 8 packets of 1.2 ms. NewReno would fill 400 ms.
    assert!((0.0..8.0 * 1.2).contains(&queueing), "{queueing}");
    // A queue that empties for a moment every few round trips costs little of the link.
    let used = utilisation(&tables, "a>b", 20.0);
    assert!(used > 0.95, "{used}");
}

#[test]
fn ledbat_with_timestamps_ignores_a_queue_on_the_reverse_path() {
    // As above, but NewReno sends the other way, where at least 120 ms are queued.
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
    // ACKs that wait behind data arrive in bursts, so two-way traffic does not fill both links
    // (Heusse, Merritt, Brown, Duda, 2011); LEDBAT still gets most of its link.
    let with = share(true);
    assert!(with > 0.5, "{with}");
    // RTTs include the reverse queue: two segments each 200 ms or more, of the 167 that would fill
    // the path.
    let without = share(false);
    assert!(without < 0.05, "{without}");
}
