//! Expands variants, zips, and all combinations of a sweep.

use crate::mistake::{Mistake, Problem};
use crate::parameters::VARIANT;
use crate::read::{Fields, Place, Read, wrong_type};
use crate::schema::{Experiment, Let, MILLION, Sweep, Variants, default_name};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::collections::BTreeSet;

/// More runs than this are probably a mistake.
pub(crate) const MOST_RUNS: u64 = 100_000;

/// The deepest key.
const DEEPEST: usize = 16;

/// The longest name of a variant in bytes: tables and charts print it.
const LONGEST_NAME: usize = 128;

/// A varying group of settings: each run has one of its choices.
#[derive(Debug)]
pub(crate) struct Axis {
    /// The key under which the group was written.
    pub key: &'static str,
    pub choices: Vec<Choice>,
}

/// Settings that are made together.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// The labels in tables: swept keys with their values, or the name of a variant.
    pub labels: Vec<(String, Value)>,
    pub settings: Vec<Setting>,
}

/// A key with its new value.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The key as written.
    written: String,
    /// The key as spelled in messages: a parameter's begins with `let`.
    pub path: String,
    steps: Vec<Step>,
    value: Value,
    /// The place of the key in the experiment.
    pub key: String,
    /// The index among the key's values.
    index: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Key(String),
    Index(usize),
}

/// The axes of an experiment, the slowest first: variants, zips, the sweep. Removes them from the
/// tree.
pub(crate) fn axes(tree: &mut Value, mistakes: &mut Vec<Mistake>) -> Vec<Axis> {
    let [variants, tied, swept] = ["variants", "zip", "sweep"].map(|key| take(tree, key));
    let known = Known::new(tree, mistakes);
    let mut axes = Vec::new();
    if let Some(variants) = read::<Variants>(variants, "variants", mistakes) {
        axes.push(known.variants(variants, mistakes));
    }
    let tied = read::<Vec<Sweep>>(tied, "zip", mistakes).unwrap_or_default();
    for (i, tied) in tied.into_iter().enumerate() {
        let root = Place::Root.key("zip");
        axes.extend(known.tied(tied, &root.index(i), mistakes));
    }
    for one in read::<Sweep>(swept, "sweep", mistakes).unwrap_or_default().0 {
        axes.extend(known.swept(one, mistakes));
    }
    let settings = axes.iter().enumerate().flat_map(|(axis, it)| {
        it.choices.iter().flat_map(move |choice| choice.settings.iter().map(move |one| (axis, one)))
    });
    check_overlaps(settings.collect(), mistakes);
    axes
}

fn take(tree: &mut Value, key: &str) -> Option<Value> {
    tree.as_object_mut()?.shift_remove(key).filter(|value| !value.is_null())
}

fn read<T: Read>(value: Option<Value>, key: &str, mistakes: &mut Vec<Mistake>) -> Option<T> {
    T::read(&value?, &Place::Root.key(key), mistakes)
}

/// The experiment to which paths refer, and its parameters.
struct Known<'a> {
    tree: &'a Value,
    /// The names with which paths can begin, besides keys.
    parameters: BTreeSet<String>,
    /// The number of settings from paths with several places.
    several: Cell<u128>,
}

impl<'a> Known<'a> {
    fn new(tree: &'a Value, mistakes: &mut Vec<Mistake>) -> Self {
        let values = tree.get("let").filter(|values| !values.is_null());
        let values = values.and_then(|it| Let::read(it, &Place::Root.key("let"), mistakes));
        let parameters = crate::parameters::names(&values.unwrap_or_default().0, mistakes);
        Self { tree, parameters, several: Cell::new(0) }
    }

