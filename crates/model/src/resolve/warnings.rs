//! Warnings about settings without effect, or with one that is hardly intended.
//!
//! A setting that cannot be intended is a mistake. The settings here have a meaning that somebody
//! may want, so the experiment runs.

mod buffers;
mod flows;
mod links;

use super::hosts;
use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::FlowPlan;
use crate::schema::Experiment;
use tcplab_units::Duration;

/// All warnings about one variant, one for each place.
pub(crate) fn all(
    topology: &Topology,
    flows: &[FlowPlan],
    experiment: &Experiment,
) -> Vec<Mistake> {
    let duration = experiment.duration;
    let mut warnings = links::parallel_links(topology);
    for lane in &topology.lanes {
        let found = links::idle_shaper(lane).into_iter().chain(links::late_changes(lane, duration));
        let found = found.chain(links::replaced_rate(lane)).chain(links::replaced_delay(lane));
        warnings.extend(
            found
                .chain(links::odd_loss(lane))
                .map(|(key, reason)| Problem::Invalid(reason).at(format!("{}.{key}", lane.place))),
        );
    }
    warnings.extend(hosts::odd(experiment, topology, flows));
    warnings.extend(long_intervals(experiment));
    warnings.extend(flows::late_flows(flows, duration));
    warnings.extend(flows::late_periods(flows, duration));
    warnings.extend(links::short_queues(topology, flows));
    warnings.extend(buffers::small_buffers(flows));
    warnings.extend(buffers::cut_buffers(flows));
    warnings.extend(buffers::narrow_buffers(topology, flows));
    warnings.extend(flows::changing_loads(topology, flows, experiment));
    warnings.extend(flows::overloads(topology, flows));
    warnings.extend(flows::floods(topology, flows));
    warnings.extend(flows::unmarked(topology, flows));
    warnings.extend(flows::torn(topology, flows));
    warnings
}

/// Result intervals that are longer than the measured part.
fn long_intervals(experiment: &Experiment) -> Option<Mistake> {
    let every = experiment.every?;
    let (from, to) = experiment.measure.as_ref().map_or((None, None), |it| (it.from, it.to));
    let (from, to) = (from.unwrap_or(Duration::ZERO), to.unwrap_or(experiment.duration));
    let measured = to.saturating_sub(from);
    (every > measured).then(|| {
        let reason = format!(
            "is {every}, and the measured part lasts {measured}: there is one \
                              interval"
        );
        Problem::Invalid(reason).at("every")
    })
}
