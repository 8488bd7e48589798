//! The question for `tcplab advise`. Runs do not depend on it.

use super::Sweep;
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, table, words, wrong_type};
use serde::Serialize;
use serde_json::{Value, json};

table! {
    /// The question for `tcplab advise`: the goals, the paths for which the advice must hold, and
    /// the settings that may change. Runs do not depend on it.
    pub struct Advise {
        /// The goals, like "goodput" or "page-time". The first one decides, and the others are
        /// reported too. The default depends on the traffic.
        pub goals: Vec<Goal> = Vec::new(),
        /// The names of the flows whose settings may change and whose results count. By default
        /// all.
        pub flows: Vec<String> = Vec::new(),
        /// Where settings may change: at the sender, the receiver, the router before the
        /// bottleneck, or several of these.
        pub may: Vec<Side> = vec![Side::Sender],
        /// Settings that must not change: `["cc", "wmem"]`.
        pub keep: Vec<String> = Vec::new(),
        /// Values to try for each setting, instead of the usual ones: `cc = ["cubic", "bbr"]`. Only
        /// these settings are changed.
        pub change: Sweep = Sweep::default(),
        /// The paths and loads for which the advice must hold, by parameter or key as in a sweep: a
        /// list of values, or a range, `rtt = { from = "10 ms", to = "200 ms" }`.
        pub over: Over = Over::default(),
    }
}

words! {
    /// A result to optimize.
    #[what("goal")]
    pub enum Goal {
        /// The goodput of all flows together.
        "goodput" => Goodput,
        /// The mean completion time of transfers, or of flows with a size.
        "completion" => Completion,
        /// The 95th percentile of the completion times of transfers.
        "completion-p95" => CompletionP95,
        /// The mean load time of web pages.
        "page-time" => PageTime,
        /// The mean RTT of TCP flows, and the mean one-way delay of UDP flows.
        "latency" => Latency,
        /// The share of retransmitted segments.
        "retransmissions" => Retransmissions,
        /// Jain's index of the goodput of the flows.
        "fairness" => Fairness,
    }
}

words! {
    /// Where settings are changed.
    #[what("side")]
    pub enum Side {
        /// The hosts that send the data.
        "sender" => Sender,
        /// The hosts that receive the data.
        "receiver" => Receiver,
        /// The router before the bottleneck.
        "router" => Router,
    }
}

/// The values for which advice must hold, by key, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Over(pub Vec<(String, Value)>);

const ENDS: &str = "a list of values, or { from = \"10 ms\", to = \"200 ms\" }";

impl Read for Over {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Object(axes) = value else {
            mistakes.push(wrong_type(value, "a table of paths with their values").at(at));
            return None;
        };
        let before = mistakes.len();
        for (path, values) in axes {
            let problem = match values {
                Value::Array(values) if !values.is_empty() => continue,
                Value::Object(ends)
                    if ends.len() == 2
                        && ["from", "to"].iter().all(|it| ends.contains_key(*it)) =>
                {
                    continue;
                }
                Value::Array(_) | Value::Object(_) => Problem::Invalid(format!("expected {ENDS}")),
                _ => wrong_type(values, ENDS),
            };
            mistakes.push(problem.at(at.key(path)));
        }
        let axes = axes.iter().map(|(path, values)| (path.clone(), values.clone()));
        (mistakes.len() == before).then(|| Self(axes.collect()))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Over", definitions, |_| {
            json!({
                "type": "object",
                "additionalProperties": { "anyOf": [
                    { "type": "array", "minItems": 1 },
                    {
                        "type": "object",
                        "properties": {
                            "from": { "description": "The least value." },
                            "to": { "description": "The greatest value." },
                        },
                        "required": ["from", "to"],
                        "additionalProperties": false,
                    },
                ] },
            })
        })
    }
}
