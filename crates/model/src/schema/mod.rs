//! The settings of an experiment. The comments here are the user reference: they become the
//! descriptions of the JSON Schema and the docstrings of the Python classes.

mod advise;
mod change;
mod changes;
mod experiment;
mod host;
mod jitter;
mod lan;
mod light_load;
mod limit;
mod link;
mod load;
mod loss;
mod network;
mod probability;
mod queue;
mod record;
mod repeat;
mod rtts;
mod stack;
mod traffic;
mod vary;

pub use advise::{
    AdviceLimit, Advise, Distribution, EmpiricalValues, ExponentialValues, Goal, LogNormalValues,
    NormalValues, Over, ParetoValues, Quantity, Side, UniformValues,
};
pub use change::Change;
pub use changes::{
    DelayChanges, DelayRule, Handover, OPPORTUNITY_BYTES, OutageRule, Outages, Periodic,
    RandomOutages, RandomWalk, RateChanges, RateRule, Sine, Trace,
};
pub(crate) use experiment::MOST_SEED;
pub use experiment::{Experiment, Measure};
pub(crate) use host::default_name;
pub use host::{Cpu, Flow, Host};
pub use jitter::{Contention, Exponential, Jitter, Measured, Normal, ParetoTimes, Spread, Uniform};
pub use lan::{Arp, Lan, LanPlan};
pub use light_load::{Light, Train, Trains};
pub use limit::{Limit, OrOff};
pub(crate) use link::Lane;
pub use link::{Link, LinkSettings, Reordering};
pub use load::Load;
pub use loss::{Carried, Gilbert, GilbertTime, Holding, Independent, Listed, Loss, Reading};
pub use network::{
    Antiparallel, Chain, Dumbbell, FatTree, Graph, Network, ParkingLot, Route, Star,
};
pub use probability::Probability;
pub use queue::*;
pub use record::{Record, Samples};
pub use repeat::{Repeat, Target, Until};
pub use rtts::Rtts;
pub use stack::{
    AckCounting, CongestionControl, CutBase, Ecn, Flavour, Keepalive, Memory, MtuProbing, PathMtu,
    Profile, Recovery, Reduction, Stack, StackPlan,
};
pub(crate) use traffic::Setting;
pub use traffic::*;
pub use vary::{Let, Sweep, Variants};

use crate::read::{Definitions, Fields};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration};

/// The JSON Schema of an experiment, for editors.
pub fn schema() -> Value {
    let mut schema = schema_of_values();
    allow_parameters(&mut schema);
    schema["$defs"]["Parameter"] = json!({
        "type": "string",
        "description": "The value of a parameter, by its name: \"$rtt\".",
        "pattern": "^\\$[A-Za-z_][A-Za-z0-9_-]*$",
    });
    schema
}

/// The JSON Schema without parameters in place of values, for documentation and for programs that
/// draw values.
pub fn schema_of_values() -> Value {
    let mut definitions = Definitions::new();
    let mut schema = Experiment::describe(&mut definitions);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "tcplab experiment".into();
    schema["$defs"] = Value::Object(definitions);
    schema
}

/// The keys that assign values to parameters and other keys.
const VARYING: [&str; 5] = ["let", "sweep", "zip", "variants", "change"];

/// Allows a parameter wherever a value may stand.
fn allow_parameters(schema: &mut Value) {
    let Value::Object(parts) = schema else { return };
    for (key, part) in parts {
        match (key.as_str(), part) {
            ("properties", Value::Object(inner)) => {
                let inner = inner.iter_mut().filter(|(key, _)| !VARYING.contains(&key.as_str()));
                inner.for_each(|(_, part)| allow_parameter(part));
            }
            ("prefixItems", Value::Array(inner)) => inner.iter_mut().for_each(allow_parameter),
            ("items" | "additionalProperties", part @ Value::Object(_)) => allow_parameter(part),
            ("anyOf", Value::Array(inner)) => inner.iter_mut().for_each(allow_parameters),
            ("$defs", Value::Object(inner)) => {
                let inner = inner.iter_mut().filter(|(name, _)| name.as_str() != "Sweep");
                inner.for_each(|(_, part)| allow_parameters(part));
            }
            _ => {}
        }
    }
}

fn allow_parameter(schema: &mut Value) {
    allow_parameters(schema);
    let is_any_text = schema["type"] == "string" && schema["pattern"].is_null();
    if is_any_text || schema["const"].is_string() {
        return;
    }
    let mut allowed = json!({});
    for key in ["description", "default"] {
        if let Some(said) = schema.as_object_mut().and_then(|parts| parts.shift_remove(key)) {
            allowed[key] = said;
        }
    }
    allowed["anyOf"] = json!([schema.take(), { "$ref": "#/$defs/Parameter" }]);
    *schema = allowed;
}

/// The limit of anything that is counted one by one.
pub(crate) const MILLION: u64 = 1_000_000;

/// Any time except zero.
pub(crate) const SOME_TIME: RangeInclusive<Duration> = Duration::from_picos(1)..=Duration::MAX;

/// Any amount except zero.
pub(crate) const SOME_BYTES: RangeInclusive<Bytes> = Bytes(1)..=Bytes(u64::MAX);

/// Any number except zero.
pub(crate) const AT_LEAST_ONE: RangeInclusive<u64> = 1..=u64::MAX;
