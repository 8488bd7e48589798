//! What can be written in an experiment. The comments here are the reference that users read: they
//! become the descriptions of the JSON Schema and the docstrings of the Python classes.

mod changes;
mod experiment;
mod host;
mod jitter;
mod lan;
mod limit;
mod link;
mod load;
mod loss;
mod network;
mod probability;
mod queue;
mod record;
mod stack;
mod traffic;

pub use changes::{
    DelayChanges, DelayRule, Handover, OPPORTUNITY_BYTES, OutageRule, Outages, Periodic,
    RandomOutages, RandomWalk, RateChanges, RateRule, Sine, Trace,
};
pub(crate) use experiment::MOST_SEED;
pub use experiment::{Experiment, Measure, Sweep};
pub use host::{Cpu, Flow, Host};
pub use jitter::{Contention, Exponential, Jitter, Measured, Normal, ParetoTimes, Spread, Uniform};
pub use lan::{Arp, Lan, LanPlan};
pub use limit::{Limit, OrOff};
pub(crate) use link::Lane;
pub use link::{Link, LinkSettings, Reordering};
pub use load::Load;
pub use loss::{Carried, Gilbert, GilbertTime, Holding, Independent, Listed, Loss, Reading};
pub use network::{Antiparallel, Chain, Dumbbell, Network, ParkingLot, Route};
pub use probability::Probability;
pub use queue::*;
pub use record::{Record, Samples};
pub use stack::{
    AckCounting, CongestionControl, CutBase, Ecn, Flavour, Keepalive, Memory, MtuProbing, PathMtu,
    Profile, Recovery, Reduction, Stack, StackPlan,
};
pub(crate) use traffic::Setting;
pub use traffic::*;

use crate::read::{Definitions, Fields};
use serde_json::Value;
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration};

/// The JSON Schema of an experiment, for editors and for documentation.
pub fn schema() -> Value {
    let mut definitions = Definitions::new();
    let mut schema = Experiment::describe(&mut definitions);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "tcplab experiment".into();
    schema["$defs"] = Value::Object(definitions);
    schema
}

/// As many as there can be of anything that is counted one by one.
pub(crate) const MILLION: u64 = 1_000_000;

/// Any time but none.
pub(crate) const SOME_TIME: RangeInclusive<Duration> = Duration::from_picos(1)..=Duration::MAX;

/// Any amount but none.
pub(crate) const SOME_BYTES: RangeInclusive<Bytes> = Bytes(1)..=Bytes(u64::MAX);

/// Any number but zero.
pub(crate) const AT_LEAST_ONE: RangeInclusive<u64> = 1..=u64::MAX;
