//! Hosts that take time: what they can send and receive follows from what each thing takes.

use crate::{acked_per_second, assert_within, flows, run};

/// A second of one flow between hosts over a link that is never full, with what is said of them.
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

/// Packets of 1460 bytes that a bulk transfer carries in a second, once it has begun, by the profile of
/// its stack.
fn packets_per_second(profile: &str, hosts: &str) -> f64 {
    let stack = format!("stack = {{ profile = \"{profile}\", timestamps = false }}");
    let tables = run(&over_fast_link(hosts, &stack));
    assert_eq!(flows(&tables, "retransmitted_segments"), [0.0], "nothing is lost");
    acked_per_second(&tables, 0.5, 1.0) / 1460.0
}

#[test]
fn a_sender_sends_as_many_packets_as_its_processor_does() {
    // 1 s / 10 us. With 4 us for each ACK, of which every second packet brings one: 1 s / 12 us.
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
fn a_receiver_limits_a_sender_in_the_same_way() {
    for (cpu, expected) in [
        (r#"{ packet = "10 us" }"#, 100_000.0),
        // Every second packet sends an ACK.
        (r#"{ packet = "10 us", ack = "4 us" }"#, 1e6 / 12.0),
    ] {
        let packets = packets_per_second("rfc", &format!("hosts.b.cpu = {cpu}"));
        assert_within(0.005, packets, expected, cpu);
    }
}

#[test]
fn flows_of_a_host_share_its_processor() {
    // Two flows send what one would, once they send enough: of the 200 packets of a round trip none in that
    // of the handshake, 20, 40, 80 and 160 in those of slow start, 700 less together.
    let hosts = r#"hosts.a.cpu = { packet = "10 us" }"#;
    let stack = "stack = { profile = \"linux-6.12\", timestamps = false }\ncount = 2";
    let tables = run(&over_fast_link(hosts, stack));
    let sent: f64 = flows(&tables, "sent_segments").iter().sum();
    assert_within(5e-4, sent, 100_000.0 - 700.0, "packets of both");
}

#[test]
fn a_program_that_sends_datagrams_waits_for_its_processor() {
    // A call and a packet take 15 us: of the datagrams of 4 us it sends as many as fit, and those that
    // arrive have waited for nothing else.
    let hosts = r#"hosts.a.cpu = { packet = "10 us", call = "5 us" }"#;
    let traffic = r#"traffic = { kind = "udp", interval = "4 us", payload = "1222 B" }"#;
    let tables = run(&over_fast_link(hosts, traffic));
    assert_within(1e-4, flows(&tables, "sent_segments")[0], 1e6 / 15.0, "datagrams");
    let delay = 0.015 + 0.001 + 1.0;
    assert_within(1e-9, flows(&tables, "delay_mean_ms")[0], delay, "delay");
}

#[test]
fn an_answer_takes_what_both_hosts_take_for_it() {
    // The client has read the last answer (5 us), writes (5 us) and sends (10 us); the server receives
    // (30 us), reads and writes (7 us each) and sends (30 us); the client receives (10 us). The packets of
    // 200 bytes take 0.16 us each on the link, and 1 ms on the way.
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
