//! Settings that make several runs of one experiment: parameters, sweeps, zips, variants.

use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, wrong_type};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Values of parameters by name, for `"$name"` in place of a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Let(pub Map<String, Value>);

/// The keys to vary, by path, with their values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Sweep(pub Vec<(String, Vec<Value>)>);

/// Settings by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Variants(pub Map<String, Value>);

impl Read for Let {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        if let Value::Object(values) = value {
            return Some(Self(values.clone()));
        }
        mistakes.push(wrong_type(value, "a table of names with their values").at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Let", definitions, |_| json!({ "type": "object" }))
    }
}

impl Read for Sweep {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Object(axes) = value else {
            mistakes.push(wrong_type(value, "a table of paths with their values").at(at));
            return None;
        };
        let before = mistakes.len();
        let mut read = Vec::new();
        for (path, values) in axes {
            let problem = match values {
                Value::Array(values) if values.is_empty() => {
                    Problem::Invalid("has no values".into())
                }
                Value::Array(values) => {
                    read.push((path.clone(), values.clone()));
                    continue;
                }
                _ => wrong_type(values, "a list of values"),
            };
            mistakes.push(problem.at(at.key(path)));
        }
        (mistakes.len() == before).then_some(Self(read))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Sweep", definitions, |_| {
            json!({
                "type": "object",
                "additionalProperties": { "type": "array", "minItems": 1 },
            })
        })
    }
}

impl Read for Variants {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Object(variants) = value else {
            mistakes.push(wrong_type(value, "a table of variants").at(at));
            return None;
        };
        let before = mistakes.len();
        for (name, settings) in variants {
            if !settings.is_object() {
                mistakes.push(wrong_type(settings, "a table of settings").at(at.key(name)));
            }
        }
        (mistakes.len() == before).then(|| Self(variants.clone()))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define(
            "Variants",
            definitions,
            |_| json!({ "type": "object", "additionalProperties": { "type": "object" } }),
        )
    }
}
