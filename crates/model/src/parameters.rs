//! Replaces `"$name"` with the values of parameters.

use crate::mistake::{Mistake, Problem};
use crate::read::{Fields, Place};
use crate::schema::Experiment;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most values substituted for parameters in one run; more do not fit into memory.
const MOST_VALUES: usize = 2_000_000;

/// Bytes of text that count as one more value.
const TEXT: usize = 64;

/// The nesting limit of tables and lists: that of the TOML and JSON parsers.
const DEEPEST: usize = 128;

/// The label of variants in tables, which no parameter may have as its name.
pub(crate) const VARIANT: &str = "variant";

/// The meaning of a text.
enum Text<'a> {
    /// The text itself.
    Plain,
    /// The parameter of this name.
    Parameter(&'a str),
    /// The text without its first `$`.
    Quoted(&'a str),
}

/// Whether a parameter can have this name.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn text(text: &str) -> Text<'_> {
    match text.strip_prefix('$') {
        Some(rest) if is_name(rest) => Text::Parameter(rest),
        Some(rest) if rest.starts_with('$') && is_name(rest.trim_start_matches('$')) => {
            Text::Quoted(rest)
        }
        _ => Text::Plain,
    }
}

/// Whether a text contains a parameter, until parameters have their values.
pub(crate) fn is_open(value: &str) -> bool {
    !matches!(text(value), Text::Plain)
}

/// The names of the parameters. Invalid names are mistakes.
pub(crate) fn names(values: &Map<String, Value>, mistakes: &mut Vec<Mistake>) -> BTreeSet<String> {
    let (root, mut names) = (Place::Root.key("let"), BTreeSet::new());
    for name in values.keys() {
        let reason = if Experiment::KEYS.contains(&name.as_str()) {
            format!("\"{name}\" is a key of experiments; a parameter needs another name")
        } else if name == VARIANT {
            format!("\"{name}\" is the column of variants; a parameter needs another name")
        } else if !is_name(name) {
            let allowed = "of ASCII letters, digits, `-` and `_`, and a letter or `_` first";
            format!("\"{name}\" cannot be the name of a parameter: {allowed}")
        } else {
            names.insert(name.clone());
            continue;
        };
        mistakes.push(Problem::Invalid(reason).at(root.key(name)));
    }
    names
}

/// The result of a substitution.
#[derive(Default)]
pub(crate) struct Filled {
    /// The name of the parameter at each place where one stood, also within other parameters.
    places: BTreeMap<String, String>,
    /// The parameters that are used anywhere.
    pub used: BTreeSet<String>,
}

impl Filled {
    /// Where the value at `at` was written: in `let`, if it came from a parameter.
    pub fn written(&self, at: &str) -> String {
        let mut at = at.to_owned();
        // A parameter may contain others, but never itself.
        for _ in 0..DEEPEST {
            let ends = at.char_indices().rev().filter(|(_, c)| matches!(c, '.' | '['));
            let mut ends = std::iter::once(at.len()).chain(ends.map(|(end, _)| end));
            let found = ends.find_map(|end| {
                let name = self.places.get(&at[..end])?;
                Some(format!("let.{name}{}", &at[end..]))
            });
            match found {
                Some(written) => at = written,
                None => break,
            }
        }
        at
    }
}

/// Removes `let` from the tree, and substitutes its values for their names.
pub(crate) fn fill(tree: &mut Value, mistakes: &mut Vec<Mistake>) -> Filled {
    let values = tree.as_object_mut().and_then(|table| table.shift_remove("let"));
    let values = match values {
        Some(Value::Object(values)) => values,
        _ => Map::new(),
    };
    let mut filling = Filling {
        values: &values,
        known: BTreeMap::new(),
        open: Vec::new(),
        total: 0,
        filled: Filled::default(),
        mistakes,
    };
    filling.fill(tree, &Place::Root, 0);
    filling.filled
}

/// The value of a value that names parameters of the tree; `None` if it names none, or they have no
/// value.
pub(crate) fn meant(value: &Value, tree: &Value) -> Option<Value> {
    let parameters = tree.get("let").filter(|_| value.to_string().contains('$'))?;
    let (mut open, mut mistakes) = (json!({ "let": parameters, "value": value }), Vec::new());
    fill(&mut open, &mut mistakes);
    mistakes.is_empty().then(|| open["value"].take())
}

/// A fully substituted parameter, with the number of its values and their depth.
#[derive(Clone)]
struct Known {
    value: Value,
    number: usize,
    depth: usize,
}

struct Filling<'a> {
    values: &'a Map<String, Value>,
    /// `None` where there was a mistake.
    known: BTreeMap<String, Option<Known>>,
    /// Parameters being substituted, each within the one before.
    open: Vec<String>,
    total: usize,
    filled: Filled,
    mistakes: &'a mut Vec<Mistake>,
}

