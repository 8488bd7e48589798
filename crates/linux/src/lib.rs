//! The `linux` backend, host side: gets a kernel, boots it as a process whose clock stands still
//! while code runs, passes it the experiment, and collects the tables.
//!
//! | module | job |
//! |---|---|
//! | [`kernel`] | builds and caches kernels |
//! | `kernels` | selects the kernel of a plan |
//! | `translate` | translates a plan into a job for the guest, or rejects it |
//! | `boot` | runs the kernel as a process, watches it, ends it |
//! | `records` | reads the kernel's records |
//! | `headers` | reads packet headers |
//! | `recorder` | writes the tables |
//! | `scratch` | holds a guest's files during a run |
//! | [`files`] | the names of the files that a run writes beside its tables |
//! | `outputs` | reads the output of programs from the guest's files |
//! | `sandbox` | decides what programs may read |

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

/// The host side's memory for a flow, in bytes.
const FLOW_BYTES: u64 = 7_000;

/// The memory of a booted kernel, and of each connection with a queue in front of it.
const KERNEL_BYTES: u64 = 70_000_000;
const CONNECTION_BYTES: u64 = 85_000;

/// The additional memory for programs in the guest: its minimum (`boot::memory_mib`).
const PROGRAMS_BYTES: u64 = 512 << 20;

/// The least memory that a run needs, kernel included.
pub fn least_memory(plan: &Plan) -> Held {
    let is_program = |flow: &FlowPlan| matches!(*flow.traffic, TrafficPlan::Command(_));
    let programs = if plan.flows.iter().any(is_program) { PROGRAMS_BYTES } else { 0 };
    let kernel = KERNEL_BYTES + programs + CONNECTION_BYTES * plan.flows.len() as u64;
    Held { kernel, ..Held::at_least(plan, FLOW_BYTES) }
}

/// Runs an accepted plan. Its programs, if any, may read what `access` allows.
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
    // The translation of many hosts takes seconds.
    watch.reach(Time::ZERO).map_err(|_| Error::Stopped)?;
    boot::run(plan, &job, &kernel.binary()?, watch)
}
