//! Reads stored plans, written as JSON beside results.

use crate::id;
use crate::mistake::Mistake;
use crate::plan::Plan;
use crate::read::{Place, Read};
use crate::schema::{CongestionControl, Stack, StackPlan};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;
use std::sync::Arc;

impl Plan {
    /// Reads a plan from its JSON.
    ///
    /// # Errors
    /// The text is not a plan, or was written by another version.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let plan: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        plan.check_places()?;
        Ok(plan)
    }

    /// The id computed from the content, which differs from the stored one if the plan was changed.
    pub fn derived_id(&self) -> String {
        id::id(&self.backend, &self.version, self.seed, &id::content(self))
    }

    /// The id of the part that is shared with runs that are equal up to their change: such runs can
    /// continue from one state. `None` for a run without a change.
    pub fn beginning(&self) -> Option<String> {
        id::beginning(self)
    }

    /// Checks that all numbers of nodes and lanes exist.
    fn check_places(&self) -> Result<(), String> {
        let (nodes, lanes) = (self.nodes.len(), self.lanes.len());
        let ends = self.lanes.iter().flat_map(|lane| [lane.from, lane.to]);
        let ends = ends.chain(self.flows.iter().flat_map(|flow| [flow.from, flow.to]));
        let ends = ends.chain(self.hosts.iter().map(|host| host.node));
        let ways = self.flows.iter().flat_map(|flow| {
            flow.forward.iter().chain(&flow.back).copied().chain([flow.bottleneck])
        });
        let ways = ways.chain(self.record.captures.iter().copied());
        let ways = ways.chain(self.record.packets.iter().copied());
        if ends.max().is_some_and(|node| node >= nodes) {
            return Err("the plan names a node that it does not have".into());
        }
        if ways.max().is_some_and(|lane| lane >= lanes) || lanes % 2 != 0 {
            return Err("the plan names a link that it does not have".into());
        }
        if let Some(change) = &self.change {
            let flows = change.cc.iter().flat_map(|change| &change.ends).map(|end| end / 2);
            if flows.max().is_some_and(|flow| flow >= self.flows.len()) {
                return Err("the plan changes a flow that it does not have".into());
            }
            if change.lanes.iter().any(|change| change.lane >= lanes) {
                return Err("the plan changes a link that it does not have".into());
            }
        }
        Ok(())
    }
}

/// Settings that plans contain as experiments write them.
macro_rules! as_written {
    ($($type:ty),+) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                $crate::stored::setting(input)
            }
        }
    )+};
}

pub(crate) use as_written;

/// Reads a setting as written in an experiment.
pub(crate) fn setting<'de, D: Deserializer<'de>, T: Read>(input: D) -> Result<T, D::Error> {
    read(&Value::deserialize(input)?)
}

/// An optional setting, or null.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: Read>(
    input: D,
) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(input)?;
    if value.is_null() { Ok(None) } else { read(&value).map(Some) }
}

/// A transport with every option resolved.
pub(crate) fn stack<'de, D: Deserializer<'de>>(input: D) -> Result<Arc<StackPlan>, D::Error> {
    let mut value = Value::deserialize(input)?;
    if let Some(cc) = value.get_mut("cc") {
        params_beside_name(cc);
    }
    let stack: Stack = read(&value)?;
    StackPlan::decided(stack).map(Arc::new).ok_or_else(|| Error::custom("an option is missing"))
}

/// A congestion control.
pub(crate) fn congestion_control<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<CongestionControl, D::Error> {
    let mut value = Value::deserialize(input)?;
    params_beside_name(&mut value);
    read(&value)
}

/// In experiments the parameters of a congestion control are beside its name.
fn params_beside_name(value: &mut Value) {
    if let Value::Object(cc) = value
        && let Some(Value::Object(params)) = cc.shift_remove("params")
    {
        cc.extend(params);
    }
}

fn read<T: Read, E: Error>(value: &Value) -> Result<T, E> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    let read = T::read(value, &Place::Root, &mut mistakes);
    match (read, mistakes.into_iter().next()) {
        (Some(read), None) => Ok(read),
        (_, Some(mistake)) => Err(E::custom(crate::Mistakes::from(mistake))),
        (None, None) => Err(E::custom("a setting cannot be read")),
    }
}
