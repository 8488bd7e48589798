//! Traffic: resolved forms, and rejections.

use crate::common::{SMALL, message, plan, small_with};
use tcplab_model::schema::{ArrivalsPlan, Begin, Gaps, UdpPlan, WebPlan};
use tcplab_model::{QueueLimit, TrafficPlan, Transport};
use tcplab_units::{Bytes, Duration};

fn with(traffic: &str) -> String {
    format!("{SMALL}traffic = {traffic}\n")
}

fn arrivals(text: &str) -> ArrivalsPlan {
    match &*plan(text).flows[0].traffic {
        TrafficPlan::Arrivals(arrivals) => arrivals.clone(),
        other => panic!("{other:?}"),
    }
}

fn udp(traffic: &str) -> UdpPlan {
    match &*plan(&with(traffic)).flows[0].traffic {
        TrafficPlan::Udp(udp) => udp.clone(),
        other => panic!("{other:?}"),
    }
}

fn web(traffic: &str) -> WebPlan {
    match &*plan(&with(traffic)).flows[0].traffic {
        TrafficPlan::Web(web) => web.clone(),
        other => panic!("{other:?}"),
    }
}

fn per_second(arrivals: &ArrivalsPlan) -> f64 {
    let Begin::Poisson { per_second } = arrivals.begin else { panic!("{arrivals:?}") };
    per_second
}

fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 1e-9
}

