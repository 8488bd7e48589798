//! Loads, as numbers or in percent.

use super::Probability;
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, wrong_type};
use serde::Serialize;
use serde_json::{Value, json};

/// A share of a rate: `0.5`, or as text, `"50 %"`. More than 1 is an overload.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Load(pub f64);

/// The largest plausible load is a hundred times the rate.
const MOST: f64 = 100.0;

impl Read for Load {
    const EXAMPLE: &'static str = "\"50 %\"";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let number = value.as_f64().or_else(|| Probability::parse(value.as_str()?));
        let problem = match number {
            None => wrong_type(value, "a load, like 0.5 or \"50 %\""),
            Some(0.0) => Problem::Zero,
            Some(number) if (1e-9..=MOST).contains(&number) => return Some(Self(number)),
            Some(number) => Problem::OutOfRange {
                value: number.to_string(),
                least: "0.000000001".into(),
                most: format!("{MOST}"),
            },
        };
        mistakes.push(problem.at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Load", definitions, |_| {
            json!({
                "description": "A share of a rate: 0.5, or the same as text, \"50 %\".",
                "anyOf": [
                    { "type": "number", "exclusiveMinimum": 0, "maximum": MOST },
                    { "type": "string", "pattern": "^ *[0-9.]+([eE][+-]?[0-9]+)? *% *$" },
                ],
            })
        })
    }
}
