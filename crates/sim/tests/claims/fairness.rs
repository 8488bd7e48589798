//! Two flows of equal RTT, of which one starts later.

use crate::{flows, jain, mean, run_all};

/// Jain's index over 600 s, the mean of ten seeds. The hosts' links have jitter of up to one packet
/// time of the bottleneck, as real hosts do.
fn fairness(cc: &str) -> f64 {
    let tables = run_all(&format!(
        r#"
        duration = "600 s"
        repeat = 10
        stack = {{ cc = "{cc}" }}
        record = {{ samples = "off", links = "off" }}
        [network.dumbbell]
        pairs = 2
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "1 BDP"
        access = {{ rate = "100 Mbit/s", delay = "1 ms", jitter = "1.2 ms" }}
        [[flows]]
        from = "left1"
        to = "right1"
        [[flows]]
        from = "left2"
        to = "right2"
        start = "10 s"
        "#
    ));
    let indices: Vec<f64> =
        tables.iter().map(|tables| jain(&flows(tables, "goodput_mbit_s"))).collect();
    mean(&indices)
}

#[test]
fn newreno_shares_equally() {
    let index = fairness("newreno");
    assert!(index > 0.98, "{index}");
}

#[test]
fn cubic_shares_equally() {
    let index = fairness("cubic");
    assert!(index > 0.98, "{index}");
}
