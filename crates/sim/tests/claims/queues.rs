//! Published behaviour of queue disciplines.

use crate::{assert_within, flows, mean, run, utilisation};
use tcplab_tables::Tables;

/// Bulk flows through a queue for a minute. `others`: more flows.
fn through(queue: &str, rate_mbit_s: u32, count: u32, others: &str) -> Tables {
    run(&format!(
        r#"
        duration = "60 s"
        seed = 7
        stack = {{ profile = "linux-6.12", cc = "newreno" }}
        record = {{ links = "10 ms", samples = "off" }}
        [network.dumbbell]
        pairs = {pairs}
        rate = "{rate_mbit_s} Mbit/s"
        delay = "20 ms"
        queue = {queue}
        {others}
        {bulk}
        "#,
        pairs = 11,
        bulk = (1..=count).map(bulk).collect::<String>(),
    ))
}

fn bulk(pair: u32) -> String {
    format!("[[flows]]\nfrom = \"left{pair}\"\nto = \"right{pair}\"\n")
}

/// A voice stream of 64 kbit/s: 160 bytes every 20 ms.
const VOICE: &str = r#"
        [[flows]]
        name = "voice"
        from = "left11"
        to = "right11"
        traffic = { kind = "udp", interval = "20 ms", payload = "160 B" }
"#;

/// The mean queue of the bottleneck from the tenth second on, in milliseconds of its rate.
fn mean_queue_ms(tables: &Tables, rate_mbit_s: u32) -> f64 {
    let names = tables.links.texts("link").unwrap();
    let times = tables.links.numbers("time_s").unwrap();
    let bytes = tables.links.numbers("queue_mean_bytes").unwrap();
    let rows = (0..names.len())
        .filter(|&row| names[row] == Some("left>right") && times[row].unwrap() > 10.0)
        .map(|row| bytes[row].unwrap());
    mean(&rows.collect::<Vec<_>>()) * 8.0 / f64::from(rate_mbit_s) / 1e3
}

/// The 99th percentile of the waits of the voice stream's packets: their delay less that of the
/// path, which is 20 ms of the bottleneck, 2 ms of other links, and their transmission times.
fn voice_p99_ms(tables: &Tables) -> f64 {
    let delays = flows(tables, "delay_p99_ms");
    let least = flows(tables, "delay_min_ms");
    let voice = delays.iter().position(|delay| delay.is_finite()).unwrap();
    delays[voice] - least[voice]
}

#[test]
fn codel_holds_its_five_milliseconds_under_one_flow_and_ten() {
    // RFC 8289 §4.2: the standing queue is about the target of 5 ms. With ten flows it is somewhat
    // above, because the drop rate rises slowly. One NewReno flow that halves its window with a
    // queue far below the BDP uses at least three quarters of the link.
    for (count, least, most, used) in [(1, 1.0, 7.0, 0.75), (10, 3.0, 15.0, 0.9)] {
        let tables = through("\"codel\"", 20, count, "");
        let queue = mean_queue_ms(&tables, 20);
        assert!((least..most).contains(&queue), "{count}: {queue} ms");
        assert!(utilisation(&tables, "left>right", 10.0) > used, "{count}");
    }
}

#[test]
fn pie_holds_its_fifteen_milliseconds_under_ten_flows() {
    // RFC 8033 §5: the controller drives the delay to the target of 15 ms.
    let tables = through("\"pie\"", 20, 10, "");
    let queue = mean_queue_ms(&tables, 20);
    assert!((11.0..19.0).contains(&queue), "{queue} ms");
    assert!(utilisation(&tables, "left>right", 10.0) > 0.95);
}

