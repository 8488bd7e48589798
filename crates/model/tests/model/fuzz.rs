//! No input makes the schema panic.

use crate::common::{SIM, SMALL};
use proptest::prelude::*;
use serde_json::{Value, json};
use tcplab_model::{from_json, from_toml};

/// An experiment with most keys.
pub const RICH: &str = r#"
name = "rich"
duration = "60 s"
seed = 3
repeat = 2

[network.dumbbell]
pairs = 3
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "red", min = "0.1 BDP", max = "0.5 BDP" }
loss = { kind = "gilbert", to_bad = 0.01, to_good = "50 %" }
rtt = ["20 ms", "250 ms"]
back = { rate = "1 Mbit/s", reordering = { probability = 0.1, delay = "1 ms" } }

[network.chain]
hops = 2
rate = "1 Mbit/s"
delay = "1 ms"
rate_changes = [["10 s", "5 Mbit/s"]]

[[network.links]]
between = ["server", "left"]
rate = "100 Mbit/s"
delay = "1 ms"
mtu = 1400

[[network.routes]]
path = ["client", "router1", "server"]

[network.lan.office]
nodes = ["a", "b", "left"]
rate = "1 Gbit/s"
delay = "2 us"

[hosts."left*"]
stack = { rmem = "64 kB" }

[stack]
cc = { name = "cubic", beta = 0.5 }
abc = 2
delayed_ack = "40 ms"

[[flows]]
from = "left*"
to = "right*"
count = 5
stagger = "100 ms"

[[flows]]
name = "web"
from = "client"
to = "a"
cc = "newreno"
traffic = { kind = "web", classes = [{ name = "x", count = 2, size = "4 kB" }] }

[[flows]]
from = "b"
to = "right2"
traffic = { kind = "on-off", on = "1 s", off = "2 s" }

[[flows]]
from = "client"
to = "a"
traffic = { kind = "udp", rate = "1 Mbit/s", gaps = "poisson", payload = "2 kB", periods = [["1 s", "2 s"]] }

[[flows]]
from = "client"
to = "a"
traffic = { kind = "arrivals", load = "50 %", sizes = { kind = "lognormal", median = "9 kB", sigma = 1.5, max = "1 MB" } }

[[flows]]
from = "client"
to = "a"
traffic = { kind = "arrivals", users = 3, think = "1 s", sizes = { kind = "zipf", exponent = 1.2, max = "1 MB" } }

[record]
samples = "ack"
captures = ["left>right"]

[sweep]
"flows[1].cc" = ["newreno", "cubic"]
"network.dumbbell.queue" = ["1 BDP", { kind = "codel" }]
"stack.sack" = [true, false]
"#;

/// Runs everything that processes a user's text.
fn digest(text: &str) {
    for document in [from_toml(text), from_json(text)] {
        match document.map(|document| document.plans(&SIM)) {
            Ok(Ok(plans)) => assert!(!plans.is_empty()),
            Ok(Err(mistakes)) | Err(mistakes) => assert!(!mistakes.to_string().is_empty()),
        }
    }
}

/// The places of all values in a tree, as JSON pointers.
fn places(tree: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.into());
    match tree {
        Value::Object(table) => {
            for (key, value) in table {
                places(
                    value,
                    &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{i}"), found);
            }
        }
        _ => {}
    }
}

/// Values that are likely to be invalid, or at the limit of what is valid.
fn odd_value() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "0",
        "0 s",
        "1 ps",
        "213 days",
        "5124095 h",
        "18446744073709551615 bit/s",
        "-1 ms",
        "1 BDP",
        "1e9 BDP",
        "999999999999999999999 BDP",
        "0.0000000000000000001 BDP",
        "1 packets",
        "18446744073709551615 packets",
        "18446744.073709551615 TB",
        "off",
        "left*",
        "*",
        "**",
        "left>right",
        "codel",
        "bulk",
        "udp",
        "100 %",
        "%",
        "- %",
        "rfc",
        "ns2",
        "\u{1F980}",
    ];
    let numbers = [0, 1, 2, 68, 65_535, 99_999, u64::MAX / 2, u64::MAX];
    prop_oneof![
        proptest::sample::select(texts.to_vec()).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[0-9]{1,20}(\\.[0-9]{1,9})? ?(s|ms|bit/s|Gbit/s|kB|B|BDP|packets|%)".prop_map(Value::from),
        proptest::sample::select(numbers.to_vec()).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!([["0 s", "1 s"]])),
        Just(json!([[[[]]]])),
        Just(json!({ "kind": "listed", "packets": [1] })),
        Just(json!({ "kind": "on-off", "on": "1 ps", "off": "1 ps" })),
    ]
}

