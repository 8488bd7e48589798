//! Random delays of packets.

use super::{MILLION, SOME_TIME};
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, choice, define, table};
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use tcplab_units::Duration;

/// Random additions to the delay of each packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Jitter {
    /// Uniform up to this time; zero for none.
    UpTo(Duration),
    /// A distribution.
    Spread(Spread),
}

impl Default for Jitter {
    fn default() -> Self {
        Self::UpTo(Duration::ZERO)
    }
}

choice! {
    /// A distribution of times.
    #[what("distribution of times")]
    pub enum Spread {
        /// Uniform between two times.
        "uniform" => Uniform,
        /// The normal distribution, with negative times set to zero.
        "normal" => Normal,
        /// The Pareto distribution: mostly short times, and a few very long ones.
        "pareto" => ParetoTimes,
        /// The exponential distribution.
        "exponential" => Exponential,
        /// Measured times.
        "empirical" => Measured,
    }
}

table! {
    /// Uniform between two times.
    pub struct Uniform {
        /// The minimum: "0 ms".
        pub least: Duration = Duration::ZERO,
        /// The maximum: "5 ms".
        pub most: Duration [SOME_TIME],
    }
}

table! {
    /// The normal distribution.
    pub struct Normal {
        /// The mean: "10 ms".
        pub mean: Duration,
        /// The standard deviation: "2 ms".
        pub deviation: Duration [SOME_TIME],
    }
}

table! {
    /// The Pareto distribution.
    pub struct ParetoTimes {
        /// The shape: 2.5, more than 1. Smaller shapes make very long times more frequent.
        pub shape: f64 [SHAPE],
        /// The minimum: "1 ms".
        pub least: Duration [SOME_TIME],
    }
}

table! {
    /// The exponential distribution.
    pub struct Exponential {
        /// The mean: "2 ms".
        pub mean: Duration [SOME_TIME],
    }
}

table! {
    /// Measured times.
    pub struct Measured {
        /// Equally likely times: `["1 ms", "1.3 ms", "9 ms"]`.
        pub times: Vec<Duration>,
    }
}

/// Smaller shapes have no mean.
const SHAPE: RangeInclusive<f64> = 1.01..=1e3;

impl Spread {
    /// Checks the distribution.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let reason = match self {
            Self::Uniform(it) if it.least > it.most => {
                format!("has a `most` of {}, less than its `least`", it.most)
            }
            Self::Measured(it) if it.times.is_empty() => "has no times".into(),
            Self::Measured(it) if it.times.len() as u64 > MILLION => {
                let number = it.times.len() as u128;
                return Err(Problem::TooMany { what: "times", number, most: MILLION });
            }
            _ => return Ok(()),
        };
        Err(Problem::Invalid(reason))
    }
}

impl Jitter {
    /// Whether there is no jitter.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Read for Jitter {
    const EXAMPLE: &'static str = "\"1 ms\"";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        if !value.is_object() {
            return Duration::read(value, at, mistakes).map(Self::UpTo);
        }
        let spread = Spread::read(value, at, mistakes)?;
        if let Err(problem) = spread.check() {
            mistakes.push(problem.at(at));
            return None;
        }
        Some(Self::Spread(spread))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let text = Duration::schema(definitions);
        let spread = Spread::schema(definitions);
        define("Jitter", definitions, |_| {
            json!({
                "anyOf": [
                    text,
                    {
                        "type": "object",
                        "properties": {
                            "file": {
                                "type": "string",
                                "minLength": 1,
                                "description": "A file of delays in milliseconds, one a line.",
                            },
                        },
                        "required": ["file"],
                        "additionalProperties": false,
                    },
                    spread,
                ],
            })
        })
    }
}

table! {
    /// A channel for which stations contend, as in Wi-Fi: a station waits until it has won the
    /// channel, and then sends several packets at once.
    pub struct Contention {
        /// The time that channel access takes: a table as for `jitter`.
        pub access: Spread,
        /// The most waiting packets that are sent in one go: 32.
        pub aggregate: u64 [1..=MILLION] = 32,
    }
}
