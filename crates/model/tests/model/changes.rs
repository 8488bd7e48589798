//! Settings that change during a run.

use crate::common::{SMALL, message, messages, plan, plans};
use tcplab_units::Duration;

/// `SMALL` with a change at 30 s.
fn changed(settings: &str) -> String {
    format!("{SMALL}\n[change]\nat = \"30 s\"\n{settings}\n")
}

#[test]
fn a_change_plan_contains_only_the_differences() {
    let change = |settings: &str| {
        let plan = plan(&changed(settings));
        serde_json::to_value(plan.change.unwrap()).unwrap()
    };
    let cc = change("\"flows[0].cc\" = { name = \"cubic\", beta = 0.8 }");
    let named = serde_json::json!({ "name": "cubic", "params": { "beta": 0.8 } });
    // For both ends: hosts without settings of their own use the flow's stack.
    assert_eq!(cc["cc"], serde_json::json!([{ "cc": named, "ends": [0, 1] }]));
    assert!(cc.get("lanes").is_none());
    let cc = change("\"hosts.right1.stack.cc\" = \"bbr\"");
    assert_eq!(cc["cc"][0]["ends"], serde_json::json!([1]));
    // Both directions of the bottleneck. Its access links are ten times as fast; queues in packets
    // stay.
    let rate = change("\"network.dumbbell.rate\" = \"5 Mbit/s\"");
    let lanes = rate["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 6);
    assert!(lanes.iter().all(|lane| lane.get("queue").is_none()));
    // 48 ms at 10 Mbit/s are 60,000 bytes: 40 packets. The default, 1 BDP, is the same.
    let queue = change("\"network.dumbbell.queue\" = \"2 BDP\"");
    let limit = &queue["lanes"][0]["queue"]["limit"];
    let before = plan(SMALL).lanes.iter().find(|lane| lane.name == "left>right").unwrap().bdp.0;
    let packets = (before as f64 * 2.0 / 1500.0).round() as u64;
    assert_eq!(limit["packets"], packets, "{queue}");
}

#[test]
fn a_change_may_set_tables_and_parameters() {
    let by_path = plan(&changed("\"network.dumbbell.delay\" = \"5 ms\""));
    let by_table = plan(&changed("[change.network.dumbbell]\ndelay = \"5 ms\""));
    assert_eq!(by_path.id, by_table.id);
    let named = SMALL.replace("\"20 ms\"", "\"$delay\"");
    let by_name =
        format!("{named}\n[let]\ndelay = \"20 ms\"\n[change]\nat = \"30 s\"\ndelay = \"5 ms\"\n");
    assert_eq!(plan(&by_name).id, by_path.id);
}

#[test]
fn runs_equal_before_the_change_share_one_beginning() {
    let sweep = changed("[sweep]\n\"change.flows[0].cc\" = [\"cubic\", \"bbr\"]\nseed = [1, 2]");
    let runs = plans(&sweep).unwrap();
    assert_eq!(runs[0].swept[0], ("change.flows[0].cc".into(), "cubic".into()));
    let beginnings: Vec<_> = runs.iter().map(|plan| plan.beginning().unwrap()).collect();
    assert_eq!(beginnings[0], beginnings[2]);
    assert_ne!(beginnings[0], beginnings[1]);
    assert_ne!(runs[0].id, runs[2].id);
    let later = plan(&changed("\"flows[0].cc\" = \"bbr\"").replace("30 s", "31 s"));
    assert!(!beginnings.contains(&later.beginning().unwrap()));
    assert_eq!(plan(SMALL).beginning(), None);
    // Changes in variants, and by `--set`.
    let variants = changed("[variants.a]\n\"change.flows[0].cc\" = \"bbr\"");
    assert_eq!(plan(&variants).id, runs[2].id);
    let mut document = tcplab_model::from_toml(&changed("\"flows[0].cc\" = \"cubic\"")).unwrap();
    document.set("change.flows[0].cc", &"bbr".into()).unwrap();
    assert_eq!(document.plans(&crate::common::SIM).unwrap()[0].id, runs[2].id);
}

#[test]
fn the_plan_after_the_change_equals_one_written_directly() {
    let before = plan(&changed("\"network.dumbbell.delay\" = \"5 ms\"\n\"flows[0].cc\" = \"bbr\""));
    let after = before.after_change().unwrap();
    let written = SMALL.replace("\"20 ms\"", "\"5 ms\"") + "cc = \"bbr\"\n";
    let written = plan(&written);
    let delays = |plan: &tcplab_model::Plan| -> Vec<Duration> {
        plan.lanes.iter().map(|lane| lane.delay).collect()
    };
    assert_eq!(delays(&after), delays(&written));
    assert_eq!(after.flows[0].transport, written.flows[0].transport);
    assert_eq!(before.flows[0].cc().unwrap().name, "cubic");
}

#[test]
fn changes_of_other_settings_are_refused_by_place() {
    let can = "what can change while a run goes on is the congestion control of flows (`cc`), and the \
               `rate`, the `delay` and the `queue` of links";
    for (setting, what) in [
        ("\"flows[0].start\" = \"1 s\"", "something else of the flow `flow1`"),
        ("\"flows[0].stack.sack\" = false", "something else of the flow `flow1`"),
        ("\"network.dumbbell.loss\" = 0.1", "something else of the link `left1>left`"),
        ("\"network.dumbbell.pairs\" = 2", "the network"),
        ("\"duration\" = \"70 s\"", "the duration"),
        ("\"seed\" = 7", "the seed"),
        ("\"record.samples\" = \"1 s\"", "what is recorded"),
    ] {
        let said = message(&changed(setting));
        assert!(said.starts_with("line 13: change."), "{said}");
        assert!(said.ends_with(&can), "{said}");
        let what = what.replace("left1>left", "left>right");
        assert!(said.contains(&format!("changes {what}")), "{said}");
    }
    let steps = SMALL.replace("delay = ", "rate_changes = [[\"5 s\", \"1 Mbit/s\"]]\ndelay = ");
    let said = message(&format!(
        "{steps}\n[change]\nat = \"30 s\"\n\"network.dumbbell.rate\" = \"5 Mbit/s\"\n"
    ));
    assert!(said.contains("the rate of the link `left>right`, which has `rate_changes`"), "{said}");
}

#[test]
fn mistakes_in_a_change_are_reported_on_its_lines() {
    let said = |toml: &str| message(&format!("{SMALL}\n[change]\n{toml}\n"));
    assert_eq!(
        said("\"flows[0].cc\" = \"bbr\""),
        "line 11: change.at: is missing; write it like \"30 s\""
    );
    assert!(
        said("at = \"30 s\"").contains("change: has no settings; what changes is written like")
    );
    assert_eq!(
        said("at = \"60 s\"\n\"flows[0].cc\" = \"bbr\""),
        "line 12: change.at: is 60 s, but the experiment ends at 60 s"
    );
    assert!(said("at = \"0 s\"\n\"flows[0].cc\" = \"bbr\"").contains("must be a nanosecond"));
    let [unit] = &messages(&changed("\"network.dumbbell.rate\" = 5"))[..] else { panic!() };
    assert!(unit.starts_with("line 13: change.\"network.dumbbell.rate\": 5 has no unit"), "{unit}");
    let unknown = message(&changed("\"flows.other.cc\" = \"bbr\""));
    assert!(unknown.contains("no flow is called \"other\""), "{unknown}");
    let swept =
        message(&changed("[sweep]\n\"change.network.dumbbell.rate\" = [\"1 Mbit/s\", \"x\"]"));
    assert!(swept.starts_with("line 14: "), "{swept}");
}
