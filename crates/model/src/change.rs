//! Differences between an experiment and the same one with other settings, as far as these can
//! change during a run.

use crate::plan::{FlowPlan, LanePlan, Plan, QueuePlan, TcpPlan, Transport};
use crate::resolve::Resolved;
use crate::schema::{CongestionControl, DelayChanges, RateChanges, StackPlan};
use crate::stored;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tcplab_units::{Duration, Rate};

/// The changes of a run, all at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePlan {
    /// The time of the change, in whole nanoseconds: before anything else at that time.
    pub at: Duration,
    /// Congestion controls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<CcChange>,
    /// Changed lanes, in order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneChange>,
}

/// Ends of flows that get another congestion control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CcChange {
    /// The new congestion control.
    #[serde(deserialize_with = "stored::congestion_control")]
    pub cc: CongestionControl,
    /// Of flow n, 2n is `from` and 2n + 1 is `to`.
    pub ends: Vec<usize>,
}

/// The changes of a lane. A setting that is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneChange {
    /// The lane's number.
    pub lane: usize,
    /// The rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// The queue in front of the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePlan>,
}

impl Plan {
    /// The plan as it is after its change, if it has one.
    pub fn after_change(&self) -> Option<Self> {
        let change = self.change.as_ref()?;
        let mut lanes = self.lanes.to_vec();
        for LaneChange { lane, rate, delay, queue } in &change.lanes {
            let lane = &mut lanes[*lane];
            lane.rate = rate.unwrap_or(lane.rate);
            lane.delay = delay.unwrap_or(lane.delay);
            if let Some(queue) = queue {
                lane.queue.clone_from(queue);
            }
        }
        let mut flows = if change.cc.is_empty() { Vec::new() } else { self.flows.to_vec() };
        for CcChange { cc, ends } in &change.cc {
            // Flows that share a stack share the new one.
            let mut known = BTreeMap::new();
            for end in ends {
                let Transport::Tcp(tcp) = &mut flows[end / 2].transport else { continue };
                let stack = if end % 2 == 0 { &mut tcp.stack } else { &mut tcp.peer_stack };
                let before = Arc::clone(stack);
                let after = known.entry(Arc::as_ptr(&before)).or_insert_with(|| {
                    let after = StackPlan { cc: cc.clone(), ..(*before).clone() };
                    // The key is an address, valid only while the stack is kept alive here.
                    (Arc::new(after), Arc::clone(&before))
                });
                *stack = Arc::clone(&after.0);
            }
        }
        let flows = if change.cc.is_empty() { Arc::clone(&self.flows) } else { flows.into() };
        Some(Self { lanes: lanes.into(), flows, change: None, ..self.clone() })
    }

    /// The plan with its changes of rates and delays as steps of the lanes themselves, for callers
    /// that need the range of a lane over the whole run.
    pub fn with_steps(&self) -> Cow<'_, Self> {
        let Some(change) = self.change.as_ref().filter(|change| !change.lanes.is_empty()) else {
            return Cow::Borrowed(self);
        };
        let mut lanes = self.lanes.to_vec();
        for LaneChange { lane, rate, delay, .. } in &change.lanes {
            let lane = &mut lanes[*lane];
            if let Some(rate) = rate {
                lane.rate_changes = Some(RateChanges::Steps(vec![(change.at, *rate)]));
            }
            if let Some(delay) = delay {
                lane.delay_changes = Some(DelayChanges::Steps(vec![(change.at, *delay)]));
            }
        }
        Cow::Owned(Self { lanes: lanes.into(), ..self.clone() })
    }

    /// The changes of this lane, if it has any.
    pub fn change_of(&self, lane: usize) -> Option<&LaneChange> {
        self.change.as_ref()?.lanes.iter().find(|change| change.lane == lane)
    }
}

