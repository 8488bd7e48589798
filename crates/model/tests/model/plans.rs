//! Resolved plans: nodes, lanes, queues, flows and their transport.

use crate::common::{SMALL, plan, plans, small_with};
use tcplab_model::schema::{Carried, Independent, Probability, RedPlan};
use tcplab_model::{
    Discipline, LanePlan, Loss, MeasurePlan, Plan, QueueLimit, QueuePlan, TrafficPlan,
};
use tcplab_units::{Bytes, Duration, Rate};

fn lane<'a>(plan: &'a Plan, name: &str) -> &'a LanePlan {
    plan.lanes.iter().find(|lane| lane.name == name).unwrap()
}

fn way(plan: &Plan, lanes: &[usize]) -> Vec<String> {
    lanes.iter().map(|lane| plan.lanes[*lane].name.clone()).collect()
}

#[test]
fn a_dumbbell_has_its_bottleneck_in_the_middle() {
    let plan = plan(SMALL);
    let flow = &plan.flows[0];
    assert_eq!(way(&plan, &flow.forward), ["left1>left", "left>right", "right>right1"]);
    assert_eq!(way(&plan, &flow.back), ["right1>right", "right>left", "left>left1"]);
    assert_eq!(flow.base_rtt, Duration::from_millis(44));
    assert_eq!(plan.lanes[flow.bottleneck].name, "left>right");
    assert_eq!(flow.mtu, 1500);
}

#[test]
fn a_bdp_is_the_rate_times_the_largest_base_rtt() {
    // 10 Mbit/s for 44 ms are 55,000 bytes, or 36.7 packets of 1500.
    let plan = plan(SMALL);
    assert_eq!(lane(&plan, "left>right").bdp, Bytes(55_000));
    assert_eq!(lane(&plan, "left>right").queue.limit, QueueLimit::Packets(37));
    let quarter = small_with("[network.dumbbell]", "[network.dumbbell]\nqueue = \"0.25 BDP\"");
    let quarter = crate::common::plan(&quarter);
    assert_eq!(lane(&quarter, "left>right").queue.limit, QueueLimit::Packets(9));
    let tiny = small_with("[network.dumbbell]", "[network.dumbbell]\nqueue = \"0.001 BDP\"");
    let tiny = crate::common::plan(&tiny);
    assert_eq!(lane(&tiny, "left>right").queue.limit, QueueLimit::Packets(1));
}

#[test]
fn the_bdp_of_an_unused_lane_is_that_of_its_own_delay() {
    // The second pair is idle: ten times 10 Mbit/s, for twice 1 ms.
    let plan = plan(&small_with("[network.dumbbell]", "[network.dumbbell]\npairs = 2"));
    assert_eq!(lane(&plan, "left2>left").bdp, Bytes(25_000));
}

#[test]
fn the_rtts_of_pairs_are_spread_evenly() {
    // Study D1-E4: of M pairs, the i-th has 20 + 230 i / M ms.
    let plan = plan(
        r#"
duration = "1000 s"
flows = [{ from = "left*", to = "right*" }]
[network.dumbbell]
pairs = 20
rate = "10 Mbit/s"
delay = "5 ms"
rtt = ["20 ms", "250 ms"]
"#,
    );
    let rtts: Vec<_> = plan.flows.iter().map(|flow| flow.base_rtt).collect();
    assert_eq!(rtts[0], Duration::from_micros(31_500));
    assert_eq!(rtts[19], Duration::from_millis(250));
    // The published buffer: 10 Mbit/s for 250 ms, 208 packets.
    assert_eq!(lane(&plan, "left>right").queue.limit, QueueLimit::Packets(208));
}

