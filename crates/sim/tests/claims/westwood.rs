//! Westwood+ against a drop-tail queue: the flow empties the queue, and the link stays full.
//!
//! Grieco, Mascolo 2004 (§2.1): after a loss the window is `BWE * RTTmin`, which is the BDP of the
//! path without a queue, however large the queue was.

use crate::{mean, run, utilisation};
use tcplab_tables::Tables;

/// A flow over 4 Mbit/s with a round trip of 60 ms, and a queue of two bandwidth-delay products: 40
/// packets.
fn against_a_queue(cc: &str) -> Tables {
    run(&format!(
        r#"
        duration = "200 s"
        stack = {{ cc = "{cc}" }}
        record = {{ samples = "20 ms", links = "20 ms" }}
        [[network.links]]
        between = ["a", "b"]
        rate = "4 Mbit/s"
        delay = "30 ms"
        queue = "2 BDP"
        [[flows]]
        from = "a"
        to = "b"
        "#
    ))
}

/// The times of losses, from 30 s on and long enough before the end; losses within 2 s count as
/// one.
fn losses(tables: &Tables) -> Vec<f64> {
    let mut found: Vec<f64> = Vec::new();
    for time in tables.drops.numbers("time_s").unwrap().iter().map(|time| time.unwrap()) {
        let is_new = found.last().is_none_or(|&last| time > last + 2.0);
        if (30.0..198.0).contains(&time) && is_new {
            found.push(time);
        }
    }
    found
}

/// The minimum of a column within the second after each of these times.
fn least_after(times: &[f64], rows: &(impl Iterator<Item = (f64, f64)> + Clone)) -> Vec<f64> {
    let least = |&from: &f64| {
        let within = rows.clone().filter(|(time, _)| (from..from + 1.0).contains(time));
        within.map(|(_, value)| value).fold(f64::INFINITY, f64::min)
    };
    times.iter().map(least).collect()
}

fn least_queue(tables: &Tables) -> Vec<f64> {
    let names = tables.links.texts("link").unwrap();
    let times = tables.links.numbers("time_s").unwrap();
    let queues = tables.links.integers("queue_packets").unwrap();
    let rows = (0..names.len())
        .filter(|&row| names[row] == Some("a>b"))
        .map(|row| (times[row].unwrap(), queues[row].unwrap() as f64));
    least_after(&losses(tables), &rows)
}

fn least_window(tables: &Tables) -> Vec<f64> {
    let times = tables.samples.numbers("time_s").unwrap();
    let windows = tables.samples.integers("cwnd_segments").unwrap();
    let rows = (0..times.len()).map(|row| (times[row].unwrap(), windows[row].unwrap() as f64));
    least_after(&losses(tables), &rows)
}

#[test]
fn empties_the_queue_with_each_loss_and_keeps_the_link_full() {
    let tables = against_a_queue("westwood+");
    // The BDP is 4 Mbit/s * 63.1 ms (60, and 3.1 for the transmission of a packet of 1500 bytes and
    // its ACK) = 31.5 kB: 21 packets with 1448 bytes of data each. The estimate is in whole bytes
    // per ms, 4e6 / 8 * 1448 / 1500 = 482.7; coming from below both filters stop up to 7 short of
    // it, at 468. The minimum RTT is rounded up to 64 ms: from 468 * 64 / 1448 = 20.7 to 482 * 64 /
    // 1448 = 21.3, in whole segments. A round trip's sample is off by at most an ACK of two
    // segments in a window of 46 to 61: 4 %, of which a filter that keeps 7/8 leaves less than one
    // segment.
    let (windows, queues) = (least_window(&tables), least_queue(&tables));
    assert!(windows.len() > 5, "{windows:?}");
    assert!(windows.iter().all(|cwnd| (19.0..=22.0).contains(cwnd)), "{windows:?}");
    // The queue holds only what the window exceeds the BDP by: at most one packet.
    assert!(queues.iter().all(|&queue| queue <= 1.0), "{queues:?}");
    // The window is up to two segments below the BDP for four round trips, since delayed ACKs let
    // it grow by one in two round trips, of the 80 round trips in which it goes from 21 to 61. That
    // is at most 2 / 21 * 4 / 80 = 0.5 %.
    let used = utilisation(&tables, "a>b", 30.0);
    assert!(used > 0.99, "{used}");
}

#[test]
fn where_newreno_leaves_a_quarter_of_the_queue() {
    // NewReno halves the 61 packets that fit to 30, of which 21 are in transit: 9 stay in the
    // queue.
    let queues = least_queue(&against_a_queue("newreno"));
    let left = mean(&queues);
    assert!((8.0..=10.0).contains(&left), "{queues:?}");
}
