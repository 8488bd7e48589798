//! Reads words, quantities and lists.

use super::{Definitions, Place, Read, define};
use crate::mistake::{Mistake, Problem};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tcplab_units::{Bytes, Duration, Rate};

/// The problem that `value` is not of the expected type.
pub(crate) fn wrong_type(value: &Value, expected: &'static str) -> Problem {
    let found = match value {
        Value::Null => "nothing".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("\"{}\"", start_of(text)),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a table".into(),
    };
    Problem::WrongType { found, expected }
}

/// The start of a text, enough to recognise it.
fn start_of(text: &str) -> String {
    const SHOWN: usize = 60;
    let start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() { format!("{start}...") } else { start }
}

/// Reads one of the `known` words, which name a `what`.
pub(crate) fn word<'a>(
    value: &Value,
    at: &Place<'_>,
    what: &'static str,
    known: &[&'a str],
    mistakes: &mut Vec<Mistake>,
) -> Option<&'a str> {
    let found = value.as_str().and_then(|word| known.iter().find(|known| **known == word));
    if found.is_none() {
        let problem = match value.as_str() {
            Some(word) => Problem::unknown(what, start_of(word), known.iter().copied()),
            None => wrong_type(value, "text"),
        };
        mistakes.push(problem.at(at));
    }
    found.copied()
}

/// The `kind` of a table, one of `known`.
pub(crate) fn kind<'a>(
    value: &Value,
    short: bool,
    at: &Place<'_>,
    what: &'static str,
    known: &[&'a str],
    mistakes: &mut Vec<Mistake>,
) -> Option<&'a str> {
    let Value::Object(table) = value else {
        mistakes.push(wrong_type(value, "a table with a `kind`").at(at));
        return None;
    };
    let place = if short { *at } else { at.key("kind") };
    let Some(kind) = table.get("kind") else {
        mistakes.push(Problem::Missing { example: "" }.at(place));
        return None;
    };
    word(kind, &place, what, known, mistakes)
}

/// A regular expression for the number of a quantity.
pub(crate) const NUMBER: &str = "[0-9_]*\\.?[0-9_]*([eE][+-]?[0-9]+)?";

macro_rules! quantity {
    ($type:ty, $least:expr, $name:literal, $example:literal, $units:literal, $about:literal) => {
        impl Read for $type {
            const EXAMPLE: &'static str = concat!("\"", $example, "\"");

            fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
                let problem = match value {
                    Value::String(text) => match text.parse::<$type>() {
                        Ok(quantity) if quantity < $least => Problem::Zero,
                        Ok(quantity) => return Some(quantity),
                        Err(error) => Problem::Unit(error),
                    },
                    Value::Number(number) => {
                        Problem::NeedsUnit { number: number.to_string(), example: $example }
                    }
                    _ => wrong_type(value, concat!("text like \"", $example, "\"")),
                };
                mistakes.push(problem.at(at));
                None
            }

            fn schema(definitions: &mut Definitions) -> Value {
                define($name, definitions, |_| {
                    json!({
                        "type": "string",
                        "description": $about,
                        "pattern": format!("^ *{NUMBER} *({}) *$", $units),
                        "examples": [$example],
                    })
                })
            }
        }
    };
}

quantity!(
    Duration,
    Duration::ZERO,
    "Duration",
    "25 ms",
    "ps|ns|us|µs|ms|s|min|h",
    "A length of time, as text with its unit: \"25 ms\"."
);
quantity!(
    Rate,
    Rate::from_bits_per_second(1),
    "Rate",
    "10 Mbit/s",
    "bit/s|[kMGT](bit/s)?",
    "A rate, as text with its unit: \"10 Mbit/s\", short \"10M\"."
);
quantity!(
    Bytes,
    Bytes(1),
    "Size",
    "64 kB",
    "B|kB|MB|GB|TB|KiB|MiB|GiB|TiB",
    "An amount of data, as text with its unit: \"64 kB\"."
);

impl Read for bool {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        if value.as_bool().is_none() {
            mistakes.push(wrong_type(value, "true or false").at(at));
        }
        value.as_bool()
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({ "type": "boolean" })
    }
}

/// The longest text in an experiment: a command line, the path of a file.
const MOST_TEXT: usize = 10_000;

impl Read for String {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let problem = match value {
            Value::String(text) if text.is_empty() => Problem::Invalid("is empty".into()),
            Value::String(text) if text.contains('\n') => {
                Problem::Invalid("has a line break; a text is one line".into())
            }
            Value::String(text) if text.chars().any(char::is_control) => {
                Problem::Invalid("has characters that cannot be printed".into())
            }
            Value::String(text) if text.len() > MOST_TEXT => Problem::Invalid(format!(
                "has {} bytes; a text has at most {MOST_TEXT}",
                text.len()
            )),
            Value::String(text) => return Some(text.clone()),
            _ => wrong_type(value, "text"),
        };
        mistakes.push(problem.at(at));
        None
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl<T: Read> Read for Option<T> {
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        T::read(value, at, mistakes).map(Some)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        T::schema(definitions)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Array(items) = value else {
            mistakes.push(wrong_type(value, "a list").at(at));
            return None;
        };
        // Every item is read before the first failure counts, so that all mistakes are found.
        let items = items.iter().enumerate();
        let read: Vec<_> = items.map(|(i, item)| T::read(item, &at.index(i), mistakes)).collect();
        read.into_iter().collect()
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({ "type": "array", "items": T::schema(definitions) })
    }
}

impl<A: Read, B: Read> Read for (A, B) {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Some([first, second]) = value.as_array().map(Vec::as_slice) else {
            mistakes.push(wrong_type(value, "a list of two").at(at));
            return None;
        };
        let first = A::read(first, &at.index(0), mistakes);
        let second = B::read(second, &at.index(1), mistakes);
        Some((first?, second?))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({
            "type": "array",
            "prefixItems": [A::schema(definitions), B::schema(definitions)],
            "minItems": 2,
            "maxItems": 2,
        })
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Object(values) = value else {
            mistakes.push(wrong_type(value, "a table").at(at));
            return None;
        };
        let read: Vec<_> = values
            .iter()
            .map(|(key, value)| Some((key.clone(), T::read(value, &at.key(key), mistakes)?)))
            .collect();
        read.into_iter().collect()
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(definitions) })
    }
}