#[test]
fn a_star_in_node_names_assigns_flows_round_robin() {
    let text = small_with("[network.dumbbell]", "[network.dumbbell]\npairs = 12")
        .replace("left1", "left*")
        .replace("right1", "right*");
    let all = plan(&text);
    assert_eq!(all.flows.len(), 12);
    let eleventh = &all.flows[10];
    assert_eq!(eleventh.name, "flow1/11");
    assert_eq!(all.nodes[eleventh.from], "left11");
    assert_eq!(all.nodes[eleventh.to], "right11");
    let more = plan(&format!("{text}count = 13\nstagger = \"100 ms\"\nstart = \"5 s\"\n"));
    assert_eq!(more.nodes[more.flows[12].from], "left1");
    assert_eq!(more.flows[12].start, Duration::from_millis(6_200));
    assert_eq!(more.flows[12].class, "flow1");
}

#[test]
fn directions_of_a_link_can_differ() {
    let plan = plan(
        r#"
duration = "1 s"
flows = [{ from = "server", to = "client" }]
[[network.links]]
between = ["client", "server"]
rate = "2 Mbit/s"
delay = "52 ms"
queue = "40 packets"
back = { rate = "10 Mbit/s", delay = "42 ms", queue = "64 kB", loss = "1 %" }
"#,
    );
    let (up, down) = (lane(&plan, "client>server"), lane(&plan, "server>client"));
    assert_eq!(up.queue.limit, QueueLimit::Packets(40));
    assert_eq!(down.queue.limit, QueueLimit::Bytes(64_000));
    assert_eq!(down.rate, Rate::from_bits_per_second(10_000_000));
    assert_eq!(up.loss, None);
    let probability = Probability(0.01);
    assert_eq!(down.loss, Some(Loss::Independent(Independent { probability, on: Carried::Both })));
    assert_eq!(plan.flows[0].base_rtt, Duration::from_millis(94));
}

#[test]
fn stack_options_of_flow_override_host_override_all() {
    let plan = plan(
        r#"
duration = "1 s"
stack = { cc = "newreno", sack = false, initial_window = 3, delayed_ack = "off" }
hosts.server.stack = { initial_window = 4, rmem = "64 kB" }
hosts."*".stack = { initial_window = 5 }
network.links = [
    { between = ["1", "router"], rate = "1 Mbit/s", delay = "1 ms" },
    { between = ["server", "router"], rate = "1 Mbit/s", delay = "1 ms" },
]
flows = [
    { from = "server", to = "1", cc = { name = "cubic", beta = 0.5 }, stack = { sack = true } },
    { from = "1", to = "server" },
]
"#,
    );
    let [down, up] = &plan.flows[..] else { panic!() };
    assert_eq!(
        (down.cc().unwrap().name.as_str(), up.cc().unwrap().name.as_str()),
        ("cubic", "newreno")
    );
    assert_eq!(down.cc().unwrap().params["beta"], 0.5);
    let [down, up] = [down, up].map(|flow| flow.tcp().unwrap());
    assert_eq!((down.stack.sack, down.peer_stack.sack, up.stack.sack), (true, true, false));
    assert_eq!((down.stack.initial_window, down.peer_stack.initial_window), (4, 5));
    assert_eq!((up.stack.rmem, up.peer_stack.rmem), (Bytes(1_000_000_000), Bytes(64_000)));
    assert_eq!(up.stack.delayed_ack.on(), None);
}

#[test]
fn cpu_times_are_set_by_host_name_or_pattern() {
    let text = SMALL.replace("delay", "pairs = 4\ndelay").replace(
        "[[flows]]",
        r#"
[hosts]
left2.cpu = { ack = "2 us" }
left3.cpu = {}
"left*".cpu = { packet = "10 us", call = "1 us" }
right1.stack.sack = false

[[flows]]"#,
    );
    let plan = plan(&text);
    let us = Duration::from_micros;
    let found: Vec<_> = plan
        .hosts
        .iter()
        .map(|host| {
            let cpu = host.cpu.as_ref().unwrap();
            (&*plan.nodes[host.node], &*host.place, [cpu.packet, cpu.ack, cpu.call])
        })
        .collect();
    let all = [us(10), us(0), us(1)];
    assert_eq!(
        found,
        [
            ("left1", "hosts.\"left*\"", all),
            ("left2", "hosts.left2", [us(0), us(2), us(0)]),
            ("left4", "hosts.\"left*\"", all),
        ]
    );
}

