//! Datagrams, checked by queueing theory and arithmetic.

use crate::{assert_within, flows, mean, run, run_all};
use tcplab_tables::Tables;

/// A link on which a packet of 1250 bytes, a datagram of 1222, takes 1 ms, with a delay of 10 ms.
const LINK: &str = r#"between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms""#;
const SERVICE_MS: f64 = 1.0;
const WAY_MS: f64 = 10.0;

/// This many runs give a mean and half the width of its 99 % interval: Student's t with 19 degrees
/// of freedom.
const RUNS: usize = 20;
const STUDENT: f64 = 2.861;

fn interval(values: &[f64]) -> (f64, f64) {
    assert_eq!(values.len(), RUNS);
    let (mean, n) = (mean(values), RUNS as f64);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, STUDENT * (squares / (n - 1.0) / n).sqrt())
}

/// Mean waits in milliseconds at a load, of several seeds. Checks Little's law in each run.
fn waits(load: f64, packets: u64) -> Vec<f64> {
    let rate = 10.0 * load;
    // Long enough for all datagrams to arrive.
    let seconds = (1.2 * packets as f64 * SERVICE_MS / 1e3 / load).ceil();
    let tables = run_all(&format!(
        r#"
        duration = "{seconds} s"
        repeat = {RUNS}
        network.links = [{{ {LINK}, queue = "100000 packets" }}]
        record = {{ links = "{seconds} s" }}
        [[flows]]
        from = "a"
        to = "b"
        [flows.traffic]
        kind = "udp"
        rate = "{rate} Mbit/s"
        gaps = "poisson"
        payload = "1222 B"
        packets = {packets}
        "#
    ));
    let wait = |tables: &Tables| {
        assert_eq!(tables.flows.texts("outcome").unwrap(), [Some("completed")]);
        let wait_ms = flows(tables, "delay_mean_ms")[0] - SERVICE_MS - WAY_MS;
        // Little's law is exact once every arrival has left: the integral of the queue is the sum
        // of the waits.
        let waiting = tables.links.numbers("queue_mean_packets").unwrap()[0].unwrap();
        let expected = packets as f64 * wait_ms / 1e3 / seconds;
        assert_within(1e-6, waiting, expected, "packets that wait");
        wait_ms
    };
    tables.iter().map(wait).collect()
}

#[test]
fn datagrams_with_poisson_gaps_wait_as_pollaczek_and_khinchine_say() {
    // With equal sizes (M/D/1): load / 2 (1 - load) times the service time. A longer queue needs a
    // longer run for an interval of a few percent.
    for (load, packets) in [(0.5, 50_000), (0.8, 100_000), (0.95, 400_000)] {
        let expected = load / (2.0 * (1.0 - load)) * SERVICE_MS;
        let (mean, half) = interval(&waits(load, packets));
        assert!(half < 0.05 * expected, "load {load}: {mean} ± {half} ms is too wide");
        assert!((mean - expected).abs() < half, "load {load}: {mean} ± {half}, not {expected} ms");
    }
}

/// Compares columns of a flow with arithmetic, for datagrams with these delays in milliseconds, in
/// the order of their numbers.
fn assert_delays(tables: &Tables, flow: usize, arrived: &[(u64, f64)]) {
    let column = |name| flows(tables, name)[flow];
    let delays: Vec<f64> = arrived.iter().map(|&(_, delay)| delay).collect();
    let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
    let close = |name, expected: f64| {
        let found = column(name);
        assert!((found - expected).abs() < 1e-8, "{name}: {found}, not {expected}");
    };
    close("delay_min_ms", least);
    close("delay_mean_ms", mean(&delays));
    // RFC 3550 §6.4.1: J += (|D| - J) / 16. RFC 3393: differences of consecutive delays.
    let (mut jitter, mut differences, mut variations) = (0.0, Vec::new(), Vec::new());
    for pair in arrived.windows(2) {
        let difference = (pair[1].1 - pair[0].1).abs();
        jitter += (difference - jitter) / 16.0;
        differences.push(difference);
        if pair[1].0 == pair[0].0 + 1 {
            variations.push(difference);
        }
    }
    close("jitter_ms", jitter);
    close("jitter_mean_ms", mean(&differences));
    close("ipdv_ms", mean(&variations));
}

