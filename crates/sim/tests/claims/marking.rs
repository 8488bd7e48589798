//! Queues that mark: ECN-capable packets are not dropped, and a mark counts as a loss.

use crate::{flows, run, utilisation};
use tcplab_tables::Tables;

fn through(queue: &str, ecn: bool) -> Tables {
    run(&format!(
        r#"
        duration = "60 s"
        stack = {{ cc = "newreno", ecn = {ecn} }}
        record = {{ links = "100 ms" }}
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = {{ kind = {queue}, ecn = {ecn} }}
        [[flows]]
        count = 2
        from = "a"
        to = "b"
        "#
    ))
}

/// The final value of a link counter, on the forward link.
fn last(tables: &Tables, column: &str) -> i64 {
    let names = tables.links.texts("link").unwrap();
    let values = tables.links.integers(column).unwrap();
    let row = (0..names.len()).rfind(|&row| names[row] == Some("a>b")).unwrap();
    values[row].unwrap()
}

const CODEL: &str = "\"codel\", limit = \"500 packets\"";
const RED: &str = "\"red\", limit = \"200 packets\", min = \"10 packets\", max = \"100 packets\"";

#[test]
fn with_ecn_nothing_is_dropped_or_retransmitted() {
    for queue in [CODEL, RED] {
        let tables = through(queue, true);
        assert!(last(&tables, "marked_packets") > 20);
        assert_eq!(last(&tables, "dropped_packets"), 0);
        assert_eq!(flows(&tables, "retransmitted_segments"), [0.0, 0.0]);
        assert!(utilisation(&tables, "a>b", 10.0) > 0.9);
    }
}

#[test]
fn without_ecn_the_discipline_drops_and_senders_retransmit() {
    for queue in [CODEL, RED] {
        let tables = through(queue, false);
        assert_eq!(last(&tables, "marked_packets"), 0);
        let resent: f64 = flows(&tables, "retransmitted_segments").iter().sum();
        assert!(resent > 20.0);
        let reasons = tables.drops.texts("reason").unwrap();
        let early = reasons.iter().filter(|reason| **reason == Some("QDISC_DROP")).count();
        assert!(early > 20, "{early}");
    }
}