#[test]
fn receive_offload_of_all_hosts_may_be_off_for_one() {
    let text = SMALL.replace("delay", "pairs = 3\ndelay").replace(
        "[[flows]]",
        "[hosts]\nright2.gro = \"off\"\n\"right*\".gro = \"20500 ps\"\n[[flows]]",
    );
    // In whole nanoseconds, as for arrivals.
    let plan = plan(&text.replace("20500 ps", "20000500 ps"));
    let found = plan.hosts.iter().map(|host| (&*plan.nodes[host.node], host.gro));
    let wait = Some(Duration::from_micros(20));
    assert_eq!(found.collect::<Vec<_>>(), [("right1", wait), ("right3", wait)]);
}

#[test]
fn a_host_has_its_own_queue_on_all_links_that_begin_there() {
    let text = SMALL.replace("delay", "pairs = 2\nqueue = \"7 packets\"\ndelay").replace(
        "[[flows]]",
        r#"
[hosts]
"left*".qdisc = "fq"
left2.qdisc = "1000 packets"
left2.stack.pacing = false

[[flows]]
from = "right1"
to = "left1"
[[flows]]
from = "left2"
to = "right2"
[[flows]]"#,
    );
    let plan = plan(&text);
    let queue = |name| lane(&plan, name).queue.clone();
    let fq = |name| matches!(queue(name).discipline, Discipline::Fq(_));
    assert!(fq("left1>left") && !fq("left>left1") && !fq("left2>left"));
    assert_eq!(queue("left2>left").limit, QueueLimit::Packets(1000));
    assert_eq!(queue("left>right").limit, QueueLimit::Packets(7));
    let hosts: Vec<_> = (0..plan.nodes.len()).filter(|&node| plan.has_qdisc(node)).collect();
    let names: Vec<_> = hosts.iter().map(|&node| &*plan.nodes[node]).collect();
    assert_eq!(names, ["left1", "left2"]);
    // fq paces all senders of its host (`SK_PACING_FQ`), and no other queue does.
    let paced = plan.flows.iter().map(|flow| flow.tcp().unwrap().stacks().map(|it| it.pacing));
    assert_eq!(paced.collect::<Vec<_>>(), [[false, true], [false, false], [true, false]]);
}

#[test]
fn the_path_has_the_fewest_hops_unless_a_route_is_given() {
    let text = r#"
duration = "1 s"
network.links = [
    { between = ["a", "x"], rate = "1 Mbit/s", delay = "1 ms" },
    { between = ["a", "y"], rate = "1 Mbit/s", delay = "1 ms" },
    { between = ["x", "b"], rate = "1 Mbit/s", delay = "1 ms" },
    { between = ["y", "b"], rate = "1 Mbit/s", delay = "1 ms" },
    { between = ["x", "y"], rate = "1 Mbit/s", delay = "1 ms" },
]
flows = [{ from = "a", to = "b" }]
"#;
    let direct = plan(text);
    assert_eq!(way(&direct, &direct.flows[0].forward), ["a>x", "x>b"]);
    assert_eq!(way(&direct, &direct.flows[0].back), ["b>x", "x>a"]);
    let routed = plan(&format!("{text}[[network.routes]]\npath = [\"a\", \"x\", \"y\", \"b\"]\n"));
    assert_eq!(way(&routed, &routed.flows[0].forward), ["a>x", "x>y", "y>b"]);
    assert_eq!(way(&routed, &routed.flows[0].back), ["b>x", "x>a"]);
}