impl Filling<'_> {
    /// Substitutes parameters in `value`. Returns the number of values and their depth.
    fn fill(&mut self, value: &mut Value, at: &Place<'_>, depth: usize) -> (usize, usize) {
        let (mut number, mut deepest) = (1, 0);
        let mut add = |(inner, depth): (usize, usize)| {
            number += inner;
            deepest = deepest.max(depth + 1);
        };
        match value {
            Value::String(written) => match text(written) {
                Text::Plain => number += written.len() / TEXT,
                Text::Quoted(meant) => *value = meant.into(),
                Text::Parameter(name) => {
                    let name = name.to_owned();
                    let Some(known) = self.parameter(&name, at, depth) else { return (1, 0) };
                    *value = known.value;
                    return (known.number, known.depth);
                }
            },
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    add(self.fill(item, &at.index(i), depth + 1));
                }
            }
            Value::Object(table) => {
                for (key, item) in table.iter_mut() {
                    add(self.fill(item, &at.key(key), depth + 1));
                }
            }
            _ => {}
        }
        (number, deepest)
    }

    /// The value for a parameter that stands at `at`.
    fn parameter(&mut self, name: &str, at: &Place<'_>, depth: usize) -> Option<Known> {
        if !self.known.contains_key(name) {
            let known = self.work_out(name, at);
            self.known.insert(name.into(), known);
        }
        self.filled.used.insert(name.into());
        let known = self.known[name].as_ref()?;
        self.filled.places.insert(at.to_string(), name.into());
        self.total += known.number;
        if self.total > MOST_VALUES {
            let (number, most) = (self.total as u128, MOST_VALUES as u64);
            let problem = Problem::TooMany { what: "values of parameters", number, most };
            // Reported once: nothing else is substituted after it.
            if self.total - known.number <= MOST_VALUES {
                self.mistakes.push(problem.at(at));
            }
            return None;
        }
        if depth + known.depth > DEEPEST {
            let problem = Problem::Invalid("is nested too deeply".into());
            self.mistakes.push(problem.at(at));
            return None;
        }
        Some(known.clone())
    }

    fn work_out(&mut self, name: &str, at: &Place<'_>) -> Option<Known> {
        let Some(written) = self.values.get(name) else {
            let problem = Problem::unknown("parameter", name, self.values.keys());
            self.mistakes.push(problem.at(at));
            return None;
        };
        if let Some(first) = self.open.iter().position(|open| open == name) {
            let round = self.open[first..].iter().map(String::as_str).chain([name]);
            let round: Vec<_> = round.map(|name| format!("${name}")).collect();
            let problem =
                Problem::Invalid(format!("depends on itself: {}", round.join(" is made of ")));
            let place = Place::Root.key("let");
            self.mistakes.push(problem.at(place.key(&self.open[first])));
            return None;
        }
        if self.open.len() >= DEEPEST {
            let problem = Problem::Invalid("is nested too deeply".into());
            self.mistakes.push(problem.at(at));
            return None;
        }
        self.open.push(name.into());
        let (before, mut value) = (self.mistakes.len(), written.clone());
        let table = Place::Root.key("let");
        let (number, depth) = self.fill(&mut value, &table.key(name), 0);
        self.open.pop();
        (self.mistakes.len() == before).then_some(Known { value, number, depth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(mut tree: Value) -> Result<Value, Vec<String>> {
        let mut mistakes = Vec::new();
        fill(&mut tree, &mut mistakes);
        let said: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        if said.is_empty() { Ok(tree) } else { Err(said) }
    }

    #[test]
    fn values_of_any_type_replace_their_parameters() {
        let tree = json!({
            "let": { "a": 3, "b": ["$a", { "c": "$a" }], "d": "x" },
            "one": "$a", "list": ["$b", "$d"],
        });
        let meant = json!({ "one": 3, "list": [[3, { "c": 3 }], "x"] });
        assert_eq!(filled(tree), Ok(meant));
    }

    #[test]
    fn a_double_dollar_is_a_literal_dollar() {
        let tree = json!({
            "let": { "a": "$$b" },
            "x": ["$a", "$$a", "$$$a", "$1", "$", "$a b", "cost: $a", "$$", "$HOME/x"],
        });
        let meant = ["$b", "$a", "$$a", "$1", "$", "$a b", "cost: $a", "$$", "$HOME/x"];
        assert_eq!(filled(tree), Ok(json!({ "x": meant })));
    }

    #[test]
    fn unknown_and_circular_parameters_are_refused() {
        let said = filled(json!({ "let": { "delay": 1 }, "a": "$dleay" })).unwrap_err();
        assert_eq!(said, ["a: no parameter is called \"dleay\"; did you mean \"delay\"?"]);
        let said = filled(json!({ "a": "$b" })).unwrap_err();
        assert_eq!(said, ["a: no parameter is called \"b\"; there are none"]);
        let round = json!({ "let": { "a": "$b", "b": ["$c"], "c": "$b" }, "x": ["$a", "$a"] });
        let said = filled(round).unwrap_err();
        assert_eq!(said, ["let.b: depends on itself: $b is made of $c is made of $b"]);
    }

    #[test]
    fn exponential_parameter_expansion_is_refused() {
        let mut values = Map::new();
        for level in 0..40 {
            let inner = format!("$a{}", level + 1);
            values.insert(format!("a{level}"), json!([inner, inner]));
        }
        values.insert("a40".into(), 1.into());
        let said = filled(json!({ "let": values, "x": "$a0" })).unwrap_err();
        assert!(said.len() == 1 && said[0].contains("are too many"), "{said:?}");
        let mut values = Map::new();
        for level in 0..10_000 {
            values.insert(format!("a{level}"), json!([format!("$a{}", level + 1)]));
        }
        values.insert("a10000".into(), 1.into());
        let said = filled(json!({ "let": values, "x": "$a0" })).unwrap_err();
        assert!(said.len() == 1 && said[0].contains("too deeply"), "{said:?}");
    }

    #[test]
    fn a_substituted_value_is_traced_to_its_parameter() {
        let mut tree = json!({
            "let": { "path": { "delay": "$rtt" }, "rtt": "1 ms" },
            "network": { "chain": "$path" },
        });
        let filled = fill(&mut tree, &mut Vec::new());
        assert_eq!(filled.written("network.chain.delay"), "let.rtt");
        assert_eq!(filled.written("network.chain.rate"), "let.path.rate");
        assert_eq!(filled.written("network.chain2"), "network.chain2");
    }
}