#[test]
fn a_load_includes_the_headers_of_full_segments() {
    let half = r#"{ kind = "arrivals", load = "50 %", sizes = "20 kB" }"#;
    // Of 1500 bytes, 1448 are data with timestamps, and 1460 without.
    for (timestamps, data) in [(true, 1448.0), (false, 1460.0)] {
        let text = format!("stack.timestamps = {timestamps}\n{}", with(half));
        let arrivals = arrivals(&text);
        let expected = 0.5 * 10e6 / (8.0 * 20_000.0 * 1500.0 / data);
        assert!(is_near(per_second(&arrivals), expected), "{arrivals:?}");
        assert_eq!(arrivals.offered, Some(0.5));
        // The same load as a number per second.
        let rate = format!(r#"{{ kind = "arrivals", per_second = {expected}, sizes = "20 kB" }}"#);
        let text = format!("stack.timestamps = {timestamps}\n{}", with(&rate));
        assert!(is_near(self::arrivals(&text).offered.unwrap(), 0.5));
    }
}

#[test]
fn flows_of_one_entry_share_their_load() {
    let half = r#"{ kind = "arrivals", load = 0.5, sizes = "20 kB" }"#;
    let one = per_second(&arrivals(&with(half)));
    let four = arrivals(&format!("{}count = 4\n", with(half)));
    assert!(is_near(per_second(&four) * 4.0, one));
    assert_eq!(four.offered, Some(0.125));
}

/// 100 Mbit/s from a to b with this queue, and a round trip of 20 ms.
fn behind(queue: &str, traffic: &str) -> String {
    format!(
        "duration = \"10 s\"\nnetwork.links = [\n{{ between = [\"a\", \"m\"], rate = \"20 Mbit/s\", \
         delay = \"4 ms\" }},\n{{ between = [\"m\", \"b\"], rate = \"100 Mbit/s\", delay = \"6 ms\", \
         queue = {queue} }},\n]\n[[flows]]\nfrom = \"a\"\nto = \"b\"\ntraffic = {traffic}\n"
    )
}

#[test]
fn a_shaper_is_the_bottleneck() {
    let half = r#"{ kind = "arrivals", load = 0.5, sizes = "20 kB" }"#;
    for queue in [
        r#"{ kind = "cake", rate = "10 Mbit/s" }"#,
        r#"{ kind = "tbf", rate = "10 Mbit/s", limit = "50 ms", burst = "3 kB" }"#,
        r#"{ kind = "policer", rate = "10 Mbit/s", burst = "30 kB" }"#,
    ] {
        let plan = plan(&behind(queue, half));
        let flow = &plan.flows[0];
        let bottleneck = &plan.lanes[flow.bottleneck];
        assert_eq!(
            (&*bottleneck.name, bottleneck.lasting_rate().to_string()),
            ("m>b", "10 Mbit/s".into())
        );
        // 5 Mbit/s of transfers of 20 kB, with 52 bytes of headers for 1448 of data (RFC 7323 A).
        let TrafficPlan::Arrivals(arrivals) = &*flow.traffic else { panic!() };
        assert!(is_near(per_second(arrivals), 5e6 / (8.0 * 20_000.0 * 1500.0 / 1448.0)), "{queue}");
    }
    // With 50 Mbit/s, the link before it is the bottleneck.
    let plan = plan(&behind(r#"{ kind = "cake", rate = "50 Mbit/s" }"#, half));
    assert_eq!(plan.lanes[plan.flows[0].bottleneck].name, "a>m");
}

#[test]
fn the_queue_of_a_host_can_be_the_bottleneck() {
    let udp = r#"{ kind = "udp", rate = "4 Mbit/s" }"#;
    let host = "[hosts.a]\nqdisc = { kind = \"tbf\", rate = \"8 Mbit/s\", limit = \"50 ms\", burst = \"3 kB\" }\n";
    let plan = plan(&format!("{}{host}", behind("\"50 packets\"", udp)));
    assert_eq!(plan.lanes[plan.flows[0].bottleneck].name, "a>m");
    let TrafficPlan::Udp(udp) = &*plan.flows[0].traffic else { panic!() };
    assert!(is_near(udp.offered, 0.5), "{}", udp.offered);
}

#[test]
fn the_bdp_of_a_shaper_is_that_of_its_rate() {
    let limit = |queue: &str| {
        let plan = plan(&behind(queue, r#"{ kind = "bulk" }"#));
        let lane = plan.lanes.iter().find(|lane| lane.name == "m>b").unwrap();
        (lane.bdp.0, lane.queue.limit)
    };
    // 6 Mbit/s x 20 ms are 15,000 bytes, ten packets; 100 Mbit/s x 20 ms are 250,000.
    let tbf = |rate| {
        format!(r#"{{ kind = "tbf", rate = "{rate} Mbit/s", limit = "2 BDP", burst = "3 kB" }}"#)
    };
    assert_eq!(limit(&tbf(6)), (15_000, QueueLimit::Packets(20)));
    // A shaper above the rate of the link: 500,000 bytes.
    assert_eq!(limit(&tbf(200)), (250_000, QueueLimit::Packets(333)));
    let cake = r#"{ kind = "cake", rate = "6 Mbit/s", limit = "1 BDP" }"#;
    assert_eq!(limit(cake), (15_000, QueueLimit::Packets(10)));
    // In a policer, packets only wait for the link.
    let policer = r#"{ kind = "policer", rate = "6 Mbit/s", burst = "30 kB" }"#;
    assert_eq!(limit(policer), (250_000, QueueLimit::Packets(167)));
}

#[test]
fn the_means_of_sizes_are_those_of_theory() {
    let mean = |sizes: &str| {
        let text = with(&format!(r#"{{ kind = "arrivals", per_second = 1, sizes = {sizes} }}"#));
        arrivals(&text).sizes.mean().unwrap()
    };
    let natural = std::f64::consts::E;
    for (sizes, expected) in [
        (r#""7 kB""#, 7000.0),
        // 1, 2 and 3 kB with weights 1, 1/2 and 1/3.
        (r#"{ kind = "zipf", exponent = 1, max = "3 kB" }"#, 3000.0 / (11.0 / 6.0)),
        // The sums of 1/n and 1/n^2 up to a million: 14.392726722865 and 1.644933066849 (OEIS
        // A001008, and pi^2/6 - 1e-6 + 5e-13).
        (
            r#"{ kind = "zipf", exponent = 2, max = "1 GB" }"#,
            1000.0 * 14.392_726_722_865 / 1.644_933_066_848_7,
        ),
        (r#"{ kind = "pareto", shape = 1.5, min = "4 kB" }"#, 12_000.0),
        // With shape 1, the integral of x times the density is a logarithm.
        (
            r#"{ kind = "pareto", shape = 1, min = "1 kB", max = "100 kB" }"#,
            1000.0 * std::f64::consts::LN_10 * 2.0 / 0.99,
        ),
        // Shape 2, from 1 to 2: 2 (1 - 1/2) / (1 - 1/4).
        (r#"{ kind = "pareto", shape = 2, min = "1 kB", max = "2 kB" }"#, 4000.0 / 3.0),
        // exp(sigma^2 / 2)
        (
            r#"{ kind = "lognormal", median = "1 kB", sigma = 1.4142135623730951 }"#,
            1000.0 * natural,
        ),
        // Cut off at the median, with sigma 1: exp(1/2) P(z < -1) / P(z < 0), and P(z < -1) is
        // 0.158655253931457.
        (
            r#"{ kind = "lognormal", median = "1 kB", sigma = 1, max = "1 kB" }"#,
            1000.0 * natural.sqrt() * 0.158_655_253_931_457 / 0.5,
        ),
        (r#"{ kind = "empirical", sizes = ["1 kB", "2 kB", "6 kB"] }"#, 3000.0),
    ] {
        let mean = mean(sizes);
        assert!(is_near(mean, expected), "{sizes}: {mean} instead of {expected}");
    }
}

#[test]
fn arrivals_have_exactly_one_arrival_process() {
    for (keys, reason) in [
        ("", "needs `per_second`, `load`, `every` or `users`"),
        ("per_second = 1, load = 0.5", "has `per_second` and `load`; give one of them"),
        (r#"every = "1 s", users = 2"#, "has `every` and `users`; give one of them"),
        (r#"every = "1 s", think = "1 s""#, "has a `think`, which is only of use with `users`"),
    ] {
        let comma = if keys.is_empty() { "" } else { ", " };
        let text = with(&format!(r#"{{ kind = "arrivals", sizes = "1 kB"{comma}{keys} }}"#));
        assert_eq!(message(&text), format!("line 10: flows[0].traffic: {reason}"));
    }
    let endless = r#"{ kind = "pareto", shape = 1, min = "1 kB" }"#;
    let text = with(&format!(r#"{{ kind = "arrivals", load = 0.5, sizes = {endless} }}"#));
    assert!(message(&text).contains("sizes without a mean"), "{}", message(&text));
    // A rate may have such sizes; its load is then unknown.
    let text = with(&format!(r#"{{ kind = "arrivals", per_second = 1, sizes = {endless} }}"#));
    assert_eq!(arrivals(&text).offered, None);
}

#[test]
fn users_are_limited_to_the_number_of_transfers() {
    let text = r#"{ kind = "arrivals", users = 5, think = "1 s", transfers = 3, sizes = "1 kB" }"#;
    let think = Duration::from_secs(1);
    assert_eq!(arrivals(&with(text)).begin, Begin::Closed { users: 3, think });
}

#[test]
fn a_load_is_a_positive_share_of_the_link_rate() {
    let load =
        |load: &str| with(&format!(r#"{{ kind = "arrivals", load = {load}, sizes = "1 kB" }}"#));
    assert_eq!(arrivals(&load("\"120 %\"")).offered, Some(1.2));
    assert!(message(&load("0")).ends_with("must be more than zero"));
    assert!(message(&load("\"10 Mbit/s\"")).contains("is not a load, like 0.5 or \"50 %\""));
}

#[test]
fn a_rate_of_datagrams_counts_their_headers() {
    // 1222 bytes of data, 8 of UDP, 20 of IP: 1250 bytes, or 1 ms at 10 Mbit/s.
    let one = udp(r#"{ kind = "udp", rate = "10 Mbit/s", payload = "1222 B" }"#);
    assert_eq!((one.gap, one.gaps), (Duration::from_millis(1), Gaps::Constant));
    assert!(is_near(one.offered, 1.0));
    // 3000 bytes of data and 8 of UDP are three fragments of 1480, 1480 and 48: 3068 bytes.
    let large = udp(r#"{ kind = "udp", rate = "1 Mbit/s", payload = "3 kB", gaps = "poisson" }"#);
    assert_eq!((large.gap, large.gaps), (Duration::from_micros(24_544), Gaps::Poisson));
    let text = with(r#"{ kind = "udp", rate = "1 Mbit/s", payload = "65508 B" }"#);
    assert!(message(&text).contains("from 1 B to 65.507 kB"), "{}", message(&text));
}

#[test]
fn datagram_periods_are_resolved_and_checked() {
    let text = r#"{ kind = "udp", interval = "1 ms", on = "20 s", off = "10 s" }"#;
    let seconds = Duration::from_secs;
    let both = vec![(seconds(0), seconds(20)), (seconds(30), seconds(50))];
    assert_eq!(udp(text).periods, Some(both));
    assert_eq!(udp(r#"{ kind = "udp", interval = "1 ms" }"#).periods, None);
    let half = with(r#"{ kind = "udp", interval = "1 ms", on = "20 s" }"#);
    assert!(message(&half).ends_with("needs `periods`, or both `on` and `off`"));
}

#[test]
fn a_stack_for_a_udp_flow_is_refused() {
    let text = with(r#"{ kind = "udp", rate = "1 Mbit/s" }"#);
    let flow = &plan(&text).flows[0];
    assert_eq!(flow.transport, Transport::Udp);
    assert!(flow.cc().is_none() && flow.tcp().is_none());
    let refused = message(&format!("{text}cc = \"cubic\"\n"));
    assert!(refused.starts_with("line 11: flows[0].cc: is of TCP"), "{refused}");
}

#[test]
fn the_largest_datagram_depends_on_the_forward_path_only() {
    let lan = |traffic: &str| {
        format!(
            r#"
duration = "1 s"
network.links = [{{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms", back = {{ mtu = 1000 }} }}]
flows = [{{ from = "a", to = "b", traffic = {traffic} }}]
"#
        )
    };
    let mtu = |traffic: &str| plan(&lan(traffic)).flows[0].mtu;
    assert_eq!(mtu(r#"{ kind = "udp", rate = "1 Mbit/s" }"#), 1500);
    assert_eq!(mtu(r#""bulk""#), 1000);
}

#[test]
fn a_page_is_a_list_of_sizes_or_of_classes() {
    let page = web(
        r#"{ kind = "web", sizes = ["12 kB", "3 kB"], connections = 6, server_time = "20 ms" }"#,
    );
    let classes: Vec<_> =
        page.classes.iter().map(|it| (it.name.as_str(), it.count, it.size, it.request)).collect();
    let request = Bytes(400);
    assert_eq!(
        classes,
        [("flow1", 1, Bytes(12_000), request), ("flow1", 1, Bytes(3_000), request)]
    );
    assert_eq!((page.at_once, page.server_time), (2, Duration::from_millis(20)));
    let page = web(r#"{ kind = "web", request = "1 kB", order = "sequential", classes = [
            { name = "a", count = 2, size = "1 kB", request = "2 kB" },
            { name = "b", count = 1, size = "1 kB" },
        ] }"#);
    let requests: Vec<_> = page.classes.iter().map(|class| class.request).collect();
    assert_eq!((requests, page.at_once), (vec![Bytes(2_000), Bytes(1_000)], 1));
    let both = r#"{ kind = "web", sizes = ["1 kB"], classes = [{ name = "a", count = 1, size = "1 kB" }] }"#;
    let none = r#"{ kind = "web" }"#;
    assert!(message(&with(both)).ends_with("has `classes` and `sizes`; give one of them"));
    assert!(message(&with(none)).ends_with("needs `classes` or `sizes`: one at least"));
}

#[test]
fn a_write_of_zero_bytes_is_refused() {
    let text = small_with(
        "to = \"right1\"",
        "to = \"right1\"\ntraffic = { kind = \"bulk\", write = \"0 B\" }",
    );
    assert!(message(&text).contains("must be more than zero"));
}
