//! When flows begin.

use tcplab_engine::Random;
use tcplab_model::FlowPlan;
use tcplab_units::Duration;

/// When a flow begins in a run with this seed, the part that is left to chance included.
pub fn start(flow: &FlowPlan, seed: u64) -> Duration {
    let mut random = Random::new(seed, &format!("start {}", flow.name));
    flow.start + Duration::from_picos(random.up_to(flow.start_jitter.as_picos()))
}