    /// An axis for each key of a sweep.
    fn swept(
        &self,
        (path, values): (String, Vec<Value>),
        mistakes: &mut Vec<Mistake>,
    ) -> Option<Axis> {
        let key = Place::Root.key("sweep").key(&path).to_string();
        let ends = self.ends(&path, values.len());
        let ends = ends.map_err(|problem| mistakes.push(problem.at(&key))).ok()?;
        for (i, value) in values.iter().enumerate() {
            if values[..i].contains(value) {
                let reason = format!("{} is among the values already", text(value));
                mistakes.push(Problem::Invalid(reason).at(format!("{key}[{i}]")));
            }
        }
        let choices = values.into_iter().enumerate().map(|(i, value)| Choice {
            labels: vec![(path.clone(), value.clone())],
            settings: settings(&path, &ends, &value, &key, Some(i)).collect(),
        });
        Some(Axis { key: "sweep", choices: choices.collect() })
    }

    /// One axis for keys that change together.
    fn tied(&self, tied: Sweep, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Axis> {
        let before = mistakes.len();
        let Some((first, length)) = tied.0.first().map(|(path, it)| (path.clone(), it.len()))
        else {
            mistakes.push(Problem::Invalid("has no keys".into()).at(at));
            return None;
        };
        let mut choices: Vec<Choice> = Vec::new();
        choices.resize_with(length, Choice::default);
        for (path, values) in tied.0 {
            let key = at.key(&path).to_string();
            if values.len() != length {
                let reason = format!(
                    "has {}, and `{first}` has {length}: keys that step together have the same number",
                    counted(values.len(), "value")
                );
                mistakes.push(Problem::Invalid(reason).at(&key));
            }
            match self.ends(&path, values.len()) {
                Ok(ends) => {
                    for (i, (choice, value)) in choices.iter_mut().zip(values).enumerate() {
                        choice.settings.extend(settings(&path, &ends, &value, &key, Some(i)));
                        choice.labels.push((path.clone(), value));
                    }
                }
                Err(problem) => mistakes.push(problem.at(&key)),
            }
        }
        if let Some(choice) = choices.first() {
            check_overlaps(choice.settings.iter().enumerate().collect(), mistakes);
        }
        for (i, choice) in choices.iter().enumerate() {
            if choices[..i].iter().any(|other| other.labels == choice.labels) {
                let reason = format!("the values number {} of all keys are there already", i + 1);
                mistakes.push(Problem::Invalid(reason).at(at));
            }
        }
        (mistakes.len() == before).then_some(Axis { key: "zip", choices })
    }

    /// One axis with the variants as its choices.
    fn variants(&self, variants: Variants, mistakes: &mut Vec<Mistake>) -> Axis {
        let root = Place::Root.key("variants");
        if variants.0.is_empty() {
            mistakes.push(Problem::Invalid("there are none".into()).at(root));
        }
        let mut choices = Vec::new();
        for (name, settings) in variants.0 {
            let at = root.key(&name);
            if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
                let allowed = format!("of 1 to {LONGEST_NAME} bytes that can be printed");
                let reason = format!("\"{name}\" cannot be the name of a variant: {allowed}");
                mistakes.push(Problem::Invalid(reason).at(at));
            }
            let mut flat = Vec::new();
            let Value::Object(settings) = settings else { continue };
            for (path, value) in settings {
                let key = at.key(&path);
                match self.ends(&path, 1) {
                    Ok(ends) => {
                        for steps in ends {
                            flatten(&path, &steps, value.clone(), &key, &mut flat, mistakes);
                        }
                    }
                    Err(problem) => mistakes.push(problem.at(key)),
                }
            }
            check_overlaps(flat.iter().enumerate().collect(), mistakes);
            choices.push(Choice { labels: vec![(VARIANT.into(), name.into())], settings: flat });
        }
        Axis { key: "variants", choices }
    }

