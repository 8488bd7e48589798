//! Builds the JSON Schema (draft 2020-12) of what the readers accept.

use super::Bounded;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

/// Named parts of a schema: its `$defs`.
pub(crate) type Definitions = Map<String, Value>;

/// Refers to the definition `name`, adding it on first use.
pub(crate) fn define(
    name: &str,
    definitions: &mut Definitions,
    schema: impl FnOnce(&mut Definitions) -> Value,
) -> Value {
    if !definitions.contains_key(name) {
        let schema = schema(definitions);
        definitions.insert(name.into(), schema);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A doc comment as shown to users: paragraphs without line breaks.
pub(crate) fn one_line(doc: &str) -> String {
    let mut text = String::new();
    for line in doc.lines().map(str::trim) {
        if line.is_empty() {
            text.push_str("\n\n");
        } else {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push(' ');
            }
            text.push_str(line);
        }
    }
    text.trim_end().into()
}

/// A key of a table: its schema with description and default.
pub(crate) fn describe_field<T: Serialize>(
    mut schema: Value,
    doc: &str,
    default: Option<&T>,
) -> Value {
    schema["description"] = one_line(doc).into();
    if let Some(Ok(default)) = default.map(serde_json::to_value)
        && !default.is_null()
        && !default.as_object().is_some_and(Map::is_empty)
    {
        schema["default"] = without_nulls(default);
    }
    schema
}

/// Removes unset options, which a user would not write.
fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(values) = &mut value {
        values.retain(|_, value| !value.is_null());
    }
    value
}

/// Adds the range of a number.
pub(crate) fn bounds<T: Bounded>(mut schema: Value, range: &RangeInclusive<T::Item>) -> Value {
    for (key, bound) in [("minimum", range.start()), ("maximum", range.end())] {
        // The largest number is no constraint, and few programs can represent it.
        if let Ok(bound @ Value::Number(_)) = serde_json::to_value(bound)
            && bound.as_u64() != Some(u64::MAX)
        {
            let number =
                if schema["items"].is_object() { &mut schema["items"] } else { &mut schema };
            number[key] = bound;
        }
    }
    schema
}

/// A choice between tables by `kind`; `short` if there is also a short form.
pub(crate) fn describe_choice(about: &str, short: bool, kinds: &[(&str, Value)]) -> Value {
    let words: Vec<_> = kinds.iter().map(|(word, _)| *word).collect();
    let mut forms: Vec<_> = kinds
        .iter()
        .map(|(word, table)| {
            let mut table = table.clone();
            table["properties"]["kind"] = json!({ "const": word });
            if let Some(required) = table["required"].as_array_mut() {
                required.insert(0, "kind".into());
            }
            table
        })
        .collect();
    if short {
        forms.push(json!({ "type": ["string", "number"] }));
    } else {
        forms.push(json!({ "enum": words }));
    }
    json!({ "description": one_line(about), "anyOf": forms })
}
