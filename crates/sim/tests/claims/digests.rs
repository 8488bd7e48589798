//! The same experiment gives the same bits on every machine, in every build, with any number of
//! threads. `tests/digests.json` holds the digests of the examples. `make fmt` rewrites it from the
//! release build when results are meant to change; this test runs in other builds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tcplab_model::{Plan, Watch};
use tcplab_sim::backend;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The digests of all runs of an example by their ids, on two threads.
fn digests(example: &str) -> BTreeMap<String, String> {
    let toml = std::fs::read_to_string(root().join(format!("examples/{example}.toml"))).unwrap();
    let plans = tcplab_model::from_toml(&toml).unwrap().plans(&backend()).unwrap();
    let digest = |plan: &Plan| {
        (plan.id.clone(), tcplab_sim::run(plan, &Watch::default()).unwrap().tables.digest())
    };
    let (first, second) = plans.split_at(plans.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| second.iter().map(digest).collect::<Vec<_>>());
        let mut all: BTreeMap<_, _> = first.iter().map(digest).collect();
        all.extend(other.join().unwrap());
        all
    })
}

#[test]
fn examples_give_the_digests_on_record() {
    let record = std::fs::read_to_string(root().join("tests/digests.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let record = record.as_object().unwrap();
    assert!(record.len() >= 3);
    for (example, expected) in record {
        assert_eq!(serde_json::json!(digests(example)), *expected, "{example}");
    }
}
