//! Behaviour of applications, and its records.

use crate::{acked_per_second, flows, run, run_all};

const PAIR: &str = r#"
    duration = "30 s"
    [[network.links]]
    between = ["a", "b"]
    rate = "10 Mbit/s"
    delay = "10 ms"
"#;

#[test]
fn a_sized_transfer_completes_and_closes() {
    let tables = run(&format!(
        r#"{PAIR}
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "bulk", size = "1 MB" }}
        "#
    ));
    assert_eq!(flows(&tables, "bytes"), [1_000_000.0]);
    assert_eq!(tables.flows.texts("outcome").unwrap(), [Some("completed")]);
    // 1 MB at 10 Mbit/s with 52 bytes of headers in 1500 takes 0.83 s, after slow start.
    let time = flows(&tables, "completion_s")[0];
    assert!(0.829 < time && time < 1.1, "{time}");
    // Samples end when the connection has closed.
    let last = *tables.samples.numbers("time_s").unwrap().last().unwrap();
    assert!(last.unwrap() < 1.5);
}

/// The outcome of a transfer of 1 MB, and the departure times of lost packets from `from` seconds
/// on.
fn lost_after(from: f64, link: &str, stack: &str) -> (String, Vec<f64>) {
    let tables = run(&format!(
        r#"
        duration = "60 s"
        {stack}
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        loss = {link}
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "bulk", size = "1 MB" }}
        "#
    ));
    let outcome = tables.flows.texts("outcome").unwrap()[0].unwrap().to_owned();
    let times = tables.drops.numbers("time_s").unwrap();
    (outcome, times.iter().map(|time| time.unwrap()).filter(|&time| time >= from).collect())
}

#[test]
fn a_connection_into_a_black_hole_ends_after_the_user_timeout() {
    // RFC 6298: the SYN leaves at 0, 1 and 3 s; the next would be at 7 s.
    let (outcome, times) = lost_after(0.0, "\"100 %\"", "stack.user_timeout = \"5 s\"");
    assert_eq!(outcome, "timed out");
    assert_eq!(times, [0.0, 1.0, 3.0]);
    // Without the timeout, the SYN is still retransmitted up to 60 s.
    let (outcome, times) = lost_after(0.0, "\"100 %\"", "");
    assert_eq!(outcome, "unfinished");
    assert_eq!(times, [0.0, 1.0, 3.0, 7.0, 15.0, 31.0]);
}

