//! Changes during a run.

use super::World;
use crate::adapt::lanes;
use tcplab_engine::{LaneId, Random};
use tcplab_model::{CcChange, ChangePlan, Plan};
use tcplab_units::Duration;

impl<'a> World<'a> {
    /// A copy of the whole state, which runs beside this one.
    pub fn beside(&self) -> Self {
        let mut copy = self.clone();
        copy.beside = copy.count_held();
        copy
    }

    /// The run continues as that of `plan`, which has been equal so far; `after` is that plan after
    /// its change. Nothing else has happened in this nanosecond.
    #[cold]
    pub fn change(&mut self, plan: &'a Plan, after: &'a Plan) {
        let Some(change) = &plan.change else { return };
        self.recorder.go_on_as(plan, &after.flows);
        (self.plan, self.present) = (plan, after);
        for change in &change.lanes {
            let name = &after.lanes[change.lane].name;
            let random = |element: &str| Random::new(after.seed, &format!("{element} {name}"));
            let lane = LaneId(change.lane as u32);
            self.network.change(lane, &lanes::change(after, change), random);
        }
        self.keep_ways(change);
        for CcChange { ends, .. } in &change.cc {
            for &end in ends {
                self.set_congestion_control(end);
            }
        }
    }

    /// Moves all connections of an end of a flow to its new congestion control.
    fn set_congestion_control(&mut self, end: usize) {
        let (flow, side, now) = (end / 2, end % 2, self.network.now());
        for pair in 0..self.connections.pairs.len() {
            let known = &self.connections.pairs[pair];
            if known.flow == flow && !known.is_free {
                let control = self.connections.control(self.present, (flow, side));
                self.connections.ends[2 * pair + side]
                    .endpoint
                    .set_congestion_control(now, control);
            }
        }
    }

    /// Packets may stay on a changed lane for longer than was known: free routes over it are not
    /// reused.
    fn keep_ways(&mut self, change: &ChangePlan) {
        let changes = |lane: &usize| change.lanes.iter().any(|change| change.lane == *lane);
        for flow in &mut self.flows {
            if flow.plan.forward.iter().chain(&flow.plan.back).any(changes) {
                flow.quarantine = Duration::MAX;
            }
        }
    }
}
