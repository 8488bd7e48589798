//! Prague over a queue that marks at a threshold: a full link, a short queue, and rates that do not
//! follow round trips (draft-briscoe-iccrg-prague-congestion-control).

use crate::{flows, mean, run};
use tcplab_tables::Tables;

/// Two flows with round trips of 4 and 20 ms over 100 Mbit/s, through a queue that marks at 20 packets.
fn two_flows(cc: &str) -> Tables {
    run(&format!(
        r#"
        duration = "30 s"
        stack = {{ cc = "{cc}" }}
        record = {{ links = "5 ms" }}
        [[network.links]]
        between = ["near", "router"]
        rate = "1 Gbit/s"
        delay = "1 ms"
        [[network.links]]
        between = ["far", "router"]
        rate = "1 Gbit/s"
        delay = "9 ms"
        [[network.links]]
        between = ["router", "sink"]
        rate = "100 Mbit/s"
        delay = "1 ms"
        [network.links.queue]
        kind = "red"
        limit = "400 packets"
        min = "20 packets"
        max = "20 packets"
        weight = 1.0
        ecn = true
        [[flows]]
        from = "near"
        to = "sink"
        [[flows]]
        from = "far"
        to = "sink"
        "#
    ))
}

/// The near flow's rate by the far one's.
fn ratio(tables: &Tables) -> f64 {
    let goodput = flows(tables, "goodput_mbit_s");
    goodput[0] / goodput[1]
}

#[test]
fn rates_do_not_follow_round_trips_below_the_virtual_one() {
    // If both see marks with the same probability p, Prague's rates W / rtt = 2 / (p 25 ms) are the same.
    // DCTCP's windows would be, so that its rates are as the round trips, with 2.4 ms of queue as 22.4 to
    // 6.4: a factor of 3.5. Marks at a threshold come in runs and not at random; half of that factor is
    // what they may add or take.
    let prague = ratio(&two_flows("prague"));
    assert!((1.0 / 1.75..1.75).contains(&prague), "{prague}");
    let dctcp = ratio(&two_flows("dctcp"));
    assert!(dctcp > 2.5, "{dctcp}");
}

#[test]
fn the_queue_is_short_and_the_link_full() {
    let tables = two_flows("prague");
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
    // Cuts are a few percent of a window, and bursts are paced: the queue stays about its threshold, and
    // far below what a classic flow needs, the 37 packets of 100 Mbit/s and 4.4 ms.
    let long = queue.iter().filter(|&&length| length > 25.0).count();
    assert!(mean(&queue) < 21.0 && long * 100 < queue.len(), "{}", mean(&queue));
    assert!(flows(&tables, "retransmitted_segments").iter().all(|&resent| resent < 0.5));
}
