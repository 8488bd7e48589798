//! Hosts with processing time: their throughput follows from the cost of each operation.

use crate::{acked_per_second, assert_within, flows, mean, run};
use tcplab_tables::Tables;

/// A second of one flow between hosts with these settings, over a link that is never full.
fn over_fast_link(hosts: &str, flow: &str) -> String {
    format!(
        r#"
        duration = "1 s"
        {hosts}
        network.links = [{{ between = ["a", "b"], rate = "10 Gbit/s", delay = "1 ms" }}]
        record.samples = "100 ms"
        [[flows]]
        from = "a"
        to = "b"
        {flow}
        "#
    )
}

/// Packets of 1460 bytes that a bulk transfer carries in a second after its start, for a stack
/// profile.
fn packets_per_second(profile: &str, hosts: &str) -> f64 {
    let stack = format!("stack = {{ profile = \"{profile}\", timestamps = false }}");
    let tables = run(&over_fast_link(hosts, &stack));
    assert_eq!(flows(&tables, "retransmitted_segments"), [0.0], "nothing is lost");
    acked_per_second(&tables, 0.5, 1.0) / 1460.0
}

#[test]
fn a_sender_is_limited_by_its_packet_processing_time() {
    // 1 s / 10 us. With 4 us for each ACK, one for every second packet: 1 s / 12 us.
    for profile in ["rfc", "linux-6.12"] {
        for (cpu, expected) in [
            (r#"{ packet = "10 us" }"#, 100_000.0),
            (r#"{ packet = "10 us", ack = "4 us" }"#, 1e6 / 12.0),
        ] {
            let packets = packets_per_second(profile, &format!("hosts.a.cpu = {cpu}"));
            assert_within(0.005, packets, expected, &format!("{profile} {cpu}"));
        }
    }
}

#[test]
fn a_sender_is_limited_by_the_receivers_processing_time() {
    for (cpu, expected) in [
        (r#"{ packet = "10 us" }"#, 100_000.0),
        // Every second packet causes an ACK.
        (r#"{ packet = "10 us", ack = "4 us" }"#, 1e6 / 12.0),
    ] {
        let packets = packets_per_second("rfc", &format!("hosts.b.cpu = {cpu}"));
        assert_within(0.005, packets, expected, cpu);
    }
}

#[test]
fn flows_of_a_host_share_its_processor() {
    // Two flows together send as much as one once their windows suffice. Of 200 packets a round
    // trip, none is sent during the handshake, and 20, 40, 80 and 160 in the rounds of slow start:
    // 700 less in total.
    let hosts = r#"hosts.a.cpu = { packet = "10 us" }"#;
    let stack = "stack = { profile = \"linux-6.12\", timestamps = false }\ncount = 2";
    let tables = run(&over_fast_link(hosts, stack));
    let sent: f64 = flows(&tables, "sent_segments").iter().sum();
    assert_within(5e-4, sent, 100_000.0 - 700.0, "packets of both");
}

#[test]
fn a_udp_sender_waits_for_its_processor() {
    // A call and a packet take 15 us, more than the 4 us between datagrams. The host sends as many
    // as fit, and those that arrive have waited for nothing else.
    let hosts = r#"hosts.a.cpu = { packet = "10 us", call = "5 us" }"#;
    let traffic = r#"traffic = { kind = "udp", interval = "4 us", payload = "1222 B" }"#;
    let tables = run(&over_fast_link(hosts, traffic));
    assert_within(1e-4, flows(&tables, "sent_segments")[0], 1e6 / 15.0, "datagrams");
    let delay = 0.015 + 0.001 + 1.0;
    assert_within(1e-9, flows(&tables, "delay_mean_ms")[0], delay, "delay");
}

#[test]
fn a_response_takes_the_processing_times_of_both_hosts() {
    // The client has read the last response (5 us), writes (5 us) and sends (10 us). The server
    // receives (30 us), reads and writes (7 us each) and sends (30 us). The client receives (10
    // us). The packets of 200 bytes take 0.16 us each on the link, with a delay of 1 ms.
    let hosts = r#"
        hosts.a.cpu = { packet = "30 us", call = "7 us" }
        hosts.b.cpu = { packet = "10 us", call = "5 us" }"#;
    let flow = r#"stack.timestamps = false
        traffic = { kind = "requests", request = "160 B", response = "160 B", requests = 11 }"#;
    let tables = run(&over_fast_link(hosts, flow));
    let times = tables.transfers.numbers("completion_s").unwrap();
    assert_eq!(times.len(), 11);
    let expected = 2.0 * (1e-3 + 0.16e-6) + f64::from(5 + 5 + 10 + 30 + 7 + 7 + 30 + 10) * 1e-6;
    for time in &times[1..] {
        assert_within(1e-6, time.unwrap(), expected, "completion");
    }
}

#[test]
fn a_processor_that_is_kept_busy_loses_nothing_to_rounding() {
    // Packets leave at whole nanoseconds: one every 1501 ns would be 0.05 % less.
    let hosts = r#"hosts.a.cpu = { packet = "1500300 ps" }"#;
    let traffic = r#"traffic = { kind = "udp", interval = "1 us", payload = "1222 B" }"#;
    let tables = run(&over_fast_link(hosts, traffic));
    assert_within(1e-5, flows(&tables, "sent_segments")[0], 1e6 / 1.5003, "datagrams");
}

#[test]
fn a_processor_that_takes_no_time_changes_nothing() {
    let flow = "stack.profile = \"linux-6.12\"\ntraffic = { kind = \"bulk\", size = \"20 MB\" }";
    let plain = run(&over_fast_link("", flow));
    let free = run(&over_fast_link(r#"hosts.a.cpu = { packet = "0 s" }"#, flow));
    assert_eq!(flows(&plain, "completion_s"), flows(&free, "completion_s"));
}

/// The mean and maximum queue of a link after the first second, in milliseconds at 100 Mbit/s.
fn waited(tables: &Tables, link: &str) -> (f64, f64) {
    let links = &tables.links;
    let (names, times) = (links.texts("link").unwrap(), links.numbers("time_s").unwrap());
    let (means, most) =
        (links.numbers("queue_mean_bytes").unwrap(), links.integers("queue_max_bytes").unwrap());
    let rows = 0..names.len();
    let rows: Vec<_> =
        rows.filter(|&row| names[row] == Some(link) && times[row].unwrap() > 1.0).collect();
    let means: Vec<_> = rows.iter().map(|&row| means[row].unwrap()).collect();
    let most = rows.iter().map(|&row| most[row].unwrap() as f64).fold(0.0, f64::max);
    (mean(&means) / 12_500.0, most / 12_500.0)
}

/// A flow over a host's own link of 100 Mbit/s and 20 ms, with the queue at the link or in the
/// host.
fn over_own_link(cc: &str, qdisc: &str) -> Tables {
    run(&format!(
        r#"
        duration = "10 s"
        stack.profile = "linux-6.12"
        {qdisc}
        record.links = "100 ms"
        flows = [{{ from = "a", to = "b", cc = "{cc}" }}]
        [[network.links]]
        between = ["a", "b"]
        rate = "100 Mbit/s"
        delay = "10 ms"
        queue = "1000 packets"
        "#
    ))
}

#[test]
fn bbr_keeps_its_own_queue_under_two_milliseconds() {
    for qdisc in ["fq", "fq-codel", "1000 packets"] {
        let tables = over_own_link("bbr", &format!("hosts.a.qdisc = \"{qdisc}\""));
        let (mean, _) = waited(&tables, "a>b");
        assert!(mean < 2.0, "{qdisc}: {mean} ms");
        // 1448 of 1500 bytes are data; the rest is the handshake and slow start.
        assert_within(0.02, flows(&tables, "goodput_mbit_s")[0], 100.0 * 1448.0 / 1500.0, qdisc);
        assert_eq!(flows(&tables, "retransmitted_segments"), [0.0], "{qdisc}");
    }
}

#[test]
fn a_sender_behind_a_router_that_is_slower_keeps_its_own_queue_under_two_milliseconds() {
    for cc in ["cubic", "newreno", "bbr"] {
        let tables = run(&format!(
            r#"
            duration = "10 s"
            stack.profile = "linux-6.12"
            hosts.a.qdisc = "fq"
            network.links = [
                {{ between = ["a", "r"], rate = "1 Gbit/s", delay = "1 ms" }},
                {{ between = ["r", "b"], rate = "100 Mbit/s", delay = "9 ms" }},
            ]
            record.links = "100 ms"
            flows = [{{ from = "a", to = "b", cc = "{cc}" }}]
            "#
        ));
        // At ten times the rate.
        let most = waited(&tables, "a>r").1 / 10.0;
        assert!(most < 2.0, "{cc}: {most} ms");
    }
}

#[test]
fn small_queues_limit_the_host_queue_to_three_bursts() {
    // tcp_tso_autosize, tcp_small_queue_check: a burst is the pacing rate times 2^-10 s, in whole
    // segments. A new burst begins while less than two wait. The packets of a burst have 52 bytes
    // of headers for 1448 of data. CUBIC and NewReno pace at 1.2 times the window in a round trip,
    // and their window may be twice the data in flight (tcp_is_cwnd_limited): their queue is longer
    // than BBR's.
    for cc in ["cubic", "newreno"] {
        let tables = over_own_link(cc, "hosts.a.qdisc = \"fq\"");
        assert_eq!(flows(&tables, "retransmitted_segments"), [0.0], "{cc}");
        let pacing = tables.samples.numbers("pacing_mbit_s").unwrap();
        let times = tables.samples.numbers("time_s").unwrap();
        let rates = (0..times.len()).filter(|&row| times[row].unwrap() > 1.0);
        let rate = rates.map(|row| pacing[row].unwrap()).fold(0.0, f64::max);
        let burst = rate / 100.0 * 1e3 / 1024.0 * 1500.0 / 1448.0;
        let (_, most) = waited(&tables, "a>b");
        assert!(burst < most && most < 3.0 * burst, "{cc}: {most} ms, bursts of {burst} ms");
    }
}

#[test]
fn the_same_sender_fills_a_router_queue() {
    // A thousand packets are 120 ms, and CUBIC fills that again after each loss.
    let (mean, most) = waited(&over_own_link("cubic", ""), "a>b");
    assert!(mean > 20.0 && most > 115.0, "{mean} ms, {most} ms at the most");
}

#[test]
fn flows_of_a_host_share_its_device_rate() {
    // Twenty senders, each with two bursts of at least two segments: fq serves them in turn.
    let tables = run(r#"
        duration = "10 s"
        stack.profile = "linux-6.12"
        network.links = [{ between = ["a", "b"], rate = "100 Mbit/s", delay = "10 ms" }]
        hosts.a.qdisc = "fq"
        flows = [{ from = "a", to = "b", count = 20 }]
        "#);
    assert_eq!(flows(&tables, "retransmitted_segments"), [0.0; 20], "nothing is dropped");
    let shares = flows(&tables, "goodput_mbit_s");
    assert_within(0.02, shares.iter().sum(), 100.0 * 1448.0 / 1500.0, "goodput of all");
    for share in &shares {
        assert_within(0.1, *share, shares.iter().sum::<f64>() / 20.0, "goodput of one");
    }
}

/// Packets for each ACK of a flow that fills a link of 1 Gbit/s to a host with these settings.
fn packets_for_an_ack(profile: &str, host: &str) -> f64 {
    let tables = run(&format!(
        r#"
        duration = "1 s"
        stack = {{ profile = "{profile}", timestamps = false }}
        {host}
        record.links = "500 ms"
        flows = [{{ from = "a", to = "b" }}]
        [[network.links]]
        between = ["a", "b"]
        rate = "1 Gbit/s"
        delay = "1 ms"
        queue = "20 MB"
        "#
    ));
    assert_eq!(flows(&tables, "retransmitted_segments"), [0.0]);
    let names = tables.links.texts("link").unwrap();
    let sent = tables.links.integers("sent_packets").unwrap();
    // Counted in the second half.
    let late = |link| {
        let rows: Vec<_> = (0..names.len()).filter(|&row| names[row] == Some(link)).collect();
        (sent[rows[1]].unwrap() - sent[rows[0]].unwrap()) as f64
    };
    late("a>b") / late("b>a")
}

#[test]
fn gro_acknowledges_merged_segments_together() {
    // A packet of 1500 bytes takes 12 us: 17 packets arrive in 200 us from the first on, and 5 in
    // 50 us.
    for (wait, together) in [("200 us", 17.0), ("50 us", 5.0)] {
        let host = format!("hosts.b.gro = \"{wait}\"");
        assert_within(2e-3, packets_for_an_ack("linux-6.12", &host), together, wait);
        // The window still grows, and packets in the queue count as sent.
        assert_within(0.07, packets_for_an_ack("rfc", &host), together, wait);
    }
    assert_within(2e-3, packets_for_an_ack("linux-6.12", ""), 2.0, "without");
}

#[test]
fn a_packet_waits_for_interrupt_coalescing() {
    // A request and its response of one packet each: 1 ms of delay, 0.16 us for 200 bytes, and the
    // interrupt delay of each host's device.
    let hosts = "hosts.a.gro = \"100 us\"\nhosts.b.gro = \"30 us\"";
    let flow = r#"stack.timestamps = false
        traffic = { kind = "requests", request = "160 B", response = "160 B", requests = 11 }"#;
    let tables = run(&over_fast_link(hosts, flow));
    let expected = 2.0 * (1e-3 + 0.16e-6) + 130e-6;
    for time in &tables.transfers.numbers("completion_s").unwrap()[1..] {
        assert_within(1e-6, time.unwrap(), expected, "completion");
    }
}

#[test]
fn datagrams_wait_for_interrupt_coalescing_and_are_not_merged() {
    // One datagram of 1250 bytes every 10 us, for which the link takes 1 us. The first of ten waits
    // for 100 us, the last for 10, and the next one, which arrives with the interrupt, for another
    // 100: 55 us on average.
    let hosts = "hosts.b.gro = \"100 us\"";
    let traffic = r#"traffic = { kind = "udp", interval = "10 us", payload = "1222 B" }"#;
    let tables = run(&over_fast_link(hosts, traffic));
    let delay = 1.0 + 0.001 + 0.055;
    assert_within(1e-3, flows(&tables, "delay_mean_ms")[0], delay, "delay");
    // Datagrams sent in at least the last 1.011 ms have not been received.
    let received = flows(&tables, "bytes")[0] / 1222.0;
    assert!((99_880.0..=99_899.0).contains(&received), "{received}");
}
