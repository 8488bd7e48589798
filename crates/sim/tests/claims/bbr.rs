//! BBR: a single flow finds the rate of the path and keeps the queue short.

use crate::{acked_per_second, assert_within, mean, run};
use tcplab_tables::{Tables, Values};

const BPS: f64 = 10e6;
const RTT_S: f64 = 0.040;

/// A single flow on a path whose queue holds ten BDP.
fn alone(cc: &str) -> Tables {
    run(&format!(
        r#"
        duration = "40 s"
        stack = {{ cc = "{cc}" }}
        record = {{ samples = "10 ms", links = "10 ms" }}
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "10 BDP"
        [[flows]]
        from = "a"
        to = "b"
        "#
    ))
}

/// The mean of a controller's internal column after start-up.
fn steady(tables: &Tables, column: &str) -> f64 {
    let times = tables.samples.numbers("time_s").unwrap();
    let samples = tables.samples.part(0);
    let (_, values) = samples.columns().find(|(name, _)| *name == column).unwrap();
    let Values::Number(values) = &*values else { panic!("{column} is a number") };
    let after = times.iter().zip(values).filter(|(time, _)| time.unwrap() > 2.0);
    mean(&after.map(|(_, value)| *value).collect::<Vec<_>>())
}

/// Mean queue length in bytes after start-up.
fn standing_queue(tables: &Tables) -> f64 {
    let names = tables.links.texts("link").unwrap();
    let times = tables.links.numbers("time_s").unwrap();
    let queues = tables.links.integers("queue_bytes").unwrap();
    let rows = (0..names.len())
        .filter(|&row| names[row] == Some("a>b") && times[row].unwrap() > 2.0)
        .map(|row| queues[row].unwrap() as f64);
    mean(&rows.collect::<Vec<_>>())
}

#[test]
fn a_single_flow_finds_the_rate_and_keeps_the_queue_short() {
    // A packet of 1500 bytes carries 1448: 20 of IP, 20 of TCP, 12 of timestamps.
    let payload = BPS / 8.0 * 1448.0 / 1500.0;
    let bdp = BPS / 8.0 * RTT_S;
    for cc in ["bbr", "bbr3"] {
        let tables = alone(cc);
        // 1 % of pacing margin, and 200 ms of ProbeRTT in ten seconds: 2 %.
        assert_within(0.03, acked_per_second(&tables, 2.0, 40.0), payload * 0.985, cc);
        let bandwidth = steady(&tables, &format!("{cc}_bandwidth_mbit_s"));
        assert_within(0.03, bandwidth, payload * 8.0 / 1e6, cc);
        let queue = standing_queue(&tables);
        assert!(queue < 0.5 * bdp, "{cc}: {:.2} of what fills the path wait", queue / bdp);
        assert_eq!(crate::flows(&tables, "retransmitted_segments"), [0.0], "{cc}");
    }
}
