//! Requests, pages and transfers that arrive: times by arithmetic, loads by the sizes drawn.

use crate::{assert_within, flows, run};
use tcplab_tables::Tables;

const LINK: &str =
    r#"network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms" }]"#;

/// The time of a packet of so many bytes over the link, in milliseconds.
fn way_ms(bytes: u32) -> f64 {
    10.0 + sending_ms(bytes)
}

fn sending_ms(bytes: u32) -> f64 {
    f64::from(bytes) * 0.8e-3
}

/// A SYN and a SYN-ACK have 60 bytes. An ACK, or a segment without its data, has 52.
fn opening_ms() -> f64 {
    2.0 * way_ms(60)
}

const HEADERS: u32 = 52;

/// A column of transfers, in the order of their numbers.
fn transfers(tables: &Tables, column: &str) -> Vec<f64> {
    let numbers = tables.transfers.integers("transfer").unwrap();
    let whole = || {
        tables
            .transfers
            .integers(column)
            .map(|it| it.iter().map(|value| value.map(|it| it as f64)).collect())
    };
    let values: Vec<Option<f64>> = tables.transfers.numbers(column).or_else(whole).unwrap();
    let values = values.into_iter().map(Option::unwrap);
    let mut rows: Vec<_> = numbers.into_iter().zip(values).collect();
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn a_request_takes_one_rtt_plus_transmission_times() {
    let tables = run(&format!(
        r#"
        duration = "10 s"
        {LINK}
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "requests", requests = 5, request = "400 B", response = "1 kB", think = "100 ms", server_time = "30 ms" }}
        "#
    ));
    let times: Vec<_> = transfers(&tables, "completion_s").iter().map(|s| s * 1e3).collect();
    // The ACK of the handshake is sent with the first request.
    let exchange = way_ms(HEADERS + 400) + 30.0 + way_ms(HEADERS + 1000);
    let first = opening_ms() + exchange;
    for (time, expected) in times.iter().zip([first, exchange, exchange, exchange, exchange]) {
        assert!((time - expected).abs() < 1e-6, "{times:?}, not {first} and {exchange}");
    }
    assert_eq!(times.len(), 5);
    let starts = transfers(&tables, "start_s");
    for (number, start) in starts.iter().enumerate().skip(1) {
        let expected = first + 100.0 * number as f64 + exchange * (number as f64 - 1.0);
        assert!((start * 1e3 - expected).abs() < 1e-6, "{starts:?}");
    }
}

#[test]
fn a_page_load_takes_the_round_trips_of_its_connections() {
    // Twelve objects of one segment each. Over k connections, up to k packets leave at once.
    for connections in [1_u32, 2, 3, 6] {
        let tables = run(&format!(
            r#"
            duration = "10 s"
            {LINK}
            [[flows]]
            from = "a"
            to = "b"
            [flows.traffic]
            kind = "web"
            classes = [{{ name = "objects", count = 12, size = "1 kB" }}]
            request = "400 B"
            connections = {connections}
            "#
        ));
        assert_eq!(tables.transfers.len(), 12);
        let last = transfers(&tables, "end_s").into_iter().fold(0.0, f64::max) * 1e3;
        let exchange = way_ms(HEADERS + 400) + way_ms(HEADERS + 1000);
        let lower = opening_ms() + f64::from(12 / connections) * exchange;
        // Each packet of the last connection waits at most once behind a packet of each other
        // connection, which are then far enough apart. The ACK of a response may precede the next
        // request.
        let ahead = sending_ms(60 + HEADERS + 452 + 1052);
        let upper = lower + f64::from(connections) * ahead + 12.0 * sending_ms(HEADERS);
        assert!((lower..upper).contains(&last), "{connections}: {last} in {lower}..{upper}");
    }
}

