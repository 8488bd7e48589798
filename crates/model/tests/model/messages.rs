//! Messages about each kind of invalid input.

use crate::common::{SIM, SMALL, by_json, message, messages, plan, plans, small_with};
use tcplab_model::{Backend, Mistake, Mistakes, Plan, Problem, from_json, from_toml, support};

#[test]
fn an_unknown_key_gets_the_nearest_one() {
    assert_eq!(
        message(&small_with("delay", "dleay = \"1 ms\"\ndelay")),
        "line 5: network.dumbbell.dleay: there is no key \"dleay\" here; did you mean \"delay\"?"
    );
    assert_eq!(
        message(&format!("{SMALL}stack.sak = true\n")),
        "line 10: flows[0].stack.sak: there is no key \"sak\" here; did you mean \"sack\"?"
    );
}

#[test]
fn a_wrong_unit_gets_the_right_ones() {
    assert_eq!(
        message(&small_with("20 ms", "20 msec")),
        "line 5: network.dumbbell.delay: `msec` is not a unit of time; the units are ps, ns, us, \
         ms, s, µs, min, h"
    );
    assert_eq!(
        message(&small_with("10 Mbit/s", "10 Mbps")),
        "line 4: network.dumbbell.rate: `Mbps` is not a unit of rate; the units are bit/s, \
         kbit/s, Mbit/s, Gbit/s, Tbit/s, k, M, G, T"
    );
}

#[test]
fn a_number_without_a_unit_is_refused() {
    assert_eq!(
        message(&small_with("\"20 ms\"", "20")),
        "line 5: network.dumbbell.delay: 20 has no unit; write it as text with one, like \"25 ms\""
    );
    assert_eq!(
        message(&small_with("\"20 ms\"", "\"20 ms\"\nqueue = 250")),
        "line 6: network.dumbbell.queue: 250 has no unit; write it as text with one, like \"250 \
         packets\""
    );
}

#[test]
fn processing_times_are_at_most_a_second() {
    assert_eq!(
        message(&format!("hosts.left1.cpu.packet = \"2 s\"\n{SMALL}")),
        "line 1: hosts.left1.cpu.packet: 2 s is outside the range from 0 ms to 1 s"
    );
}

#[test]
fn gro_times_have_a_range_and_are_for_hosts() {
    assert_eq!(
        message(&format!("hosts.left1.gro = \"20 ns\"\n{SMALL}")),
        "line 1: hosts.left1.gro: 20 ns is outside the range from 1 us to 10 ms"
    );
    assert!(plans(&format!("hosts.right1.gro = \"20 us\"\n{SMALL}")).is_ok());
    assert_eq!(
        message(&format!("hosts.right.gro = \"20 us\"\n{SMALL}")),
        "line 1: hosts.right.gro: is for hosts at the ends of flows, and flow \"flow1\" passes \
         through \"right\""
    );
    assert!(plans(&format!("hosts.right.gro = \"off\"\n{SMALL}")).is_ok());
}

#[test]
fn rates_are_more_than_zero() {
    assert_eq!(
        message(&small_with("10 Mbit/s", "-1 Mbit/s")),
        "line 4: network.dumbbell.rate: `-1 Mbit/s` is negative; write it like `10 Mbit/s`"
    );
    assert_eq!(
        message(&small_with("10 Mbit/s", "0 Mbit/s")),
        "line 4: network.dumbbell.rate: must be more than zero"
    );
}

/// Names become file names, for which file systems allow 255 bytes.
#[test]
fn names_are_bounded_in_bytes() {
    let named = |name: &str| format!("name = \"{name}\"\n{SMALL}");
    assert!(plans(&named(&"x".repeat(128))).is_ok());
    assert_eq!(
        message(&named(&"ä".repeat(65))),
        "line 1: name: has 130 bytes; a name has at most 128"
    );
    let long = "x".repeat(300);
    for (key, place) in [("name", "flows[0].name"), ("class", "flows[0].class")] {
        let said = message(&format!("{SMALL}{key} = \"{long}\"\n"));
        assert_eq!(said, format!("line 10: {place}: has 300 bytes; a name has at most 128"));
    }
    let text = "x".repeat(10_001);
    assert_eq!(
        message(&format!(
            "{SMALL}traffic.kind = \"command\"\ntraffic.server = \"{text}\"\ntraffic.client = \"true\"\n"
        )),
        "line 11: flows[0].traffic.server: has 10001 bytes; a text has at most 10000"
    );
}