#[test]
fn parallel_links_have_names_of_their_own() {
    let link = "{ between = [\"a\", \"b\"], rate = \"1 Mbit/s\", delay = \"1 ms\" }";
    let plan = plan(&format!(
        "duration = \"1 s\"\nnetwork.links = [{link}, {link}]\nflows = [{{ from = \"a\", to = \"b\" }}]"
    ));
    let names: Vec<_> = plan.lanes.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(names, ["a>b", "b>a", "a>b/2", "b>a/2"]);
    assert_eq!(plan.flows[0].forward, [0]);
    // 1 Mbit/s x 2 ms are 250 bytes, less than a packet of 1500.
    let [second, queue] = &plan.warnings[..] else { panic!("{:?}", plan.warnings) };
    assert_eq!((second.at.as_str(), second.line), ("network.links[1]", Some(2)));
    assert!(second.to_string().contains("take the link of network.links[0]"), "{second}");
    assert_eq!((queue.at.as_str(), queue.line), ("network.links[0].queue", Some(2)));
    assert!(queue.to_string().contains("\"1 BDP\" of a>b comes to 1 packet"), "{queue}");
    // The id is about results; the stored plan has the warnings as text.
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["warnings"][0], second.to_string());
}

#[test]
fn flows_starting_after_the_end_are_reported() {
    // Every 4 s from 0 s on: of six flows, those at 0, 4 and 8 s begin within 10 s.
    let text = r#"
        duration = "10 s"
        network.links = [{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }]
        flows = [{ from = "a", to = "b", count = 6, stagger = "4 s", traffic = { kind = "bulk", size = "1 kB" } }]
    "#;
    let plan = plan(text);
    let expected = "flows[0]: 3 of 6 would begin at or after the end of the experiment at 10 s";
    let warnings: Vec<_> = plan.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|it| it.contains(expected)), "{warnings:?}");
}

