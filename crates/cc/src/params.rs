//! The parameters of an algorithm: as written in the experiment, read into its `Config`.

use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer, Error, Unexpected, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Parameters by name, as a JSON object; null for none. Missing parameters have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(pub Value);

/// Why an algorithm cannot be started.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// No algorithm has this name.
    #[error("no congestion control is called `{name}`; there are {}", .known.join(", "))]
    UnknownAlgorithm {
        /// The name as written.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The algorithm has no preset of this name.
    #[error("{algorithm} has no preset{}", said(.name, .known))]
    UnknownPreset {
        /// The algorithm.
        algorithm: String,
        /// The name as written.
        name: String,
        /// The existing presets.
        known: Vec<&'static str>,
    },
    /// The parameters are not a table.
    #[error("parameters are written by name, like {{ beta = 0.5 }}, not `{found}`")]
    NotATable {
        /// The value as written.
        found: String,
    },
    /// The algorithm has no parameter of this name.
    #[error("`{name}` is not a parameter; there are {}", listed(.known))]
    UnknownParameter {
        /// The name as written.
        name: String,
        /// The existing parameters.
        known: Vec<String>,
    },
    /// A parameter's value is of the wrong kind or out of range.
    #[error("{name}: {problem}")]
    WrongValue {
        /// The parameter.
        name: String,
        /// The value as written, and what is allowed.
        problem: String,
    },
}

fn said(name: &str, known: &[&str]) -> String {
    match known {
        [] => "s".into(),
        [only] => format!(" `{name}`; there is {only}"),
        _ => format!(" `{name}`; there are {}", known.join(", ")),
    }
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { "none".into() } else { known.join(", ") }
}

impl Params {
    /// These parameters, overridden by `given`.
    ///
    /// # Errors
    ///
    /// `given` is not a table.
    pub fn with(mut self, given: &Self) -> Result<Self, BuildError> {
        match (&mut self.0, &given.0) {
            (_, Value::Null) => {}
            (Value::Object(base), Value::Object(given)) => base.extend(given.clone()),
            (Value::Null, Value::Object(_)) => return Ok(given.clone()),
            (_, other) => return Err(BuildError::NotATable { found: other.to_string() }),
        }
        Ok(self)
    }

    /// Reads the parameters into an algorithm's configuration.
    ///
    /// # Errors
    ///
    /// A name is unknown or a value is not allowed. The message names the parameter and the allowed
    /// values.
    pub fn parse<T: Default + Serialize + DeserializeOwned>(&self) -> Result<T, BuildError> {
        let given = match &self.0 {
            Value::Null => return Ok(T::default()),
            Value::Object(given) => given,
            other => return Err(BuildError::NotATable { found: other.to_string() }),
        };
        // The common path: parameters are read once for each connection, and mostly valid.
        if let Ok(read) = T::deserialize(&self.0) {
            return Ok(read);
        }
        let known = defaults::<T>();
        for (name, value) in given {
            if known.get(name).is_none() {
                return Err(BuildError::UnknownParameter {
                    name: name.clone(),
                    known: keys(&known),
                });
            }
            // One by one, because serde does not say which value it rejected.
            read::<T>(alone(name, value)).map_err(|error| BuildError::WrongValue {
                name: name.clone(),
                problem: format!("{} is not {}", shown(value), allowed::<T>(name, &error)),
            })?;
        }
        read(given.clone()).map_err(|error| BuildError::WrongValue {
            name: keys(&self.0).join(", "),
            problem: error.to_string(),
        })
    }
}

/// A configuration's parameters and their defaults, as a JSON object.
pub fn defaults<T: Default + Serialize>() -> Value {
    serde_json::to_value(T::default()).expect("a configuration is plain data with named fields")
}

fn read<T: DeserializeOwned>(given: Map<String, Value>) -> Result<T, serde_json::Error> {
    serde_json::from_value(Value::Object(given))
}

fn alone(name: &str, value: &Value) -> Map<String, Value> {
    Map::from_iter([(name.into(), value.clone())])
}

/// A value as a message shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("\"{}\"", text.chars().take(60).collect::<String>()),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a table".into(),
    }
}

/// The allowed values of a parameter, from serde's error: the functions below, the names of a
/// choice, or the names of Rust's types.
fn allowed<T: DeserializeOwned>(name: &str, error: &serde_json::Error) -> String {
    let said = error.to_string();
    let expected = said.rsplit_once("expected ").map_or(said.as_str(), |(_, expected)| expected);
    match expected {
        "a boolean" => "true or false".into(),
        "f32" | "f64" => "a number".into(),
        "u8" => "a whole number from 0 to 255".into(),
        "u32" => format!("a whole number from 0 to {MOST}"),
        "u64" | "usize" => "a whole number, zero or more".into(),
        _ if expected.starts_with("a nonzero") => "a whole number above 0".into(),
        // A choice: an invalid name makes serde list the valid ones.
        "string or map" | "map with a single key" => {
            let names = read::<T>(alone(name, &"?".into())).err();
            names.map_or_else(|| "text".into(), |error| allowed::<T>(name, &error))
        }
        _ => expected.replace('`', "\""),
    }
}

fn keys(object: &Value) -> Vec<String> {
    object.as_object().into_iter().flat_map(Map::keys).cloned().collect()
}

/// For `serde(deserialize_with)`: a share strictly between zero and one.
///
/// # Errors
///
/// The value is not a number or not in that range.
pub fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_f64(Number {
        allowed: |number| 0.0 < number && number < 1.0,
        expected: "a number between 0 and 1",
    })
}

