//! The simulator.

use crate::{Access, Backend, Begun, Error, Options, PlanError, Produced};
use tcplab_model::memory::Held;
use tcplab_model::{Document, Plan, Problem, Stopped, Watch};
use tcplab_sim::Beginning;
use tcplab_tables::Tables;

pub(crate) struct Sim;

impl Backend for Sim {
    fn name(&self) -> &'static str {
        tcplab_sim::NAME
    }

    fn plans(&self, document: &Document, options: &Options) -> Result<Vec<Plan>, PlanError> {
        if options.kernel.is_some() {
            let reason = "the backend sim boots no kernel; choose the backend linux for it, on the \
                          command line with `--on linux`";
            let mistake = Problem::Invalid(reason.into()).at("kernel");
            return Err(PlanError::Options(mistake.into()));
        }
        Ok(document.plans(&tcplab_sim::backend())?)
    }

    fn least_memory(&self, plan: &Plan) -> Held {
        tcplab_sim::least_memory(plan)
    }

    fn files(&self, plan: &Plan) -> Vec<String> {
        tcplab_sim::files(plan)
    }

    fn run(
        &self,
        plan: &Plan,
        _access: &Access,
        watch: &Watch,
        show: &mut dyn FnMut(&Tables),
    ) -> Result<Produced, Error> {
        check_version(plan)?;
        produced(tcplab_sim::run_shown(plan, watch, show))
    }

    fn begin<'a>(
        &self,
        plan: &'a Plan,
        watch: &Watch,
    ) -> Result<Option<Box<dyn Begun + 'a>>, Error> {
        check_version(plan)?;
        let begun = Beginning::of(plan, watch).map_err(|_| stopped())?;
        Ok(Some(Box::new(begun)))
    }
}

impl Begun for Beginning<'_> {
    fn go_on(&self, plan: &Plan, watch: &Watch) -> Result<Produced, Error> {
        check_version(plan)?;
        produced(Self::go_on(self, plan, watch))
    }

    fn finish(self: Box<Self>, plan: &Plan, watch: &Watch) -> Result<Produced, Error> {
        check_version(plan)?;
        produced(Self::finish(*self, plan, watch))
    }
}

fn check_version(plan: &Plan) -> Result<(), Error> {
    if tcplab_sim::version(plan) == plan.version {
        return Ok(());
    }
    let reason =
        "a congestion control was registered anew since this run was planned; plan it again";
    Err(Error::Failed(reason.into()))
}

fn produced(ran: Result<Produced, Stopped>) -> Result<Produced, Error> {
    ran.map_err(|_| stopped())
}

fn stopped() -> Error {
    Error::Stopped("the run was stopped".into())
}
