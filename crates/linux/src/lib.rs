//! The `linux` backend, host side: gets a kernel, boots it as a process whose clock stands still
//! while anything runs, hands it the experiment, collects the tables.
//!
//! | module | job |
//! |---|---|
//! | [`kernel`] | builds kernels and keeps them |
//! | `kernels` | says which of them a plan is for |
//! | `translate` | turns a plan into a job for the guest, or says what Linux cannot do of it |
//! | `boot` | runs the kernel as a process, watches it, ends it |
//! | `records` | reads what the kernel says |
//! | `headers` | reads the headers of packets in these records |
//! | `recorder` | writes the tables |
//! | `scratch` | keeps a guest's files while it runs |
//! | [`files`] | the names of the files that a run leaves beside its tables |
//! | `outputs` | reads what programs printed from these |
//! | `sandbox` | says what programs may read |

mod boot;
pub mod files;
mod headers;
pub mod kernel;
mod kernels;
#[cfg(test)]
mod mutated;
mod outputs;
mod recorder;
mod records;
mod sandbox;
#[cfg(test)]
mod sandbox_tests;
mod scratch;
mod translate;

pub use boot::Error;
pub use kernels::Kernels;
pub use sandbox::{Access, missing as missing_walls};

use kernel::Kernel;
use tcplab_model::memory::Held;
use tcplab_model::{FlowPlan, Plan, TrafficPlan, Watch};
pub use tcplab_tables::Produced;
use tcplab_units::Time;
use translate::Abilities;

/// This backend's name.
pub const NAME: &str = "linux";

/// What the host side keeps of a flow.
const FLOW_BYTES: u64 = 7_000;

/// What a kernel takes to boot, and for each connection with a queue in front of it.
const KERNEL_BYTES: u64 = 70_000_000;
const CONNECTION_BYTES: u64 = 85_000;

/// What programs in the guest may take, besides: all that it has at least (`boot::memory_mib`).
const PROGRAMS_BYTES: u64 = 512 << 20;

/// The least memory that a run takes, its kernel included.
pub fn least_memory(plan: &Plan) -> Held {
    let is_program = |flow: &FlowPlan| matches!(*flow.traffic, TrafficPlan::Command(_));
    let programs = if plan.flows.iter().any(is_program) { PROGRAMS_BYTES } else { 0 };
    let kernel = KERNEL_BYTES + programs + CONNECTION_BYTES * plan.flows.len() as u64;
    Held { kernel, ..Held::at_least(plan, FLOW_BYTES) }
}

/// Runs a plan that was not refused. Its programs, if it has any, may read what `access` says.
///
/// # Errors
/// The guest failed, hung or was stopped.
pub fn run(
    plan: &Plan,
    kernel: &Kernel,
    access: &Access,
    watch: &Watch,
) -> Result<Produced, Error> {
    let abilities = Abilities::new(&kernel.release, &kernel.congestion_controls);
    let mut job = translate::job(plan, abilities).expect("it was not refused");
    if job.flows.iter().any(boot::is_of_programs) {
        job.programs = Some(access.programs());
    }
    // A translation of many hosts takes seconds.
    watch.reach(Time::ZERO).map_err(|_| Error::Stopped)?;
    boot::run(plan, &job, &kernel.binary()?, watch)
}
