//! The names of the files that a run writes beside its tables.

use std::collections::BTreeSet;
use tcplab_model::{FlowPlan, Plan, TrafficPlan};

/// The two ends of a flow of programs.
pub(crate) const SIDES: [&str; 2] = ["server", "client"];

/// The names of all files of a run. A stored run with fewer has lost some.
pub fn names(plan: &Plan) -> Vec<String> {
    let capture = (!plan.record.captures.is_empty()).then(|| tcplab_capture::FILE.to_owned());
    let outputs = outputs(plan).into_iter().flatten();
    let outputs = outputs.flat_map(|stem| SIDES.map(|side| format!("{stem}-{side}.txt")));
    capture.into_iter().chain(outputs).collect()
}

/// For each flow, the beginning of the names of its programs' outputs. Flow names may contain
/// characters that file names cannot, and differ in nothing else.
pub(crate) fn outputs(plan: &Plan) -> Vec<Option<String>> {
    let mut taken = BTreeSet::new();
    let mut stem = |flow: &FlowPlan| {
        let name: String = flow.name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        let mut stem = name.clone();
        let mut times = 1;
        while !taken.insert(stem.clone()) {
            times += 1;
            stem = format!("{name}.{times}");
        }
        stem
    };
    let flows = plan.flows.iter();
    flows.map(|flow| matches!(*flow.traffic, TrafficPlan::Command(_)).then(|| stem(flow))).collect()
}

/// Whether a character is allowed in file names on every file system.
fn is_plain(letter: char) -> bool {
    !letter.is_control() && !"/\\:*?\"<>|".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_flows_share_a_file() {
        let text = r#"{
            "duration": "1 s",
            "network": { "links": [{ "between": ["a", "b"], "rate": "1 Mbit/s", "delay": "1 ms" }] },
            "flows": [
                { "name": "x", "from": "a", "to": "b", "count": 2,
                  "traffic": { "kind": "command", "server": "true", "client": "true" } },
                { "name": "x-1", "from": "a", "to": "b",
                  "traffic": { "kind": "command", "server": "true", "client": "true" } },
                { "name": "..\\x:", "from": "a", "to": "b",
                  "traffic": { "kind": "command", "server": "true", "client": "true" } },
                { "from": "a", "to": "b" }
            ],
            "record": { "captures": ["a>b"] }
        }"#;
        let backend = tcplab_model::Backend {
            name: "linux",
            profile: tcplab_model::Profile::Linux612,
            version: &|_| "1".into(),
            unsupported: &|_| Vec::new(),
        };
        let plans = tcplab_model::from_json(text).unwrap().plans(&backend).unwrap();
        let stems: Vec<_> = outputs(&plans[0]).into_iter().flatten().collect();
        assert_eq!(stems, ["x-1", "x-2", "x-1.2", "..-x-"]);
        let names = names(&plans[0]);
        assert_eq!(names[..2], ["capture.pcapng", "x-1-server.txt"]);
        assert_eq!(names.len(), 9);
    }
}
