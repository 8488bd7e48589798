//! The schema covers the five published studies.

use crate::common::{plan, plans};

#[test]
fn web_sessions_over_slow_links_with_twelve_variants() {
    let text = r#"
name = "web sessions, Linux 2.6.26 options"
duration = "200 s"
repeat = 30

[network]
links = [
    { between = ["c1", "n0"], rate = "1 Mbit/s", delay = "5 ms", queue = "4 packets" },
    { between = ["c2", "n0"], rate = "1 Mbit/s", delay = "5 ms", queue = "4 packets" },
    { between = ["n0", "n1"], rate = "1 Mbit/s", delay = "15 ms", queue = "4 packets" },
    { between = ["n1", "s1"], rate = "1 Mbit/s", delay = "5 ms", queue = "4 packets" },
    { between = ["n1", "s2"], rate = "1 Mbit/s", delay = "5 ms", queue = "4 packets" },
]

[stack]
abc = "off"
initial_window = 3
min_rto = "200 ms"
initial_rto = "3 s"

[[flows]]
name = "sessions"
from = "s1"
to = "c1"
start_jitter = "100 ms"
[flows.traffic]
kind = "web"
order = "sequential"
persistent = false
classes = [
    { name = "large", count = 2, size = "120 kB" },
    { name = "medium", count = 5, size = "21 kB" },
    { name = "small", count = 10, size = "4 kB" },
]

[[flows]]
name = "background"
from = "s2"
to = "c2"
traffic = { kind = "bulk", size = "15 MB" }

[sweep]
"stack.cc" = ["newreno", "cubic"]
"stack.abc" = ["off", 1]
"stack.sack" = [false, true]
"#;
    let plans = plans(text).unwrap();
    assert_eq!(plans.len(), 30 * 8);
    assert_eq!(plans[0].flows[0].base_rtt.to_string(), "50 ms");
}

#[test]
fn persistent_flows_over_many_hops_with_cross_traffic() {
    let plan = plan(
        r#"
duration = "1000 s"

[network.parking_lot]
hops = 3
rate = "10 Mbit/s"
delay = "10 ms"
queue = "125 packets"
access = { rate = "100 Mbit/s", delay = "20 ms" }

[[flows]]
name = "C1"
from = "source"
to = "sink"
start = "10 s"
cc = "westwood+"

[[flows]]
name = "forward cross"
from = "entry*"
to = "exit*"
cc = "newreno"

[[flows]]
name = "reverse cross"
from = "exit*"
to = "entry*"
cc = "newreno"
"#,
    );
    let rtts: Vec<_> = plan.flows.iter().map(|flow| flow.base_rtt.to_string()).collect();
    // RTT of C1: 80 + 20 N ms; of the cross traffic: 100 ms.
    assert_eq!(rtts, ["140 ms", "100 ms", "100 ms", "100 ms", "100 ms", "100 ms", "100 ms"]);
}

#[test]
fn reverse_on_off_traffic_and_a_lossy_last_hop() {
    let plan = plan(
        r#"
duration = "1000 s"

[network.dumbbell]
pairs = 11
rate = "2 Mbit/s"
delay = "123 ms"
loss = { kind = "gilbert-time", good = "1 s", bad = "10 ms", holding = "fixed", change = 0.5, loss_bad = 0.1 }

[[flows]]
name = "TCP1"
from = "left1"
to = "right1"
stack = { delayed_ack = "off", initial_window = 3 }

[[flows]]
name = "reverse"
from = "right*"
to = "left*"
count = 10
traffic = { kind = "on-off", periods = [["250 s", "500 s"], ["750 s", "1000 s"]] }
"#,
    );
    assert_eq!(plan.flows[0].base_rtt.to_string(), "250 ms");
    assert_eq!(plan.flows[0].tcp().unwrap().peer_stack.delayed_ack.on(), None);
    assert_eq!(plan.flows.len(), 11);
}

#[test]
fn antiparallel_transfers_on_an_asymmetric_link() {
    let plan = plan(
        r#"
duration = "800 s"

[network.antiparallel]
down = { rate = "10 Mbit/s", delay = "42 ms", queue = "250 packets" }
up = { rate = "2 Mbit/s", delay = "52 ms", queue = "40 packets" }

[[flows]]
name = "download"
from = "server"
to = "client"
start_jitter = "10 s"
traffic = { kind = "arrivals", per_second = 0.15, sizes = { kind = "zipf", exponent = 1.7, max = "1 GB" } }

[[flows]]
name = "upload"
from = "client"
to = "server"
start_jitter = "10 s"
"#,
    );
    assert_eq!(plan.flows[0].base_rtt.to_string(), "94 ms");
    assert_eq!(plan.lanes[plan.flows[0].bottleneck].name, "far>near");
    assert_eq!(plan.lanes[plan.flows[1].bottleneck].name, "near>far");
}

#[test]
fn buffers_limit_a_fast_flow() {
    let plans = plans(
        r#"
duration = "30 s"
network.chain = { rate = "1 Gbit/s", delay = "2.2 ms" }
flows = [{ from = "client", to = "server" }]

[sweep]
stack = [
    { rmem = "87380 B", wmem = "16384 B", app_win = 31 },
    { rmem = "174760 B", wmem = "131072 B", app_win = 15 },
]
"#,
    )
    .unwrap();
    assert_eq!(plans[1].flows[0].tcp().unwrap().stack.wmem.0, 131_072);
    assert_eq!(plans[0].lanes[0].bdp.0, 550_000);
}

#[test]
fn datagrams_on_a_shared_lan() {
    let plan = plan(
        r#"
duration = "3 s"
network.lan.csma = { nodes = ["node0", "node1"], rate = "1000 Mbit/s", delay = "2 us", queue = { kind = "codel", limit = "10340 packets" } }

[[flows]]
from = "node0"
to = "node1"
start = "2 s"
traffic = { kind = "udp", interval = "2 us", payload = "1472 B", packets = 10000 }
"#,
    );
    assert_eq!(plan.flows[0].base_rtt.to_string(), "4 us");
}