    /// The places of a path, several with a `*`. Each of them gets so many values.
    fn ends(&self, path: &str, values: usize) -> Result<Vec<Vec<Step>>, Problem> {
        let ends = expand(self.tree, self.steps(varied(path)?)?)?;
        if ends.len() > 1 {
            let number = self.several.get() + ends.len() as u128 * values as u128;
            if number > u128::from(MILLION) {
                let what = "settings of paths with `*`";
                return Err(Problem::TooMany { what, number, most: MILLION });
            }
            self.several.set(number);
        }
        Ok(ends)
    }

    /// The steps of a path, which begins with a key of the experiment or a parameter.
    fn steps(&self, mut steps: Vec<Step>) -> Result<Vec<Step>, Problem> {
        let Some(Step::Key(first)) = steps.first() else { return Ok(steps) };
        if self.parameters.contains(first) {
            steps.insert(0, Step::Key("let".into()));
        } else if !self.parameters.is_empty() && !Experiment::KEYS.contains(&first.as_str()) {
            let known = Experiment::KEYS.iter().map(|&key| key.into());
            let known = self.parameters.iter().cloned().chain(known);
            return Err(Problem::unknown::<String>("parameter or key", first, known));
        }
        Ok(steps)
    }
}

/// The settings of one value at all places of a path.
fn settings<'a>(
    path: &'a str,
    ends: &'a [Vec<Step>],
    value: &'a Value,
    key: &'a str,
    index: Option<usize>,
) -> impl Iterator<Item = Setting> + 'a {
    ends.iter().map(move |steps| Setting::new(path, steps, value.clone(), key, index))
}

/// Replaces names with indices: in a list, `*` is each of its entries, and a name the entry of that
/// name.
fn expand(tree: &Value, steps: Vec<Step>) -> Result<Vec<Vec<Step>>, Problem> {
    let mut ends = vec![(Vec::new(), Some(tree))];
    for step in steps {
        let mut reached = Vec::new();
        for (before, value) in ends {
            let mut go = |step: Step, value| reached.push(([&before[..], &[step]].concat(), value));
            match (&step, value) {
                (Step::Key(key), Some(Value::Array(items))) => {
                    let is_meant = |i: &usize| {
                        key == "*" || entry_name(&before, *i, items).as_ref() == Some(key)
                    };
                    let indices: Vec<_> = (0..items.len()).filter(is_meant).collect();
                    if indices.is_empty() {
                        let is_flow = before == [Step::Key("flows".into())];
                        let what = if is_flow { "flow" } else { "entry of the list" };
                        let known = (0..items.len()).filter_map(|i| entry_name(&before, i, items));
                        return Err(Problem::unknown(what, key, known));
                    }
                    for i in indices {
                        go(Step::Index(i), items.get(i));
                    }
                }
                (Step::Key(key), value) => go(step.clone(), value.and_then(|it| it.get(key))),
                (Step::Index(i), value) => go(step.clone(), value.and_then(|it| it.get(i))),
            }
        }
        ends = reached;
    }
    Ok(ends.into_iter().map(|(steps, _)| steps).collect())
}

/// The name of an entry of a list. A flow without a name is `flow1`, `flow2`, ...
fn entry_name(list: &[Step], index: usize, items: &[Value]) -> Option<String> {
    match items[index].get("name") {
        Some(name) => name.as_str().map(Into::into),
        None => (list == [Step::Key("flows".into())]).then(|| default_name(index)),
    }
}

/// The settings of a variant: tables are merged into existing ones, so each of their keys is a
/// setting. A table with a `kind` is a single value.
fn flatten(
    written: &str,
    steps: &[Step],
    value: Value,
    at: &Place<'_>,
    flat: &mut Vec<Setting>,
    mistakes: &mut Vec<Mistake>,
) {
    match value {
        Value::Object(table) if !table.contains_key("kind") => {
            for (key, value) in table {
                let steps = [steps, &[Step::Key(key.clone())]].concat();
                if steps.len() > DEEPEST {
                    mistakes.push(Problem::Invalid("is nested too deeply".into()).at(at));
                    return;
                }
                flatten(&format!("{written}.{key}"), &steps, value, &at.key(&key), flat, mistakes);
            }
        }
        value => flat.push(Setting::new(written, steps, value, &at.to_string(), None)),
    }
}

