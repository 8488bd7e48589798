//! Vegas alone on a long path: a full link with a few segments in the queue, as many as its
//! parameters set.

use crate::{mean, run, utilisation};
use tcplab_tables::Tables;

/// Packets of 1500 bytes in a round trip of the empty path: 1.2 ms each at 10 Mbit/s; 100 ms of
/// propagation, 1.2 ms for the packet and 0.04 ms for its ACK.
const BDP: f64 = 101.24 / 1.2;

/// One flow for two minutes with an ACK for each packet, so that RTTs depend on the queue alone.
fn flow(alpha: u64, beta: u64) -> Tables {
    run(&format!(
        r#"
        duration = "120 s"
        stack = {{ cc = {{ name = "vegas", alpha = {alpha}, beta = {beta} }}, delayed_ack = "off" }}
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "50 ms"
        queue = "2 BDP"
        [[flows]]
        from = "a"
        to = "b"
        "#
    ))
}

/// Mean packets in the queue after the first minute.
fn queue(tables: &Tables) -> f64 {
    let links = &tables.links;
    let (names, times) = (links.texts("link").unwrap(), links.numbers("time_s").unwrap());
    let packets = links.integers("queue_packets").unwrap();
    let rows = (0..names.len())
        .filter(|&row| names[row] == Some("a>b") && times[row].unwrap() > 60.0)
        .map(|row| packets[row].unwrap() as f64);
    mean(&rows.collect::<Vec<_>>())
}

/// The queue at which Vegas measures `diff`. With q packets in the queue the window is BDP + q and
/// the RTT longer by q / BDP, so diff = (BDP + q) * q / BDP.
fn queue_at(diff: f64) -> f64 {
    BDP / 2.0 * ((1.0 + 4.0 * diff / BDP).sqrt() - 1.0)
}

#[test]
fn vegas_keeps_between_alpha_and_beta_segments_in_the_queue() {
    for (alpha, beta) in [(1, 3), (2, 4), (6, 8)] {
        let tables = flow(alpha, beta);
        // Fractions of a segment do not count: the window shrinks from beta + 1 on.
        let (least, most) = (queue_at(alpha as f64), queue_at(beta as f64 + 1.0));
        let found = queue(&tables);
        assert!(least <= found && found < most, "{alpha}, {beta}: {found}, not {least} to {most}");
        let used = utilisation(&tables, "a>b", 60.0);
        assert!(used > 0.999, "{alpha}, {beta}: {used}");
    }
}