#[test]
fn the_seed_of_every_repetition_fits_into_the_tables() {
    // 2^63 - 1 is the largest signed number.
    assert_eq!(plans(&format!("seed = {}\n{SMALL}", i64::MAX)).unwrap().len(), 1);
    let json = |seed: u64| format!(r#"{{ "duration": "1 s", "seed": {seed} }}"#);
    let refused = from_json(&json(1 << 63)).unwrap().plans(&SIM).unwrap_err().to_string();
    let range = "seed: 9223372036854775808 is outside the range from 0 to 9223372036854775807";
    assert!(refused.contains(range), "{refused}");
    let refused = message(&format!("seed = {}\n{SMALL}", 1_u64 << 63));
    assert!(refused.contains(range), "{refused}");
    assert_eq!(
        message(&format!("repeat = 2\nseed = {}\n{SMALL}", i64::MAX)),
        "line 2: seed: is 9223372036854775807: the last of 2 repetitions has more than \
         9223372036854775807"
    );
}

#[test]
fn a_path_without_delay_is_refused() {
    // 40 bytes at 700 Tbit/s take 0.46 ps, which rounds to zero, and at 600 Tbit/s one.
    let with = |rate: &str, delay: &str| {
        format!(
            "duration = \"1 ns\"\nnetwork.chain = {{ rate = \"{rate}\", delay = \"{delay}\" }}\n\
             flows = [{{ from = \"client\", to = \"server\" }}]\n"
        )
    };
    assert!(plans(&with("600 Tbit/s", "0 ms")).is_ok());
    assert!(plans(&with("700 Tbit/s", "1 ps")).is_ok());
    assert_eq!(
        message(&with("700 Tbit/s", "0 ms")),
        "line 3: flows[0]: packets take no time from \"client\" to \"server\" and back, and nothing \
         would ever end; give a link between them a delay, or a rate of 100 Tbit/s or less"
    );
}

#[test]
fn a_queue_limit_of_zero_is_refused() {
    for queue in ["0 packets", "0 kB", "0 BDP"] {
        assert_eq!(
            message(&small_with("\"20 ms\"", &format!("\"20 ms\"\nqueue = \"{queue}\""))),
            "line 6: network.dumbbell.queue: must be more than zero"
        );
    }
}

#[test]
fn a_duration_of_zero_is_refused() {
    assert_eq!(message(&small_with("60 s", "0 s")), "line 1: duration: must be more than zero");
    assert_eq!(
        message(&small_with("duration = \"60 s\"", "")),
        "duration: is missing; write it like \"25 ms\""
    );
}

#[test]
fn flows_run_between_nodes_that_exist() {
    assert_eq!(
        message(&small_with("\"left1\"", "\"leftl\"")),
        "line 8: flows[0].from: no node is called \"leftl\"; did you mean \"left\"?"
    );
    assert_eq!(
        message(&small_with("\"right1\"", "\"mars\"")),
        "line 9: flows[0].to: no node is called \"mars\"; there are \"left\", \"right\", \
         \"left1\", \"right1\""
    );
    assert_eq!(
        message(&small_with("\"right1\"", "\"left1\"")),
        "line 7: flows[0]: leads from \"left1\" to itself"
    );
}

#[test]
fn flows_need_a_path() {
    let islands = r#"
duration = "1 s"
network.links = [
    { between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" },
    { between = ["c", "d"], rate = "1 Mbit/s", delay = "1 ms" },
]
flows = [{ from = "a", to = "d" }]
"#;
    assert_eq!(message(islands), "line 7: flows[0]: no path leads from \"a\" to \"d\"");
}

#[test]
fn retry_and_timeout_options_have_ranges() {
    let stack = |option: &str| message(&format!("{SMALL}stack.{option}\n"));
    assert_eq!(
        stack("syn_ack_retries = 256"),
        "line 10: flows[0].stack.syn_ack_retries: 256 is outside the range from 0 to 255"
    );
    assert_eq!(
        stack("syn_linear_timeouts = 128"),
        "line 10: flows[0].stack.syn_linear_timeouts: 128 is outside the range from 0 to 127"
    );
    assert_eq!(
        stack("user_timeout = \"0 s\""),
        "line 10: flows[0].stack.user_timeout: must be more than zero"
    );
    assert_eq!(stack("keepalive = true"), "line 10: flows[0].stack.keepalive: true is not a table");
    assert_eq!(
        stack("keepalive = { probes = 0 }"),
        "line 10: flows[0].stack.keepalive.probes: must be more than zero"
    );
    assert_eq!(
        stack("keepalive.every = \"1 s\""),
        "line 10: flows[0].stack.keepalive.every: there is no key \"every\" here; there are \
         \"idle\", \"interval\", \"probes\""
    );
}

#[test]
fn links_connect_two_nodes() {
    let alone = r#"
duration = "1 s"
network.links = [{ between = ["a", "a"], rate = "1 Mbit/s", delay = "1 ms" }]
flows = [{ from = "a", to = "b" }]
"#;
    assert_eq!(message(alone), "line 3: network.links[0].between: connects \"a\" with itself");
}

#[test]
fn a_missing_key_of_a_link_is_reported_once() {
    let bare = r#"
duration = "1 s"
network.links = [{ between = ["a", "b"], forward = { rate = "1 Mbit/s" } }]
flows = [{ from = "a", to = "b" }]
"#;
    assert_eq!(
        messages(bare),
        [
            "line 3: network.links[0].delay: is missing; write it like \"25 ms\"",
            "line 3: network.links[0].rate: is missing; write it like \"10 Mbit/s\"",
        ]
    );
}

#[test]
fn routes_follow_links() {
    let routed = r#"
duration = "1 s"
network.chain = { hops = 2, rate = "1 Mbit/s", delay = "1 ms" }
network.routes = [{ path = ["client", "moon"] }, { path = ["client", "server"] }]
flows = [{ from = "client", to = "server" }]
"#;
    assert_eq!(
        messages(routed),
        [
            "line 4: network.routes[0].path[1]: no node is called \"moon\"; there are \"client\", \
             \"router1\", \"server\"",
            "line 4: network.routes[1].path: no link connects \"client\" with \"server\"",
        ]
    );
}

#[test]
fn names_of_flows_are_unique() {
    let twice = format!(
        "{SMALL}name = \"a\"\n[[flows]]\nname = \"a\"\nfrom = \"left1\"\nto = \"right1\"\n"
    );
    assert_eq!(message(&twice), "line 12: flows[1].name: \"a\" is already the name of flows[0]");
}

#[test]
fn an_empty_experiment_is_refused() {
    assert_eq!(
        messages("duration = \"1 s\""),
        [
            "flows: there are none; an experiment needs one [[flows]] at least",
            "network: is empty; give it a shape, like [network.dumbbell], or [[network.links]]",
        ]
    );
}

#[test]
fn an_unknown_profile_gets_the_nearest_one() {
    assert_eq!(
        message(&format!("{SMALL}[stack]\nprofile = \"linux-6.13\"\n")),
        "line 11: stack.profile: no profile is called \"linux-6.13\"; did you mean \"linux-6.12\"?"
    );
}

#[test]
fn recoveries_older_than_sack_need_sack_off() {
    assert_eq!(
        message(&format!("{SMALL}[stack]\nrecovery = \"tahoe\"\n")),
        "line 11: stack.recovery: \"tahoe\" is a recovery without SACK; add `sack = false`"
    );
    // Accepted wherever it is set; NewReno may be the fallback for peers without SACK.
    for fine in ["recovery = \"reno\"\nsack = false", "recovery = \"newreno-steady\""] {
        assert!(plans(&format!("{SMALL}[stack]\n{fine}\n")).is_ok(), "{fine}");
    }
}

#[test]
fn fack_needs_sack_and_no_rack() {
    assert_eq!(
        message(&format!("{SMALL}[stack]\nfack = true\nsack = false\n")),
        "line 11: stack.fack: goes by SACK blocks, and `sack` is false"
    );
    assert_eq!(
        message(&format!("{SMALL}[stack]\nprofile = \"linux-6.12\"\nfack = true\n")),
        "line 12: stack.fack: does nothing beside RACK; add `rack = false`"
    );
    // A profile may enable it, as the kernel did: without SACK it has no effect.
    let fine = format!("{SMALL}[stack]\nprofile = \"linux-2.6.26\"\nsack = false\n");
    assert!(plans(&fine).is_ok());
}

#[test]
fn several_mistakes_are_reported_together() {
    let text = r#"
duration = "0 s"
seeed = 1

[network.dumbbell]
rate = "10"
delay = 20
queue = { kind = "blue" }
loss = "200 %"

[[flows]]
to = "right1"
count = 2000000
traffic = { kind = "bulk", sise = "1 MB" }
"#;
    assert_eq!(
        messages(text),
        [
            "line 3: seeed: there is no key \"seeed\" here; did you mean \"seed\"?",
            "line 2: duration: must be more than zero",
            "line 6: network.dumbbell.rate: `10` has no unit; the units are bit/s, kbit/s, \
             Mbit/s, Gbit/s, Tbit/s, k, M, G, T",
            "line 7: network.dumbbell.delay: 20 has no unit; write it as text with one, like \
             \"25 ms\"",
            "line 8: network.dumbbell.queue.kind: no queue discipline is called \"blue\"; there \
             are \"droptail\", \"drophead\", \"red\", \"codel\", \"fq-codel\", \"pie\", \"fq-pie\", \
             \"sfq\", \"tbf\", \"fq\", \"cake\", \"dualpi2\", \"policer\"",
            "line 9: network.dumbbell.loss: 2 is outside the range from 0 to 1 (100 %)",
            "line 11: flows[0].from: is missing",
            "line 13: flows[0].count: 2000000 is outside the range from 1 to 1000000",
            "line 14: flows[0].traffic.sise: there is no key \"sise\" here; did you mean \"size\"?",
        ]
    );
}

#[test]
fn a_sweep_of_a_missing_key_is_refused() {
    let sweep = |line: &str| format!("{SMALL}[sweep]\n{line}\n");
    assert_eq!(
        message(&sweep("\"flows[2].cc\" = [\"cubic\"]")),
        "line 11: sweep.\"flows[2].cc\": there is nothing at `flows[2].cc`: `flows` has 1 entry"
    );
    assert_eq!(
        message(&sweep("\"network.dumbel.rate\" = [\"1 Mbit/s\"]")),
        "line 11: network.dumbel: there is no key \"dumbel\" here; did you mean \"dumbbell\"?"
    );
    assert_eq!(message(&sweep("\"seed\" = []")), "line 11: sweep.seed: has no values");
    assert_eq!(message(&sweep("seed = 1")), "line 11: sweep.seed: 1 is not a list of values");
    assert_eq!(message(&sweep("repeat = [1]")), "line 11: sweep.repeat: `repeat` cannot be varied");
    assert_eq!(
        message(&sweep("\"stack.cc\" = [\"cubic\"]\nstack = [{}]")),
        "line 12: sweep.stack: varies the same as `sweep.\"stack.cc\"`"
    );
}

#[test]
fn a_wrong_swept_value_is_on_its_own_line() {
    let sweep = "[sweep]\n\"network.dumbbell.queue\" = [\n  \"1 BDP\",\n  \"1 BDB\",\n]\n";
    assert_eq!(
        message(&format!("{SMALL}{sweep}")),
        "line 13: network.dumbbell.queue: `BDB` is not a unit of queue size; the units are \
         packets, BDP, us, ms, B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
    );
}

#[test]
fn huge_counts_are_refused_before_allocation() {
    let many =
        format!("repeat = 1000\n{SMALL}[sweep]\nseed = {:?}\n", (0..101).collect::<Vec<_>>());
    assert_eq!(message(&many), "line 11: sweep: 101000 runs are too many; the most is 100000");
    assert_eq!(
        message(&small_with("[network.dumbbell]", "[network.dumbbell]\npairs = 18000000000000")),
        "line 4: network.dumbbell.pairs: 18000000000000 is outside the range from 1 to 100000"
    );
    let flows = "count = 1000000\n[[flows]]\nfrom = \"left1\"\nto = \"right1\"\ncount = 1000000\n";
    assert_eq!(
        message(&format!("{SMALL}{flows}")),
        "line 7: flows: 2000000 flows are too many; the most is 1000000"
    );
}

#[test]
fn invalid_experiment_text_is_refused_with_its_line() {
    let mistakes = from_toml("duration = \"60 s\"\n[network\n").unwrap_err();
    let message = mistakes.to_string();
    assert!(message.starts_with("line 2: this is not TOML: "), "{message}");
    let message = from_json("{\"duration\":\n \"60 s\",}").unwrap_err().to_string();
    assert_eq!(message, "line 2: this is not JSON: trailing comma (column 9)");
    assert_eq!(from_json("[]").unwrap_err().to_string(), "a list is not a table");
}

#[test]
fn refusals_of_a_backend_name_the_place() {
    let unsupported = |plan: &Plan| -> Vec<Mistake> {
        let flow = &plan.flows[0];
        let known = ["cubic", "newreno"];
        if known.contains(&flow.cc().unwrap().name.as_str()) {
            return Vec::new();
        }
        let problem = Problem::unknown("congestion control", &flow.cc().unwrap().name, known);
        let what = "the option `ecn`".into();
        vec![
            problem.at(format!("{}.cc", flow.place)),
            Problem::NotYet { what, have: Vec::new() }.at(format!("{}.stack.ecn", flow.place)),
        ]
    };
    let backend = Backend { unsupported: &unsupported, ..SIM };
    let document =
        from_toml(&format!("repeat = 3\n{SMALL}cc = \"qubic\"\n[stack]\necn = true\n")).unwrap();
    assert_eq!(
        document.plans(&backend).unwrap_err().to_string(),
        "line 11: flows[0].cc: no congestion control is called \"qubic\"; did you mean \"cubic\"?\n\
         line 13: stack.ecn: the option `ecn` is not available yet"
    );
}

#[test]
fn the_same_mistakes_come_from_json_without_lines() {
    let toml = from_toml(&small_with("20 ms", "20 msec")).unwrap();
    let json = by_json(&toml);
    let (toml, json) = (toml.plans(&SIM).unwrap_err(), json.plans(&SIM).unwrap_err());
    let without_lines = |mistakes: &Mistakes| -> Vec<Mistake> {
        mistakes.0.iter().map(|mistake| Mistake { line: None, ..mistake.clone() }).collect()
    };
    assert_eq!(without_lines(&toml), json.0);
}

#[test]
fn mistakes_of_all_runs_are_reported_once() {
    let text = format!("repeat = 5\n{SMALL}[sweep]\n\"network.dumbbell.pairs\" = [1, 2]\n");
    let text = text.replace("20 ms", "20 msec");
    assert_eq!(messages(&text).len(), 1);
    assert!(plans(&text.replace("msec", "ms")).is_ok());
}

#[test]
fn late_starts_repeated_values_and_excess_samples_are_refused() {
    assert_eq!(
        message(&format!("{SMALL}start = \"60 s\"\n")),
        "line 10: flows[0].start: is 60 s, but the experiment ends at 60 s"
    );
    assert_eq!(
        message(&format!(
            "{SMALL}[sweep]\n\"flows[0].cc\" = [\"cubic\", \"newreno\", \"cubic\"]\n"
        )),
        "line 11: sweep.\"flows[0].cc\"[2]: cubic is among the values already"
    );
    assert_eq!(
        message(&format!("{SMALL}[record]\nsamples = \"1 ps\"\n")),
        "line 11: record.samples: 60000000000000 samples of flows are too many; the most is 50000000"
    );
}

#[test]
fn words_in_braces_of_a_command_must_be_addresses() {
    let lines = |server: &str, client: &str| {
        format!(
            "{SMALL}traffic = {{ kind = \"command\", server = '''{server}''', client = '''{client}''' }}\n"
        )
    };
    assert_eq!(
        message(&lines("iperf3 -s -1", "iperf3 -c {srv} -B {client}")),
        "line 10: flows[0].traffic: has a `client` in which nothing stands for {srv}; there are {server} \
         and {client}, the addresses of the two sides (braces of the program's own need a space: { srv })"
    );
    // Braces of a shell and of other programs stay as they are.
    let own = "ping ${HOME} {1} {a,b} {} { x } {server";
    assert!(plans(&lines(own, "awk '{ print $1 }' {server}")).is_ok());
    assert_eq!(
        message(&lines("one\ntwo", "three")),
        "line 10: flows[0].traffic.server: has a line break; a text is one line"
    );
}

#[test]
fn a_measuring_window_outside_the_experiment_is_refused() {
    let with = |text: &str| format!("{text}\n{SMALL}");
    assert_eq!(
        message(&with("measure.from = \"60 s\"")),
        "line 1: measure.from: is 60 s: nothing is left to measure of an experiment of 60 s"
    );
    assert_eq!(
        message(&with("measure = { from = \"10 s\", to = \"61 s\" }")),
        "line 1: measure.to: is 61 s, after the end of the experiment at 60 s"
    );
    assert_eq!(
        message(&with("measure = { from = \"10 s\", to = \"10 s\" }")),
        "line 1: measure.to: is 10 s, not after `measure.from`, which is 10 s"
    );
    assert_eq!(message(&with("every = \"0 s\"")), "line 1: every: must be more than zero");
    assert_eq!(
        message(&with("every = \"1 us\"")),
        "line 1: every: 60000000 intervals of flows are too many; the most is 50000000"
    );
}

#[test]
fn traces_with_too_many_entries_are_refused() {
    // Each period of a trace of 2 ms has two entries: 30,000 periods in a minute, 5 * 10^9 in 10^7
    // s.
    let with = |duration: u64| {
        let trace = "rate_changes = { opportunities = [[1, 1], [2, 1]] }";
        format!(
            "duration = \"{duration} s\"\n[[network.links]]\nbetween = [\"a\", \"b\"]\n{trace}\n\
             rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\noutages = [[\"1 s\", \"2 s\"]]\n\
             [[flows]]\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    assert_eq!(plans(&with(60)).map(|plans| plans.len()).ok(), Some(1));
    assert_eq!(
        message(&with(10_000_000)),
        "line 7: network.links[0].outages: 10000000000 opportunities of a trace with outages are too many; \
         the most is 10000000"
    );
}

#[test]
fn too_many_channel_states_are_refused() {
    let with = |bad: &str, change: f64| {
        format!(
            "duration = \"1000 s\"\n[[network.links]]\nbetween = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\n\
             delay = \"1 ms\"\nloss = {{ kind = \"gilbert-time\", good = \"1 s\", bad = \"{bad}\", \
             change = {change} }}\n[[flows]]\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    // One state each half second on average, although ten million of the shorter kind would fit: so
    // many in a row have a probability of 2^-200.
    assert_eq!(plans(&with("100 us", 0.5)).map(|plans| plans.len()).ok(), Some(1));
    // Here so many may come in a row, each a million times on average: 1000 s, and the 6 ms of a
    // packet, have 100,000,600 of them.
    let many = message(&with("10 us", 1e-6));
    assert!(many.contains("100000600 changes of state are too many"), "{many}");
}

#[test]
fn a_mistake_in_one_direction_names_the_direction() {
    let link = |lines: &str| {
        format!(
            "duration = \"1 s\"\n[[network.links]]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n\
             delay = \"1 ms\"\n{lines}\n[[flows]]\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    let red = "{ kind = \"red\", min = \"9 packets\", max = \"5 packets\" }";
    let says = "comes to 9 packets, more than `max`, which comes to 5 packets";
    assert_eq!(
        message(&link(&format!("forward.mtu = 1400\nback.queue = {red}"))),
        format!("line 7: network.links[0].back.queue.min: {says}")
    );
    // A mistake of both directions is reported once.
    assert_eq!(
        message(&link(&format!("queue = {red}\nback.mtu = 1400"))),
        format!("line 6: network.links[0].queue.min: {says}")
    );
    let dumbbell = format!("{SMALL}[network.dumbbell.access]\nqueue = {red}\n");
    assert_eq!(message(&dumbbell), format!("line 11: network.dumbbell.access.queue.min: {says}"));
    let backend = Backend { unsupported: &|plan| support::unsupported(plan, "linux"), ..SIM };
    let refusal = |text: &str| from_toml(text).unwrap().plans(&backend).unwrap_err().to_string();
    let dualpi2 = small_with("\"20 ms\"", "\"20 ms\"\nback.queue = \"dualpi2\"");
    let said = refusal(&dualpi2);
    assert!(said.starts_with("line 6: network.dumbbell.back.queue: the queue"), "{said}");
}

#[test]
fn red_has_sizes_in_their_order() {
    let with = |min: &str, max: &str| {
        small_with(
            "\"20 ms\"",
            &format!("\"20 ms\"\nqueue = {{ kind = \"red\", min = \"{min}\", max = \"{max}\" }}"),
        )
    };
    // Equal thresholds are a step, as for DCTCP; sizes in different units are compared by their
    // value.
    assert!(plans(&with("5 packets", "5 packets")).is_ok());
    assert!(plans(&with("5 packets", "15 kB")).is_ok());
    assert_eq!(
        message(&with("11 packets", "15 kB")),
        "line 6: network.dumbbell.queue.min: comes to 11 packets, more than `max`, which comes to 15 kB"
    );
}

#[test]
fn datagrams_that_would_take_hours_are_refused_by_their_key() {
    // 60 s in steps of 10 ns.
    let with = |keys: &str| format!("{SMALL}traffic = {{ kind = \"udp\", {keys} }}\n");
    assert!(message(&with("interval = \"10 ns\"")).ends_with(
        "flows[0].traffic.interval: 6000000000 datagrams are too many; the most is 1000000000"
    ));
    // 60 s of packets of 1500 bytes, one each 12 ns.
    assert!(message(&with("rate = \"1 Tbit/s\"")).contains("traffic.rate: 5000000000 datagrams"));
    assert!(plans(&with("interval = \"10 ns\", packets = 7")).is_ok());
    assert!(plans(&with("interval = \"10 ns\", periods = [[\"1 s\", \"2 s\"]]")).is_ok());
}

#[test]
fn transfers_that_no_machine_could_hold_are_refused_by_their_key() {
    let with = |keys: &str| {
        format!("{SMALL}traffic = {{ kind = \"arrivals\", sizes = \"1 kB\", {keys} }}\n")
    };
    // 10^9 a second for 60 s.
    assert_eq!(
        message(&with("per_second = 1e9")),
        "line 10: flows[0].traffic.per_second: 60000000000 transfers are too many; the most is 50000000"
    );
    assert_eq!(
        message(&with("every = \"1 us\"")),
        "line 10: flows[0].traffic.every: 60000000 transfers are too many; the most is 50000000"
    );
    assert!(plans(&with("per_second = 1e9, transfers = 1000")).is_ok());
    assert!(plans(&with("per_second = 1e5")).is_ok());
}

#[test]
fn a_file_that_is_wrong_is_the_only_mistake() {
    let text = "duration = \"1 s\"\n[network.chain]\ndelay = \"1 ms\"\n\
                rate_changes = { trace = \"no-such-file\" }\n\
                [[flows]]\nfrom = \"client\"\nto = \"server\"\n";
    let said = message(text);
    assert!(said.starts_with("line 4: network.chain.rate_changes.trace: the file "), "{said}");
}

#[test]
fn a_sweep_of_a_misspelt_key_suggests_the_nearest() {
    assert_eq!(
        message(&format!("{SMALL}[sweep]\n\"flow[0].cc\" = [\"cubic\"]\n")),
        "line 11: flow: there is no key \"flow\" here; did you mean \"flows\"?"
    );
}

#[test]
fn a_wrong_duration_is_the_only_mistake_reported() {
    let flows = "start = \"10 s\"\n\n[measure]\nfrom = \"5 s\"\nto = \"50 s\"\n";
    assert_eq!(
        message(&format!("{}{flows}", small_with("\"60 s\"", "60"))),
        "line 1: duration: 60 has no unit; write it as text with one, like \"25 ms\""
    );
}

#[test]
fn a_misspelt_trace_is_the_only_mistake_reported() {
    let with = |changes: &str| small_with("delay", &format!("rate_changes = {changes}\ndelay"));
    assert_eq!(
        message(&with("{ trac = \"up.txt\" }")),
        "line 5: network.dumbbell.rate_changes.trac: there is no key \"trac\" here; did you mean \
         \"trace\"?"
    );
    assert_eq!(
        message(&with("{ trace = 5 }")),
        "line 5: network.dumbbell.rate_changes.trace: is the name of a file as text, with no other \
         key beside it"
    );
}

#[test]
fn a_misspelt_shape_is_the_only_mistake_reported() {
    let message = message(&small_with("[network.dumbbell]", "[network.ring]"));
    assert!(
        message.starts_with("line 3: network.ring: there is no key \"ring\" here"),
        "{message}"
    );
}

#[test]
fn a_plan_given_as_an_experiment_is_refused() {
    let stored = serde_json::to_string(&plan(SMALL)).unwrap();
    let mistakes = tcplab_model::from_json(&stored).unwrap().plans(&SIM).unwrap_err();
    assert_eq!(
        mistakes.to_string(),
        "this is the plan of a run, with nothing left open, and not an experiment; `tcplab verify \
         --again RESULTS` repeats the runs of a folder of results"
    );
}
