//! The `sim` backend: hosts made of `tcp` on a network made of `engine`, driven by the traffic of
//! `model`, recorded in `tables`.
//!
//! | file | job |
//! |---|---|
//! | `adapt` | turns links, queues and losses of a plan into those of the engine |
//! | `unsupported` | says what of an experiment it cannot run |
//! | `stack` | turns the stack of a plan into settings of endpoints |
//! | `flow` | which connections a flow opens, and what came of them |
//! | `application` | what programs do with a connection |
//! | `connections` | the slab of connections, their ends and their ways |
//! | `routers` | which routers drop packets that are too large, and say so |
//! | `cpu` | the time that hosts take |
//! | `gro` | receive offload of hosts |
//! | `memory` | the memory that the connections of a host share |
//! | `udp` | datagrams and their fragments |
//! | `packet` | what the network carries |
//! | `ack_filter` | which ACKs a queue may drop for newer ones |
//! | `checkpoint` | runs that go on from one state |
//! | `world` | hosts and network, and the loop over what happens |
//! | `observer` | looks at packets on the network |
//! | `recorder` | writes the tables |
//! | `capture` | writes captured packets |

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

/// The version that makes the results of a plan: this backend's, and those of congestion controls that
/// were registered.
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

/// Both ends of a flow, its labels and its row.
const FLOW_BYTES: u64 = 4_000;

/// The names of the files that a run leaves beside its tables.
pub fn files(plan: &Plan) -> Vec<String> {
    let captures = !plan.record.captures.is_empty();
    captures.then(|| tcplab_capture::FILE.into()).into_iter().collect()
}

/// The least memory that a run takes, before it begins: without its tables.
pub fn least_memory(plan: &Plan) -> Held {
    Held::at_least(plan, FLOW_BYTES)
}

/// Runs a plan that this backend did not refuse.
///
/// # Errors
///
/// If `watch` was told to stop.
pub fn run(plan: &Plan, watch: &Watch) -> Result<Produced, Stopped> {
    run_shown(plan, watch, &mut |_| {})
}

/// Runs a plan, and shows its tables each time that [`SHOWN`] rows were added to one.
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