/// Rejects settings of the same key, or of a part of it, in several groups.
fn check_overlaps(mut settings: Vec<(usize, &Setting)>, mistakes: &mut Vec<Mistake>) {
    // Sorting puts a path directly before the paths that begin with it.
    settings.sort_by(|(_, one), (_, other)| one.steps.cmp(&other.steps));
    let mut outer: Option<(usize, &Setting)> = None;
    for (group, inner) in settings {
        let Some((other, outer)) = outer.filter(|(_, it)| inner.steps.starts_with(&it.steps))
        else {
            outer = Some((group, inner));
            continue;
        };
        if other == group {
            continue;
        }
        let (first, last) = if other < group { (outer, inner) } else { (inner, outer) };
        let problem = Problem::Invalid(format!("varies the same as `{}`", first.key));
        let mistake = problem.at(&last.key);
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
}

impl Setting {
    fn new(written: &str, steps: &[Step], value: Value, key: &str, index: Option<usize>) -> Self {
        let path = spelled(steps);
        Self { written: written.into(), path, steps: steps.into(), value, key: key.into(), index }
    }

    /// The place of the value in the experiment.
    pub fn place(&self) -> String {
        self.index.map_or_else(|| self.key.clone(), |index| format!("{}[{index}]", self.key))
    }

    /// Sets the value in the tree.
    pub fn set(&self, tree: &mut Value) -> Result<(), Problem> {
        let mut target = tree;
        let mut reached = String::new();
        for step in &self.steps {
            target = match (step, target) {
                (Step::Key(key), Value::Object(table)) => {
                    reached = if reached.is_empty() { key.clone() } else { reached + "." + key };
                    // A missing key is created here. The reader checks whether the schema has it.
                    table.entry(key.as_str()).or_insert_with(|| Value::Object(Map::new()))
                }
                (Step::Key(key), Value::Null) if reached.is_empty() => {
                    return Err(nothing_there(&self.written, &format!("no `{key}`")));
                }
                (Step::Index(index), Value::Array(items)) => {
                    let length = items.len();
                    let has = format!("`{reached}` has {length} {}", entries(length));
                    reached = format!("{reached}[{index}]");
                    items.get_mut(*index).ok_or_else(|| nothing_there(&self.written, &has))?
                }
                (Step::Key(_), other) => {
                    let is = wrong_type(other, "a table");
                    return Err(nothing_there(&self.written, &format!("at `{reached}`, {is}")));
                }
                (Step::Index(_), Value::Object(table)) if table.is_empty() => {
                    return Err(nothing_there(
                        &self.written,
                        &format!("`{reached}` has 0 entries"),
                    ));
                }
                (Step::Index(_), other) => {
                    let is = wrong_type(other, "a list");
                    return Err(nothing_there(&self.written, &format!("at `{reached}`, {is}")));
                }
            };
        }
        *target = self.value.clone();
        Ok(())
    }
}

fn entries(number: usize) -> &'static str {
    if number == 1 { "entry" } else { "entries" }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A path as spelled in messages.
fn spelled(steps: &[Step]) -> String {
    fn within(steps: &[Step], place: &Place<'_>) -> String {
        match steps {
            [] => place.to_string(),
            [Step::Key(key), rest @ ..] => within(rest, &place.key(key)),
            [Step::Index(index), rest @ ..] => within(rest, &place.index(*index)),
        }
    }
    within(steps, &Place::Root)
}

fn nothing_there(path: &str, there: &str) -> Problem {
    Problem::Invalid(format!("there is nothing at `{path}`: {there}"))
}

/// The keys that must be equal in all runs.
const FIXED: [&str; 6] = ["sweep", "zip", "variants", "repeat", "name", "advise"];

/// The steps of a path that may vary.
fn varied(path: &str) -> Result<Vec<Step>, Problem> {
    let steps = steps(path)?;
    match &steps[..] {
        [Step::Key(key), ..] if FIXED.contains(&key.as_str()) => {
            Err(Problem::Invalid(format!("`{key}` cannot be varied")))
        }
        [Step::Key(key)] if key == "let" => {
            let reason = "`let` cannot be varied as a whole; name one of its parameters";
            Err(Problem::Invalid(reason.into()))
        }
        _ => Ok(steps),
    }
}

/// Splits `flows[0].cc` into steps. A key with other characters than letters, digits, `-` and `_`
/// is in quotation marks.
fn steps(path: &str) -> Result<Vec<Step>, Problem> {
    if let Some(inside) = path.strip_prefix("change.") {
        return steps_into_change(inside);
    }
    let invalid = || {
        let example = "a path is written like `network.dumbbell.queue` or `flows[0].cc`, and names with \
                       spaces or other signs in quotation marks: `flows.\"short way\".cc`";
        Problem::Invalid(format!("\"{path}\" is not a path; {example}"))
    };
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (index, after) = inside.split_once(']').ok_or_else(invalid)?;
            steps.push(Step::Index(index.parse().map_err(|_| invalid())?));
            rest = after;
        } else {
            if !steps.is_empty() {
                rest = rest.strip_prefix('.').ok_or_else(invalid)?;
            }
            let (key, after) = if let Some(quoted) = rest.strip_prefix('"') {
                quoted.split_once('"').ok_or_else(invalid)?
            } else {
                let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
                rest.split_at(rest.find(|c| !is_bare(c)).unwrap_or(rest.len()))
            };
            if key.is_empty() {
                return Err(invalid());
            }
            steps.push(Step::Key(key.into()));
            rest = after;
        }
        if steps.len() > DEEPEST {
            return Err(invalid());
        }
    }
    if matches!(steps.first(), Some(Step::Key(_))) { Ok(steps) } else { Err(invalid()) }
}

