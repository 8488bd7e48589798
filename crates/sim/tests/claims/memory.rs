//! Memory shared by the connections of a host.

use crate::{flows, run};

/// The goodput of three flows, of which two begin at the same host, over a path of 200 ms.
fn rates(mem: &str) -> Vec<f64> {
    let tables = run(&format!(
        r#"
        duration = "60 s"
        network.links = [
            {{ between = ["left1", "right1"], rate = "100 Mbit/s", delay = "100 ms" }},
            {{ between = ["left2", "right2"], rate = "100 Mbit/s", delay = "100 ms" }},
        ]
        hosts.left1.stack.mem = {mem}
        flows = [
            {{ from = "left1", to = "right1" }},
            {{ from = "left1", to = "right1" }},
            {{ from = "left2", to = "right2" }},
        ]
        "#
    ));
    flows(&tables, "goodput_mbit_s")
}

#[test]
fn connections_of_a_host_share_its_tcp_mem() {
    // 200 kB in 200 ms: 8 Mbit/s for both together and half of that each, apart from slow start.
    let rates = rates("{ low = \"100 kB\", pressure = \"150 kB\", high = \"200 kB\" }");
    let both = rates[0] + rates[1];
    assert!(both > 0.85 * 8.0 && both < 8.0, "{rates:?}");
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.1, "{rates:?}");
    // The other host has no such limit.
    assert!(rates[2] > 40.0, "{rates:?}");
}

#[test]
fn without_tcp_mem_each_connection_has_its_own_buffers() {
    let rates = rates("\"off\"");
    assert!(rates[0] > 16.0 && rates[1] > 16.0, "{rates:?}");
}
