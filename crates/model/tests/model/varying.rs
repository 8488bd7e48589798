//! Parameters, zips, and variants.

use crate::common::{SIM, SMALL, message, messages, plans, small_with};
use serde_json::json;
use tcplab_model::{Plan, from_json, from_toml, value};

fn ids(plans: &[Plan]) -> Vec<&str> {
    plans.iter().map(|plan| plan.id.as_str()).collect()
}

fn labels(plans: &[Plan]) -> Vec<String> {
    let label = |plan: &Plan| {
        let texts: Vec<_> = plan.swept.iter().map(|(key, text)| format!("{key}={text}")).collect();
        texts.join(" ")
    };
    plans.iter().map(label).collect()
}

/// Every value of `SMALL`, by name.
const NAMED: &str = r#"duration = "$long"
network = "$net"
flows = ["$flow"]

[let]
long = "60 s"
delay = "20 ms"
bottleneck = { rate = "10 Mbit/s", delay = "$delay", pairs = "$pairs" }
pairs = 1
net = { dumbbell = "$bottleneck" }
host = "left1"
flow = { from = "$host", to = "right1" }
"#;

#[test]
fn an_experiment_is_the_same_with_and_without_parameters() {
    let (named, small) = (plans(NAMED).unwrap(), plans(SMALL).unwrap());
    assert_eq!(ids(&named), ids(&small));
    let json = from_json(&tcplab_model::from_toml(NAMED).unwrap().to_json()).unwrap();
    assert_eq!(ids(&json.plans(&SIM).unwrap()), ids(&small));
}

#[test]
fn a_parameter_is_swept_by_its_name() {
    let by_name = format!("{NAMED}\n[sweep]\ndelay = [\"20 ms\", \"30 ms\"]\n");
    let by_name = plans(&by_name).unwrap();
    assert_eq!(labels(&by_name), ["delay=20 ms", "delay=30 ms"]);
    let by_path =
        format!("{SMALL}\n[sweep]\n\"network.dumbbell.delay\" = [\"20 ms\", \"30 ms\"]\n");
    assert_eq!(ids(&by_name), ids(&plans(&by_path).unwrap()));
    // Part of a parameter, and a parameter in another one's value.
    let part = format!("{NAMED}\n[sweep]\n\"bottleneck.delay\" = [\"$delay\", \"30 ms\"]\n");
    assert_eq!(ids(&plans(&part).unwrap()), ids(&by_name));
}

#[test]
fn labels_show_the_values_of_parameters() {
    let swept = format!("{NAMED}\n[sweep]\n\"bottleneck.delay\" = [\"$delay\", \"30 ms\"]\n");
    let meant = ["bottleneck.delay=20 ms", "bottleneck.delay=30 ms"];
    assert_eq!(labels(&plans(&swept).unwrap()), meant);
    // The name of a variant is not substituted.
    let named = format!("{NAMED}\n[variants.\"$delay\"]\ndelay = \"1 ms\"\n");
    assert_eq!(labels(&plans(&named).unwrap()), ["variant=$delay"]);
}

#[test]
fn flows_are_varied_by_their_names() {
    let two = format!("{SMALL}name = \"a\"\n\n[[flows]]\nfrom = \"left1\"\nto = \"right1\"\n");
    let swept =
        |path: &str| plans(&format!("{two}\n[sweep]\n\"{path}\" = [\"cubic\", \"newreno\"]\n"));
    let both =
        [ids(&swept("flows[0].cc").unwrap()).len(), ids(&swept("flows.*.cc").unwrap()).len()];
    assert_eq!(both, [2, 2]);
    assert_eq!(ids(&swept("flows.a.cc").unwrap()), ids(&swept("flows[0].cc").unwrap()));
    assert_eq!(ids(&swept("flows.flow2.cc").unwrap()), ids(&swept("flows[1].cc").unwrap()));
    assert_eq!(
        swept("flows.b.cc").unwrap_err().to_string(),
        "line 17: sweep.\"flows.b.cc\": no flow is called \"b\"; did you mean \"a\"?"
    );
    let twice =
        format!("{two}\n[sweep]\n\"flows.*.cc\" = [\"cubic\"]\n\"flows.a.cc\" = [\"newreno\"]\n");
    assert_eq!(
        message(&twice),
        "line 18: sweep.\"flows.a.cc\": varies the same as `sweep.\"flows.*.cc\"`"
    );
}

