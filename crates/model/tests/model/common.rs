//! Helpers shared by the tests.

use tcplab_model::{Backend, Document, Mistakes, Plan, Profile, from_json, from_toml};

/// A backend that runs everything.
pub const SIM: Backend<'_> = Backend {
    name: "sim",
    profile: Profile::Rfc,
    version: &|_| String::from("1"),
    unsupported: &|_| Vec::new(),
};

/// The plans of an experiment in TOML.
pub fn plans(toml: &str) -> Result<Vec<Plan>, Mistakes> {
    let plans = from_toml(toml)?.plans(&SIM)?;
    plans.iter().for_each(check_stored);
    Ok(plans)
}

/// Checks that a plan written as JSON and read back is the same, without its warnings.
fn check_stored(plan: &Plan) {
    let text = serde_json::to_string(plan).unwrap();
    let read = Plan::from_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(read, Plan { warnings: [].into(), ..plan.clone() });
    assert_eq!(read.derived_id(), plan.id);
}

/// The plan of an experiment in TOML with a single run.
pub fn plan(toml: &str) -> Plan {
    let mut plans = plans(toml).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(plans.len(), 1);
    plans.remove(0)
}

/// All messages about an experiment in TOML.
pub fn messages(toml: &str) -> Vec<String> {
    let mistakes = plans(toml).expect_err("it should be refused");
    mistakes.to_string().lines().map(Into::into).collect()
}

/// The only message about an experiment in TOML.
pub fn message(toml: &str) -> String {
    let mut messages = messages(toml);
    assert_eq!(messages.len(), 1, "{messages:#?}");
    messages.remove(0)
}

/// The same experiment, by way of JSON.
pub fn by_json(document: &Document) -> Document {
    from_json(&document.to_json()).unwrap()
}

/// A dumbbell with one flow; tests change its lines.
pub const SMALL: &str = r#"duration = "60 s"

[network.dumbbell]
rate = "10 Mbit/s"
delay = "20 ms"

[[flows]]
from = "left1"
to = "right1"
"#;

/// `SMALL` with `old` replaced by `new`.
pub fn small_with(old: &str, new: &str) -> String {
    assert!(SMALL.contains(old), "{old}");
    SMALL.replace(old, new)
}
