//! An experiment as written, and its translation into plans.

use crate::backend::Backend;
use crate::change::ChangePlan;
use crate::files::{self, Parameters};
use crate::id;
use crate::mistake::{Mistake, Mistakes, Problem};
use crate::origin;
use crate::parameters::{self, Filled, VARIANT};
use crate::plan::Plan;
use crate::read::{Place, Read, wrong_type};
use crate::resolve::{Resolved, resolve};
use crate::schema::{Change, Experiment, Repeat};
use crate::sweep::{self, CHANGE, Choice, MOST_RUNS};
use crate::toml_tree::{self, Lines};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tcplab_units::Duration;

/// After this many mistakes, more do not help.
const ENOUGH: usize = 100;

/// The most nodes, lanes and flows of all variants together; more do not fit into memory.
const MOST_PARTS: usize = 5_000_000;

/// An experiment as written: a tree of values that has not been checked.
#[derive(Clone, Debug)]
pub struct Document {
    tree: Value,
    lines: Lines,
    /// The folder of files that the experiment names: that of its own file.
    folder: PathBuf,
    /// The places of values given by `set`, which are on no line of the file.
    given: Vec<String>,
}

/// Reads an experiment written as TOML. [`Document::plans`] checks it.
///
/// # Errors
/// The text is not TOML.
pub fn from_toml(text: &str) -> Result<Document, Mistakes> {
    let (tree, lines) = toml_tree::parse(text).map_err(|mistake| Mistakes(vec![*mistake]))?;
    Ok(Document { tree, lines, folder: PathBuf::new(), given: Vec::new() })
}

/// Reads an experiment written as JSON. [`Document::plans`] checks it.
///
/// # Errors
/// The text is not JSON, or not a table.
pub fn from_json(text: &str) -> Result<Document, Mistakes> {
    let tree: Value = serde_json::from_str(text).map_err(|error| {
        let (column, reason) = (error.column(), error.to_string());
        // serde_json appends the place to its message, which already has the line and column.
        let reason = reason.split(" at line ").next().unwrap_or_default().into();
        let problem = Problem::Syntax { format: "JSON", column, reason };
        Mistake { line: Some(error.line()), ..problem.at("") }
    })?;
    if !tree.is_object() {
        return Err(wrong_type(&tree, "a table").at("").into());
    }
    Ok(Document { tree, lines: Lines::default(), folder: PathBuf::new(), given: Vec::new() })
}

/// A value from a command line: TOML if it parses, like `3`, `true` or `["1 ms", "2 ms"]`, else
/// text, like `cubic`, `10 Mbit/s` or `1bdp`.
pub fn value(text: &str) -> Value {
    let read = toml_tree::parse(&format!("value = {text}")).ok();
    let only = read.and_then(|(mut tree, _)| {
        let table = tree.as_object_mut()?;
        (table.len() == 1).then(|| table.shift_remove("value"))?
    });
    only.unwrap_or_else(|| text.into())
}

