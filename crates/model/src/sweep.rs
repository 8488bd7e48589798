//! Expands a sweep: all combinations of values for keys by their path.

use crate::mistake::{Mistake, Problem};
use crate::read::{Place, wrong_type};
use crate::schema::Sweep;
use serde_json::{Map, Value};

/// More runs than this are a slip of the pen.
pub(crate) const MOST_RUNS: u64 = 100_000;

/// No key lies deeper.
const DEEPEST: usize = 16;

/// A key to vary and its values.
#[derive(Debug)]
pub(crate) struct Axis {
    pub path: String,
    steps: Vec<Step>,
    pub values: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Axis {
    /// Where this axis stands in the experiment.
    pub fn place(&self) -> String {
        Place::Root.key("sweep").key(&self.path).to_string()
    }

    /// Puts the value into the tree.
    pub fn set(&self, tree: &mut Value, value: Value) -> Result<(), Problem> {
        let mut target = tree;
        let mut reached = String::new();
        for step in &self.steps {
            target = match (step, target) {
                (Step::Key(key), Value::Object(table)) => {
                    reached = if reached.is_empty() { key.clone() } else { reached + "." + key };
                    // A key that is not there is made here; whether the schema knows it, the reader
                    // says.
                    table.entry(key.as_str()).or_insert_with(|| Value::Object(Map::new()))
                }
                (Step::Key(key), Value::Null) if reached.is_empty() => {
                    return Err(nothing_there(&self.path, &format!("no `{key}`")));
                }
                (Step::Index(index), Value::Array(items)) => {
                    let length = items.len();
                    let has = format!("`{reached}` has {length} {}", entries(length));
                    reached = format!("{reached}[{index}]");
                    items.get_mut(*index).ok_or_else(|| nothing_there(&self.path, &has))?
                }
                (Step::Key(_), other) => {
                    let is = wrong_type(other, "a table");
                    return Err(nothing_there(&self.path, &format!("at `{reached}`, {is}")));
                }
                (Step::Index(_), Value::Object(table)) if table.is_empty() => {
                    return Err(nothing_there(&self.path, &format!("`{reached}` has 0 entries")));
                }
                (Step::Index(_), other) => {
                    let is = wrong_type(other, "a list");
                    return Err(nothing_there(&self.path, &format!("at `{reached}`, {is}")));
                }
            };
        }
        *target = value;
        Ok(())
    }
}

fn entries(number: usize) -> &'static str {
    if number == 1 { "entry" } else { "entries" }
}

fn nothing_there(path: &str, there: &str) -> Problem {
    Problem::Invalid(format!("there is nothing at `{path}`: {there}"))
}

/// Checks a sweep and takes its paths apart.
pub(crate) fn axes(sweep: Sweep, mistakes: &mut Vec<Mistake>) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (path, values) in sweep.0 {
        let place = Place::Root.key("sweep").key(&path).to_string();
        let steps = match steps(&path) {
            Ok(steps) => steps,
            Err(problem) => {
                mistakes.push(problem.at(place));
                continue;
            }
        };
        if let Some(other) = axes
            .iter()
            .find(|other| other.steps.iter().zip(&steps).all(|(one, other)| one == other))
        {
            let reason = format!("varies the same as `{}`", other.path);
            mistakes.push(Problem::Invalid(reason).at(&place));
        }
        for (i, value) in values.iter().enumerate() {
            if values[..i].contains(value) {
                let reason = format!("{} is among the values already", text(value));
                mistakes.push(Problem::Invalid(reason).at(format!("{place}[{i}]")));
            }
        }
        axes.push(Axis { path, steps, values });
    }
    axes
}

/// Takes `flows[0].cc` apart. A key with other characters than letters, digits, `-` and `_` is in
/// quotation marks.
fn steps(path: &str) -> Result<Vec<Step>, Problem> {
    let invalid = || {
        let example = "a path is written like `network.dumbbell.queue` or `flows[0].cc`";
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
    match steps.first() {
        Some(Step::Key(key)) if ["sweep", "repeat", "name"].contains(&key.as_str()) => {
            Err(Problem::Invalid(format!("`{key}` cannot be swept")))
        }
        Some(Step::Key(_)) => Ok(steps),
        _ => Err(invalid()),
    }
}

/// The number of combinations, as far as it can be counted.
pub(crate) fn combinations(axes: &[Axis]) -> u128 {
    axes.iter().fold(1, |number, axis| number.saturating_mul(axis.values.len() as u128))
}

/// The k-th combination, as the number of the value on each axis: the first axis is the slowest.
pub(crate) fn combination(axes: &[Axis], mut k: usize) -> Vec<usize> {
    let mut chosen: Vec<_> = axes
        .iter()
        .rev()
        .map(|axis| {
            let value = k % axis.values.len();
            k /= axis.values.len();
            value
        })
        .collect();
    chosen.reverse();
    chosen
}

/// A swept value as text.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn axis(path: &str, values: &[Value]) -> Axis {
        Axis { path: path.into(), steps: steps(path).unwrap(), values: values.to_vec() }
    }

    #[test]
    fn the_first_key_is_the_slowest() {
        let axes = [axis("a", &[1.into(), 2.into()]), axis("b", &[3.into(), 4.into(), 5.into()])];
        let all: Vec<_> = (0..6).map(|k| combination(&axes, k)).collect();
        assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
    }

    #[test]
    fn a_path_leads_through_tables_lists_and_quoted_names() {
        let mut tree = json!({ "flows": [{}, {}], "hosts": { "a.b": {} } });
        axis("flows[1].stack.sack", &[]).set(&mut tree, false.into()).unwrap();
        axis("hosts.\"a.b\".stack.cc", &[]).set(&mut tree, "cubic".into()).unwrap();
        assert_eq!(tree["flows"][1]["stack"]["sack"], false);
        assert_eq!(tree["hosts"]["a.b"]["stack"]["cc"], "cubic");
    }

    #[test]
    fn says_what_there_is_where_a_path_ends() {
        let mut tree = json!({ "flows": [{ "cc": "cubic" }], "seed": 1 });
        let mut problem = |path| axis(path, &[]).set(&mut tree, 1.into()).unwrap_err().to_string();
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
        for path in ["", ".", "[0]", "a..b", "a[", "a[x]", "a b", "a.\"b", "sweep", "repeat"] {
            assert!(steps(path).is_err(), "{path}");
        }
    }
}