/// In `[change]` a path is one key: `change.flows[0].cc` is `"flows[0].cc"` there.
fn steps_into_change(path: &str) -> Result<Vec<Step>, Problem> {
    // Messages spell the key in quotation marks.
    let path = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')).unwrap_or(path);
    varied(path)?;
    Ok([CHANGE, path].map(|key| Step::Key(key.into())).into())
}

pub(crate) const CHANGE: &str = "change";

/// Applies the settings of a change to a tree, and returns them.
pub(crate) fn change(
    tree: &mut Value,
    settings: &Map<String, Value>,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Setting> {
    let mut flat = Vec::new();
    let known = Known::new(tree, mistakes);
    let root = Place::Root.key(CHANGE);
    for (path, value) in settings {
        let key = root.key(path);
        match known.ends(path, 1) {
            Ok(ends) => {
                for steps in ends {
                    flatten(path, &steps, value.clone(), &key, &mut flat, mistakes);
                }
            }
            Err(problem) => mistakes.push(problem.at(key)),
        }
    }
    check_overlaps(flat.iter().enumerate().collect(), mistakes);
    for setting in &flat {
        if let Err(problem) = setting.set(tree) {
            mistakes.push(problem.at(&setting.key));
        }
    }
    flat
}

/// Sets a key of a tree to another value, in all variants. Returns the places of the value.
///
/// A sweep of the same key is removed, because it would override the value. A variant that sets the
/// key is an error, because it is unclear which of them is meant.
pub(crate) fn set(tree: &mut Value, path: &str, value: &Value) -> Result<Vec<String>, Problem> {
    let known = Known::new(tree, &mut Vec::new());
    let ends = expand(tree, known.steps(steps(path)?)?)?;
    let mut needed = known.parameters;
    needed.retain(|name| names(tree, name));
    let lies_in_one = |steps: &[Step]| ends.iter().any(|end| steps.starts_with(end));
    let mut swept_here = Vec::new();
    for axis in axes(&mut tree.clone(), &mut Vec::new()) {
        let hides = |it: &&Setting| ends.iter().any(|end| end.starts_with(&it.steps));
        if axis.key == "variants" {
            let mut settings = axis.choices.iter().flat_map(|choice| &choice.settings);
            if let Some(hiding) = settings.find(hides) {
                return Err(Problem::Invalid(format!("`{}` sets it there: set that", hiding.key)));
            }
            continue;
        }
        let Some(choice) = axis.choices.first() else { continue };
        let Some(hiding) = choice.settings.iter().find(hides) else { continue };
        if axis.key != "sweep" || !choice.settings.iter().all(|it| lies_in_one(&it.steps)) {
            return Err(Problem::Invalid(format!("`{}` sets it in all runs", hiding.key)));
        }
        swept_here.push(hiding.written.clone());
    }
    if let Some(Value::Object(sweep)) = tree.get_mut("sweep") {
        sweep.retain(|key, _| !swept_here.contains(key));
    }
    let settings: Vec<_> = settings(path, &ends, value, path, None).collect();
    settings.iter().try_for_each(|setting| setting.set(tree))?;
    // A parameter whose only use was replaced is removed too.
    let swept = |name: &str| tree.get("sweep").is_some_and(|sweep| sweep.get(name).is_some());
    needed.retain(|name| !names(tree, name) && !swept(name));
    if let Some(Value::Object(values)) = tree.get_mut("let") {
        values.retain(|name, _| !needed.contains(name));
    }
    Ok(settings.into_iter().map(|setting| setting.path).collect())
}

/// The number of combinations, as far as it can be counted.
pub(crate) fn combinations(axes: &[Axis]) -> u128 {
    axes.iter().fold(1, |number, axis| number.saturating_mul(axis.choices.len() as u128))
}

/// The k-th combination, with a choice of each axis: the first axis is the slowest.
pub(crate) fn combination(axes: &[Axis], mut k: usize) -> Vec<&Choice> {
    let mut chosen: Vec<_> = axes
        .iter()
        .rev()
        .map(|axis| {
            let choice = &axis.choices[k % axis.choices.len()];
            k /= axis.choices.len();
            choice
        })
        .collect();
    chosen.reverse();
    chosen
}

/// Whether a parameter is used anywhere in a tree.
fn names(tree: &Value, parameter: &str) -> bool {
    match tree {
        Value::String(text) => text.strip_prefix('$') == Some(parameter),
        Value::Array(items) => items.iter().any(|item| names(item, parameter)),
        Value::Object(table) => table.values().any(|value| names(value, parameter)),
        _ => false,
    }
}

/// A value as text.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn setting(path: &str, value: impl Into<Value>) -> Setting {
        Setting::new(path, &steps(path).unwrap(), value.into(), path, None)
    }

    fn axis(path: &str, values: &[i32]) -> Axis {
        let choices = values.iter().map(|&value| Choice {
            labels: vec![(path.into(), value.into())],
            settings: vec![setting(path, value)],
        });
        Axis { key: "sweep", choices: choices.collect() }
    }

    #[test]
    fn the_first_swept_key_varies_slowest() {
        let axes = [axis("a", &[1, 2]), axis("b", &[3, 4, 5])];
        let all = (0..6).map(|k| {
            let chosen = combination(&axes, k);
            chosen.iter().map(|choice| text(&choice.labels[0].1)).collect::<String>()
        });
        assert!(all.eq(["13", "14", "15", "23", "24", "25"]));
    }

    #[test]
    fn a_path_addresses_tables_lists_and_quoted_names() {
        let mut tree = json!({ "flows": [{}, {}], "hosts": { "a.b": {} } });
        setting("flows[1].stack.sack", false).set(&mut tree).unwrap();
        setting("hosts.\"a.b\".stack.cc", "cubic").set(&mut tree).unwrap();
        assert_eq!(tree["flows"][1]["stack"]["sack"], false);
        assert_eq!(tree["hosts"]["a.b"]["stack"]["cc"], "cubic");
    }

    #[test]
    fn a_wrong_path_is_refused_with_what_exists() {
        let mut tree = json!({ "flows": [{ "cc": "cubic" }], "seed": 1 });
        let mut problem = |path| setting(path, 1).set(&mut tree).unwrap_err().to_string();
        assert_eq!(
            problem("flows[2].cc"),
            "there is nothing at `flows[2].cc`: `flows` has 1 entry"
        );
        assert_eq!(
            problem("flows[0].cc.beta"),
            "there is nothing at `flows[0].cc.beta`: at `flows[0].cc`, \"cubic\" is not a table"
        );
        assert_eq!(problem("seed[0]"), "there is nothing at `seed[0]`: at `seed`, 1 is not a list");
    }

    #[test]
    fn refuses_what_is_not_a_path() {
        for path in
            ["", ".", "[0]", "a..b", "a[", "a[x]", "a b", "a.\"b", "sweep", "repeat", "zip", "let"]
        {
            assert!(varied(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_name_or_a_star_leads_to_entries_of_a_list() {
        let tree = json!({ "flows": [{ "name": "a" }, {}], "hosts": { "*": {} } });
        let spelled_out = |path: &str| -> Result<Vec<String>, String> {
            let ends =
                expand(&tree, steps(path).unwrap()).map_err(|problem| problem.to_string())?;
            Ok(ends.iter().map(|steps| spelled(steps)).collect())
        };
        let ends = |path| spelled_out(path).unwrap();
        assert_eq!(ends("flows.*.cc"), ["flows[0].cc", "flows[1].cc"]);
        assert_eq!(ends("flows.a.cc"), ["flows[0].cc"]);
        assert_eq!(ends("flows.flow2.cc"), ["flows[1].cc"]);
        assert_eq!(
            spelled_out("flows.other.cc").unwrap_err(),
            "no flow is called \"other\"; there are \"a\", \"flow2\""
        );
        // In a table a `*` is part of a name.
        assert_eq!(ends("hosts.*.cpu"), ["hosts.\"*\".cpu"]);
    }

    #[test]
    fn a_given_value_replaces_the_sweep_of_its_key() {
        let sweep = json!({ "flows.*.cc": ["bbr", "cubic"], "seed": [1, 2] });
        let mut tree = json!({ "flows": [{ "name": "a" }, {}], "sweep": sweep, "let": { "b": 1 } });
        let says = |problem: Problem| problem.to_string();
        let one = set(&mut tree.clone(), "flows.a.cc", &json!("reno")).map_err(says);
        assert_eq!(one.unwrap_err(), "`sweep.\"flows.*.cc\"` sets it in all runs");
        let places = set(&mut tree, "flows.*.cc", &json!("reno")).unwrap();
        assert_eq!(places, ["flows[0].cc", "flows[1].cc"]);
        let variants = json!({ "x": { "flows": [{ "cc": "bbr" }, {}] }, "y": {} });
        let mut with_variants = tree.clone();
        with_variants["variants"] = variants;
        let one = set(&mut with_variants, "flows.a.cc", &json!("cubic")).map_err(says);
        assert_eq!(one.unwrap_err(), "`variants.x.flows` sets it there: set that");
        set(&mut tree, "b", &json!(2)).unwrap();
        set(&mut tree, "repeat", &json!(3)).unwrap();
        let flows = json!([{ "name": "a", "cc": "reno" }, { "cc": "reno" }]);
        let meant =
            json!({ "flows": flows, "sweep": { "seed": [1, 2] }, "let": { "b": 2 }, "repeat": 3 });
        assert_eq!(tree, meant);
    }
}