impl Document {
    /// The same document, for a file in this folder: names of other files are relative to it, not
    /// to the current folder.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self }
    }

    /// Sets a key to another value, by its path as in a sweep: `flows[0].cc`, `flows.download.cc`,
    /// `flows.*.cc` for all flows, or the name of a parameter. A sweep of the same key is removed.
    ///
    /// # Errors
    /// The path does not exist, or a `zip` or a variant sets the same key.
    pub fn set(&mut self, path: &str, value: &Value) -> Result<(), Mistakes> {
        let places = sweep::set(&mut self.tree, path, value);
        let places = places.map_err(|problem| Mistakes::from(problem.at(path)))?;
        self.given.extend(places);
        Ok(())
    }

    /// The experiment as JSON with the contents of the files that it names; `None` if it names
    /// none.
    pub fn contained(&self) -> Option<String> {
        let mut tree = self.tree.clone();
        files::expand(&mut tree, &self.folder, Parameters::AreOpen, &mut Vec::new());
        (tree != self.tree).then(|| tree.to_string())
    }

    /// The line of the value at a place, or of the nearest value around it; `None` if the value was
    /// set later, or the text is JSON.
    pub fn line(&self, at: &str) -> Option<usize> {
        let is_given = self.given.iter().any(|given| lies_in(at, given));
        if is_given { None } else { self.lines.find(at) }
    }

    /// The experiment's name, or "experiment".
    pub fn name(&self) -> &str {
        self.tree.get("name").and_then(Value::as_str).unwrap_or("experiment")
    }

    /// The experiment as written, as JSON.
    pub fn to_json(&self) -> String {
        self.tree.to_string()
    }

    /// All runs of the experiment, fully resolved: named variants change slowest, then `zip`, then
    /// the sweep, each with all its repetitions.
    ///
    /// # Errors
    /// All mistakes of all runs, each once.
    pub fn plans(&self, backend: &Backend<'_>) -> Result<Vec<Plan>, Mistakes> {
        if ["id", "nodes", "lanes"].iter().all(|key| self.tree.get(key).is_some()) {
            let reason = "this is the plan of a run, with nothing left open, and not an experiment; \
                          `tcplab verify --again RESULTS` repeats the runs of a folder of results";
            return Err(Problem::Invalid(reason.into()).at("").into());
        }
        let mut found = Found { lines: &self.lines, given: &self.given, mistakes: Vec::new() };
        let mut base = self.tree.clone();
        let mut mistakes = Vec::new();
        let axes = sweep::axes(&mut base, &mut mistakes);
        found.add(mistakes, &Cause::default());
        let variants = sweep::combinations(&axes);
        let repeat = Repeat::most_of(base.get("repeat"));
        let runs = variants.saturating_mul(u128::from(repeat));
        let key = axes.last().map_or("repeat", |axis| axis.key);
        if runs > u128::from(MOST_RUNS) {
            found.add([too_many_runs(runs, key)], &Cause::default());
            return Err(Mistakes(found.mistakes));
        }
        let mut missing = Vec::new();
        files::expand(&mut base, &self.folder, Parameters::AreOpen, &mut missing);
        found.add(missing, &Cause::default());
        let (folder, plans, used) = (&self.folder, Vec::new(), BTreeSet::new());
        let mut planning =
            Planning { base: &base, folder, backend, key, found, plans, parts: 0, used };
        for k in 0..variants as usize {
            let chosen = sweep::combination(&axes, k);
            if planning.variant(&chosen).is_break() {
                break;
            }
        }
        planning.end()
    }
}

fn too_many_runs(runs: u128, key: &str) -> Mistake {
    Problem::TooMany { what: "runs", number: runs, most: MOST_RUNS }.at(key)
}

/// Makes the plans of one variant after the other.
struct Planning<'a, 'b> {
    /// The settings that all variants share.
    base: &'a Value,
    folder: &'a Path,
    backend: &'a Backend<'b>,
    /// The key that decides the number of plans.
    key: &'static str,
    found: Found<'a>,
    plans: Vec<Plan>,
    /// Nodes, lanes and flows of the plans so far.
    parts: usize,
    /// The parameters that are used anywhere.
    used: BTreeSet<String>,
}

