//! Probabilities, as numbers or in percent.

use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, wrong_type};
use serde::Serialize;
use serde_json::{Value, json};

/// A probability: `0.01`, or as text, `"1 %"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
pub struct Probability(pub f64);

impl Probability {
    /// Reads `"1 %"` as exactly the same number as `0.01`.
    pub(super) fn parse(text: &str) -> Option<f64> {
        let number = text.trim().strip_suffix('%')?.trim_end();
        let (decimal, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let is_plain = decimal.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
        let power = power.parse::<i32>().ok()?.checked_sub(2)?;
        if is_plain { format!("{decimal}e{power}").parse().ok() } else { None }
    }
}

impl Read for Probability {
    const EXAMPLE: &'static str = "\"1 %\"";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let number = value.as_f64().or_else(|| Self::parse(value.as_str()?));
        let problem = match number {
            None => wrong_type(value, "a probability, like 0.01 or \"1 %\""),
            Some(number) if !(0.0..=1.0).contains(&number) => Problem::OutOfRange {
                value: number.to_string(),
                least: "0".into(),
                most: "1 (100 %)".into(),
            },
            Some(number) => return Some(Self(number)),
        };
        mistakes.push(problem.at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Probability", definitions, |_| {
            json!({
                "description": "A probability: 0.01, or the same as text, \"1 %\".",
                "anyOf": [
                    { "type": "number", "minimum": 0, "maximum": 1 },
                    { "type": "string", "pattern": "^ *[0-9.]+([eE][+-]?[0-9]+)? *% *$" },
                ],
            })
        })
    }
}
