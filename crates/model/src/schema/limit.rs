//! Queue limits, and values that can be turned off.

use crate::mistake::{Mistake, Problem};
use crate::read::{Bounded, Definitions, NUMBER, Place, Read, define, wrong_type};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt;
use tcplab_units::{Bytes, Duration, UnitError, split};

/// The limit of a queue: `"250 packets"`, `"64 kB"`, the data that the link transmits in a time,
/// `"50 ms"`, or a multiple of the bandwidth-delay product, `"0.25 BDP"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A number of packets, whatever their size.
    Packets(u64),
    /// A number of bytes.
    Bytes(Bytes),
    /// A multiple of the bandwidth-delay product, in packets of the link's MTU. A shaper's is that
    /// of its own rate.
    Bdp(f64),
    /// The data transmitted in a time at the rate of the link.
    Time(Duration),
}

const UNITS: [&str; 13] =
    ["packets", "BDP", "us", "ms", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"];

impl Limit {
    fn parse(text: &str) -> Result<Self, Problem> {
        let trimmed = text.trim();
        let (number, unit) = split(trimmed);
        let number = number.replace('_', "");
        let invalid = || Problem::Invalid(format!("\"{text}\" is not a number of packets"));
        let limit = match unit {
            "packets" | "packet" => Self::Packets(number.parse().map_err(|_| invalid())?),
            "BDP" | "bdp" => Self::Bdp(number.parse().map_err(|_| invalid())?),
            _ if let Ok(time) = trimmed.parse() => Self::Time(time),
            unit => match trimmed.parse() {
                Ok(bytes) => Self::Bytes(bytes),
                Err(UnitError::UnknownUnit { .. } | UnitError::NoUnit { .. }) => {
                    let (quantity, units) = ("queue size", UNITS.to_vec());
                    return Err(Problem::Unit(if unit.is_empty() {
                        UnitError::NoUnit { text: text.into(), units }
                    } else {
                        UnitError::UnknownUnit { unit: unit.into(), quantity, units }
                    }));
                }
                Err(error) => return Err(Problem::Unit(error)),
            },
        };
        match limit {
            Self::Packets(0) | Self::Bytes(Bytes(0)) | Self::Time(Duration::ZERO) => {
                Err(Problem::Zero)
            }
            Self::Bdp(multiple) if multiple <= 0.0 => Err(Problem::Zero),
            limit => Ok(limit),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(1) => f.write_str("1 packet"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Bdp(multiple) => write!(f, "{multiple} BDP"),
            Self::Time(time) => time.fmt(f),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Read for Limit {
    const EXAMPLE: &'static str = "\"1 BDP\"";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let problem = match value {
            Value::String(text) => match Self::parse(text) {
                Ok(limit) => return Some(limit),
                Err(problem) => problem,
            },
            Value::Number(number) => {
                Problem::NeedsUnit { number: number.to_string(), example: "250 packets" }
            }
            _ => wrong_type(value, "text like \"250 packets\", \"64 kB\", \"50 ms\" or \"1 BDP\""),
        };
        mistakes.push(problem.at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Limit", definitions, |_| {
            json!({
                "type": "string",
                "description": "How much a queue holds: \"250 packets\", \"64 kB\", what the link \
                    transmits in a time, \"50 ms\", or a multiple of the path's bandwidth-delay \
                    product, \"0.25 BDP\".",
                "pattern": format!(
                    "^ *{NUMBER} *(packets?|BDP|bdp|B|[kMGT]i?B|[pnum]?s|µs|min|h) *$"
                ),
                "examples": ["250 packets", "64 kB", "50 ms", "1 BDP"],
            })
        })
    }
}

/// A value, or `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrOff<T> {
    /// Off.
    Off,
    /// On, with this value.
    On(T),
}

impl<T: Copy> OrOff<T> {
    /// The value, unless it is off.
    pub fn on(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::On(value) => Some(value),
        }
    }
}

impl<T: Serialize> Serialize for OrOff<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("off"),
            Self::On(value) => value.serialize(serializer),
        }
    }
}

impl<T: Bounded> Bounded for OrOff<T> {
    type Item = T::Item;
    fn items(&self) -> &[T::Item] {
        match self {
            Self::Off => &[],
            Self::On(value) => value.items(),
        }
    }
}

impl<T: Read> Read for OrOff<T> {
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        if value == "off" {
            return Some(Self::Off);
        }
        T::read(value, at, mistakes).map(Self::On)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({ "anyOf": [{ "const": "off" }, T::schema(definitions)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_packets_bytes_and_multiples() {
        assert_eq!(Limit::parse("250 packets"), Ok(Limit::Packets(250)));
        assert_eq!(Limit::parse("1 packet"), Ok(Limit::Packets(1)));
        assert_eq!(Limit::parse("64 kB"), Ok(Limit::Bytes(Bytes(64_000))));
        assert_eq!(Limit::parse("0.25BDP"), Ok(Limit::Bdp(0.25)));
        assert_eq!(Limit::parse("1bdp"), Ok(Limit::Bdp(1.0)));
        assert_eq!(Limit::parse("5e-1 BDP"), Ok(Limit::Bdp(0.5)));
        assert_eq!(Limit::parse("2.5 ms"), Ok(Limit::Time(Duration::from_micros(2500))));
        assert_eq!(Limit::parse("2 min"), Ok(Limit::Time(Duration::from_secs(120))));
    }

    #[test]
    fn says_what_is_wrong_with_a_limit() {
        let problem = |text| Limit::parse(text).unwrap_err().to_string();
        assert_eq!(problem("0 packets"), "must be more than zero");
        assert_eq!(problem("0 BDP"), "must be more than zero");
        assert_eq!(problem("0 ms"), "must be more than zero");
        assert_eq!(
            problem("3 boxes"),
            "`boxes` is not a unit of queue size; the units are packets, BDP, us, ms, B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
        );
        assert_eq!(problem("1.5 packets"), "\"1.5 packets\" is not a number of packets");
        // The unit may be packets, bytes or KiB.
        assert!(problem("64k").starts_with("`k` is not a unit of queue size"));
        assert!(problem("-1 packets").contains("negative"));
    }
}