#[test]
fn fair_queues_keep_a_voice_stream_short_beside_ten_bulk_flows() {
    // A packet of the stream waits for the one in transmission, and in a fair queue for at most the
    // quantum of each new flow: 1.2 ms and less at 10 Mbit/s, so 10 ms is a wide bound.
    for (queue, rates) in [
        ("fq-codel", [10, 50, 100].as_slice()),
        ("cake", &[10, 50, 100]),
        ("fq-pie", &[10]),
        ("sfq", &[50]),
    ] {
        for &rate in rates {
            let tables = through(&format!("\"{queue}\""), rate, 10, VOICE);
            let waited = voice_p99_ms(&tables);
            assert!(waited < 10.0, "{queue} at {rate} Mbit/s: {waited} ms");
            assert!(utilisation(&tables, "left>right", 10.0) > 0.9, "{queue}");
        }
    }
    // Behind one shared queue the stream waits as long as the bulk flows.
    assert!(voice_p99_ms(&through("\"200 packets\"", 10, 10, VOICE)) > 50.0);
}

#[test]
fn fair_queues_give_flows_of_other_round_trips_the_same() {
    // RFC 8290 §1: flows get equal shares whatever their congestion control, here NewReno beside
    // CUBIC at two round-trip times. Drop-tail would give the flow with the shorter one most of the
    // link.
    for queue in ["fq-codel", "fq-pie", "fq"] {
        let tables = run(&format!(
            r#"
            duration = "60 s"
            stack = {{ profile = "linux-6.12" }}
            record = {{ links = "off", samples = "off" }}
            [network.dumbbell]
            pairs = 2
            rate = "20 Mbit/s"
            delay = "10 ms"
            rtt = ["24 ms", "96 ms"]
            queue = "{queue}"
            [[flows]]
            from = "left1"
            to = "right1"
            cc = "newreno"
            [[flows]]
            from = "left2"
            to = "right2"
            cc = "cubic"
            "#
        ));
        let goodputs = flows(&tables, "goodput_mbit_s");
        let ratio = goodputs[0] / goodputs[1];
        assert!((0.85..1.25).contains(&ratio), "{queue}: {goodputs:?}");
    }
}

/// Four flows of one host and one of another over CAKE. Returns the goodputs in Mbit/s.
fn four_and_one(isolation: &str) -> [f64; 2] {
    let tables = run(&format!(
        r#"
        duration = "60 s"
        stack = {{ profile = "linux-6.12" }}
        record = {{ links = "off", samples = "off" }}
        [network.dumbbell]
        pairs = 2
        rate = "20 Mbit/s"
        delay = "2 ms"
        queue = {{ kind = "cake", isolation = "{isolation}" }}
        [[flows]]
        from = "left1"
        to = "right1"
        count = 4
        [[flows]]
        from = "left2"
        to = "right2"
        "#
    ));
    let goodputs = flows(&tables, "goodput_mbit_s");
    [goodputs[..4].iter().sum(), goodputs[4]]
}

#[test]
fn cake_shares_a_link_among_hosts_before_it_shares_it_among_flows() {
    // Høiland-Jørgensen, Täht and Morton 2018, section 3.2: each host gets the same, however many
    // flows it has; without host isolation, each flow gets the same. This holds for backlogged
    // hosts: the path is so short that one flow fills half of the link under COBALT.
    for (isolation, share) in
        [("triple-isolate", 1.0), ("dual-srchost", 1.0), ("dual-dsthost", 1.0), ("flows", 4.0)]
    {
        let [four, one] = four_and_one(isolation);
        assert!((0.9 * share..1.1 * share).contains(&(four / one)), "{isolation}: {four} {one}");
    }
}

#[test]
fn cake_shapes_to_its_rate_including_framing_overhead() {
    // A full packet of 1500 bytes and 18 of overhead takes 32 cells of 53 bytes: 1696 bytes. At 8
    // Mbit/s the shaper passes 8 * 1500 / 1696 Mbit/s of packets, of 20.
    let queue = "{ kind = \"cake\", rate = \"8 Mbit/s\", overhead = 18, framing = \"atm\" }";
    // Datagrams of 1500 bytes come at 12 Mbit/s, regardless of drops.
    let datagrams = r#"
        [[flows]]
        from = "left1"
        to = "right1"
        traffic = { kind = "udp", interval = "1 ms", payload = "1472 B" }
"#;
    let tables = through(queue, 20, 0, datagrams);
    let share = utilisation(&tables, "left>right", 10.0);
    assert_within(0.001, share, 8.0 * 1500.0 / 1696.0 / 20.0, "share of the link");
}

