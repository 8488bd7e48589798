//! The `sim` backend: hosts built on `tcp`, on a network of `engine`, driven by the traffic of
//! `model` and recorded in `tables`.
//!
//! | file | job |
//! |---|---|
//! | `adapt` | turns links, queues and losses of a plan into those of the engine |
//! | `unsupported` | rejects features of an experiment that this backend does not run |
//! | `stack` | turns the stack of a plan into settings of endpoints |
//! | `flow` | connections of a flow, and their outcomes |
//! | `application` | application programs |
//! | `connections` | the slab of connections, their ends and routes |
//! | `routers` | routers that drop packets that are too large |
//! | `cpu` | processing time of hosts |
//! | `gro` | receive offload of hosts |
//! | `memory` | memory that the connections of a host share |
//! | `udp` | datagrams and their fragments |
//! | `packet` | packets on the network |
//! | `ack_filter` | ACKs that a queue may drop for newer ones |
//! | `checkpoint` | runs that share their beginning |
//! | `world` | hosts and network, and the event loop |
//! | `observer` | observes packets on the network |
//! | `recorder` | writes the tables |
//! | `capture` | writes packet captures |

mod ack_filter;
mod adapt;
mod application;
mod capture;
mod checkpoint;
mod connections;
mod cpu;
mod flow;
mod gro;
mod memory;
mod observer;
mod packet;
mod recorder;
mod routers;
mod stack;
mod udp;
mod unsupported;
mod world;

pub use checkpoint::Beginning;
pub use recorder::SHOWN;
pub use stack::{build_control, settings};

use recorder::Show;
use std::collections::BTreeSet;
use tcplab_cc::registered_names;
use tcplab_model::memory::Held;
use tcplab_model::{Backend, Plan, Profile, Stopped, Watch};
use tcplab_tables::{Produced, Tables};
use world::World;

/// This backend's name.
pub const NAME: &str = "sim";

/// This backend's version: results of equal versions are equal.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// This backend, for making plans.
pub fn backend() -> Backend<'static> {
    Backend {
        name: NAME,
        profile: Profile::Linux612,
        version: &version,
        unsupported: &unsupported::unsupported,
    }
}

/// The version that makes the results of a plan: this backend's, and those of registered congestion
/// controls.
pub fn version(plan: &Plan) -> String {
    if registered_names().is_empty() {
        return VERSION.into();
    }
    let own = plan.flows.iter().filter_map(|flow| stack::version(&flow.tcp()?.stack.cc));
    let later = plan.change.iter().flat_map(|change| &change.cc);
    let later = later.filter_map(|change| stack::version(&change.cc));
    let own: BTreeSet<_> = own.chain(later).collect();
    own.into_iter().fold(VERSION.into(), |version, own| version + "+" + &own)
}

/// The memory of both ends of a flow, its labels and its row.
const FLOW_BYTES: u64 = 4_000;

/// The names of the files that a run writes beside its tables.
pub fn files(plan: &Plan) -> Vec<String> {
    let captures = !plan.record.captures.is_empty();
    captures.then(|| tcplab_capture::FILE.into()).into_iter().collect()
}

/// The least memory that a run needs, before it begins and without its tables.
pub fn least_memory(plan: &Plan) -> Held {
    Held::at_least(plan, FLOW_BYTES)
}

/// Runs a plan that this backend accepts.
///
/// # Errors
///
/// If `watch` was told to stop.
pub fn run(plan: &Plan, watch: &Watch) -> Result<Produced, Stopped> {
    run_shown(plan, watch, &mut |_| {})
}

/// Runs a plan, and shows its tables whenever [`SHOWN`] rows were added to one of them.
///
/// # Errors
///
/// If `watch` was told to stop.
pub fn run_shown(
    plan: &Plan,
    watch: &Watch,
    show: &mut dyn FnMut(&Tables),
) -> Result<Produced, Stopped> {
    let show = Show(Some(Box::new(show)));
    if plan.change.is_none() {
        return World::new(plan, show).run(watch);
    }
    let mut beginning = Beginning::new(plan, show);
    beginning.run(watch)?;
    beginning.finish(plan, watch)
}
