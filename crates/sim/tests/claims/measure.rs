//! Results of part of a run: by arithmetic, against the whole run, and at the exact boundaries.
#![expect(clippy::float_cmp, reason = "counts are whole, and times are exact")]

use crate::{flows, run};
use tcplab_tables::Tables;

const LINK: &str =
    r#"network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms" }]"#;

/// Every kind of traffic; some begins late, some ends early, some loses segments.
const EVERYTHING: &str = r#"
duration = "4 s"
network.dumbbell = { pairs = 6, rate = "10 Mbit/s", delay = "10 ms", queue = "15 packets" }
[[flows]]
from = "left1"
to = "right1"
[[flows]]
from = "left2"
to = "right2"
start = "700 ms"
traffic = { kind = "bulk", size = "300 kB" }
[[flows]]
from = "left3"
to = "right3"
traffic = { kind = "on-off", on = "400 ms", off = "300 ms" }
[[flows]]
from = "left4"
to = "right4"
traffic = { kind = "udp", rate = "1 Mbit/s", gaps = "poisson", payload = "5 kB" }
[[flows]]
from = "left5"
to = "right5"
start = "300 ms"
traffic = { kind = "requests", request = "400 B", response = "30 kB", think = "50 ms" }
[[flows]]
from = "left6"
to = "right6"
traffic = { kind = "web", classes = [{ name = "x", count = 40, size = "15 kB" }], order = "parallel", connections = 3, persistent = true }
[[flows]]
from = "left1"
to = "right2"
traffic = { kind = "arrivals", load = "20 %", sizes = { kind = "lognormal", median = "10 kB", sigma = 1, max = "1 MB" } }
[[flows]]
from = "left2"
to = "right1"
start = "3500 ms"
"#;

const COUNTS: [&str; 5] =
    ["bytes", "sent_segments", "retransmitted_segments", "timeouts", "loss_episodes"];

fn intervals(tables: &Tables, column: &str) -> Vec<f64> {
    if let Some(values) = tables.intervals.numbers(column) {
        return values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    }
    let values = tables.intervals.integers(column).unwrap();
    values.iter().map(|value| value.map_or(f64::NAN, |value| value as f64)).collect()
}

/// A column of the intervals, summed for each flow.
fn summed(tables: &Tables, column: &str) -> Vec<f64> {
    let names = tables.intervals.texts("flow").unwrap();
    let values = intervals(tables, column);
    let of = |flow: Option<&str>| {
        let own =
            names.iter().zip(&values).filter(|(name, value)| **name == flow && !value.is_nan());
        own.map(|(_, value)| value).sum()
    };
    tables.flows.texts("flow").unwrap().into_iter().map(of).collect()
}

#[test]
fn a_full_link_carries_its_rate_in_every_window() {
    let tables = run(r#"
        duration = "20 s"
        measure = { from = "10 s", to = "15 s" }
        every = "1 s"
        stack.rmem = "100 kB"
        network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms", queue = "1000 packets" }]
        [[flows]]
        from = "a"
        to = "b"
        "#);
    // A segment of 1448 bytes takes 1500 on the link: 10 Mbit/s are 833.3 of them in a second. The
    // window of 100 kB exceeds the path's BDP, and is small enough for no loss.
    let expected = 10e6 / 8.0 / 1500.0 * 1448.0;
    let bytes = intervals(&tables, "bytes");
    assert_eq!(bytes.len(), 5);
    assert!(bytes.iter().all(|bytes| (bytes - expected).abs() <= 1448.0), "{bytes:?}");
    assert!((flows(&tables, "bytes")[0] - 5.0 * expected).abs() <= 1448.0);
    let goodput = flows(&tables, "goodput_mbit_s")[0];
    assert!((goodput - flows(&tables, "bytes")[0] * 8.0 / 5e6).abs() < 1e-12, "{goodput}");
    assert_eq!((flows(&tables, "start_s")[0], flows(&tables, "end_s")[0]), (0.0, 20.0));
}

#[test]
fn an_arrival_at_a_window_edge_counts_in_the_later_window() {
    // One datagram of 1250 bytes with headers takes 1 ms, with a delay of 10 ms.
    let datagram = |window: &str| {
        run(&format!(
            r#"
            duration = "1 s"
            {window}
            {LINK}
            [[flows]]
            from = "a"
            to = "b"
            traffic = {{ kind = "udp", interval = "5 ms", packets = 1, payload = "1222 B" }}
            "#
        ))
    };
    let before = datagram("measure.to = \"11 ms\"");
    assert_eq!((flows(&before, "bytes")[0], flows(&before, "sent_segments")[0]), (0.0, 1.0));
    let after = datagram("measure.from = \"11 ms\"");
    assert_eq!((flows(&after, "bytes")[0], flows(&after, "sent_segments")[0]), (1222.0, 0.0));
    let nanosecond = datagram("measure = { from = \"11 ms\", to = \"11.000001 ms\" }");
    assert_eq!(flows(&nanosecond, "bytes")[0], 1222.0);
    // The datagram was sent before the window, so its delay is not in the result.
    assert!(flows(&nanosecond, "delay_min_ms")[0].is_nan());
    let intervals = datagram("every = \"11 ms\"");
    assert_eq!(intervals.intervals.integers("bytes").unwrap(), [Some(0), Some(1222)]);
    assert_eq!(intervals.intervals.integers("arrived_packets").unwrap(), [Some(0), Some(1)]);
    // A run that ends at that moment includes the datagram: the end of a run belongs to its last
    // part.
    let text = "measure.from = \"5 ms\"";
    let end = run(&format!(
        r#"
        duration = "11 ms"
        {text}
        {LINK}
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "udp", interval = "5 ms", packets = 1, payload = "1222 B" }}
        "#
    ));
    assert_eq!(flows(&end, "bytes")[0], 1222.0);
}

