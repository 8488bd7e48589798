//! The repetitions of each variant: a fixed number, or until a mean has the required precision.

use super::{MILLION, Probability};
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, table, words, wrong_type};
use serde::Serialize;
use serde_json::{Value, json};

/// The repetitions of each variant: `30`, or until the mean is known to within a share of itself,
/// `"2 %"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Repeat {
    /// A fixed number.
    Times(u64),
    /// Until a mean has the required precision.
    Until(Until),
}

table! {
    /// Repetitions until means have the required precision. Rounds of repetitions are added to all
    /// variants, each half as many again, until the 95 % confidence interval of every class of
    /// flows of every variant is narrow enough. Without randomness, two repetitions are run.
    pub struct Until {
        /// The half-width of the interval, as a share of the mean: "2 %".
        pub until: Probability,
        /// The maximum number of repetitions, even if the interval is wider.
        pub at_most: u64 [FEWEST..=MILLION] = 100,
        /// The minimum number of repetitions. Fewer than 10 allow no interval.
        pub at_least: u64 [FEWEST..=MILLION] = FEWEST,
        /// The measure whose mean is estimated, over the flows of a class.
        pub of: Target = Target::Goodput,
    }
}

/// Fewer repetitions allow no confidence interval of a mean.
const FEWEST: u64 = 10;

words! {
    /// The measure whose mean is estimated.
    #[what("measure")]
    pub enum Target {
        /// The goodput of a flow.
        "goodput" => Goodput,
        /// The time from the start of a flow or transfer to the arrival of its last byte.
        "completion" => Completion,
        /// The mean RTT of a flow.
        "rtt" => Rtt,
        /// The mean one-way delay of the datagrams of a UDP flow.
        "delay" => Delay,
    }
}

impl Target {
    /// The column of the results.
    pub fn column(self) -> &'static str {
        match self {
            Self::Goodput => "goodput_mbit_s",
            Self::Completion => "completion_s",
            Self::Rtt => "rtt_mean_ms",
            Self::Delay => "delay_mean_ms",
        }
    }
}

impl Repeat {
    /// The most repetitions of a variant.
    pub fn most(&self) -> u64 {
        match self {
            Self::Times(times) => *times,
            Self::Until(until) => until.at_most,
        }
    }

    /// The most repetitions of a variant, by a value that may be invalid.
    pub(crate) fn most_of(value: Option<&Value>) -> u64 {
        let read = value.and_then(|value| Self::read(value, &Place::Root, &mut Vec::new()));
        read.map_or(1, |repeat| repeat.most())
    }
}

impl Read for Repeat {
    const EXAMPLE: &'static str = "1";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let problem = match value {
            Value::Object(_) => {
                let until = Until::read(value, at, mistakes)?;
                let reason = if until.until.0 <= 0.0 {
                    (".until", "no interval is narrower than zero; write it like \"2 %\"".into())
                } else if until.at_least > until.at_most {
                    (".at_least", format!("is more than at_most, {}", until.at_most))
                } else {
                    return Some(Self::Until(until));
                };
                let (key, reason) = reason;
                mistakes.push(Problem::Invalid(reason).at(format!("{at}{key}")));
                return None;
            }
            // The short form, or the name of a parameter.
            Value::String(text) if text.trim_end().ends_with('%') => {
                return Self::read(&json!({ "until": text }), at, mistakes);
            }
            _ => match value.as_u64() {
                Some(0) => Problem::Zero,
                Some(times) if times > MILLION => Problem::OutOfRange {
                    value: times.to_string(),
                    least: "1".into(),
                    most: MILLION.to_string(),
                },
                Some(times) => return Some(Self::Times(times)),
                None => wrong_type(value, "a whole number, zero or more, or \"2 %\""),
            },
        };
        mistakes.push(problem.at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": MILLION },
            { "type": "string", "pattern": "^ *[0-9.]+([eE][+-]?[0-9]+)? *% *$" },
            Until::schema(definitions),
        ] })
    }
}
