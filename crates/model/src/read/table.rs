//! Reads tables key by key.

use super::{Bounded, Definitions, Place, Read, wrong_type};
use crate::mistake::{Mistake, Problem};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// The keys of a table and their readers.
pub(crate) trait Fields: Sized {
    /// All keys as written.
    const KEYS: &'static [&'static str];

    /// Reads all keys, so that every mistake is found.
    fn fields(table: &mut Table<'_>) -> Option<Self>;

    /// The JSON Schema of the table.
    fn describe(definitions: &mut Definitions) -> Value;
}

/// The key of a field: `let` for `r#let`, since `let` is a keyword of Rust.
pub(crate) const fn key(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', rest @ ..] => match std::str::from_utf8(rest) {
            Ok(key) => key,
            Err(_) => field,
        },
        _ => field,
    }
}

/// A table being read.
pub(crate) struct Table<'a> {
    values: &'a Map<String, Value>,
    at: &'a Place<'a>,
    /// Whether the table was written in its short form, so that its keys have no places of their
    /// own.
    short: bool,
    mistakes: &'a mut Vec<Mistake>,
}

impl<'a> Table<'a> {
    /// Begins to read a table, and reports unknown keys.
    pub fn open(
        value: &'a Value,
        at: &'a Place<'a>,
        keys: &[&[&str]],
        mistakes: &'a mut Vec<Mistake>,
    ) -> Option<Self> {
        let Value::Object(values) = value else {
            mistakes.push(wrong_type(value, "a table").at(at));
            return None;
        };
        for key in values.keys() {
            if !keys.iter().any(|keys| keys.contains(&key.as_str())) {
                let known = keys.iter().flat_map(|keys| keys.iter());
                let known = known.map(|&key| key.into()).collect();
                let problem = Problem::UnknownKey { key: key.clone(), known };
                mistakes.push(problem.at(at.key(key)));
            }
        }
        Some(Self { values, at, short: false, mistakes })
    }

    /// Reads one key, which is required if it has no default.
    ///
    /// An invalid value is replaced with the example, so that dependent settings are checked too
    /// and all mistakes are found at once.
    pub fn read<T: Read>(&mut self, key: &'static str, default: Option<T>) -> Option<T> {
        let place = if self.short { *self.at } else { self.at.key(key) };
        match self.values.get(key) {
            Some(value) if !value.is_null() => {
                T::read(value, &place, self.mistakes).or_else(T::example)
            }
            _ => default.or_else(|| {
                // The place of a missing value is its key, also in a table's short form.
                let place = self.at.key(key);
                self.mistakes.push(Problem::Missing { example: T::EXAMPLE }.at(place));
                T::example()
            }),
        }
    }

    /// Rejects values outside `range`.
    pub fn within<T: Bounded + Read>(
        &mut self,
        key: &'static str,
        value: Option<T>,
        range: &RangeInclusive<T::Item>,
    ) -> Option<T> {
        let value = value?;
        let Some(item) = value.items().iter().find(|item| !range.contains(item)) else {
            return Some(value);
        };
        let problem = if *item == T::Item::default() {
            Problem::Zero
        } else {
            Problem::OutOfRange {
                value: item.to_string(),
                least: range.start().to_string(),
                most: range.end().to_string(),
            }
        };
        let place = if self.short { *self.at } else { self.at.key(key) };
        self.mistakes.push(problem.at(place));
        T::example()
    }
}

/// Reads a table whose key `kind` was `T`'s, with `short` for the table's short form.
pub(crate) fn read_kind<T: Fields>(
    value: &Value,
    short: bool,
    at: &Place<'_>,
    mistakes: &mut Vec<Mistake>,
) -> Option<T> {
    let mut table = Table::open(value, at, &[&["kind"], T::KEYS], mistakes)?;
    table.short = short;
    T::fields(&mut table)
}
