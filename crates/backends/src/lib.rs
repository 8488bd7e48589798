//! What runs experiments: the backends behind one interface, registered once in [`BACKENDS`].
//!
//! A backend says what it does not run of a plan, runs the others, and leaves tables and files. Nothing
//! outside this crate and the backend's own asks which one it is.

mod linux;
mod sim;

use tcplab_model::memory::Held;
use tcplab_model::{Document, Mistakes, Plan, Problem, Watch};

pub use tcplab_linux::Access;
pub use tcplab_tables::Produced;
use tcplab_tables::Tables;

/// All backends: those that need least come first.
pub const BACKENDS: &[&dyn Backend] = &[&sim::Sim, &linux::Linux];

/// What runs experiments.
pub trait Backend: Sync {
    /// Its name: `sim`.
    fn name(&self) -> &'static str;

    /// Every run that an experiment asks for: each plan with the version of what is to run it, and none
    /// of those that this backend refuses.
    ///
    /// # Errors
    /// The experiment cannot be run here, or what it needs cannot be had.
    fn plans(&self, document: &Document, options: &Options) -> Result<Vec<Plan>, PlanError>;

    /// The least memory that a run takes, before it begins.
    fn least_memory(&self, plan: &Plan) -> Held;

    /// The names of the files that a run leaves beside its tables.
    fn files(&self, _plan: &Plan) -> Vec<String> {
        Vec::new()
    }

    /// Runs one of its plans. Programs of the plan, if it has any, may read what `access` says. A backend
    /// that is fast shows its tables to `show` when rows were added, which then are in a cache; rows that
    /// were shown stay as they are.
    ///
    /// # Errors
    /// The run was stopped or failed, or what runs it is not what it was when the plan was made.
    fn run(
        &self,
        plan: &Plan,
        access: &Access,
        watch: &Watch,
        show: &mut dyn FnMut(&Tables),
    ) -> Result<Produced, Error>;

    /// Runs what a plan has in common with others that are equal until their change
    /// ([`Plan::beginning`]), if this backend can run plans from one state.
    ///
    /// # Errors
    /// The run was stopped.
    fn begin<'a>(
        &self,
        _plan: &'a Plan,
        _watch: &Watch,
    ) -> Result<Option<Box<dyn Begun + 'a>>, Error> {
        Ok(None)
    }
}

/// A state from which plans go on that are equal until then.
pub trait Begun {
    /// Runs the rest of one of them.
    ///
    /// # Errors
    /// The run was stopped.
    fn go_on(&self, plan: &Plan, watch: &Watch) -> Result<Produced, Error>;

    /// Runs the rest of the last one.
    ///
    /// # Errors
    /// The run was stopped.
    fn finish(self: Box<Self>, plan: &Plan, watch: &Watch) -> Result<Produced, Error>;
}

/// What is chosen for a backend beside the experiment.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The kernel to use, whatever the experiment says.
    pub kernel: Option<String>,
}

/// Why there are no plans.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The experiment has mistakes.
    #[error(transparent)]
    Refused(#[from] Mistakes),
    /// What is wrong with the options, whatever the experiment is.
    #[error("{0}")]
    Options(Mistakes),
    /// The backend cannot be used.
    #[error(transparent)]
    Unusable(#[from] Error),
}

/// Why a backend did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody told the run to stop.
    #[error("{0}")]
    Stopped(String),
    /// Something that it needs is not there, or is not what it was.
    #[error("{0}")]
    Missing(String),
    /// The run failed.
    #[error("{0}")]
    Failed(String),
}

/// The backend of this name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static dyn Backend, Problem> {
    let found = BACKENDS.iter().find(|backend| backend.name() == name);
    found.copied().ok_or_else(|| Problem::unknown("backend", name, names()))
}

/// The backend that made a plan.
///
/// # Panics
/// None of this name is registered: plans are made by those that are.
pub fn of(plan: &Plan) -> &'static dyn Backend {
    find(&plan.backend).expect("plans are made by backends that are registered")
}

/// The names of all backends.
pub fn names() -> impl Iterator<Item = &'static str> {
    BACKENDS.iter().map(|backend| backend.name())
}

/// Another backend than this one that runs the whole experiment.
pub fn elsewhere(document: &Document, than: &str) -> Option<&'static str> {
    let others = BACKENDS.iter().filter(|backend| backend.name() != than);
    let runs = |backend: &&&dyn Backend| backend.plans(document, &Options::default()).is_ok();
    others.into_iter().find(runs).map(|backend| backend.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_model::support::FEATURES;

    #[test]
    fn the_table_of_features_knows_the_registered_backends_and_no_others() {
        let known: Vec<_> = names().collect();
        for feature in FEATURES {
            assert!(feature.on.iter().all(|name| known.contains(name)), "{feature:?}");
        }
        for name in known {
            assert!(FEATURES.iter().any(|feature| feature.on.contains(&name)), "{name}");
        }
    }

    #[test]
    fn a_backend_that_is_not_there_is_named_with_those_that_are() {
        let problem = find("smi").err().unwrap().to_string();
        assert_eq!(problem, "no backend is called \"smi\"; did you mean \"sim\"?");
    }
}