#[test]
fn on_times_after_the_end_are_reported() {
    let warned = |keys: &str| {
        let plan = plan(&format!(
            "duration = \"10 s\"\nflows = [{{ from = \"a\", to = \"b\", start = \"4 s\", {keys} }}]\n\
             network.links = [{{ between = [\"a\", \"b\"], rate = \"10 Mbit/s\", delay = \"9 ms\" }}]"
        ));
        plan.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let periods = |last: &str| {
        let periods = format!("[[\"0 s\", \"1 s\"], [\"{last}\", \"9 s\"]]");
        warned(&format!("traffic = {{ kind = \"on-off\", periods = {periods} }}"))
    };
    // 4 s and 6 s are the end of the experiment; 4 s and 5 s are not.
    assert!(periods("6 s").contains("flows[0].traffic.periods: one begins 6 s after the flow"));
    assert_eq!(periods("5 s"), "");
    let told = "flows[0].start_jitter: is up to 6 s after 4 s, and the experiment ends at 10 s";
    assert!(warned("start_jitter = \"6 s\"").contains(told));
    assert_eq!(warned("start_jitter = \"5 s\""), "");
}

#[test]
fn loads_above_the_link_rate_are_reported() {
    let warned = |loads: &[&str]| {
        let flow = |load| {
            format!(
                "{{ from = \"a\", to = \"b\", traffic = {{ kind = \"arrivals\", sizes = \"20 kB\", \
                 load = {load} }} }}"
            )
        };
        let flows: Vec<_> = loads.iter().map(flow).collect();
        let plan = plan(&format!(
            "duration = \"10 s\"\nflows = [{}]\nnetwork.links = [{{ between = [\"a\", \"b\"], \
             rate = \"10 Mbit/s\", delay = \"9 ms\" }}]",
            flows.join(", ")
        ));
        plan.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    // Sixty times the rate where 60 % was intended; and 60 % twice.
    assert!(
        warned(&["60"]).contains("flows[0].traffic: transfers ask for 6000 % of the rate of a>b")
    );
    assert!(warned(&["0.6", "\"60 %\""]).contains("transfers ask for 120 % of the rate of a>b"));
    assert_eq!(warned(&["0.6", "0.3"]), "");
}

#[test]
fn on_and_off_times_are_written_out() {
    let text = |traffic: &str| format!("{SMALL}traffic = {{ kind = \"on-off\", {traffic} }}\n");
    let periods = |traffic| match &*plan(&text(traffic)).flows[0].traffic {
        TrafficPlan::OnOff(on_off) => {
            on_off.periods.iter().map(|(from, to)| format!("{from} to {to}")).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(periods("periods = [[\"5 s\", \"6 s\"]]"), ["5 s to 6 s"]);
    assert_eq!(
        periods("on = \"20 s\", off = \"5 s\""),
        ["0 ms to 20 s", "25 s to 45 s", "50 s to 70 s"]
    );
}

#[test]
fn relative_sizes_inside_a_discipline_are_resolved() {
    let red = "queue = { kind = \"red\", min = \"0.1 BDP\", max = \"0.5 BDP\", ecn = true }";
    let plan = plan(&small_with("[network.dumbbell]", &format!("[network.dumbbell]\n{red}")));
    let QueuePlan { discipline: Discipline::Red(RedPlan { min, max, ecn, .. }), limit } =
        lane(&plan, "left>right").queue.clone()
    else {
        panic!()
    };
    assert_eq!((min, max), (QueueLimit::Packets(4), QueueLimit::Packets(18)));
    assert_eq!((limit, ecn), (QueueLimit::Packets(37), true));
}

#[test]
fn stations_of_a_lan_share_its_medium() {
    let plan = plan(
        r#"
duration = "1 s"
network.lan.office = { nodes = ["a", "b", "c"], rate = "1 Gbit/s", delay = "2 us", arp = {} }
flows = [{ from = "c", to = "a", traffic = { kind = "udp", interval = "2 us" } }]
"#,
    );
    assert_eq!(plan.lanes.len(), 6);
    let lan = plan.lanes[0].lan.as_ref().unwrap();
    assert_eq!((lan.name.as_str(), plan.nodes[lan.node].as_str()), ("office", "office"));
    assert!(plan.lanes.iter().all(|lane| lane.lan.as_ref() == Some(lan)));
    // The interframe gap of Ethernet is 96 bits.
    assert_eq!((lan.gap, lan.framing), (Duration::from_nanos(96), Bytes(18)));
    let arp = lan.arp.as_ref().unwrap();
    assert_eq!((arp.wait.is_none(), arp.pending, arp.learns), (true, 3, true));
    let [flow] = &plan.flows[..] else { panic!() };
    assert_eq!(way(&plan, &flow.forward), ["c>office", "office>a"]);
    // A frame crosses the medium once each way.
    assert_eq!(flow.base_rtt, Duration::from_micros(4));
    assert_eq!(plan.lanes[flow.bottleneck].name, "c>office");
    assert_eq!(lane(&plan, "c>office").queue.limit, QueueLimit::Packets(1000));
}

#[test]
fn ten_thousand_pairs_are_resolved() {
    let text = small_with("[network.dumbbell]", "[network.dumbbell]\npairs = 10000");
    let plan = plan(&text.replace("left1", "left*").replace("right1", "right*"));
    assert_eq!((plan.nodes.len(), plan.lanes.len(), plan.flows.len()), (20_002, 40_002, 10_000));
    let last = &plan.flows[9_999];
    assert_eq!(way(&plan, &last.back), ["right10000>right", "right>left", "left>left10000"]);
}

#[test]
fn captures_are_resolved_to_lanes() {
    let plan = plan(&format!("{SMALL}[record]\ncaptures = [\"right>left\"]\nlinks = \"off\"\n"));
    assert_eq!(plan.record.captures, [1]);
    assert_eq!(plan.record.links.on(), None);
}

#[test]
fn a_plan_can_be_printed_as_json_with_its_units() {
    let json = serde_json::to_value(plan(SMALL)).unwrap();
    assert_eq!(json["duration"], "60 s");
    assert_eq!(json["lanes"][0]["rate"], "10 Mbit/s");
    assert_eq!(json["lanes"][0]["queue"]["limit"]["packets"], 37);
    assert_eq!(json["flows"][0]["transport"]["stack"]["delayed_ack"], "200 ms");
    assert_eq!(json["flows"][0]["traffic"]["kind"], "bulk");
}

#[test]
fn the_measuring_window_is_resolved_and_swept() {
    let measure = |text: &str| plan(&format!("{text}\n{SMALL}")).measure;
    let seconds = Duration::from_secs;
    // Measuring the whole experiment is the default: the run is the same.
    assert_eq!(measure("measure = { from = \"0 s\", to = \"60 s\" }"), None);
    assert_eq!(plan(&format!("measure.from = \"0 s\"\n{SMALL}")).id, plan(SMALL).id);
    let (from, to, every) = (seconds(20), seconds(60), Some(seconds(2)));
    let found = measure("measure.from = \"20 s\"\nevery = \"2 s\"");
    assert_eq!(found, Some(MeasurePlan { from, to, every }));
    let swept = format!("{SMALL}\n[sweep]\n\"measure.from\" = [\"10 s\", \"30 s\"]\n");
    let plans = plans(&swept).unwrap();
    let from = plans.iter().map(|plan| plan.measured().from).collect::<Vec<_>>();
    assert_eq!(from, [seconds(10), seconds(30)]);
    assert_ne!(plans[0].id, plans[1].id);
}

#[test]
fn a_limit_in_time_is_resolved_by_the_rate() {
    let limit = |queue: &str| {
        let toml =
            small_with("[network.dumbbell]", &format!("[network.dumbbell]\nqueue = {queue}"));
        lane(&plan(&toml), "left>right").queue.limit
    };
    // 10 Mbit/s: 12 ms are 15,000 bytes, or ten packets of 1500 bytes where packets are counted.
    assert_eq!(limit("\"12 ms\""), QueueLimit::Bytes(15_000));
    assert_eq!(limit("{ kind = \"drophead\", limit = \"12 ms\" }"), QueueLimit::Bytes(15_000));
    assert_eq!(limit("{ kind = \"codel\", limit = \"12 ms\" }"), QueueLimit::Packets(10));
    assert_eq!(limit("{ kind = \"sfq\", limit = \"12.1 ms\" }"), QueueLimit::Packets(11));
    // A token bucket drains more slowly: 12 ms at 5 Mbit/s.
    let bucket = "{ kind = \"tbf\", rate = \"5 Mbit/s\", burst = \"15 kB\", limit = \"12 ms\" }";
    assert_eq!(limit(bucket), QueueLimit::Bytes(7_500));
    let shaper = "{ kind = \"cake\", rate = \"5 Mbit/s\", limit = \"12 ms\" }";
    assert_eq!(limit(shaper), QueueLimit::Bytes(7_500));
    // A packet always fits.
    assert_eq!(limit("\"1 us\""), QueueLimit::Bytes(1500));
}

#[test]
fn cake_aims_for_a_twentieth_of_its_round_trip() {
    let cake = |settings: &str| {
        let queue = format!("[network.dumbbell]\nqueue = {{ kind = \"cake\"{settings} }}");
        let plan = plan(&small_with("[network.dumbbell]", &queue));
        match &lane(&plan, "left>right").queue.discipline {
            Discipline::Cake(cake) => cake.clone(),
            other => panic!("{other:?}"),
        }
    };
    // In microseconds, at least one, as in tc-cake(8).
    assert_eq!(cake("").interval_and_target(), [100_000, 5_000]);
    assert_eq!(cake(", rtt = \"10 us\"").interval_and_target(), [10, 1]);
    let isolation = cake(", isolation = \"dual-dsthost\"").isolation;
    assert_eq!(isolation.parts(), [true, false, true], "flows and hosts that receive");
}

#[test]
fn udp_rates_far_above_the_link_rate_are_reported() {
    let with =
        |rate: &str| plan(&format!("{SMALL}traffic = {{ kind = \"udp\", rate = \"{rate}\" }}\n"));
    // 10 Mbit/s carry one in ten packets of 100 Mbit/s, and one in 100 of 1 Gbit/s.
    assert!(with("100 Mbit/s").warnings.is_empty());
    assert_eq!(
        with("1 Gbit/s").warnings[0].to_string(),
        "flows[0].traffic: sends at 100 times the rate of left>right, 10 Mbit/s: most of what its queue \
         has no room for is dropped"
    );
}
