//! An experiment as it was written, and the way from there to plans.

use crate::backend::Backend;
use crate::files;
use crate::id;
use crate::lines::{self, Lines};
use crate::mistake::{Mistake, Mistakes, Problem};
use crate::origin;
use crate::plan::Plan;
use crate::read::{Place, Read, wrong_type};
use crate::resolve::resolve;
use crate::schema::{Experiment, Sweep};
use crate::sweep::{self, Axis, MOST_RUNS};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// After so many mistakes, more would not help.
const ENOUGH: usize = 100;

/// Nodes, lanes and flows of all variants together; more would not fit into memory.
const MOST_PARTS: usize = 5_000_000;

/// An experiment as it was written: a tree of values that may or may not make sense.
#[derive(Clone, Debug)]
pub struct Document {
    tree: Value,
    lines: Lines,
    /// Where the files are that it names: beside its own.
    folder: PathBuf,
}

/// Reads an experiment written as TOML. Whether it makes sense, [`Document::plans`] says.
///
/// # Errors
/// The text is not TOML.
pub fn from_toml(text: &str) -> Result<Document, Mistakes> {
    let (tree, lines) = lines::parse(text).map_err(|mistake| Mistakes(vec![*mistake]))?;
    Ok(Document { tree, lines, folder: PathBuf::new() })
}

/// Reads an experiment written as JSON. Whether it makes sense, [`Document::plans`] says.
///
/// # Errors
/// The text is not JSON, or not a table.
pub fn from_json(text: &str) -> Result<Document, Mistakes> {
    let tree: Value = serde_json::from_str(text).map_err(|error| {
        let (column, reason) = (error.column(), error.to_string());
        // serde_json adds the place to its message; it is said already.
        let reason = reason.split(" at line ").next().unwrap_or_default().into();
        let problem = Problem::Syntax { format: "JSON", column, reason };
        Mistake { line: Some(error.line()), ..problem.at("") }
    })?;
    if !tree.is_object() {
        return Err(wrong_type(&tree, "a table").at("").into());
    }
    Ok(Document { tree, lines: Lines::default(), folder: PathBuf::new() })
}

impl Document {
    /// The same, from a file in this folder: names of other files are relative to it, and not to the
    /// current folder.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self }
    }

    /// The experiment's name, or "experiment".
    pub fn name(&self) -> &str {
        self.tree.get("name").and_then(Value::as_str).unwrap_or("experiment")
    }

    /// The experiment as it was written, as JSON.
    pub fn to_json(&self) -> String {
        self.tree.to_string()
    }

    /// Every run that the experiment asks for, with nothing left open: all variants of the sweep,
    /// the first key slowest, each with all its repetitions.
    ///
    /// # Errors
    /// All mistakes of all runs, each once.
    pub fn plans(&self, backend: &Backend<'_>) -> Result<Vec<Plan>, Mistakes> {
        let mut found = Found { lines: &self.lines, mistakes: Vec::new() };
        let mut base = self.tree.clone();
        let axes = take_sweep(&mut base, &mut found);
        let variants = sweep::combinations(&axes);
        let repeat = base.get("repeat").and_then(Value::as_u64).unwrap_or(1);
        let runs = variants.saturating_mul(u128::from(repeat));
        if runs > u128::from(MOST_RUNS) {
            let at = if axes.is_empty() { "repeat" } else { "sweep" };
            let problem = Problem::TooMany { what: "runs", number: runs, most: MOST_RUNS };
            found.add([problem.at(at)], &[]);
            return Err(Mistakes(found.mistakes));
        }
        let mut missing = Vec::new();
        files::expand(&mut base, &self.folder, &mut missing);
        found.add(missing, &[]);
        let mut plans = Vec::new();
        let mut parts = 0;
        for k in 0..variants as usize {
            let chosen = sweep::combination(&axes, k);
            let chosen: Vec<_> = axes.iter().zip(chosen).collect();
            let Some((plan, repeat)) = variant(&base, &self.folder, &chosen, backend, &mut found)
            else {
                if found.mistakes.len() >= ENOUGH {
                    break;
                }
                continue;
            };
            parts += plan.nodes.len() + plan.lanes.len() + plan.flows.len();
            if parts > MOST_PARTS {
                let what = "nodes, lanes and flows in all variants together";
                let (number, most) = (parts as u128, MOST_PARTS as u64);
                found.add([Problem::TooMany { what, number, most }.at("sweep")], &[]);
                break;
            }
            repetitions(&plan, repeat, &mut plans);
        }
        if found.mistakes.is_empty() { Ok(plans) } else { Err(Mistakes(found.mistakes)) }
    }
}

/// The mistakes so far, each once.
struct Found<'a> {
    lines: &'a Lines,
    mistakes: Vec<Mistake>,
}

