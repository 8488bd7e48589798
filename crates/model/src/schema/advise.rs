//! The question for `tcplab advise`. No run depends on it.

use super::Sweep;
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, choice, define, table, words, wrong_type};
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

table! {
    /// The question for `tcplab advise`: the goals, the paths that the advice is to hold for, and the
    /// settings that may change. Runs do not depend on it.
    pub struct Advise {
        /// The goals, like "goodput" or "page-time". The first decides; the others are reported too. By
        /// default the traffic decides.
        pub goals: Vec<Goal> = Vec::new(),
        /// The names of the flows whose settings may change, and which the goals are of. By default all.
        pub flows: Vec<String> = Vec::new(),
        /// Where settings may change: at the sender, the receiver, the router before the bottleneck, or
        /// at several of them.
        pub may: Vec<Side> = vec![Side::Sender],
        /// Settings that stay as they are: `["cc", "wmem"]`.
        pub keep: Vec<String> = Vec::new(),
        /// Values to try, by setting, in place of the usual ones: `cc = ["cubic", "bbr"]`. If it is
        /// given, nothing else is tried.
        pub change: Sweep = Sweep::default(),
        /// Limits that the advised settings must keep: `["retransmissions <= 3 %"]`. Each is a goal, `<=`
        /// or `>=`, and a value. Settings that surely break one are not advised.
        pub limits: Vec<AdviceLimit> = Vec::new(),
        /// The paths and loads that the advice is to hold for, by parameter or key as in a sweep: a list of
        /// values, all between two, `rtt = { from = "10 ms", to = "200 ms" }`, or a distribution of values,
        /// `rtt = { kind = "lognormal", median = "40 ms", sigma = 0.5 }`.
        pub over: Over = Over::default(),
    }
}

words! {
    /// A number of a run that is to be best.
    #[what("goal")]
    pub enum Goal {
        /// The goodput of all flows together.
        "goodput" => Goodput,
        /// The mean completion time of transfers, or of flows with a size.
        "completion" => Completion,
        /// The completion time that 95 % of the transfers do not exceed.
        "completion-p95" => CompletionP95,
        /// The mean time that web pages take.
        "page-time" => PageTime,
        /// The mean RTT of TCP, the mean one-way delay of UDP.
        "latency" => Latency,
        /// The share of the segments that are sent again.
        "retransmissions" => Retransmissions,
        /// Jain's index of the goodput of the flows.
        "fairness" => Fairness,
    }
}

words! {
    /// Where a setting is changed.
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
    /// A distribution of the values of a key. A quantity is written as the key takes it: with its unit,
    /// or as a number. What lies beyond `least` and `most` is cut off, so that the rest is as likely as
    /// before in proportion.
    #[what("distribution of values")]
    pub enum Distribution {
        /// Any value between two, all as likely.
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
    /// Any value between two, all as likely.
    pub struct UniformValues {
        /// The least: "10 ms".
        pub least: Quantity,
        /// The greatest: "200 ms".
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
        /// The least value; nothing is below zero.
        pub least: Option<Quantity> = None,
        /// The greatest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// The log-normal distribution.
    pub struct LogNormalValues {
        /// The value that half of them exceed: "40 ms".
        pub median: Quantity,
        /// The standard deviation of the logarithm: 0.5.
        pub sigma: f64 [SIGMA],
        /// The least value.
        pub least: Option<Quantity> = None,
        /// The greatest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// The Pareto distribution.
    pub struct ParetoValues {
        /// The shape: 1.2. The smaller it is, the more often values are very large.
        pub shape: f64 [SHAPE],
        /// The least value: "10 ms".
        pub least: Quantity,
        /// The greatest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// The exponential distribution.
    pub struct ExponentialValues {
        /// The mean, before anything is cut off: "20 ms".
        pub mean: Quantity,
        /// The least value.
        pub least: Option<Quantity> = None,
        /// The greatest value.
        pub most: Option<Quantity> = None,
    }
}

table! {
    /// Values measured elsewhere.
    pub struct EmpiricalValues {
        /// Values, any of which is as likely as the others: `["21 ms", "38 ms", "190 ms"]`.
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

/// The values that advice is to hold for, by key, in the order of the file.
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
