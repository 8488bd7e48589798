//! DCTCP keeps a queue that marks at a threshold around that threshold (Alizadeh et al. 2010,
//! §3.3).

use crate::{flows, jain, mean, run, utilisation};
use tcplab_tables::Tables;

/// Two flows over 100 Mbit/s and 10 ms, through a queue that marks packets that find K = 40 packets
/// waiting.
fn two_flows() -> Tables {
    run(r#"
        duration = "20 s"
        stack = { cc = "dctcp" }
        record = { links = "1 ms" }
        [[network.links]]
        between = ["a", "b"]
        rate = "100 Mbit/s"
        delay = "5 ms"
        [network.links.queue]
        kind = "red"
        limit = "400 packets"
        min = "40 packets"
        max = "40 packets"
        weight = 1.0
        ecn = true
        [[flows]]
        count = 2
        from = "a"
        to = "b"
        "#)
}

fn queue(tables: &Tables, after: f64) -> Vec<f64> {
    let names = tables.links.texts("link").unwrap();
    let times = tables.links.numbers("time_s").unwrap();
    let values = tables.links.integers("queue_packets").unwrap();
    let rows = 0..names.len();
    rows.filter(|&row| names[row] == Some("a>b") && times[row].unwrap() > after)
        .map(|row| values[row].unwrap() as f64)
        .collect()
}

#[test]
fn two_flows_keep_the_queue_around_the_threshold() {
    // In packets: C RTT = 100 Mbit/s * 10 ms / 1500 B = 83.3, K = 40, N = 2. If both flows saw the
    // same marks, each would reach W* = (C RTT + K) / N = 61.7 when the queue reaches K, and grow
    // by one in the round trip until the mark is back: the queue peaks at K + N = 42. In that round
    // trip of W* + 1 packets a share of alpha = sqrt(2 / W*) = 0.18 is marked once an oscillation,
    // and the window is cut by alpha / 2, so that the amplitude of the queue is
    //
    //     A = N (W* + 1) alpha / 2 = sqrt(2 N (C RTT + K)) / 2 = sqrt(4 * 123.3) / 2 = 11.1.
    //
    // The queue thus moves between 31 and 42 with a mean of K + N - A / 2 = 36.5. The derivation
    // leaves out that delayed ACKs release packets in pairs, that PRR spreads a reduction over a
    // round trip, and that flows which do not peak together have smaller amplitudes. The bound is
    // one amplitude on either side.
    let (threshold, flows_count, amplitude) = (40.0, 2.0, 11.1);
    let tables = two_flows();
    let queue = queue(&tables, 5.0);
    let average = mean(&queue);
    let expected = threshold + flows_count - amplitude / 2.0;
    assert!((average - expected).abs() < amplitude / 2.0, "{average}");
    let far = |length: &&f64| (**length - expected).abs() > 1.5 * amplitude;
    let outliers = queue.iter().filter(far).count() as f64 / queue.len() as f64;
    assert!(outliers < 0.02, "{outliers}");
}

#[test]
fn the_link_stays_full_and_is_shared() {
    // K is above C RTT / 7 = 12 packets (§3.4), so the queue never runs empty.
    let tables = two_flows();
    assert!(utilisation(&tables, "a>b", 5.0) > 0.999);
    let goodput = flows(&tables, "goodput_mbit_s");
    // Section 4.1: Jain's index of flows that share a link is 0.99.
    assert!(jain(&goodput) > 0.99, "{goodput:?}");
    assert!(flows(&tables, "retransmitted_segments").iter().all(|&resent| resent < 0.5));
}