impl Found<'_> {
    /// Adds mistakes with their lines; what a swept value caused is on the value's line.
    fn add(&mut self, mistakes: impl IntoIterator<Item = Mistake>, chosen: &[(&Axis, usize)]) {
        for mistake in mistakes {
            let is_known =
                |known: &Mistake| known.at == mistake.at && known.problem == mistake.problem;
            if self.mistakes.iter().any(is_known) || self.mistakes.len() >= ENOUGH {
                continue;
            }
            self.mistakes.push(self.located(mistake, chosen));
        }
    }

    /// The mistake with its line.
    fn located(&self, mistake: Mistake, chosen: &[(&Axis, usize)]) -> Mistake {
        let cause = chosen.iter().find(|(axis, _)| {
            lies_in(&mistake.at, &axis.path)
                || lies_in(&axis.path, &mistake.at) && !self.lines.has(&mistake.at)
        });
        let line = match cause {
            Some((axis, value)) => self.lines.find(&format!("{}[{value}]", axis.place())),
            None => self.lines.find(&mistake.at),
        };
        Mistake { line: mistake.line.or(line), ..mistake }
    }
}

/// Whether the place `inner` is `outer` or a part of it.
fn lies_in(inner: &str, outer: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Takes the sweep out of the tree.
fn take_sweep(tree: &mut Value, found: &mut Found<'_>) -> Vec<Axis> {
    let sweep = tree.as_object_mut().and_then(|table| table.shift_remove("sweep"));
    let mut mistakes = Vec::new();
    let place = Place::Root.key("sweep");
    let sweep = match &sweep {
        None | Some(Value::Null) => Sweep::default(),
        Some(sweep) => Sweep::read(sweep, &place, &mut mistakes).unwrap_or_default(),
    };
    let axes = sweep::axes(sweep, &mut mistakes);
    found.add(mistakes, &[]);
    axes
}

/// The plan of one variant with the seed of its first repetition, and how often to repeat it.
fn variant(
    base: &Value,
    folder: &Path,
    chosen: &[(&Axis, usize)],
    backend: &Backend<'_>,
    found: &mut Found<'_>,
) -> Option<(Plan, u64)> {
    let mut tree = base.clone();
    let mut mistakes = Vec::new();
    let mut unset = Vec::new();
    for (axis, value) in chosen {
        if let Err(problem) = axis.set(&mut tree, axis.values[*value].clone()) {
            unset.push((axis, problem.at(axis.place())));
        }
    }
    files::expand(&mut tree, folder, &mut mistakes);
    let experiment = Experiment::read(&tree, &Place::Root, &mut mistakes);
    // Of a key that nothing has, what was meant is said alone.
    let is_unknown = |axis: &Axis| {
        let unknown = |it: &&Mistake| matches!(it.problem, Problem::UnknownKey { .. });
        mistakes.iter().filter(unknown).any(|it| lies_in(&axis.path, &it.at))
    };
    unset.retain(|(axis, _)| !is_unknown(axis));
    mistakes.splice(0..0, unset.into_iter().map(|(_, mistake)| mistake));
    let plan = experiment
        .as_ref()
        .and_then(|experiment| resolve(experiment, backend.profile, &mut mistakes));
    let plan = plan.map(|plan| {
        let swept = chosen
            .iter()
            .map(|(axis, value)| (axis.path.clone(), sweep::text(&axis.values[*value])));
        let version = (backend.version)(&plan);
        let warnings = plan.warnings.iter().cloned();
        let warnings = warnings.map(|warning| found.located(origin::trace(warning, &tree), chosen));
        let warnings = each_link_once(warnings);
        let (swept, backend) = (swept.collect(), backend.name.into());
        Plan { backend, version, swept, warnings, ..plan }
    });
    if let Some(plan) = &plan {
        let refused = (backend.refuse)(plan).into_iter();
        mistakes.extend(refused.map(|mistake| origin::trace(mistake, &tree)));
    }
    let is_right = mistakes.is_empty();
    found.add(mistakes.into_iter().map(|mistake| origin::of_link(mistake, &tree)), chosen);
    Some((plan.filter(|_| is_right)?, experiment?.repeat))
}

/// What both directions of a link have in common is said of the first.
fn each_link_once(warnings: impl Iterator<Item = Mistake>) -> Arc<[Mistake]> {
    let mut places = BTreeSet::new();
    let is_new = |it: &Mistake| !it.at.starts_with("network.") || places.insert(it.at.clone());
    warnings.filter(is_new).collect()
}

/// All repetitions of a variant.
fn repetitions(plan: &Plan, repeat: u64, plans: &mut Vec<Plan>) {
    let content = id::content(plan);
    for repetition in 0..repeat {
        let seed = plan.seed + repetition;
        let id = id::id(&plan.backend, &plan.version, seed, &content);
        plans.push(Plan { id, seed, repetition, ..plan.clone() });
    }
}
