//! The backends that run experiments, behind one interface and registered in [`BACKENDS`].
//!
//! A backend rejects the features of a plan that it does not run, runs accepted plans, and produces
//! tables and files. Outside this crate and the backend's own, nothing depends on which backend it
//! is.

mod linux;
mod sim;

use tcplab_model::memory::Held;
use tcplab_model::{Document, Mistakes, Plan, Problem, Watch};

pub use tcplab_linux::Access;
pub use tcplab_tables::Produced;
use tcplab_tables::Tables;

/// All backends, in ascending order of requirements.
pub const BACKENDS: &[&dyn Backend] = &[&sim::Sim, &linux::Linux];

/// A backend.
pub trait Backend: Sync {
    /// Its name: `sim`.
    fn name(&self) -> &'static str;

    /// Every run of an experiment: each plan with the version of the code that is to run it. Plans
    /// with unsupported features are an error.
    ///
    /// # Errors
    /// The experiment cannot be run here, or a requirement is not available.
    fn plans(&self, document: &Document, options: &Options) -> Result<Vec<Plan>, PlanError>;

    /// The least memory that a run needs, before it begins.
    fn least_memory(&self, plan: &Plan) -> Held;

    /// The names of the files that a run writes beside its tables.
    fn files(&self, _plan: &Plan) -> Vec<String> {
        Vec::new()
    }

    /// Runs a plan. Programs of the plan, if any, may read what `access` allows. A fast backend
    /// shows its tables to `show` when rows were added and are still cached; shown rows do not
    /// change any more.
    ///
    /// # Errors
    /// The run was stopped or failed, or the code or kernel changed since the plan was made.
    fn run(
        &self,
        plan: &Plan,
        access: &Access,
        watch: &Watch,
        show: &mut dyn FnMut(&Tables),
    ) -> Result<Produced, Error>;

    /// Runs the part that a plan shares with others that are equal until their change
    /// ([`Plan::beginning`]), if this backend can continue several plans from one state.
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

/// A state from which plans continue that are equal until then.
pub trait Begun {
    /// Runs the rest of one of the plans.
    ///
    /// # Errors
    /// The run was stopped.
    fn go_on(&self, plan: &Plan, watch: &Watch) -> Result<Produced, Error>;

    /// Runs the rest of the last plan.
    ///
    /// # Errors
    /// The run was stopped.
    fn finish(self: Box<Self>, plan: &Plan, watch: &Watch) -> Result<Produced, Error>;
}

/// Choices for a backend besides the experiment.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The kernel to use, overriding the experiment.
    pub kernel: Option<String>,
}

/// Why there are no plans.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The experiment has mistakes.
    #[error(transparent)]
    Refused(#[from] Mistakes),
    /// The options are invalid, whatever the experiment.
    #[error("{0}")]
    Options(Mistakes),
    /// The backend cannot be used.
    #[error(transparent)]
    Unusable(#[from] Error),
}

/// Why a backend did not complete an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run was told to stop.
    #[error("{0}")]
    Stopped(String),
    /// A requirement is missing or has changed.
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
/// No backend of this name is registered.
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
    fn an_unknown_backend_is_refused_with_the_known_ones() {
        let problem = find("smi").err().unwrap().to_string();
        assert_eq!(problem, "no backend is called \"smi\"; did you mean \"sim\"?");
    }
}
