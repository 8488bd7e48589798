//! The question for `tcplab advise`. Runs do not depend on it.

use super::Sweep;
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, choice, define, table, words, wrong_type};
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

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
        /// Limits that the advised settings must keep: `["retransmissions <= 3 %"]`. Each is a
        /// goal, `<=` or `>=`, and a value. Settings whose mean breaks one are not advised.
        pub limits: Vec<AdviceLimit> = Vec::new(),
        /// The paths and loads for which the advice must hold, by parameter or key as in a sweep: a
        /// list of values, a range, `rtt = { from = "10 ms", to = "200 ms" }`, or a distribution of
        /// values, `rtt = { kind = "lognormal", median = "40 ms", sigma = 0.5 }`.
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

/// A limit for a goal: `"latency <= 60 ms"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AdviceLimit(pub String);

impl Read for AdviceLimit {
    const EXAMPLE: &'static str = "\"retransmissions <= 3 %\"";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let text = String::read(value, at, mistakes)?;
        let parts = ["<=", ">="].iter().find_map(|sign| text.split_once(sign));
        let Some((goal, limit)) = parts.map(|(goal, limit)| (goal.trim(), limit.trim())) else {
            let reason =
                format!("\"{text}\" is not a goal, <= or >=, and a value, like {}", Self::EXAMPLE);
            mistakes.push(Problem::Invalid(reason).at(at));
            return None;
        };
        let before = mistakes.len();
        Goal::read(&goal.into(), at, mistakes);
        if limit.is_empty() {
            let reason = format!("\"{text}\" has no value after the sign, like {}", Self::EXAMPLE);
            mistakes.push(Problem::Invalid(reason).at(at));
        }
        (mistakes.len() == before).then_some(Self(text))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let goals: Vec<_> = Goal::ALL.iter().map(|goal| goal.word()).collect();
        define("AdviceLimit", definitions, |_| {
            json!({
                "type": "string",
                "description": "A limit for a goal: \"retransmissions <= 3 %\", \"latency <= 60 ms\".",
                "pattern": format!("^ *({}) *[<>]= *[^ ].*$", goals.join("|")),
                "examples": ["retransmissions <= 3 %", "latency <= 60 ms"],
            })
        })
    }
}

choice! {
    /// A distribution of the values of a key. A quantity is written as the key takes it: with its
    /// unit, or as a number. Values beyond `least` and `most` are never drawn; those between keep
    /// their proportions.
    #[what("distribution of values")]
    pub enum Distribution {
        /// The uniform distribution: any value between two.
        "uniform" => UniformValues,
        /// The normal distribution.
        "normal" => NormalValues,
        /// The log-normal distribution.
        "lognormal" => LogNormalValues,
        /// The Pareto distribution: mostly small, sometimes very large.
        "pareto" => ParetoValues,
        /// The exponential distribution.
        "exponential" => ExponentialValues,
        /// Values measured elsewhere.
        "empirical" => EmpiricalValues,
    }
}

table! {
    /// The uniform distribution: any value between two.
    pub struct UniformValues {
        /// The smallest value: "10 ms".
        pub least: Quantity,
        /// The largest value: "200 ms".
        pub most: Quantity,
    }
}

table! {
    /// The normal distribution.
    pub struct NormalValues {
        /// The mean: "40 ms".
        pub mean: Quantity,
        /// The standard deviation: "10 ms".
        pub deviation: Quantity,
        /// The smallest value; no value is below zero.
        pub least: Option<Quantity> = None,
        /// The largest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// The log-normal distribution.
    pub struct LogNormalValues {
        /// The value that half of the values exceed: "40 ms".
        pub median: Quantity,
        /// The standard deviation of the logarithm: 0.5.
        pub sigma: f64 [SIGMA],
        /// The smallest value.
        pub least: Option<Quantity> = None,
        /// The largest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// The Pareto distribution.
    pub struct ParetoValues {
        /// The shape: 1.2. The smaller it is, the more often values are very large.
        pub shape: f64 [SHAPE],
        /// The smallest value: "10 ms".
        pub least: Quantity,
        /// The largest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// The exponential distribution.
    pub struct ExponentialValues {
        /// The mean, before `least` and `most` apply: "20 ms".
        pub mean: Quantity,
        /// The smallest value.
        pub least: Option<Quantity> = None,
        /// The largest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// Values measured elsewhere.
    pub struct EmpiricalValues {
        /// The values, all equally likely: `["21 ms", "38 ms", "190 ms"]`.
        pub values: Vec<Quantity>,
    }
}

const SIGMA: RangeInclusive<f64> = 1e-3..=10.0;

const SHAPE: RangeInclusive<f64> = 0.1..=1e3;

/// A value of any key that is a quantity: text with a unit, or a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub Value);

impl Read for Quantity {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        if value.is_string() || value.is_number() {
            return Some(Self(value.clone()));
        }
        mistakes.push(wrong_type(value, "a quantity, like \"40 ms\" or 0.01").at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Quantity", definitions, |_| {
            json!({
                "description": "A value as its key takes it: \"40 ms\", \"10 Mbit/s\", 0.01.",
                "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "number" }],
            })
        })
    }
}

/// The values for which advice must hold, by key, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Over(pub Vec<(String, Value)>);

const AXIS: &str = "a list of values, { from = \"10 ms\", to = \"200 ms\" }, a distribution like \
                    { kind = \"lognormal\", median = \"40 ms\", sigma = 0.5 }, or \
                    { file = \"rtts.txt\" }";

impl Read for Over {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Object(axes) = value else {
            mistakes.push(wrong_type(value, "a table of paths with their values").at(at));
            return None;
        };
        let before = mistakes.len();
        for (path, values) in axes {
            let place = at.key(path);
            match values {
                Value::Array(values) if !values.is_empty() => {}
                Value::Object(table) if table.contains_key("kind") => {
                    Distribution::read(values, &place, mistakes);
                }
                Value::Object(ends)
                    if ends.len() == 2
                        && ["from", "to"].iter().all(|it| ends.contains_key(*it)) => {}
                Value::Array(_) | Value::Object(_) => {
                    mistakes.push(Problem::Invalid(format!("expected {AXIS}")).at(place));
                }
                _ => mistakes.push(wrong_type(values, AXIS).at(place)),
            }
        }
        let axes = axes.iter().map(|(path, values)| (path.clone(), values.clone()));
        (mistakes.len() == before).then(|| Self(axes.collect()))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let distribution = Distribution::schema(definitions);
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
                    {
                        "type": "object",
                        "properties": {
                            "file": {
                                "type": "string",
                                "minLength": 1,
                                "description": "A file of values, one a line, of which each is as \
                                                likely as the others.",
                            },
                        },
                        "required": ["file"],
                        "additionalProperties": false,
                    },
                    distribution,
                ] },
            })
        })
    }
}
