//! Turns a tree of values into typed settings, and describes what the tree may contain.
//!
//! One definition of a table (`table!`) gives its struct, its reader and its JSON Schema, so that
//! the three cannot differ.

mod macros;
mod number;
mod place;
mod plain;
mod schema;
mod table;

pub(crate) use macros::{choice, optional, table, words};
pub(crate) use number::Bounded;
pub(crate) use place::Place;
pub(crate) use plain::{NUMBER, kind, word, wrong_type};
pub(crate) use schema::{Definitions, bounds, define, describe_choice, describe_field, one_line};
pub(crate) use table::{Fields, Table, key, read_kind};

use crate::mistake::Mistake;
use serde_json::Value;

/// A type of value in an experiment.
pub(crate) trait Read: Sized {
    /// A valid value as written, for messages.
    const EXAMPLE: &'static str = "";

    /// Reads `value`, which stands at `at`. Without a result, at least one mistake was added.
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self>;

    /// The example, parsed.
    fn example() -> Option<Self> {
        let example = serde_json::from_str(Self::EXAMPLE).ok()?;
        Self::read(&example, &Place::Root, &mut Vec::new())
    }

    /// The JSON Schema of what `read` accepts.
    fn schema(definitions: &mut Definitions) -> Value;
}