/// For `serde(deserialize_with)`: any number greater than zero.
///
/// # Errors
///
/// The value is not a number or not in that range.
pub fn above_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_f64(Number {
        allowed: |number| 0.0 < number && number.is_finite(),
        expected: "a number above 0",
    })
}

/// For `serde(deserialize_with)`: a whole number that may be zero.
///
/// # Errors
///
/// The value is not a whole number, negative or beyond 32 bits.
pub fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_u64(Whole {
        least: 0,
        most: MOST,
        expected: "a whole number of 32 bits",
    })
}

/// For `serde(deserialize_with)`: a whole number greater than zero.
///
/// # Errors
///
/// The value is not a whole number, less than one or beyond 32 bits.
pub fn whole_above_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_u64(Whole { least: 1, most: MOST, expected: "a whole number above 0" })
}

/// For `serde(deserialize_with)`: a whole number that satisfies a condition, with a description of
/// it.
///
/// # Errors
///
/// The value is not a whole number or not allowed.
pub(crate) fn whole_where<'de, D: Deserializer<'de>>(
    deserializer: D,
    allowed: fn(u64) -> bool,
    expected: &'static str,
) -> Result<u64, D::Error> {
    let number = deserializer.deserialize_u64(Whole { least: 0, most: u64::MAX, expected })?;
    if allowed(number) {
        return Ok(number);
    }
    Err(D::Error::invalid_value(Unexpected::Unsigned(number), &expected))
}

/// For `serde(deserialize_with)`: a share in 1/1024, as in the kernel's modules.
///
/// # Errors
///
/// The value is not a whole number or not in that range.
pub fn share_of_1024<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let expected = "a whole number between 0 and 1024";
    deserializer.deserialize_u64(Whole { least: 1, most: 1023, expected })
}

/// The kernel's modules take 32-bit numbers.
const MOST: u64 = u32::MAX as u64;

struct Whole {
    least: u64,
    most: u64,
    expected: &'static str,
}

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        if (self.least..=self.most).contains(&number) {
            return Ok(number);
        }
        Err(E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

struct Number {
    allowed: fn(f64) -> bool,
    expected: &'static str,
}

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        if (self.allowed)(number) {
            return Ok(number);
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        self.visit_f64(number as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, Serialize, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    struct Config {
        #[serde(deserialize_with = "share")]
        beta: f64,
        #[serde(deserialize_with = "above_zero")]
        scale: f64,
        fast: bool,
        mode: Mode,
        number: u64,
        small: u8,
    }

    #[derive(Debug, Default, Deserialize, Serialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        #[default]
        On,
        Off,
        Auto,
    }

    impl Default for Config {
        fn default() -> Self {
            Self { beta: 0.5, scale: 1.0, fast: true, mode: Mode::On, number: 1, small: 1 }
        }
    }

    fn message(params: Value) -> String {
        Params(params).parse::<Config>().unwrap_err().to_string()
    }

    #[test]
    fn omitted_parameters_have_their_defaults() {
        assert_eq!(Params::default().parse(), Ok(Config::default()));
        assert_eq!(Params(json!({})).parse(), Ok(Config::default()));
        assert_eq!(
            Params(json!({ "scale": 2 })).parse(),
            Ok(Config { scale: 2.0, ..Config::default() })
        );
    }

    #[test]
    fn messages_name_the_parameter_and_what_is_allowed() {
        for (params, expected) in [
            (
                json!({ "betta": 0.5 }),
                "`betta` is not a parameter; there are beta, scale, fast, mode, number, small",
            ),
            (json!({ "beta": 1.5 }), "beta: 1.5 is not a number between 0 and 1"),
            (
                json!({ "fast": true, "beta": "half" }),
                "beta: \"half\" is not a number between 0 and 1",
            ),
            (json!({ "scale": 0 }), "scale: 0 is not a number above 0"),
            (json!({ "fast": 1 }), "fast: 1 is not true or false"),
            (json!({ "fast": [] }), "fast: a list is not true or false"),
            (json!({ "mode": "of" }), "mode: \"of\" is not one of \"on\", \"off\", \"auto\""),
            (json!({ "mode": 1 }), "mode: 1 is not one of \"on\", \"off\", \"auto\""),
            (json!({ "number": -1 }), "number: -1 is not a whole number, zero or more"),
            (json!({ "small": 256 }), "small: 256 is not a whole number from 0 to 255"),
            (json!([0.5]), "parameters are written by name, like { beta = 0.5 }, not `[0.5]`"),
        ] {
            assert_eq!(message(params), expected);
        }
    }

    #[test]
    fn whole_number_parameters_refuse_fractions_and_negatives() {
        #[derive(Debug, Default, Deserialize, Serialize)]
        #[serde(default, deny_unknown_fields)]
        struct Counts {
            #[serde(deserialize_with = "whole")]
            alpha: u64,
            #[serde(deserialize_with = "whole_above_zero")]
            gamma: u64,
        }
        let read = |params| Params(params).parse::<Counts>();
        assert!(read(json!({ "alpha": 0, "gamma": 1 })).is_ok());
        for refused in [json!({ "alpha": 1.5 }), json!({ "alpha": -1 })] {
            let message = read(refused).unwrap_err().to_string();
            assert!(message.ends_with("is not a whole number of 32 bits"), "{message}");
        }
        let message = read(json!({ "gamma": 0 })).unwrap_err().to_string();
        assert!(message.ends_with("is not a whole number above 0"), "{message}");
    }

    #[test]
    fn parameter_ranges_exclude_their_ends() {
        for end in [0, 1] {
            assert!(message(json!({ "beta": end })).ends_with("is not a number between 0 and 1"));
        }
        assert!(message(json!({ "scale": -1 })).ends_with("is not a number above 0"));
    }
}
