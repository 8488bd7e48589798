//! Mistakes in an experiment: where, and what is allowed there.

use crate::printable;
use crate::suggest::or_known;
use serde::{Serialize, Serializer};
use std::fmt;
use tcplab_units::UnitError;
use thiserror::Error;

/// A mistake in an experiment, named by where it is; or a warning, if the experiment runs in spite of
/// it ([`Plan::warnings`](crate::Plan::warnings)).
#[derive(Clone, Debug, Error, PartialEq)]
pub struct Mistake {
    /// Where: `flows[1].cc`. Empty when it is the text as a whole.
    pub at: String,
    /// The line of the file, when it came from one.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

/// All mistakes found in an experiment; printed one per line.
#[derive(Clone, Debug, Error, PartialEq)]
pub struct Mistakes(pub Vec<Mistake>);

/// The kinds of mistake. Callers match on these; people read the messages.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The text is not in the format it should be in.
    #[error("this is not {format}: {reason} (column {column})")]
    Syntax {
        /// TOML or JSON.
        format: &'static str,
        /// Where in the line, from 1.
        column: usize,
        /// What the parser said.
        reason: String,
    },
    /// A key that this table does not have.
    #[error("there is no key \"{key}\" here; {}", or_known(key, known))]
    UnknownKey {
        /// What was written.
        key: String,
        /// The keys of this table.
        known: Vec<String>,
    },
    /// A key without which the table means nothing.
    #[error("is missing{}", example_for(example))]
    Missing {
        /// A correct value; may be empty.
        example: &'static str,
    },
    /// A list where text belongs, and the like.
    #[error("{found} is not {expected}")]
    WrongType {
        /// What was written.
        found: String,
        /// What belongs here.
        expected: &'static str,
    },
    /// A number where a quantity belongs.
    #[error("{number} has no unit; write it as text with one, like \"{example}\"")]
    NeedsUnit {
        /// What was written.
        number: String,
        /// A correct one.
        example: &'static str,
    },
    /// A quantity that cannot be read.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A quantity that is zero where it must not be.
    #[error("must be more than zero")]
    Zero,
    /// Below the least or above the most.
    #[error("{value} is outside the range from {least} to {most}")]
    OutOfRange {
        /// What was written.
        value: String,
        /// The least possible.
        least: String,
        /// The most possible.
        most: String,
    },
    /// A name that nothing has.
    #[error("no {what} is called \"{name}\"; {}", or_known(name, known))]
    Unknown {
        /// What was looked for: "node", "congestion control".
        what: &'static str,
        /// What was written.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A name given twice.
    #[error("\"{name}\" is already the name of {other}")]
    Duplicate {
        /// The name.
        name: String,
        /// Where it was given first.
        other: String,
    },
    /// Two nodes without a way between them.
    #[error("no path leads from \"{from}\" to \"{to}\"")]
    NoPath {
        /// The start.
        from: String,
        /// The end.
        to: String,
    },
    /// More than can be meant.
    #[error("{number} {what} are too many; the most is {most}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        number: u128,
        /// How many there may be.
        most: u64,
    },
    /// Something that makes no sense in another way; the text says which.
    #[error("{0}")]
    Invalid(String),
    /// Something that a backend does not have. Whether another one has it, is asked for the whole
    /// experiment, where backends are chosen.
    #[error("{what} is not available on `{backend}`{}", available(have))]
    NotHere {
        /// What was asked for.
        what: String,
        /// Of which backend.
        backend: &'static str,
        /// What there is in its place.
        have: Vec<String>,
    },
    /// Something the schema knows and nothing runs so far.
    #[error("{what} is not available yet{}", available(have))]
    NotYet {
        /// What was asked for.
        what: String,
        /// What there is in its place.
        have: Vec<String>,
    },
}

impl Problem {
    /// Says where the problem is.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Mistake {
        Mistake { at: place.to_string(), line: None, problem: self }
    }

    /// No `what` has this name, but those in `known` exist.
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
        // A mistake quotes what was written, whatever that is, and takes one line.
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
