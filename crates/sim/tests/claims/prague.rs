//! Two Prague flows: a full link, a short queue, and rates independent of round trips
//! (draft-briscoe-iccrg-prague-congestion-control).

use crate::{flows, mean, run};
use tcplab_tables::{Tables, Values};

/// Two flows over 100 Mbit/s behind links of their own with these delays; `settings` go before the
/// network, and `queue` is that of the bottleneck.
fn over_links([near, far]: [&str; 2], queue: &str, settings: &str, more: &str) -> Tables {
    run(&format!(
        r#"
        {settings}
        [[network.links]]
        between = ["near", "router"]
        rate = "1 Gbit/s"
        delay = "{near}"
        [[network.links]]
        between = ["far", "router"]
        rate = "1 Gbit/s"
        delay = "{far}"
        [[network.links]]
        between = ["router", "sink"]
        rate = "100 Mbit/s"
        delay = "1 ms"
        queue = {queue}
        [[flows]]
        from = "near"
        to = "sink"
        [[flows]]
        from = "far"
        to = "sink"
        {more}
        "#
    ))
}

/// Round trips of 4 and about 20 ms, through a queue that marks at 20 packets. Measured after the
/// time at which Prague's RTT independence begins.
fn two_flows(cc: &str, far: &str) -> Tables {
    let queue = r#"{ kind = "red", limit = "400 packets", min = "20 packets", max = "20 packets", weight = 1.0, ecn = true }"#;
    let settings = format!(
        r#"
        duration = "60 s"
        measure.from = "15 s"
        stack = {{ cc = "{cc}" }}
        record = {{ links = "5 ms" }}
        "#
    );
    over_links(["1 ms", far], queue, &settings, "")
}

/// The near flow's rate divided by the far one's.
fn ratio(tables: &Tables) -> f64 {
    let goodput = flows(tables, "goodput_mbit_s");
    goodput[0] / goodput[1]
}

/// Two Prague flows with round trips of 5 and 25 ms plus the queueing delay.
fn beside(queue: &str, more: &str) -> Tables {
    let settings = r#"
        duration = "120 s"
        measure.from = "20 s"
        stack = { cc = "prague" }
        record = { links = "off", samples = "off" }
    "#;
    over_links(["1.5 ms", "11.5 ms"], queue, settings, more)
}

#[test]
fn with_random_marks_rates_are_independent_of_rtts_below_the_virtual_rtt() {
    // The draft, §2.4.4: with the same probability p, rates go as 1 / (p max(rtt, 25 ms)), from 500
    // round trips after slow start on, here 13 s. Marks are drawn at random by the coupling of
    // DualPI2 beside a classic flow, and by PIE. The L4S queue adds nothing to 25 ms, and PIE 3 ms
    // to both: 28 to 25. Each flow has 2.7 marks in 25 ms, 10,800 in 100 s. With a standard
    // deviation of 1 % each, that of the ratio is 1.4 %; the bound is five of them, 7 %.
    let cubic = r#"
        [[flows]]
        from = "far"
        to = "sink"
        cc = "cubic"
    "#;
    let pie = r#"{ kind = "pie", ecn = true, target = "3 ms" }"#;
    for (tables, expected) in [(beside("\"dualpi2\"", cubic), 1.0), (beside(pie, ""), 28.0 / 25.0)]
    {
        let ratio = ratio(&tables) / expected;
        assert!((1.0 / 1.07..1.07).contains(&ratio), "{ratio}");
    }
}

/// The shares of marked packets (alpha) in the samples.
fn alphas(tables: &Tables) -> Vec<f64> {
    let mut alphas = Vec::new();
    for part in tables.samples.parts() {
        let (_, values) = part.columns().find(|column| column.0 == "prague_alpha").unwrap();
        let Values::Number(values) = &*values else { panic!("{values:?}") };
        alphas.extend(values);
    }
    alphas
}

#[test]
fn with_step_marks_rates_follow_the_marked_shares() {
    // At a step threshold, each flow has its own share of every run of marks, by the phase of its
    // packets: a delay that is 0.4 ms longer turns a ratio of rates of 2 into one of 0.8. Each flow
    // cuts its rate by alpha / 2 once a run, and all grow alike in between, by a segment per 25 ms
    // each 25 ms. The product of rate and alpha is therefore the same, whatever the round trip and
    // the phase. One run of marks in eight may be too short for both flows to have a mark.
    for far in ["8.2 ms", "8.6 ms", "9 ms"] {
        let tables = two_flows("prague", far);
        let names = tables.samples.texts("flow").unwrap();
        let times = tables.samples.numbers("time_s").unwrap();
        let alphas = alphas(&tables);
        let of = |flow: &str| {
            let is_of = |row: &usize| names[*row] == Some(flow) && times[*row].unwrap() > 15.0;
            let rows = (0..names.len()).filter(is_of);
            mean(&rows.map(|row| alphas[row]).collect::<Vec<f64>>())
        };
        let flows = tables.flows.texts("flow").unwrap();
        let ratio = ratio(&tables) * of(flows[0].unwrap()) / of(flows[1].unwrap());
        assert!((1.0 / 1.125..1.125).contains(&ratio), "{far}: {ratio}");
    }
    // DCTCP's windows grow by one segment a round trip: its rates depend on round trips.
    let dctcp = ratio(&two_flows("dctcp", "9 ms"));
    assert!(dctcp > 2.5, "{dctcp}");
}

#[test]
fn prague_keeps_the_queue_short_and_the_link_full() {
    let tables = two_flows("prague", "9 ms");
    let names = tables.links.texts("link").unwrap();
    let times = tables.links.numbers("time_s").unwrap();
    let rows: Vec<usize> = (0..names.len())
        .filter(|&row| names[row] == Some("router>sink") && times[row].unwrap() > 5.0)
        .collect();
    let queue = tables.links.integers("queue_packets").unwrap();
    let queue: Vec<f64> = rows.iter().map(|&row| queue[row].unwrap() as f64).collect();
    let used = tables.links.numbers("utilisation").unwrap();
    let used: Vec<f64> = rows.iter().map(|&row| used[row].unwrap()).collect();
    assert!(mean(&used) > 0.999);
    // Cuts are a few percent of a window, and bursts are paced. The queue stays about its
    // threshold, far below the 37 packets of 100 Mbit/s and 4.4 ms that a classic flow needs.
    let long = queue.iter().filter(|&&length| length > 25.0).count();
    assert!(mean(&queue) < 21.0 && long * 100 < queue.len(), "{}", mean(&queue));
    assert!(flows(&tables, "retransmitted_segments").iter().all(|&resent| resent < 0.5));
}
