//! The simulator.

use crate::{Access, Backend, Error, Options, PlanError, Produced};
use tcplab_model::memory::Held;
use tcplab_model::{Document, Plan, Problem, Watch};
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

    fn run(
        &self,
        plan: &Plan,
        _access: &Access,
        watch: &Watch,
        show: &mut dyn FnMut(&Tables),
    ) -> Result<Produced, Error> {
        if tcplab_sim::version(plan) != plan.version {
            let reason = "a congestion control was registered anew since this run was planned; plan it \
                          again";
            return Err(Error::Failed(reason.into()));
        }
        let ran = tcplab_sim::run_shown(plan, watch, show);
        let tables = ran.map_err(|_| Error::Stopped("the run was stopped".into()))?;
        Ok(Produced { tables, files: Vec::new() })
    }
}