#[test]
fn two_streams_delay_each_other_by_residual_transmission_times() {
    let tables = run(&format!(
        r#"
        duration = "1 s"
        network.links = [{{ {LINK} }}]
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "udp", interval = "20 ms", payload = "1222 B", packets = 20 }}
        [[flows]]
        from = "a"
        to = "b"
        start = "250 us"
        traffic = {{ kind = "udp", interval = "10 ms", payload = "472 B", packets = 40 }}
        "#
    ));
    assert_eq!(flows(&tables, "lost_packets"), [0.0, 0.0]);
    // Packets of 500 bytes take 0.4 ms. Every second one comes 0.25 ms after a packet of the other
    // flow has begun.
    let large: Vec<_> = (0..20).map(|number| (number, 11.0)).collect();
    let waits = |number| if number % 2 == 0 { 0.75 } else { 0.0 };
    let small: Vec<_> = (0..40).map(|number| (number, 10.4 + waits(number))).collect();
    assert_delays(&tables, 0, &large);
    assert_delays(&tables, 1, &small);
}

#[test]
fn a_full_queue_drops_exactly_the_excess() {
    // Every 100 ms five datagrams a microsecond apart: one is in transmission, and two fit the
    // queue.
    let tables = run(&format!(
        r#"
        duration = "1 s"
        network.links = [{{ {LINK}, queue = "2 packets" }}]
        [[flows]]
        from = "a"
        to = "b"
        [flows.traffic]
        kind = "udp"
        interval = "1 us"
        on = "4500 ns"
        off = "99995500 ns"
        payload = "1222 B"
        "#
    ));
    assert_eq!(flows(&tables, "sent_segments"), [50.0]);
    assert_eq!(flows(&tables, "lost_packets"), [20.0]);
    let drops = tables.drops.numbers("time_s").unwrap();
    let expected =
        (0..10).flat_map(|burst| [3.0, 4.0].map(|us| f64::from(burst) / 10.0 + us * 1e-6));
    assert_eq!(drops.len(), 20);
    assert!(drops.iter().zip(expected).all(|(at, expected)| (at.unwrap() - expected).abs() < 1e-9));
    // Each of the others waits for the one before it, less the microseconds by which it came later.
    let burst =
        |burst: u64| (0..3_u64).map(move |k| (5 * burst + k, 11.0 + 0.999 * f64::from(k as u32)));
    assert_delays(&tables, 0, &(0..10).flat_map(burst).collect::<Vec<_>>());
}

#[test]
fn a_fragmented_datagram_needs_all_fragments() {
    // 3008 bytes behind the IP header are 1480, 1480 and 48. The fifth packet belongs to the second
    // datagram.
    let tables = run(&format!(
        r#"
        duration = "1 s"
        network.links = [{{ {LINK}, loss = {{ kind = "listed", packets = [5] }} }}]
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "udp", interval = "100 ms", payload = "3000 B", packets = 4 }}
        "#
    ));
    assert_eq!(tables.flows.texts("outcome").unwrap(), [Some("partial")]);
    assert_eq!(flows(&tables, "sent_segments"), [4.0]);
    assert_eq!(flows(&tables, "lost_packets"), [1.0]);
    assert_eq!(flows(&tables, "bytes"), [9000.0]);
    assert_eq!(tables.drops.integers("bytes").unwrap(), [Some(1500)]);
    let delay = WAY_MS + f64::from(1500 + 1500 + 68) * 0.8e-3;
    assert_delays(&tables, 0, &[(0, delay), (2, delay), (3, delay)]);
}
