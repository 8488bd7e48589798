//! TOML as a tree of values, with the line of each value.

use crate::mistake::{Mistake, Problem};
use crate::read::Place;
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line of each value, by its place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// Whether a value stands at `at` itself.
    pub fn has(&self, at: &str) -> bool {
        self.0.contains_key(at)
    }

    /// The line of the value at `at`, or of the nearest value around it.
    pub fn find(&self, at: &str) -> Option<usize> {
        let ends = at.char_indices().rev().filter(|(_, c)| matches!(c, '.' | '['));
        let outer = ends.map(|(end, _)| &at[..end]);
        std::iter::once(at).chain(outer).find_map(|place| self.0.get(place).copied())
    }
}

/// Parses TOML.
pub(crate) fn parse(text: &str) -> Result<(Value, Lines), Box<Mistake>> {
    let table = DeTable::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span());
        let reason = error.message().trim().replace('\n', ", ");
        let problem = Problem::Syntax { format: "TOML", column, reason };
        Box::new(Mistake { line: Some(line), ..problem.at("") })
    })?;
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1));
    let mut reader = Reader { starts: starts.collect(), lines: Lines::default() };
    let tree = reader.table(table.get_ref(), &Place::Root);
    Ok((tree, reader.lines))
}

/// Line and column, both from 1.
fn position(text: &str, span: Option<Range<usize>>) -> (usize, usize) {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

struct Reader {
    starts: Vec<usize>,
    lines: Lines,
}

impl Reader {
    fn table(&mut self, table: &DeTable<'_>, at: &Place<'_>) -> Value {
        let mut values = Map::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let value = self.value(value, &at.key(name), key.span());
            values.insert(name.into(), value);
        }
        Value::Object(values)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, at: &Place<'_>, span: Range<usize>) -> Value {
        let line = self.starts.partition_point(|start| *start <= span.start);
        self.lines.0.insert(at.to_string(), line);
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => {
                // TOML integers have 64 bits with a sign. Larger numbers are kept and rejected
                // where they are used: as out of range, or as written.
                let (text, radix) = (number.as_str(), number.radix());
                let value = i64::from_str_radix(text, radix).map(Value::from);
                let value = value.or_else(|_| u64::from_str_radix(text, radix).map(Value::from));
                value.unwrap_or_else(|_| text.into())
            }
            DeValue::Float(number) => {
                let value = number.as_str().parse().ok().and_then(Number::from_f64);
                value.map_or_else(|| number.as_str().into(), Value::Number)
            }
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(i, item)| self.value(item, &at.index(i), item.span())).collect()
            }
            DeValue::Table(table) => self.table(table, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_line_of_every_value() {
        let text = "seed = 1\n\n[[flows]]\ncc = \"cubic\"\n[[flows]]\nstack = { sack = false }\n";
        let (tree, lines) = parse(text).unwrap();
        assert_eq!(tree["flows"][1]["stack"]["sack"], Value::Bool(false));
        assert_eq!(lines.find("flows[0].cc"), Some(4));
        assert_eq!(lines.find("flows[1]"), Some(5));
        assert_eq!(lines.find("flows[1].stack.sack"), Some(6));
    }

    #[test]
    fn a_missing_key_is_reported_on_the_line_of_its_table() {
        let (_, lines) = parse("[[flows]]\n\n[[flows]]\n").unwrap();
        assert_eq!(lines.find("flows[1].from"), Some(3));
        assert_eq!(lines.find("network"), None);
    }

    #[test]
    fn invalid_toml_is_reported_with_line_and_column() {
        let mistake = parse("seed = 1\nduration = \n").unwrap_err();
        assert_eq!(mistake.line, Some(2));
        assert!(mistake.to_string().starts_with("this is not TOML: "), "{mistake}");
    }
}