/// A change at one place of a tree.
#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    Add(String, Value),
    Copy(usize),
}

fn change() -> impl Strategy<Value = (usize, Change)> {
    let keys =
        ["cc", "stack", "queue", "forward", "rtt", "size", "kind", "x", "a.b", "", "flows[0]"];
    let key = proptest::sample::select(keys.to_vec()).prop_map(String::from);
    let change = prop_oneof![
        4 => odd_value().prop_map(Change::Replace),
        1 => Just(Change::Remove),
        2 => (key, odd_value()).prop_map(|(key, value)| Change::Add(key, value)),
        1 => any::<usize>().prop_map(Change::Copy),
    ];
    (any::<usize>(), change)
}

fn apply(tree: &mut Value, place: usize, change: Change) {
    let mut found = Vec::new();
    places(tree, "", &mut found);
    let pointer = found[place % found.len()].clone();
    let copied = match &change {
        Change::Copy(from) => tree.pointer(&found[from % found.len()]).cloned(),
        _ => None,
    };
    if matches!(change, Change::Remove) {
        let Some((parent, key)) = pointer.rsplit_once('/') else { return };
        match tree.pointer_mut(parent) {
            Some(Value::Object(table)) => {
                table.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
            }
            Some(Value::Array(items)) => {
                items.remove(key.parse().unwrap());
            }
            _ => {}
        }
        return;
    }
    let Some(target) = tree.pointer_mut(&pointer) else { return };
    match (change, target) {
        (Change::Replace(value), target) => *target = value,
        (Change::Add(key, value), Value::Object(table)) => {
            table.insert(key, value);
        }
        (Change::Copy(_), target) => *target = copied.unwrap_or_default(),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        digest(&text);
    }

    #[test]
    fn text_that_looks_like_toml(text in "([a-z\\[\\]\"=.{}, 0-9\n]{0,12}|flows|network|=|\n){0,40}") {
        digest(&text);
    }

    #[test]
    fn an_experiment_with_some_characters_changed(
        changes in prop::collection::vec((any::<usize>(), any::<char>()), 1..4),
        cut in prop::option::of(any::<usize>()),
    ) {
        let mut text: Vec<char> = RICH.chars().collect();
        for (place, character) in changes {
            let place = place % text.len();
            text[place] = character;
        }
        if let Some(cut) = cut {
            text.truncate(cut % text.len());
        }
        digest(&text.into_iter().collect::<String>());
    }

    #[test]
    fn an_experiment_with_some_values_changed(
        is_rich: bool,
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let document = from_toml(if is_rich { RICH } else { SMALL }).unwrap();
        let mut tree: Value = serde_json::from_str(&document.to_json()).unwrap();
        for (place, change) in changes {
            apply(&mut tree, place, change);
        }
        digest(&tree.to_string());
        if let Ok(text) = toml::to_string(&tree) {
            digest(&text);
        }
    }

    #[test]
    fn any_path_swept(path in "([a-z_]{1,8}|flows|network|\\[[0-9]{1,3}\\]|\\.|\"|\\*){0,8}") {
        let mut tree: Value =
            serde_json::from_str(&from_toml(RICH).unwrap().to_json()).unwrap();
        tree["sweep"] = json!({ path: [1, "x"] });
        digest(&tree.to_string());
    }

    #[test]
    fn any_path_given(
        path in "(flows|network|sweep|let|traffic|classes|cc|web|[a-z]{1,4}|\\[[0-9]\\]|\\.|\"|\\*){0,9}",
        value in odd_value(),
    ) {
        let mut document = from_toml(RICH).unwrap();
        if document.set(&path, &value).is_ok() {
            digest(&document.to_json());
            let _ = document.plans(&SIM);
        }
    }
}

#[test]
fn the_unchanged_experiment_is_valid() {
    let plans =
        from_toml(RICH).unwrap().plans(&SIM).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(plans.len(), 16);
}

#[test]
fn deep_nesting_is_refused() {
    const DEPTH: usize = 100_000;
    digest(&format!("a = {}{}", "[".repeat(DEPTH), "]".repeat(DEPTH)));
    digest(&format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH)));
    digest(&"a = { b = ".repeat(DEPTH));
    digest(&format!("{}a = 1", "a.".repeat(DEPTH)));
    digest(&format!("[{}a]", "a.".repeat(DEPTH)));
    digest(&format!("[sweep]\n\"{}a\" = [1]", "a.".repeat(DEPTH)));
}