impl Planning<'_, '_> {
    /// Adds all repetitions of a variant. Stops when there are too many plans or mistakes.
    fn variant(&mut self, chosen: &[&Choice]) -> ControlFlow<()> {
        let (mut tree, mut mistakes) = (self.base.clone(), Vec::new());
        let mut unset = Vec::new();
        for setting in chosen.iter().flat_map(|choice| &choice.settings) {
            if let Err(problem) = setting.set(&mut tree) {
                unset.push((setting, problem.at(&setting.key)));
            }
        }
        let labels = labels(chosen, &tree);
        // Changes apply to the experiment before parameters have their values.
        let open = tree.get(CHANGE).filter(|change| !change.is_null()).map(|_| tree.clone());
        let filled = parameters::fill(&mut tree, &mut mistakes);
        self.used.extend(filled.used.iter().cloned());
        // Parameters without a value cannot be read.
        let is_filled = mistakes.is_empty();
        let cause = Cause { chosen, filled: Some(&filled), labels: &labels };
        if is_filled {
            files::expand(&mut tree, self.folder, Parameters::AreFilled, &mut mistakes);
        }
        let experiment = is_filled.then(|| Experiment::read(&tree, &Place::Root, &mut mistakes));
        // For an unknown key, only the suggestion is reported.
        let is_unknown = |path: &str| {
            let unknown = |it: &&Mistake| matches!(it.problem, Problem::UnknownKey { .. });
            mistakes.iter().filter(unknown).any(|it| lies_in(path, &it.at))
        };
        unset.retain(|(setting, _)| !is_unknown(&setting.path));
        mistakes.splice(0..0, unset.into_iter().map(|(_, mistake)| mistake));
        let Some(mut experiment) = experiment.flatten() else {
            return self.is_enough(mistakes, &tree, &cause);
        };
        if mistakes.iter().any(|it| it.at == "duration") {
            // The placeholder duration must not cause mistakes elsewhere.
            experiment.duration = experiment.least_duration();
        }
        let runs = self.plans.len() as u128 + u128::from(experiment.repeat.most());
        if runs > u128::from(MOST_RUNS) {
            let key = if experiment.repeat.most() > MOST_RUNS { "repeat" } else { self.key };
            self.found.add([too_many_runs(runs, key)], &cause);
            return ControlFlow::Break(());
        }
        let before = mistakes.len();
        let changed = match (open, &experiment.change) {
            (Some(open), Some(change)) if mistakes.is_empty() => {
                self.changed(open, change, &experiment, &mut mistakes)
            }
            _ => None,
        };
        let changed = changed.as_ref();
        if mistakes.len() > before {
            return self.is_enough(mistakes, &tree, &cause);
        }
        let first = self.plan((&experiment, changed), &tree, &cause, &mut mistakes);
        let Some(first) = first.filter(|_| mistakes.is_empty()) else {
            return self.is_enough(mistakes, &tree, &cause);
        };
        self.count(&first)?;
        // A network with random parts differs from seed to seed.
        let is_drawn = experiment.network.is_drawn();
        let (seed, mut plan, mut content) = (first.seed, first.clone(), id::content(&first));
        for repetition in 0..experiment.repeat.most() {
            let seed = seed + repetition;
            if is_drawn && repetition > 0 {
                let experiment =
                    Experiment { seed, repeat: Repeat::Times(1), ..experiment.clone() };
                let drawn = self.plan((&experiment, changed), &tree, &cause, &mut mistakes);
                let Some(drawn) = drawn.filter(|_| mistakes.is_empty()) else {
                    return self.is_enough(mistakes, &tree, &cause);
                };
                self.count(&drawn)?;
                (content, plan) = (id::content(&drawn), drawn);
            }
            let id = id::id(&plan.backend, &plan.version, seed, &content);
            let until = match &experiment.repeat {
                Repeat::Times(_) => None,
                Repeat::Until(until) => Some(until.clone()),
            };
            self.plans.push(Plan { id, seed, repetition, until, ..plan.clone() });
        }
        ControlFlow::Continue(())
    }

    /// The plan of one variant with one seed, without an id.
    fn plan(
        &self,
        (experiment, changed): (&Experiment, Option<&Changed>),
        tree: &Value,
        cause: &Cause<'_>,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<Plan> {
        let resolved = resolve(experiment, self.backend.profile, mistakes)?;
        let change = match changed.filter(|_| mistakes.is_empty()) {
            Some(changed) => Some(self.change(experiment, &resolved, changed, mistakes)?),
            None => None,
        };
        let plan = Plan { change: change.map(Arc::new), ..resolved.plan };
        let version = (self.backend.version)(&plan);
        let warnings = plan.warnings.iter().cloned();
        let warnings =
            warnings.map(|warning| self.found.located(origin::trace(warning, tree), cause));
        let warnings = each_link_once(warnings);
        let (swept, backend) = (cause.labels.into(), self.backend.name.into());
        let plan = Plan { backend, version, swept, warnings, ..plan };
        let refused = (self.backend.unsupported)(&plan).into_iter();
        mistakes.extend(refused.map(|mistake| origin::trace(mistake, tree)));
        if let (Some(changed), Some(after)) = (changed, plan.after_change())
            && mistakes.is_empty()
        {
            let refused = (self.backend.unsupported)(&after).into_iter();
            let refused = refused.map(|mistake| origin::trace(mistake, &changed.tree));
            mistakes.extend(refused.map(|mistake| changed.cause(mistake)));
        }
        Some(plan)
    }