#[test]
fn cake_filters_acks_on_a_slow_reverse_path() {
    // Section 4.4 of the same paper: an ACK of 52 bytes for two packets of 1500 needs 1/58 of the
    // rate. The return link has 1/100, and drops do not slow ACKs down, so they queue. With the
    // filter an ACK waits only for the few that carry other information, 2.1 ms each. The path has
    // 44 ms, and COBALT adds up to 5 ms to the data.
    let rtt = |filter| {
        let back = format!("{{ kind = \"cake\", ack_filter = \"{filter}\" }}");
        let back = format!("back = {{ rate = \"200 kbit/s\", queue = {back} }}");
        flows(&through("\"cake\"", 20, 1, &back), "rtt_mean_ms")[0]
    };
    let [off, on, aggressive] = ["off", "on", "aggressive"].map(rtt);
    let most = 44.0 + 5.0 + 3.0 * 2.1;
    assert!(on < most && aggressive < most && off > 2.0 * most, "{off} {on} {aggressive}");
}

#[test]
fn shaped_packets_wait_for_the_next_trace_opportunity() {
    // 27 opportunities every 2 ms, and a shaper that releases a packet of 1500 bytes every 1.2 ms.
    // Opportunities in between are wasted, so packets come to the second link at multiples of 2 ms
    // plus its delay.
    for shaper in [
        "{ kind = \"cake\", rate = \"10 Mbit/s\" }",
        "{ kind = \"tbf\", rate = \"10 Mbit/s\", burst = \"1500 B\", limit = \"100 packets\" }",
    ] {
        let tables = run(&format!(
            r#"
            duration = "60 ms"
            record = {{ links = "937 us", packets = ["b>c"] }}
            [[network.links]]
            between = ["a", "b"]
            delay = "1 ms"
            queue = {shaper}
            rate_changes = {{ opportunities = [[0, 1], [2, 26]] }}
            [[network.links]]
            between = ["b", "c"]
            rate = "1 Gbit/s"
            delay = "1 ms"
            [[flows]]
            from = "a"
            to = "c"
            traffic = {{ kind = "udp", interval = "1 ms", payload = "1472 B" }}
            "#
        ));
        let (times, points) =
            (tables.packets.numbers("time_s").unwrap(), tables.packets.texts("point").unwrap());
        let entered = (0..times.len()).filter(|&row| points[row] == Some("enter"));
        let mut micros: Vec<u64> =
            entered.map(|row| (times[row].unwrap() * 1e6).round() as u64).collect();
        micros.dedup();
        // At least one packet waits for each opportunity from 2 to 58 ms.
        assert_eq!(
            micros,
            (1..30).map(|round| 2000 * round + 1000).collect::<Vec<_>>(),
            "{shaper}"
        );
    }
}

/// The longest queue of a run in bytes.
fn longest_queue(tables: &Tables) -> i64 {
    let most = tables.links.integers("queue_max_bytes").unwrap();
    most.iter().map(|most| most.unwrap()).max().unwrap()
}

#[test]
fn a_token_bucket_passes_its_rate_and_no_more() {
    let queue = "{ kind = \"tbf\", rate = \"5 Mbit/s\", burst = \"15 kB\", limit = \"50 ms\" }";
    let tables = through(queue, 20, 2, "");
    // 5 of 20 Mbit/s.
    let share = utilisation(&tables, "left>right", 10.0);
    assert!((0.24..0.2502).contains(&share), "{share}");
    // The queue is at most 50 ms of the bucket's rate: 31,250 bytes.
    let most = longest_queue(&tables);
    assert!((29_750..=31_250).contains(&most), "{most}");
}

#[test]
fn a_limit_in_time_is_the_bytes_transmitted_in_that_time() {
    // 30 ms at 20 Mbit/s are 75,000 bytes: fifty packets.
    for queue in ["\"30 ms\"", "{ kind = \"drophead\", limit = \"30 ms\" }"] {
        let tables = through(queue, 20, 4, "");
        let most = longest_queue(&tables);
        assert_eq!(most, 75_000, "{queue}");
    }
}
