//! The RTTs of several hosts: listed, or random.

use super::Spread;
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define};
use crate::spread::{cells, drawn};
use serde::Serialize;
use serde_json::{Value, json};
use tcplab_units::Duration;

/// The RTTs of several hosts: `["10 ms", "80 ms"]`, or a distribution from which each is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Rtts {
    /// One for each host.
    Listed(Vec<Duration>),
    /// Drawn from the run's seed.
    Drawn(Spread),
}

/// The granularity of random RTTs, in picoseconds: each of the four delays that share an RTT is in
/// whole nanoseconds, the kernel's unit.
const STEP: u64 = 4000;

impl Rtts {
    /// The RTTs of `count` hosts of the shape called `shape`.
    pub(crate) fn of(&self, count: usize, seed: u64, shape: &str) -> Vec<Duration> {
        match self {
            Self::Listed(listed) => listed.clone(),
            Self::Drawn(spread) => {
                let cells = cells(spread);
                let name = format!("rtts of {shape}");
                let rtt = |number| drawn(&cells, seed, &name, number).as_picos() / STEP * STEP;
                (1..=count as u64).map(|number| Duration::from_picos(rtt(number))).collect()
            }
        }
    }
}

impl Read for Rtts {
    const EXAMPLE: &'static str = "[\"10 ms\", \"80 ms\"]";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        if value.is_array() {
            let listed = Vec::read(value, at, mistakes)?;
            if listed.is_empty() {
                mistakes.push(Problem::Invalid("has no RTTs".into()).at(at));
                return None;
            }
            return Some(Self::Listed(listed));
        }
        let spread = Spread::read(value, at, mistakes)?;
        if let Err(problem) = spread.check() {
            mistakes.push(problem.at(at));
            return None;
        }
        Some(Self::Drawn(spread))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let listed = Vec::<Duration>::schema(definitions);
        let spread = Spread::schema(definitions);
        define("Rtts", definitions, |_| {
            json!({
                "anyOf": [
                    listed,
                    {
                        "type": "object",
                        "properties": {
                            "file": {
                                "type": "string",
                                "minLength": 1,
                                "description": "A file of RTTs in milliseconds, one a line, of which \
                                                each is as likely as the others.",
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