#[test]
fn a_flow_that_never_connected_has_no_goodput_and_no_data_segments() {
    let tables = run(r#"
        duration = "20 s"
        stack.profile = "linux-6.12"
        network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms", loss = "100 %" }]
        flows = [{ from = "a", to = "b" }]
        "#);
    assert!(flows(&tables, "goodput_mbit_s")[0].is_nan(), "it has one");
    assert!(flows(&tables, "bottleneck_share")[0].is_nan(), "it has one");
    assert_eq!(flows(&tables, "sent_segments"), [0.0]);
    assert_eq!(flows(&tables, "retransmitted_segments"), [0.0]);
}

#[test]
fn without_sack_single_losses_need_no_timeout() {
    for options in ["sack = false", "sack = false, timestamps = false"] {
        let tables = run(&format!(
            r#"
            duration = "10 s"
            stack = {{ profile = "linux-6.12", {options} }}
            [[network.links]]
            between = ["a", "b"]
            rate = "10 Mbit/s"
            delay = "20 ms"
            queue = "400 packets"
            loss = {{ kind = "listed", packets = [20, 100, 101, 300] }}
            [[flows]]
            from = "a"
            to = "b"
            traffic = {{ kind = "bulk", size = "1 MB" }}
            "#
        ));
        // RFC 6582: three duplicate ACKs detect a loss, and partial ACKs the following ones.
        assert_eq!(flows(&tables, "timeouts"), [0.0], "{options}");
        assert_eq!(flows(&tables, "retransmitted_segments"), [4.0], "{options}");
    }
}

#[test]
fn a_retransmitted_handshake_gives_no_rtt_sample_and_no_data_retransmission() {
    let tables = run(r#"
        duration = "20 s"
        stack.profile = "linux-6.12"
        network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms", loss = "40 %" }]
        [[flows]]
        from = "a"
        to = "b"
        count = 50
        traffic = { kind = "bulk", size = "5 kB" }
        "#);
    let sent = flows(&tables, "sent_segments");
    let again = flows(&tables, "retransmitted_segments");
    // 5 kB are 4 segments of 1448 bytes: all further segments were retransmissions.
    for (flow, complete) in flows(&tables, "completion_s").iter().enumerate() {
        assert!(complete.is_nan() || (sent[flow] - again[flow] - 4.0).abs() < 0.5, "flow {flow}");
    }
    let least = flows(&tables, "rtt_min_ms");
    // 10 ms each way. Some flows have no sample: all of their data was retransmitted.
    assert!(least.iter().all(|rtt| rtt.is_nan() || *rtt > 20.0), "{least:?}");
    assert!(least.iter().any(|rtt| rtt.is_nan()) && least.iter().any(|rtt| *rtt > 20.0));
}

#[test]
fn data_into_a_black_hole_ends_after_the_user_timeout() {
    // All data in flight is lost, and then four retransmissions: after an RTO of 1 s, doubled each
    // time.
    let lost: Vec<_> = (20..100).collect();
    let link = format!("{{ kind = \"listed\", packets = {lost:?} }}");
    let (outcome, times) = lost_after(1.0, &link, "stack.user_timeout = \"10 s\"");
    assert_eq!(outcome, "timed out");
    assert_eq!(times.len(), 3, "at about 1, 3 and 7 s: {times:?}");
}

#[test]
fn syn_options_determine_syn_retransmission_times() {
    let stack = "stack = { syn_retries = 1, syn_linear_timeouts = 2 }";
    let (outcome, times) = lost_after(0.0, "\"100 %\"", stack);
    assert_eq!(outcome, "timed out");
    assert_eq!(times, [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn keepalives_are_sent_while_idle() {
    let sent = |stack: &str| {
        let tables = run(&format!(
            r#"{PAIR}
            {stack}
            [[flows]]
            from = "a"
            to = "b"
            traffic = {{ kind = "on-off", periods = [["0 s", "1 s"]] }}
            "#
        ));
        let (times, links) = (&tables.links, tables.links.texts("link").unwrap());
        let (at, sent) =
            (times.numbers("time_s").unwrap(), times.integers("sent_packets").unwrap());
        let count = |time: f64| {
            let is_row = |&row: &usize| links[row] == Some("a>b") && at[row] == Some(time);
            sent[(0..at.len()).find(is_row).unwrap()].unwrap()
        };
        count(30.0) - count(5.0)
    };
    assert_eq!(sent(""), 0);
    // The last data is acknowledged at about 1 s, and each response postpones the next probe by 5
    // s. Both ends probe five times, at about 6, 11, 16, 21 and 26 s, and respond as often.
    assert_eq!(sent("[stack]\nkeepalive = { idle = \"5 s\", interval = \"2 s\" }"), 10);
}

#[test]
fn fast_open_with_a_cookie_delivers_data_in_the_syn() {
    // RFC 7413. The first of three gets the cookie: a SYN of 64 bytes, a SYN-ACK of 72, 1000 bytes
    // of data with 52 of headers. The others send everything in a SYN with 72 bytes of headers. 0.8
    // us a byte.
    let one = |start: u64, from: &str, to: &str| {
        format!(
            r#"[[flows]]
            from = "{from}"
            to = "{to}"
            start = "{start} s"
            traffic = {{ kind = "bulk", size = "1 kB" }}
            "#
        )
    };
    let flows_of = |stack: &str| {
        let parts = [one(0, "a", "b"), one(1, "a", "b"), one(2, "b", "a"), one(3, "a", "b")];
        let tables = run(&format!("{PAIR}\n{stack}\n{}", parts.concat()));
        flows(&tables, "completion_s")
    };
    let asks = 3.0 * 0.010 + f64::from(64 + 72 + 1052) * 0.8e-6;
    let knows = 0.010 + 1072.0 * 0.8e-6;
    let close = |found: Vec<f64>, expected: [f64; 4]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
    };
    // The cookie that a has for b does not serve b for a.
    close(flows_of("[stack]\nfast_open = true"), [asks, knows, asks, knows]);
    // A server without Fast Open: the client requests a cookie each time, in vain.
    let nothing = 3.0 * 0.010 + f64::from(64 + 60 + 1052) * 0.8e-6;
    let usual = 3.0 * 0.010 + f64::from(60 + 60 + 1052) * 0.8e-6;
    close(flows_of("[hosts.a.stack]\nfast_open = true"), [nothing, nothing, usual, nothing]);
}

#[test]
fn an_on_off_application_sends_only_when_on() {
    let tables = run(&format!(
        r#"{PAIR}
        [[flows]]
        from = "a"
        to = "b"
        traffic = {{ kind = "on-off", periods = [["0 s", "5 s"], ["10 s", "15 s"]] }}
        "#
    ));
    let full = 10e6 / 8.0 * 1448.0 / 1500.0;
    assert!(acked_per_second(&tables, 2.0, 5.0) > 0.98 * full);
    // Data written before the end of the period drains within a second.
    assert!(acked_per_second(&tables, 6.0, 10.0).abs() < 1.0);
    assert!(acked_per_second(&tables, 12.0, 15.0) > 0.95 * full);
    assert!(acked_per_second(&tables, 16.0, 30.0).abs() < 1.0);
}

#[test]
fn both_directions_carry_data_at_once() {
    let tables = run(&format!(
        r#"{PAIR}
        [[flows]]
        from = "a"
        to = "b"
        [[flows]]
        from = "b"
        to = "a"
        start = "5 s"
        "#
    ));
    let rates = flows(&tables, "goodput_mbit_s");
    assert!(rates.iter().all(|&rate| rate > 5.0), "{rates:?}");
    assert_eq!(flows(&tables, "start_s"), [0.0, 5.0]);
}

#[test]
fn many_flows_share_a_pair_of_hosts() {
    let tables = run(&format!(
        r#"{PAIR}
        [[flows]]
        name = "page"
        from = "a"
        to = "b"
        count = 8
        stagger = "1 s"
        traffic = {{ kind = "bulk", size = "100 kB" }}
        "#
    ));
    assert_eq!(flows(&tables, "bytes"), [100_000.0; 8]);
    let starts: Vec<f64> = (0..8).map(f64::from).collect();
    assert_eq!(flows(&tables, "start_s"), starts);
    assert_eq!(tables.flows.texts("flow").unwrap()[7], Some("page/8"));
}

#[test]
fn a_full_queue_delays_by_its_packets() {
    let tables = run(r#"
        duration = "60 s"
        stack = { cc = "newreno" }
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "50 packets"
        [[flows]]
        from = "a"
        to = "b"
    "#);
    // The last packet that fits waits for 49 and the rest of the one in transmission, then takes
    // its own 1.2 ms. Its ACK may wait for one more packet, and takes 0.04 ms itself.
    let longest = flows(&tables, "rtt_max_ms")[0];
    assert!((40.04 + 50.0 * 1.2..40.05 + 52.0 * 1.2).contains(&longest), "{longest}");
    let queue = tables.links.integers("queue_packets").unwrap();
    assert_eq!(queue.iter().flatten().max(), Some(&50));
}

#[test]
fn equal_experiments_give_equal_tables_and_other_seeds_others() {
    let toml = r#"
        duration = "20 s"
        repeat = 2
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        loss = "1 %"
        jitter = "2 ms"
        [[flows]]
        from = "a"
        to = "b"
        start_jitter = "1 s"
    "#;
    let digests = |runs: Vec<tcplab_tables::Tables>| -> Vec<String> {
        runs.iter().map(tcplab_tables::Tables::digest).collect()
    };
    let once = digests(run_all(toml));
    assert_eq!(once, digests(run_all(toml)));
    assert_ne!(once[0], once[1]);
}

#[test]
fn samples_at_every_ack_are_recorded() {
    let tables = run(r#"
        duration = "2 s"
        stack = { delayed_ack = "off" }
        record = { samples = "ack" }
        [[network.links]]
        between = ["a", "b"]
        rate = "100 Mbit/s"
        delay = "10 ms"
        [[flows]]
        from = "a"
        to = "b"
        traffic = { kind = "bulk", size = "144800 B" }
    "#);
    // One for each of 100 segments, and one for the peer's FIN, which follows the last ACK once the
    // application has read to the end and closes. Linux gives 101 as well.
    assert_eq!(tables.samples.len(), 101);
    let cwnd = tables.samples.integers("cwnd_segments").unwrap();
    assert_eq!(cwnd[..4], [Some(11), Some(12), Some(13), Some(14)]);
}
