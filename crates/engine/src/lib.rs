//! Moves packets over a network in simulated time. Knows no TCP, no files and no clock.
//!
//! - [`Network`]: the lanes, the routes over them, the timers and the one queue of events.
//! - [`lane`]: one direction of a link: queue, transmission, loss, propagation.
//! - [`loss`]: which packets a lane loses.
//! - [`occupancy`]: how full a queue was.
//! - [`managed`]: queues other than drop-tail; [`red`] and [`codel`]: their disciplines.
//! - [`agenda`]: what happens next; ties go to the lower number.
//! - [`timers`]: timers that cost nothing when re-armed.
//! - [`random`]: a generator of its own for every random element.
//!
//! What makes it fast: what is on a lane arrives in order, so only the head of each lane stands in
//! the queue of events, and a hop costs one event. A queue's drops and delays follow from the times
//! at which its packets begin transmission, which are known on entry; no event is spent on them. (Of
//! managed queues only the second holds.)

pub mod agenda;
pub mod codel;
pub mod lane;
pub mod loss;
pub mod managed;
mod network;
pub mod occupancy;
pub mod random;
pub mod red;
pub mod timers;

pub use codel::CoDelConfig;
pub use lane::{LaneConfig, LaneCounters, LaneState, QueueLimit};
pub use loss::Loss;
pub use managed::Discipline;
pub use network::{Drop, EndpointId, Event, LaneId, MOST, Network, Order, Packet, Reason, RouteId};
pub use occupancy::Occupancy;
pub use random::Random;
pub use red::{Averaging, RedConfig};
pub use timers::TimerId;
