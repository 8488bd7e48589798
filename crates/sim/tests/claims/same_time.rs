//! Packets that arrive in the same nanosecond, as jitter makes them.

use crate::run;
use std::collections::BTreeMap;

/// 66 bytes at 10 Gbit/s take 52.8 ns: ACKs no further apart than this left together.
const TOGETHER: f64 = 54e-9;

/// The number of segments of 1448 bytes acknowledged in a second, and a histogram of how many ACKs
/// left the receiver in the same nanosecond. The receive buffer limits the flow. Data has jitter,
/// ACKs do not.
fn acks(profile: &str, seed: u64) -> (i64, BTreeMap<usize, usize>) {
    let tables = run(&format!(
        r#"
        duration = "2 s"
        seed = {seed}
        stack = {{ profile = "{profile}", rmem = "300 kB" }}
        record = {{ samples = "ack" }}
        [[network.links]]
        between = ["a", "b"]
        rate = "100 Mbit/s"
        delay = "10 ms"
        queue = "2000 packets"
        jitter = "5 ms"
        back = {{ rate = "10 Gbit/s", jitter = "0 ms" }}
        [[flows]]
        from = "a"
        to = "b"
        "#
    ));
    let times = tables.samples.numbers("time_s").unwrap();
    let acked = tables.samples.integers("acked_bytes").unwrap();
    let from = times.partition_point(|time| time.unwrap() < 1.0);
    let times: Vec<_> = times[from..].iter().map(|time| time.unwrap()).collect();
    let mut counts = BTreeMap::new();
    for together in times.chunk_by(|one, next| next - one < TOGETHER) {
        *counts.entry(together.len()).or_default() += 1;
    }
    let bytes = acked.last().unwrap().unwrap() - acked[from].unwrap();
    (bytes / 1448, counts)
}

#[test]
fn segments_of_one_nanosecond_are_acknowledged_together() {
    // While the window is as large as the buffer, a kernel does not acknowledge data on receipt:
    // the window would be smaller until the reader has freed space (__tcp_ack_snd_check). The
    // reader runs after the softirq that receives all packets of that moment, and sends one ACK
    // (tcp_cleanup_rbuf).
    for seed in 1..=3 {
        let (segments, counts) = acks("linux-6.12", seed);
        assert!(counts.keys().eq([&1]), "{counts:?}");
        // An ACK covers three or more segments, as the reader does not wait for later ones.
        assert!(counts[&1] > 500 && segments > 3 * counts[&1] as i64, "{segments} {counts:?}");
    }
}

#[test]
fn the_rfc_profile_acknowledges_every_second_segment() {
    // RFC 5681 §4.2: an ACK for at least every second full-sized segment; `jitter` changes when.
    for seed in 1..=3 {
        let (segments, counts) = acks("rfc", seed);
        let acks: usize = counts.iter().map(|(together, times)| together * times).sum();
        assert!((segments - 2 * acks as i64).abs() <= 2, "{segments} {acks}");
        assert!(counts.keys().any(|&together| together > 1), "{counts:?}");
    }
}
