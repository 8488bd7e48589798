//! Path MTU discovery on a path with a smaller MTU in the middle than at its ends.

use crate::{flows, run};
use tcplab_tables::Tables;

/// Two consecutive transfers over such a path.
fn transfers(size: &str, link: &str, stack: &str) -> Tables {
    run(&format!(
        r#"
        duration = "60 s"
        network.links = [
            {{ between = ["a", "r1"], rate = "100 Mbit/s", delay = "5 ms" }},
            {{ between = ["r1", "r2"], rate = "10 Mbit/s", delay = "15 ms", mtu = 1000{link} }},
            {{ between = ["r2", "b"], rate = "100 Mbit/s", delay = "1 ms" }},
        ]
        stack = {{ {stack} }}
        flows = [
            {{ from = "a", to = "b", traffic = {{ kind = "bulk", size = "{size}" }} }},
            {{ from = "a", to = "b", start = "30 s", traffic = {{ kind = "bulk", size = "{size}" }} }},
        ]
        "#
    ))
}

#[test]
fn path_mtu_discovery_costs_one_rtt_to_the_router() {
    let known = flows(&transfers("1 kB", "", "path_mtu = \"known\""), "completion_s");
    let tables = transfers("1 kB", "", "");
    let found = flows(&tables, "completion_s");
    // 1052 bytes come to the router and an ICMP message of 576 bytes returns, at 0.08 us a byte and
    // 5 ms.
    let more = 2.0 * 0.005 + f64::from(1_052 + 576) * 0.08e-6;
    assert!((found[0] - known[0] - more).abs() < 1e-9, "{found:?} {known:?}");
    // The host has learned the path MTU.
    assert!((found[1] - known[1]).abs() < 1e-9, "{found:?} {known:?}");
    let reasons = tables.drops.texts("reason").unwrap();
    assert_eq!(reasons, [Some("PKT_TOO_BIG")]);
}

#[test]
fn an_icmp_black_hole_stops_transfers_without_mtu_probing() {
    let outcomes = |probing: &str| {
        let stack = format!("mtu_probing = \"{probing}\"");
        let tables = transfers("100 kB", ", icmp = false", &stack);
        let outcomes = tables.flows.texts("outcome").unwrap();
        outcomes.into_iter().map(|it| it.unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(outcomes("off"), ["unfinished", "unfinished"]);
    assert_eq!(outcomes("on-black-hole"), ["completed", "completed"]);
    assert_eq!(outcomes("always"), ["completed", "completed"]);
}

#[test]
fn on_a_path_with_one_mtu_discovery_changes_nothing() {
    // Ethernet all the way: 1448 bytes of data from the first segment on, whatever the setting.
    let times = |stack: &str| {
        let tables = run(&format!(
            r#"
            duration = "10 s"
            network.dumbbell = {{ pairs = 1, rate = "10 Mbit/s", delay = "10 ms" }}
            stack = {{ {stack} }}
            flows = [{{ from = "left1", to = "right1", traffic = {{ kind = "bulk", size = "1 MB" }} }}]
            "#
        ));
        flows(&tables, "completion_s")
    };
    assert_eq!(times("path_mtu = \"known\""), times("path_mtu = \"discovered\""));
}
