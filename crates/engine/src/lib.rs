//! Moves packets over a network in simulated time. Knows no TCP, no files and no clock.
//!
//! | module | job |
//! |---|---|
//! | `packet` | what the engine may ask of a packet |
//! | `queue` | queue disciplines, one file each |
//! | [`loss`] | loss models of a lane |
//! | `lane` | one direction of a link: queue, transmission, loss, propagation |
//! | `lane::station` | stations of a shared half-duplex medium |
//! | `lane::wire` | rarer impairments: changes, traces, contention, jitter, losses, reordering |
//! | `route` | the lanes that packets take |
//! | `observer` | observers of packets on their way; reports of drops |
//! | `network` | all lanes, routes and timers, and which of them is due next |
//! | [`occupancy`] | queue occupancy |
//! | [`agenda`] | the event agenda; ties go to the lower number |
//! | [`timers`] | timers that cost nothing when re-armed |
//! | [`random`] | a separate generator for every random element |
//!
//! Two properties make the engine fast. Packets on a lane arrive in order, so only the head of each
//! lane is on the agenda, and a hop costs one event. A drop-tail queue's drops and delays follow
//! from the times at which its packets begin transmission, which are known on entry, so no event is
//! spent on them. (Managed lanes have only the first property.)

pub mod agenda;
mod lane;
pub mod loss;
mod network;
mod observer;
pub mod occupancy;
mod packet;
mod queue;
pub mod random;
mod route;
pub mod timers;

pub use lane::change::LaneChange;
pub use lane::station::{ArpConfig, StationConfig};
pub use lane::wire::{
    Carried, Contention, Light, OPPORTUNITY_BYTES, Spread, Trace, Train, WireConfig,
};
pub use lane::{LaneConfig, LaneCounters, LaneState};
pub use loss::Loss;
pub use network::{Event, MOST, Network, Order};
pub use observer::{Observer, Point, Reason};
pub use occupancy::Occupancy;
pub use packet::{Admission, Departure, Packet};
pub use queue::cake::{AckFilter, CakeConfig, Cells, Framing, Isolation, Tins};
pub use queue::codel::CoDelConfig;
pub use queue::dualpi2::{DualPi2Config, DualScheduler};
pub use queue::fq::FqConfig;
pub use queue::fq_codel::FqCoDelConfig;
pub use queue::fq_pie::FqPieConfig;
pub use queue::pie::PieConfig;
pub use queue::policer::PolicerConfig;
pub use queue::red::{Averaging, RedConfig};
pub use queue::sfq::SfqConfig;
pub use queue::tbf::TbfConfig;
pub use queue::{Discipline, QueueLimit};
pub use random::Random;
pub use route::{EndpointId, Flow, LaneId, RouteId};
pub use timers::{ConnectionTimer, TimerId};
