//! Ids: equal for equal runs, whoever wrote them; different when the results may differ.

use crate::common::{SIM, SMALL, by_json, plan, plans, small_with};
use tcplab_model::{Backend, from_toml};

/// `SMALL` with all defaults written out, in other units and another order.
const WRITTEN_OUT: &str = r#"
name = "another name"
seed = 1
repeat = 1

[record]
samples = "0.1 s"
links = "100000 us"

[stack]
profile = "rfc"
cc = { name = "cubic" }
sack = true
min_rto = "1000 ms"

[[flows]]
name = "flow1"
to = "right1"
from = "left1"
traffic = "bulk"
count = 1
class = "flow1"

[network.dumbbell]
delay = "20000 us"
rate = "10000 kbit/s"
pairs = 1
queue = { kind = "droptail", limit = "1.0 BDP" }
loss = "0 %"
access = { rate = "100 Mbit/s", delay = "1 ms", mtu = 1500, jitter = "0 s" }

[sweep]
duration = ["1 min"]
"#;

#[test]
fn equivalent_spellings_have_the_same_run_id() {
    assert_eq!(plan(SMALL).id, plan(WRITTEN_OUT).id);
}

#[test]
fn a_shape_and_its_links_have_the_same_run_id() {
    let links = r#"
duration = "60 s"
network.links = [
    { between = ["left", "right"], rate = "10 Mbit/s", delay = "20 ms" },
    { between = ["left1", "left"], rate = "100 Mbit/s", delay = "1 ms" },
    { between = ["right", "right1"], rate = "100 Mbit/s", delay = "1 ms" },
]
flows = [{ from = "left1", to = "right1" }]
"#;
    assert_eq!(plan(SMALL).id, plan(links).id);
}

/// This id changes with everything that can change a result: the meaning of a key, a default, the
/// rounding of sizes, the choice of paths. A new id then belongs here, and the version of every
/// backend goes up. The id must not differ between machines.
#[test]
fn ids_are_the_same_on_every_machine() {
    assert_eq!(plan(SMALL).id, "33a214fc5032d83d");
}

#[test]
fn every_setting_that_affects_results_changes_the_id() {
    let lines = [
        ("60 s", "61 s"),
        ("duration", "seed = 2\nduration"),
        ("10 Mbit/s", "10.1 Mbit/s"),
        ("20 ms", "21 ms"),
        ("[network.dumbbell]", "[network.dumbbell]\nqueue = \"10 packets\""),
        ("[network.dumbbell]", "[network.dumbbell]\nqueue = \"15 kB\""),
        ("[network.dumbbell]", "[network.dumbbell]\nqueue = \"codel\""),
        ("[network.dumbbell]", "[network.dumbbell]\nmtu = 1499"),
        ("[network.dumbbell]", "[network.dumbbell]\nloss = 0.01"),
        ("[network.dumbbell]", "[network.dumbbell]\nback.loss = 0.01"),
        ("[network.dumbbell]", "[network.dumbbell]\njitter = \"1 ms\""),
        ("[network.dumbbell]", "[network.dumbbell]\npairs = 2"),
        ("[[flows]]", "[[flows]]\ncc = \"newreno\""),
        ("[[flows]]", "[[flows]]\ncc = { name = \"cubic\", beta = 0.5 }"),
        ("[[flows]]", "[[flows]]\nstart = \"1 s\""),
        ("[[flows]]", "[[flows]]\nstart_jitter = \"1 s\""),
        ("[[flows]]", "[[flows]]\nname = \"other\""),
        ("[[flows]]", "[[flows]]\ntraffic.kind = \"bulk\"\ntraffic.size = \"1 MB\""),
        ("[[flows]]", "[stack]\nsack = false\n[[flows]]"),
        ("[[flows]]", "[hosts.right1]\nstack.rmem = \"64 kB\"\n[[flows]]"),
        ("[[flows]]", "[hosts.right1]\ncpu.ack = \"1 us\"\n[[flows]]"),
        ("[[flows]]", "[hosts.left1]\ncpu.ack = \"1 us\"\n[[flows]]"),
        ("[[flows]]", "[hosts.left1]\nqdisc = \"1 BDP\"\n[[flows]]"),
        ("[[flows]]", "[hosts.right1]\ngro = \"20 us\"\n[[flows]]"),
        ("[[flows]]", "[hosts.left1]\ngro = \"20 us\"\n[[flows]]"),
        ("[[flows]]", "[record]\nsamples = \"ack\"\n[[flows]]"),
    ];
    let mut ids = vec![plan(SMALL).id];
    for (old, new) in lines {
        let id = plan(&small_with(old, new)).id;
        assert!(!ids.contains(&id), "{new}");
        ids.push(id);
    }
}

#[test]
fn a_backend_and_its_version_have_their_own_ids() {
    let document = from_toml(SMALL).unwrap();
    let id = |backend: Backend<'_>| document.plans(&backend).unwrap().remove(0).id;
    let ids = [SIM, Backend { version: &|_| "2".into(), ..SIM }, Backend { name: "linux", ..SIM }]
        .map(id);
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
}

#[test]
fn variants_of_one_repetition_share_their_seed() {
    let plans = plans(&format!(
        "repeat = 3\n{SMALL}[sweep]\n\"flows[0].cc\" = [\"newreno\", \"cubic\"]\n\
         \"network.dumbbell.queue\" = [\"0.25 BDP\", \"1 BDP\"]\n"
    ))
    .unwrap();
    let seeds: Vec<_> = plans.iter().map(|plan| plan.seed).collect();
    assert_eq!(seeds, [1, 2, 3].repeat(4));
    let text = |path: &str, value: &str| (path.to_string(), value.to_string());
    assert_eq!(
        plans[3].swept,
        [text("flows[0].cc", "newreno"), text("network.dumbbell.queue", "1 BDP")]
    );
    let mut ids: Vec<_> = plans.iter().map(|plan| &plan.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 12);
    assert!(ids.iter().all(|id| id.len() == 16 && id.bytes().all(|c| c.is_ascii_hexdigit())));
}

#[test]
fn a_repetition_has_the_id_of_a_run_with_its_seed() {
    let repeated = plans(&format!("repeat = 3\n{SMALL}")).unwrap();
    assert_eq!(repeated[2].id, plan(&format!("seed = 3\n{SMALL}")).id);
}

#[test]
fn toml_and_json_have_the_same_plans() {
    let document = from_toml(WRITTEN_OUT).unwrap();
    assert_eq!(document.plans(&SIM).unwrap(), by_json(&document).plans(&SIM).unwrap());
    assert_eq!(by_json(&document).to_json(), document.to_json());
}
