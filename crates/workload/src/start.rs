//! The starts of flows.

use tcplab_engine::Random;
use tcplab_model::FlowPlan;
use tcplab_units::Duration;

/// The start of a flow in a run with this seed, including the random addition.
pub fn start(flow: &FlowPlan, seed: u64) -> Duration {
    let mut random = Random::new(seed, &format!("start {}", flow.name));
    flow.start + Duration::from_picos(random.up_to(flow.start_jitter.as_picos()))
}