#[test]
fn a_mistake_in_a_given_value_has_no_line() {
    let mut document = from_toml(SMALL).unwrap();
    document.set("network.dumbbell.rate", &value("100M")).unwrap();
    document.set("flows.*.count", &value("3")).unwrap();
    let [plan] = &document.plans(&SIM).unwrap()[..] else { panic!() };
    assert_eq!(plan.lanes[0].rate.to_string(), "100 Mbit/s");
    assert_eq!(plan.flows.len(), 3);
    document.set("network.dumbbell.delay", &value("20 msec")).unwrap();
    let said = document.plans(&SIM).unwrap_err().to_string();
    assert!(said.starts_with("network.dumbbell.delay: `msec` is not a unit of time"), "{said}");
    let said = document.set("flows[7].cc", &value("cubic")).unwrap_err().to_string();
    assert_eq!(said, "flows[7].cc: there is nothing at `flows[7].cc`: `flows` has 1 entry");
}

#[test]
fn values_are_toml_where_they_can_be() {
    for (text, meant) in [
        ("3", json!(3)),
        ("0.5", json!(0.5)),
        ("true", json!(true)),
        ("[\"1 ms\", \"2 ms\"]", json!(["1 ms", "2 ms"])),
        ("{ kind = \"codel\" }", json!({ "kind": "codel" })),
        ("\"3\"", json!("3")),
        ("cubic", json!("cubic")),
        ("10 Mbit/s", json!("10 Mbit/s")),
        ("1bdp", json!("1bdp")),
        ("1\nother = 2", json!("1\nother = 2")),
        ("", json!("")),
    ] {
        assert_eq!(value(text), meant, "{text}");
    }
}

#[test]
fn a_mistake_in_a_parameter_is_on_its_line() {
    let wrong = NAMED.replace("delay = \"20 ms\"", "delay = \"20 msec\"");
    assert!(message(&wrong).starts_with("line 7: network.dumbbell.delay: `msec` is not a unit"));
    let wrong = NAMED.replace("left1", "mars");
    assert!(message(&wrong).starts_with("line 11: flows[0].from: no node is called \"mars\""));
    let swept = format!("{NAMED}\n[sweep]\ndelay = [\n\"20 ms\",\n\"30 msec\",\n]\n");
    assert!(message(&swept).starts_with("line 17: network.dumbbell.delay: `msec` is not"));
    let wrong = NAMED.replace("rate = ", "raet = ");
    assert_eq!(
        messages(&wrong),
        [
            "line 8: network.dumbbell.raet: there is no key \"raet\" here; did you mean \"rate\"?",
            "line 8: network.dumbbell.rate: is missing; write it like \"10 Mbit/s\"",
        ]
    );
}

#[test]
fn invalid_parameters_are_refused() {
    assert_eq!(
        message(&NAMED.replace("$delay", "$dleay")),
        "line 8: let.bottleneck.delay: no parameter is called \"dleay\"; did you mean \"delay\"?"
    );
    assert_eq!(
        message(&NAMED.replace("$net", "$dumbbell")),
        "line 2: network: no parameter is called \"dumbbell\"; there are \"long\", \"delay\", \
         \"bottleneck\", \"pairs\", \"net\", \"host\", \"flow\""
    );
    assert_eq!(
        message(&format!("{NAMED}\n[sweep]\ndleay = [\"1 ms\"]\n")),
        "line 15: sweep.dleay: no parameter or key is called \"dleay\"; did you mean \"delay\"?"
    );
    assert_eq!(
        message(&format!("{NAMED}more = 1\n")),
        "line 13: let.more: is not used; write \"$more\" where its value belongs"
    );
    assert_eq!(
        message(&format!("{NAMED}seed = 1\n")),
        "line 13: let.seed: \"seed\" is a key of experiments; a parameter needs another name"
    );
    assert_eq!(
        message(&format!("{NAMED}\"2x\" = 1\n")),
        "line 13: let.2x: \"2x\" cannot be the name of a parameter: of ASCII letters, digits, `-` \
         and `_`, and a letter or `_` first"
    );
    assert_eq!(
        message(&NAMED.replace("pairs = 1", "pairs = \"$net\"")),
        "line 10: let.net: depends on itself: $net is made of $bottleneck is made of \
         $pairs is made of $net"
    );
    assert_eq!(
        message(
            &format!("{SMALL}\n[let]\na = \"25 ms\"\n[sweep]\nlet = [{{}}]\n")
                .replace("20 ms", "$a")
        )
        .split(": ")
        .last(),
        Some("`let` cannot be varied as a whole; name one of its parameters")
    );
}