    /// The experiment as it is after its change.
    fn changed(
        &self,
        mut tree: Value,
        change: &Change,
        before: &Experiment,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<Changed> {
        if change.at >= before.duration {
            let reason =
                format!("is {}, but the experiment ends at {}", change.at, before.duration);
            mistakes.push(Problem::Invalid(reason).at(Place::Root.key(CHANGE).key(Change::AT)));
            return None;
        }
        let table = tree.as_object_mut()?.shift_remove(CHANGE)?;
        let mut settings = table.as_object()?.clone();
        settings.shift_remove(Change::AT);
        let settings = sweep::change(&mut tree, &settings, mistakes);
        if !mistakes.is_empty() {
            return None;
        }
        let mut found = Vec::new();
        parameters::fill(&mut tree, &mut found);
        files::expand(&mut tree, self.folder, Parameters::AreFilled, &mut found);
        let read = Experiment::read(&tree, &Place::Root, &mut found);
        let settings = settings.into_iter().map(|setting| (setting.path, setting.key)).collect();
        let (seed, at) = (before.seed, change.at);
        let changed = Changed { experiment: read?, seed, at, tree, settings };
        mistakes.extend(found.into_iter().map(|mistake| changed.cause(mistake)));
        Some(changed)
    }

    /// The settings that a change sets.
    fn change(
        &self,
        experiment: &Experiment,
        before: &Resolved,
        changed: &Changed,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<ChangePlan> {
        let after = Experiment {
            seed: changed.seed_of(experiment),
            repeat: Repeat::Times(1),
            ..changed.experiment.clone()
        };
        let at = Duration::from_nanos(changed.at.as_picos() / 1000);
        let mut found = Vec::new();
        let after = resolve(&after, self.backend.profile, &mut found);
        let after = after.filter(|_| found.is_empty());
        mistakes.extend(found.into_iter().map(|mistake| changed.cause(mistake)));
        match ChangePlan::between(before, &after?, at) {
            Ok(change) => Some(change),
            Err(what) => {
                let reason = format!(
                    "changes {what}; what can change while a run goes on is the congestion control of \
                     flows (`cc`), and the `rate`, the `delay` and the `queue` of links"
                );
                let at = match &changed.settings[..] {
                    [(_, key)] => key.clone(),
                    _ => CHANGE.into(),
                };
                mistakes.push(Problem::Invalid(reason).at(at));
                None
            }
        }
    }

    /// Adds mistakes of a variant. Returns whether there are enough to stop.
    fn is_enough(
        &mut self,
        mistakes: Vec<Mistake>,
        tree: &Value,
        cause: &Cause<'_>,
    ) -> ControlFlow<()> {
        let mistakes = mistakes.into_iter().map(|mistake| origin::of_link(mistake, tree));
        self.found.add(mistakes, cause);
        if self.found.mistakes.len() >= ENOUGH {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Counts the parts of a plan that are not shared with others.
    fn count(&mut self, plan: &Plan) -> ControlFlow<()> {
        self.parts += plan.nodes.len() + plan.lanes.len() + plan.flows.len();
        if self.parts <= MOST_PARTS {
            return ControlFlow::Continue(());
        }
        let what = "nodes, lanes and flows in all variants together";
        let (number, most) = (self.parts as u128, MOST_PARTS as u64);
        let mistake = Problem::TooMany { what, number, most }.at(self.key);
        self.found.add([mistake], &Cause::default());
        ControlFlow::Break(())
    }

    /// All plans, if there were no mistakes.
    fn end(mut self) -> Result<Vec<Plan>, Mistakes> {
        if self.found.mistakes.is_empty() {
            let unused = unused(self.base, &self.used);
            self.found.add(unused, &Cause::default());
        }
        if self.found.mistakes.is_empty() {
            Ok(self.plans)
        } else {
            Err(Mistakes(self.found.mistakes))
        }
    }
}

/// An experiment as it is after its change.
struct Changed {
    experiment: Experiment,
    /// The seed of the experiment without the change.
    seed: u64,
    at: Duration,
    tree: Value,
    /// The paths of the settings, and the keys under which they were written.
    settings: Vec<(String, String)>,
}

impl Changed {
    /// Moves a mistake to the setting that causes it.
    fn cause(&self, mistake: Mistake) -> Mistake {
        let is_meant = |(path, _): &&(String, String)| {
            lies_in(&mistake.at, path) || lies_in(path, &mistake.at)
        };
        let key = self.settings.iter().find(is_meant).map(|(_, key)| key.clone());
        let key = key.or_else(|| match &self.settings[..] {
            [(_, key)] => Some(key.clone()),
            _ => None,
        });
        Mistake { at: key.unwrap_or_else(|| CHANGE.into()), ..mistake }
    }

    /// The seed of this repetition, unless the change sets one.
    fn seed_of(&self, repetition: &Experiment) -> u64 {
        if self.seed == self.experiment.seed { repetition.seed } else { self.experiment.seed }
    }
}

/// Parameters that no variant uses.
fn unused(base: &Value, used: &BTreeSet<String>) -> Vec<Mistake> {
    let names = base.get("let").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let unused = names.filter(|name| !used.contains(*name)).map(|name| {
        let reason = format!("is not used; write \"${name}\" where its value belongs");
        Problem::Invalid(reason).at(Place::Root.key("let").key(name))
    });
    unused.collect()
}

/// The settings that a variant adds to the file.
#[derive(Default)]
struct Cause<'a> {
    chosen: &'a [&'a Choice],
    filled: Option<&'a Filled>,
    /// The variant's labels in tables.
    labels: &'a [(String, String)],
}

/// The labels of a variant in tables: its name, and swept keys with their values. A parameter is
/// shown by its value.
fn labels(chosen: &[&Choice], tree: &Value) -> Vec<(String, String)> {
    let shown = |(name, value): &(String, Value)| {
        let is_name = name == VARIANT;
        let meant = if is_name { None } else { parameters::meant(value, tree) };
        (name.clone(), sweep::text(meant.as_ref().unwrap_or(value)))
    };
    chosen.iter().flat_map(|choice| &choice.labels).map(shown).collect()
}

/// The mistakes so far, each once.
struct Found<'a> {
    lines: &'a Lines,
    given: &'a [String],
    mistakes: Vec<Mistake>,
}

impl Found<'_> {
    /// Adds mistakes with their lines. A mistake caused by the value of a variant or a parameter is
    /// on that value's line.
    fn add(&mut self, mistakes: impl IntoIterator<Item = Mistake>, cause: &Cause<'_>) {
        for mistake in mistakes {
            let is_known =
                |known: &Mistake| known.at == mistake.at && known.problem == mistake.problem;
            if self.mistakes.iter().any(is_known) || self.mistakes.len() >= ENOUGH {
                continue;
            }
            self.mistakes.push(self.located(mistake, cause));
        }
    }

    /// The mistake with its line.
    fn located(&self, mistake: Mistake, cause: &Cause<'_>) -> Mistake {
        let at = &mistake.at;
        let written = cause.filled.map_or_else(|| at.clone(), |filled| filled.written(at));
        // Values that were set later are on no line.
        if self.given.iter().any(|given| lies_in(&written, given)) {
            return mistake;
        }
        let mut settings = cause.chosen.iter().flat_map(|choice| &choice.settings);
        let setting = settings.find(|setting| {
            lies_in(&written, &setting.path)
                || lies_in(&setting.path, &written) && !self.lines.has(&written)
        });
        let line = match setting {
            Some(setting) => self.lines.find(&setting.place()),
            None => self.lines.find(&written),
        };
        Mistake { line: mistake.line.or(line), ..mistake }
    }
}

/// Whether the place `inner` is `outer` or a part of it.
fn lies_in(inner: &str, outer: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Reports a warning that holds for both directions of a link only for the first.
fn each_link_once(warnings: impl Iterator<Item = Mistake>) -> Arc<[Mistake]> {
    let mut places = BTreeSet::new();
    let is_new = |it: &Mistake| !it.at.starts_with("network.") || places.insert(it.at.clone());
    warnings.filter(is_new).collect()
}
