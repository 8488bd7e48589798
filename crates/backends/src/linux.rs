//! The Linux kernel.

use crate::{Access, Backend, Error, Options, PlanError, Produced};
use tcplab_linux::{Error as RunError, Kernels, kernel};
use tcplab_model::memory::Held;
use tcplab_model::{Backend as Planner, Document, Plan, Profile, Watch};
use tcplab_tables::Tables;

pub(crate) struct Linux;

impl Backend for Linux {
    fn name(&self) -> &'static str {
        tcplab_linux::NAME
    }

    fn plans(&self, document: &Document, options: &Options) -> Result<Vec<Plan>, PlanError> {
        let kernels = Kernels::open(options.kernel.as_deref()).map_err(|it| Error::from(&it))?;
        let planner = Planner {
            name: self.name(),
            profile: Profile::Linux612,
            version: &|plan| kernels.version(plan),
            unsupported: &|plan| kernels.unsupported(plan),
        };
        let mut plans = document.plans(&planner)?;
        for plan in &mut plans {
            plan.kernel = Some(kernels.name_for(plan).into());
        }
        Ok(plans)
    }

    fn least_memory(&self, plan: &Plan) -> Held {
        tcplab_linux::least_memory(plan)
    }

    fn files(&self, plan: &Plan) -> Vec<String> {
        tcplab_linux::files::names(plan)
    }

    fn run(
        &self,
        plan: &Plan,
        access: &Access,
        watch: &Watch,
        _show: &mut dyn FnMut(&Tables),
    ) -> Result<Produced, Error> {
        let kernels = Kernels::open(None).map_err(|error| Error::from(&error))?;
        let kernel = kernels.kernel_for(plan).filter(|_| kernels.version(plan) == plan.version);
        let kernel = kernel.ok_or_else(|| {
            let name = plan.kernel.as_deref().unwrap_or_default();
            Error::Missing(format!(
                "the kernel \"{name}\" was built anew or removed since this run was planned; run it again"
            ))
        })?;
        tcplab_linux::run(plan, kernel, access, watch).map_err(|error| match error {
            RunError::Stopped => Error::Stopped(error.to_string()),
            _ => Error::Failed(error.to_string()),
        })
    }
}

impl From<&kernel::Error> for Error {
    fn from(error: &kernel::Error) -> Self {
        match error {
            kernel::Error::Stopped => Self::Stopped(error.to_string()),
            _ => Self::Missing(error.to_string()),
        }
    }
}
