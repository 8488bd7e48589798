//! Moves packets over a network in simulated time. Knows no TCP, no files and no clock.
//!
//! - [`Network`]: the lanes, the routes over them, the timers and the one queue of events.
//! - [`lane`]: one direction of a link: queue, transmission, loss, propagation.
//! - [`loss`]: which packets a lane loses.
//! - [`agenda`]: what happens next; ties go to what was entered first.
//! - [`timers`]: timers that cost nothing when re-armed.
//! - [`random`]: a generator of its own for every random element.
//!
//! What makes it fast: what is on a lane arrives in order, so only the head of each lane stands in
//! the queue of events, and a hop costs one event. A queue's drops and delays follow from the times
//! at which its packets begin transmission, which are known on entry; no event is spent on them.

pub mod agenda;
pub mod lane;
pub mod loss;
mod network;
pub mod random;
pub mod timers;

pub use lane::{LaneConfig, LaneCounters, QueueLimit};
pub use loss::Loss;
pub use network::{Drop, EndpointId, Event, LaneId, MOST, Network, Packet, RouteId};
pub use random::Random;
pub use timers::TimerId;
