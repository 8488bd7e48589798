//! Features that this backend does not run are rejected, with their place.

use tcplab_sim::backend;

fn refusal(link: &str, flow: &str, rest: &str) -> String {
    let toml = format!(
        r#"
        duration = "1 s"
        {rest}
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "1 ms"
        {link}
        [[flows]]
        from = "a"
        to = "b"
        {flow}
        "#
    );
    let document = tcplab_model::from_toml(&toml).unwrap();
    document.plans(&backend()).unwrap_err().to_string()
}

#[test]
fn an_unknown_algorithm_with_a_suggestion() {
    let message = refusal("", "cc = \"qubic\"", "");
    assert!(
        message.contains("flows[0].cc: no congestion control is called \"qubic\""),
        "{message}"
    );
    assert!(message.contains("did you mean \"cubic\"?"), "{message}");
}

#[test]
fn an_unknown_parameter_of_an_algorithm() {
    let message = refusal("", "cc = { name = \"cubic\", betta = 0.5 }", "");
    assert!(message.contains("flows[0].cc") && message.contains("`betta`"), "{message}");
}

#[test]
fn a_wrong_value_of_a_parameter() {
    let message = refusal("", "cc = { name = \"cubic\", beta = \"half\" }", "");
    let expected = "flows[0].cc.beta: \"half\" is not a number between 0 and 1";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn the_algorithm_of_every_host_is_checked() {
    // Checked also at the end that only receives, and where a `*` stands for several hosts.
    let message = refusal("", "", "hosts.b.stack.cc = \"qubic\"");
    assert!(message.contains("hosts.b.stack.cc: no congestion control is called"), "{message}");
    let toml = r#"
        duration = "1 s"
        network.dumbbell = { pairs = 2, rate = "10 Mbit/s", delay = "1 ms" }
        hosts.left2.stack.cc = { name = "dctcp", dctcp_alpha_on_init = 2048 }
        flows = [{ from = "left*", to = "right*" }]
    "#;
    let refused = tcplab_model::from_toml(toml).unwrap().plans(&backend()).unwrap_err().to_string();
    assert!(refused.contains("2048 is not a whole number up to 1024"), "{refused}");
}

#[test]
fn flows_of_a_host_have_one_tcp_mem() {
    let stack = |low: &str| {
        format!("stack.mem = {{ low = \"{low}\", pressure = \"2 MB\", high = \"3 MB\" }}")
    };
    let message = refusal("", &stack("4 MB"), "");
    assert!(message.contains("flows[0].stack.mem: has limits out of order"), "{message}");
    let two = format!("{}\n[[flows]]\nfrom = \"a\"\nto = \"b\"", stack("1 MB"));
    let message = refusal("", &two, "");
    assert!(
        message.contains("flows[1].stack.mem: differs between flows of the host \"a\""),
        "{message}"
    );
}

const COMMAND: &str = "traffic = { kind = \"command\", server = \"true\", client = \"true\" }";

#[test]
fn unsupported_traffic_is_refused() {
    let message = refusal("", COMMAND, "");
    assert!(message.contains("flows[0].traffic"), "{message}");
    assert!(message.contains("traffic `command`"), "{message}");
    assert!(message.contains("not available on `sim`"), "{message}");
}

#[test]
fn several_unsupported_settings_are_reported_together() {
    let message =
        refusal("", &format!("cc = \"vegass\"\n{COMMAND}"), "record = { captures = [\"a>c\"] }");
    assert_eq!(message.lines().count(), 3, "{message}");
}

#[test]
fn mistakes_of_every_sort_are_reported_together() {
    let toml = r#"
        duration = "30 s"
        [[network.links]]
        between = ["server", "client"]
        rate = "10 Mbps"
        delay = 20
        [[flows]]
        from = "server"
        to = "clint"
        cc = "qubic"
        start = "0.1 ps"
    "#;
    let document = tcplab_model::from_toml(toml).unwrap();
    let message = document.plans(&backend()).unwrap_err().to_string();
    let places: Vec<&str> = message.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(
        places,
        [
            "network.links[0].rate",
            "network.links[0].delay",
            "flows[0].start",
            "flows[0].to",
            "flows[0].cc"
        ],
        "{message}"
    );
}