#[test]
fn zipped_keys_step_together() {
    let text = format!(
        "{SMALL}\n[[zip]]\n\"network.dumbbell.rate\" = [\"1 Mbit/s\", \"1 Gbit/s\"]\n\
         \"network.dumbbell.delay\" = [\"100 ms\", \"1 ms\"]\n\
         [sweep]\n\"flows[0].cc\" = [\"cubic\", \"newreno\"]\n"
    );
    let all = plans(&text).unwrap();
    let (rate, delay) = ("network.dumbbell.rate", "network.dumbbell.delay");
    assert_eq!(
        labels(&all),
        [
            format!("{rate}=1 Mbit/s {delay}=100 ms flows[0].cc=cubic"),
            format!("{rate}=1 Mbit/s {delay}=100 ms flows[0].cc=newreno"),
            format!("{rate}=1 Gbit/s {delay}=1 ms flows[0].cc=cubic"),
            format!("{rate}=1 Gbit/s {delay}=1 ms flows[0].cc=newreno"),
        ]
    );
    assert_eq!(all[3].lanes[0].rate.to_string(), "1 Gbit/s");
    assert_eq!(
        message(&text.replace("[\"100 ms\", \"1 ms\"]", "[\"100 ms\"]")),
        "line 13: zip[0].\"network.dumbbell.delay\": has 1 value, and `network.dumbbell.rate` has 2: \
         keys that step together have the same number"
    );
    assert_eq!(
        message(&text.replace("\"1 Gbit/s\"", "\"1 Mbit/s\"").replace("\"1 ms\"", "\"100 ms\"")),
        "line 11: zip[0]: the values number 2 of all keys are there already"
    );
    assert_eq!(
        messages(&text.replace("\"flows[0].cc\"", "\"network.dumbbell.rate\""))[0],
        "line 15: sweep.\"network.dumbbell.rate\": varies the same as `zip[0].\"network.dumbbell.rate\"`"
    );
    let single = format!("{SMALL}\n[zip]\nseed = [1, 2]\n");
    assert_eq!(message(&single), "line 11: zip: a table is not a list");
}

#[test]
fn variants_have_names() {
    let text = format!(
        "{}\n[let]\nwmem = \"16 kB\"\n[variants.default]\n[variants.\"tuned 1\"]\nwmem = \"4 MB\"\n\
         stack.rmem = \"6 MB\"\n\"flows[0].stack.sack\" = false\n\
         [sweep]\n\"network.dumbbell.delay\" = [\"20 ms\", \"30 ms\"]\n",
        SMALL.replace("[[flows]]", "[stack]\nwmem = \"$wmem\"\ncc = \"vegas\"\n\n[[flows]]")
    );
    let all = plans(&text).unwrap();
    assert_eq!(
        labels(&all),
        [
            "variant=default network.dumbbell.delay=20 ms",
            "variant=default network.dumbbell.delay=30 ms",
            "variant=tuned 1 network.dumbbell.delay=20 ms",
            "variant=tuned 1 network.dumbbell.delay=30 ms",
        ]
    );
    let stacks: Vec<_> = all.iter().map(|plan| &plan.flows[0].tcp().unwrap().stack).collect();
    assert_eq!((stacks[0].wmem.0, stacks[2].wmem.0), (16_000, 4_000_000));
    assert_eq!((stacks[0].sack, stacks[2].sack), (true, false));
    assert_eq!(stacks[2].rmem.0, 6_000_000);
    // Tables are merged: settings that the variant does not mention stay.
    assert_eq!(stacks[2].cc.name, "vegas");
}

#[test]
fn a_variants_table_with_kind_replaces_the_whole_value() {
    let text = small_with(
        "delay = ",
        "queue = { kind = \"red\", min = \"5 packets\", max = \"9 packets\" }\ndelay = ",
    );
    let text = format!("{text}\n[variants.x]\nnetwork.dumbbell.queue = {{ kind = \"codel\" }}\n");
    assert_eq!(plans(&text).unwrap()[0].lanes[0].queue.discipline.word(), "codel");
}

#[test]
fn mistakes_in_variants_name_their_place() {
    let with = |lines: &str| message(&format!("{SMALL}\n[variants.a]\n{lines}\n"));
    assert_eq!(
        with("seed = 1\n[sweep]\nseed = [1, 2]"),
        "line 14: sweep.seed: varies the same as `variants.a.seed`"
    );
    assert_eq!(with("name = \"x\""), "line 12: variants.a.name: `name` cannot be varied");
    assert_eq!(
        with("stack.sak = true"),
        "line 12: stack.sak: there is no key \"sak\" here; did you mean \"sack\"?"
    );
    assert_eq!(
        with("stack = { sack = true }\n\"stack.sack\" = false"),
        "line 13: variants.a.\"stack.sack\": varies the same as `variants.a.stack.sack`"
    );
    assert_eq!(
        message(&format!("{SMALL}\n[variants]\na = 1\n")),
        "line 12: variants.a: 1 is not a table of settings"
    );
    assert_eq!(message(&format!("{SMALL}\n[variants]\n")), "line 11: variants: there are none");
}

#[test]
fn parameter_sweeps_are_limited_in_runs() {
    let text = format!("repeat = \"$n\"\n{SMALL}\n[let]\nn = 100_001\n");
    assert_eq!(message(&text), "line 13: repeat: 100001 runs are too many; the most is 100000");
}