#[test]
fn closed_loop_throughput_is_users_over_cycle_time() {
    for users in [1_u32, 3] {
        let tables = run(&format!(
            r#"
            duration = "60 s"
            {LINK}
            [[flows]]
            from = "a"
            to = "b"
            traffic = {{ kind = "arrivals", users = {users}, think = "100 ms", sizes = "1 kB" }}
            "#
        ));
        // The ACK of the handshake is sent with the data.
        let time_ms = opening_ms() + way_ms(HEADERS + 1000);
        let cycle_ms = 100.0 + time_ms;
        let starts = transfers(&tables, "start_s");
        let expected = (60e3 / cycle_ms).ceil() * f64::from(users);
        assert!((starts.len() as f64 - expected).abs() <= f64::from(users - 1), "{}", starts.len());
        // For each user, once their packets no longer wait for each other.
        let each = starts[users as usize..].windows(users as usize + 1);
        for turns in each {
            let cycle = (turns[users as usize] - turns[0]) * 1e3;
            assert!((cycle - cycle_ms).abs() < 1e-5, "{users}: {cycle}, not {cycle_ms}");
        }
    }
}

/// The load of the transfers drawn over so many seconds, and half of its 99.7 % interval: for a sum
/// of as many sizes as a Poisson process has arrivals.
fn drawn_load(tables: &Tables, seconds: f64) -> (f64, f64) {
    let bytes: Vec<f64> = transfers(tables, "bytes");
    // 1448 of 1500 bytes are data.
    let of = |bytes: f64| bytes * 8.0 * 1500.0 / 1448.0 / 100e6 / seconds;
    let squares: f64 = bytes.iter().map(|bytes| bytes * bytes).sum();
    (of(bytes.iter().sum()), 3.0 * of(squares.sqrt()))
}

#[test]
fn transfers_offer_the_configured_load() {
    for sizes in [
        r#""20 kB""#,
        r#"{ kind = "lognormal", median = "10 kB", sigma = 1, max = "1 MB" }"#,
        r#"{ kind = "pareto", shape = 1.5, min = "4 kB", max = "1 MB" }"#,
    ] {
        for load in [0.2, 0.6] {
            let tables = run(&format!(
                r#"
                duration = "41 s"
                record = {{ samples = "off" }}
                network.links = [{{ between = ["a", "b"], rate = "100 Mbit/s", delay = "1 ms", queue = "1000 packets" }}]
                [[flows]]
                from = "a"
                to = "b"
                traffic = {{ kind = "arrivals", load = {load}, sizes = {sizes} }}
                "#
            ));
            let (drawn, half) = drawn_load(&tables, 41.0);
            assert!((drawn - load).abs() < half, "{sizes}: {drawn} ± {half}, not {load}");
            assert!(half < 0.1 * load, "{sizes}: {drawn} ± {half} is too wide");
            // All of the load is carried: handshakes and closes add less than 3 % to transfers like
            // these.
            let names = tables.links.texts("link").unwrap();
            let utilisation = tables.links.numbers("utilisation").unwrap();
            let shares = names.iter().zip(&utilisation).filter(|(name, _)| **name == Some("a>b"));
            let shares: Vec<_> = shares.map(|(_, share)| share.unwrap()).collect();
            assert_within(0.03, crate::mean(&shares), drawn, "utilisation");
        }
    }
}

#[test]
fn transfers_to_an_unreachable_server_send_only_syns() {
    // RFC 6298: the SYN leaves at 0 and 1 s, and the user timeout is 3 s.
    let tables = run(&format!(
        r#"
        duration = "100 s"
        stack = {{ syn_retries = 1, syn_linear_timeouts = 0 }}
        {}
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "arrivals", users = 2, think = "1 s", sizes = "1 kB", transfers = 20 }}
        "#,
        LINK.replace("\"10 ms\"", "\"10 ms\", loss = \"100 %\"")
    ));
    let outcomes = tables.transfers.texts("outcome").unwrap();
    assert_eq!(outcomes, [Some("timed out"); 20]);
    let starts = transfers(&tables, "start_s");
    let expected = (0..10).flat_map(|turn| [4.0 * f64::from(turn); 2]);
    assert!(starts.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{starts:?}");
    assert_eq!(tables.drops.len(), 40);
    assert_eq!(flows(&tables, "completed_transfers"), [0.0]);
}
