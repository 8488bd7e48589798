//! Mistakes in an experiment: their places, and what is allowed there.

use crate::printable;
use crate::suggest::or_known;
use serde::{Serialize, Serializer};
use std::fmt;
use tcplab_units::UnitError;
use thiserror::Error;

/// A mistake in an experiment, with its place; or a warning, if the experiment runs nevertheless
/// ([`Plan::warnings`](crate::Plan::warnings)).
#[derive(Clone, Debug, Error, PartialEq)]
pub struct Mistake {
    /// The place: `flows[1].cc`. Empty for the text as a whole.
    pub at: String,
    /// The line of the file, if it came from one.
    pub line: Option<usize>,
    /// The problem.
    pub problem: Problem,
}

/// All mistakes found in an experiment; printed one per line.
#[derive(Clone, Debug, Error, PartialEq)]
pub struct Mistakes(pub Vec<Mistake>);

/// The kinds of mistake. Callers match on these; people read the messages.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The text is not in the expected format.
    #[error("this is not {format}: {reason} (column {column})")]
    Syntax {
        /// TOML or JSON.
        format: &'static str,
        /// The column, from 1.
        column: usize,
        /// The parser's reason.
        reason: String,
    },
    /// An unknown key.
    #[error("there is no key \"{key}\" here; {}", or_known(key, known))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The keys of this table.
        known: Vec<String>,
    },
    /// A required key.
    #[error("is missing{}", example_for(example))]
    Missing {
        /// A valid value; may be empty.
        example: &'static str,
    },
    /// A value of the wrong type.
    #[error("{found} is not {expected}")]
    WrongType {
        /// The value as written.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A number without a unit.
    #[error("{number} has no unit; write it as text with one, like \"{example}\"")]
    NeedsUnit {
        /// The number as written.
        number: String,
        /// A valid quantity.
        example: &'static str,
    },
    /// A quantity that cannot be parsed.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A quantity that is zero but must not be.
    #[error("must be more than zero")]
    Zero,
    /// A value outside its range.
    #[error("{value} is outside the range from {least} to {most}")]
    OutOfRange {
        /// The value as written.
        value: String,
        /// The minimum.
        least: String,
        /// The maximum.
        most: String,
    },
    /// A reference to something that does not exist.
    #[error("no {what} is called \"{name}\"; {}", or_known(name, known))]
    Unknown {
        /// The kind of thing: "node", "congestion control".
        what: &'static str,
        /// The name as written.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A name given twice.
    #[error("\"{name}\" is already the name of {other}")]
    Duplicate {
        /// The name.
        name: String,
        /// Where the name was first given.
        other: String,
    },
    /// Two nodes without a path between them.
    #[error("no path leads from \"{from}\" to \"{to}\"")]
    NoPath {
        /// The start.
        from: String,
        /// The end.
        to: String,
    },
    /// An excessive number.
    #[error("{number} {what} are too many; the most is {most}")]
    TooMany {
        /// The name of the counted items.
        what: &'static str,
        /// The number.
        number: u128,
        /// The limit.
        most: u64,
    },
    /// Any other problem; the text describes it.
    #[error("{0}")]
    Invalid(String),
    /// A feature that a backend does not have. Whether another backend has it is checked for the
    /// whole experiment, where backends are chosen.
    #[error("{what} is not available on `{backend}`{}", available(have))]
    NotHere {
        /// The feature.
        what: String,
        /// The backend.
        backend: &'static str,
        /// Available alternatives.
        have: Vec<String>,
    },
    /// A feature of the schema that no backend runs so far.
    #[error("{what} is not available yet{}", available(have))]
    NotYet {
        /// The feature.
        what: String,
        /// Available alternatives.
        have: Vec<String>,
    },
}

impl Problem {
    /// Adds the place of the problem.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Mistake {
        Mistake { at: place.to_string(), line: None, problem: self }
    }

    /// No `what` has this name; those in `known` exist.
    pub fn unknown<K: Into<String>>(
        what: &'static str,
        name: impl Into<String>,
        known: impl IntoIterator<Item = K>,
    ) -> Self {
        let known = known.into_iter().map(Into::into).collect();
        Self::Unknown { what, name: name.into(), known }
    }
}

fn example_for(example: &str) -> String {
    if example.is_empty() { String::new() } else { format!("; write it like {example}") }
}

fn available(have: &[String]) -> String {
    match have {
        [] => String::new(),
        [only] => format!("; there is {only}"),
        _ => format!("; there are {}", have.join(", ")),
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.at.is_empty() {
            self.problem.to_string()
        } else {
            format!("{}: {}", self.at, self.problem)
        };
        // A mistake quotes user input, which may contain anything, and takes one line.
        f.write_str(&printable(&text))
    }
}

impl Serialize for Mistake {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            if let Some(line) = mistake.line {
                write!(f, "line {line}: ")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self(vec![mistake])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_place_and_the_nearest_choice() {
        let problem = Problem::unknown("congestion control", "qubic", ["cubic", "newreno"]);
        assert_eq!(
            problem.at("flows[1].cc").to_string(),
            "flows[1].cc: no congestion control is called \"qubic\"; did you mean \"cubic\"?"
        );
    }

    #[test]
    fn without_a_near_choice_all_are_listed() {
        let problem = Problem::unknown("node", "mars", ["client", "server"]);
        assert_eq!(
            problem.to_string(),
            "no node is called \"mars\"; there are \"client\", \"server\""
        );
    }

    #[test]
    fn mistakes_are_printed_one_per_line() {
        let first = Mistake { line: Some(12), ..Problem::Zero.at("duration") };
        let second = Problem::Missing { example: "" }.at("network");
        assert_eq!(
            Mistakes(vec![first, second]).to_string(),
            "line 12: duration: must be more than zero\nnetwork: is missing"
        );
    }
}