#[test]
fn consecutive_windows_add_up_to_the_run() {
    let whole = run(EVERYTHING);
    let part = |window: &str| run(&format!("{window}\n{EVERYTHING}"));
    let parts = [
        part("measure.to = \"613 ms\""),
        part("measure = { from = \"613 ms\", to = \"2.000000001 s\" }"),
        part("measure.from = \"2.000000001 s\""),
    ];
    for column in [&COUNTS[..], &["transfers"]].concat() {
        let sums = parts.iter().map(|part| {
            let values = part.flows.integers(column).unwrap();
            values.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()
        });
        let sum = sums.reduce(|one, other| one.iter().zip(other).map(|(a, b)| a + b).collect());
        let all = whole.flows.integers(column).unwrap();
        let all: Vec<_> = all.into_iter().map(Option::unwrap_or_default).collect();
        assert_eq!(sum, Some(all), "{column}");
    }
    // The minimum RTT of the whole run is that of a part, and so is the maximum.
    let of = |column: &str| parts.each_ref().map(|part| flows(part, column));
    let (least, most) = (of("rtt_min_ms"), of("rtt_max_ms"));
    for flow in 0..flows(&whole, "bytes").len() {
        let (min, max) = (flows(&whole, "rtt_min_ms")[flow], flows(&whole, "rtt_max_ms")[flow]);
        let found = least.iter().map(|part| part[flow]).fold(f64::NAN, f64::min);
        assert!(found == min || (found.is_nan() && min.is_nan()), "flow {flow}: {found}, {min}");
        let found = most.iter().map(|part| part[flow]).fold(f64::NAN, f64::max);
        assert!(found == max || (found.is_nan() && max.is_nan()), "flow {flow}: {found}, {max}");
    }
}

#[test]
fn measuring_does_not_change_a_run() {
    let whole = run(EVERYTHING);
    let measured = run(&format!("every = \"1 ms\"\n{EVERYTHING}"));
    let (one, other) = (&whole, &measured);
    let (flows_of_one, flows_of_other) = (one.flows.part(0), other.flows.part(0));
    for ((name, values), (_, same)) in flows_of_one.columns().zip(flows_of_other.columns()) {
        assert!(name == "run" || format!("{values:?}") == format!("{same:?}"), "{name}");
    }
    let (samples, others) = (one.samples.part(0), other.samples.part(0));
    for ((name, values), (known, same)) in samples.columns().zip(others.columns()) {
        assert_eq!((name, format!("{values:?}")), (known, format!("{same:?}")));
    }
    for column in COUNTS {
        assert_eq!(summed(&measured, column), flows(one, column), "{column}");
    }
    // Each complete transfer is counted exactly once.
    let begun = one.flows.integers("transfers").unwrap();
    let begun: Vec<_> = begun.into_iter().map(|it| it.unwrap_or(0) as f64).collect();
    assert_eq!(summed(&measured, "transfers"), begun);
    let completed = one.flows.integers("completed_transfers").unwrap();
    let completed: Vec<_> = completed.into_iter().map(|it| it.unwrap_or(0) as f64).collect();
    assert_eq!(summed(&measured, "completed_transfers"), completed);
}

#[test]
fn a_flow_has_interval_rows_only_while_it_runs() {
    let tables = run(&format!(
        r#"
        duration = "10 s"
        every = "1 s"
        {LINK}
        [[flows]]
        from = "a"
        to = "b"
        start = "2500 ms"
        traffic = {{ kind = "bulk", size = "10 kB" }}
        [[flows]]
        from = "a"
        to = "b"
        start = "8 s"
        "#
    ));
    assert_eq!(intervals(&tables, "start_s"), [2.0, 8.0, 9.0]);
    assert_eq!(intervals(&tables, "end_s"), [3.0, 9.0, 10.0]);
    // 10 kB over the interval, not over the transfer's own duration.
    assert!((intervals(&tables, "goodput_mbit_s")[0] - 0.08).abs() < 1e-12);
}

#[test]
fn a_flow_outside_the_window_has_no_goodput() {
    let tables = run(&format!(
        r#"
        duration = "10 s"
        measure = {{ from = "5 s", to = "8 s" }}
        {LINK}
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "bulk", size = "10 kB" }}
        [[flows]]
        from = "a"
        to = "b"
        start = "9 s"
        [[flows]]
        from = "a"
        to = "b"
        start = "7 s"
        "#
    ));
    let goodput = flows(&tables, "goodput_mbit_s");
    assert!(goodput[0].is_nan() && goodput[1].is_nan(), "{goodput:?}");
    // Over the one second in which the flow ran.
    let expected = flows(&tables, "bytes")[2] * 8.0 / 1e6;
    assert!((goodput[2] - expected).abs() < 1e-12 && goodput[2] > 1.0, "{goodput:?}");
    assert!(flows(&tables, "completion_s")[0] < 1.0);
}