impl ChangePlan {
    /// The changes from one plan to the other at this time.
    ///
    /// # Errors
    /// The plans differ in a setting that cannot change during a run. The error names the setting.
    pub(crate) fn between(
        before: &Resolved,
        after: &Resolved,
        at: Duration,
    ) -> Result<Self, String> {
        let (was, is) = (&before.plan, &after.plan);
        let fixed = [
            (was.duration == is.duration, "the duration"),
            (was.seed == is.seed, "the seed"),
            (was.kernel == is.kernel, "the kernel"),
            (was.nodes == is.nodes && was.lanes.len() == is.lanes.len(), "the network"),
            (was.hosts == is.hosts, "a host"),
            (was.record == is.record, "what is recorded"),
            (was.measure == is.measure, "what is measured"),
            (was.flows.len() == is.flows.len(), "the number of flows"),
        ];
        if let Some((_, what)) = fixed.iter().find(|(is_same, _)| !is_same) {
            return Err((*what).into());
        }
        let mut lanes = Vec::new();
        for (lane, (was, is)) in was.lanes.iter().zip(is.lanes.iter()).enumerate() {
            let has_queue = before.queues[lane] != after.queues[lane];
            let change = LaneChange {
                lane,
                rate: (was.rate != is.rate).then_some(is.rate),
                delay: (was.delay != is.delay).then_some(is.delay),
                queue: (has_queue && was.queue != is.queue).then(|| is.queue.clone()),
            };
            check_lane(was, is, &change, before.plan.has_qdisc(was.from))?;
            if change.rate.is_some() || change.delay.is_some() || change.queue.is_some() {
                lanes.push(change);
            }
        }
        let mut cc: Vec<CcChange> = Vec::new();
        let mut stacks = Stacks::default();
        for (flow, (was, is)) in was.flows.iter().zip(is.flows.iter()).enumerate() {
            let is_as_written = before.traffic[flow_entry(was)] == after.traffic[flow_entry(is)];
            for (side, one) in stacks.between(was, is, is_as_written)?.into_iter().enumerate() {
                let Some(one) = one else { continue };
                match cc.iter_mut().find(|known| known.cc == one) {
                    Some(known) => known.ends.push(2 * flow + side),
                    None => cc.push(CcChange { cc: one, ends: vec![2 * flow + side] }),
                }
            }
        }
        Ok(Self { at, cc, lanes })
    }
}

/// The entry of the experiment's flows from which a flow comes: `flows[1]`.
fn flow_entry(flow: &FlowPlan) -> usize {
    let inside = flow.place.strip_prefix("flows[").and_then(|rest| rest.strip_suffix(']'));
    inside.and_then(|index| index.parse().ok()).unwrap_or_default()
}

/// Checks that a lane can change into another one.
fn check_lane(
    was: &LanePlan,
    is: &LanePlan,
    change: &LaneChange,
    has_qdisc: bool,
) -> Result<(), String> {
    let name = &was.name;
    let (rate, delay, queue) = (is.rate, is.delay, is.queue.clone());
    if (LanePlan { rate, delay, queue, bdp: is.bdp, ..was.clone() }) != *is {
        return Err(format!("something else of the link `{name}`"));
    }
    let refused = |what: &str, why: &str| Err(format!("the {what} of the link `{name}`, {why}"));
    let what = match change {
        LaneChange { rate: Some(_), .. } => "rate",
        LaneChange { delay: Some(_), .. } => "delay",
        LaneChange { queue: Some(_), .. } => "queue",
        _ => return Ok(()),
    };
    if was.lan.is_some() {
        return refused(what, "which is part of a shared LAN");
    }
    if has_qdisc {
        return refused(what, "before which the host has a queue of its own");
    }
    if change.rate.is_some() && was.rate_changes.is_some() {
        return refused("rate", "which has `rate_changes`");
    }
    if change.rate.is_some() && was.outages.is_some() {
        return refused("rate", "which has `outages`");
    }
    if (change.rate.is_some() || change.delay.is_some()) && was.delay_changes.is_some() {
        return refused(what, "which has `delay_changes`");
    }
    if (change.rate.is_some() || change.delay.is_some()) && was.light.is_some() {
        return refused(what, "which gives a light load its own delays");
    }
    Ok(())
}

/// Pairs of stacks that were compared.
#[derive(Default)]
struct Stacks(BTreeMap<[*const StackPlan; 2], Option<CongestionControl>>);

impl Stacks {
    /// The new congestion controls of the ends of a flow, if nothing else differs.
    fn between(
        &mut self,
        was: &FlowPlan,
        is: &FlowPlan,
        is_as_written: bool,
    ) -> Result<[Option<CongestionControl>; 2], String> {
        let refused = || format!("something else of the flow `{}`", was.name);
        let like = FlowPlan {
            // Loads refer to the link's original rate.
            traffic: Arc::clone(if is_as_written { &is.traffic } else { &was.traffic }),
            transport: is.transport.clone(),
            base_rtt: is.base_rtt,
            bottleneck: is.bottleneck,
            ..was.clone()
        };
        if like != *is {
            return Err(refused());
        }
        match (was.tcp(), is.tcp()) {
            (None, None) => Ok([None, None]),
            (Some(was), Some(is)) => self.of_tcp(was, is).ok_or_else(refused),
            _ => Err(refused()),
        }
    }

    fn of_tcp(&mut self, was: &TcpPlan, is: &TcpPlan) -> Option<[Option<CongestionControl>; 2]> {
        let mut changed = [None, None];
        for (changed, (was, is)) in
            changed.iter_mut().zip(was.stacks().into_iter().zip(is.stacks()))
        {
            let key = [Arc::as_ptr(was), Arc::as_ptr(is)];
            if let Some(known) = self.0.get(&key) {
                changed.clone_from(known);
                continue;
            }
            if (StackPlan { cc: is.cc.clone(), ..(**was).clone() }) != **is {
                return None;
            }
            *changed = (was.cc != is.cc).then(|| is.cc.clone());
            self.0.insert(key, changed.clone());
        }
        Some(changed)
    }
}
