//! Warnings about socket buffers.

use super::super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, TcpPlan};
use crate::schema::{Flavour, Profile, StackPlan, TrafficPlan};
use std::collections::{BTreeMap, BTreeSet};
use tcplab_units::Bytes;

/// Buffers that the system limits to less than requested.
pub(super) fn cut_buffers(flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        for stack in flow.tcp().into_iter().flat_map(TcpPlan::stacks) {
            for (option, asked, key, most) in [
                ("so_rcvbuf", stack.so_rcvbuf, "rmem_max", stack.rmem_max),
                ("so_sndbuf", stack.so_sndbuf, "wmem_max", stack.wmem_max),
            ] {
                let Some(asked) = asked.on().filter(|asked| *asked > most) else { continue };
                if places.insert((&flow.place, option)) {
                    let reason = format!(
                        "is {asked}, and is cut to `{key}`, which is {most}; raise that too"
                    );
                    let place = format!("{}.stack.{option}", flow.place);
                    warnings.push(Problem::Invalid(reason).at(place));
                }
            }
        }
    }
    warnings
}

/// Endless flows whose buffers, by the profile's defaults, hold clearly less in total than the BDP
/// of their bottleneck. Sizes given explicitly are intended.
pub(super) fn narrow_buffers(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    // For each bottleneck: the total of the buffers, and the first flow's place, sender, smaller
    // buffer and its size.
    let mut rooms: BTreeMap<usize, (u64, &str, &StackPlan, &str, Bytes)> = BTreeMap::new();
    for flow in flows {
        let Some(TcpPlan { stack, peer_stack }) = flow.tcp() else { continue };
        // About half of a Linux buffer holds data.
        let room = |stack: &StackPlan, size: Bytes| match stack.flavour {
            Flavour::Linux => size.0 / 2,
            Flavour::Rfc => size.0,
        };
        let sent = (room(stack, stack.wmem), "wmem", stack.wmem);
        let received = (room(peer_stack, peer_stack.rmem), "rmem", peer_stack.rmem);
        let (least, key, size) = if received.0 <= sent.0 { received } else { sent };
        let known = rooms.entry(flow.bottleneck).or_insert((0, &flow.place, &**stack, key, size));
        let has_no_end = matches!(&*flow.traffic, TrafficPlan::Bulk(bulk) if bulk.size.is_none());
        // Other flows come and go, so their total is unknown.
        known.0 = known.0.saturating_add(if has_no_end { least } else { u64::MAX });
    }
    let narrow = rooms.into_iter().filter_map(|(lane, (room, place, stack, key, size))| {
        let lane = &topology.lanes[lane];
        let is_default = |profile: &Profile| {
            let options = profile.options();
            let own = if key == "wmem" { options.wmem } else { options.rmem };
            own == size && options.flavour == stack.flavour
        };
        (room < lane.bdp.0 / 10 * 8 && Profile::ALL.iter().any(is_default)).then(|| {
            let reason = format!(
                "buffers of {size} hold about {} of data in all, less than the BDP of {}, {}: they limit \
                 what is sent, whatever the congestion control; to fill the link, give `wmem` and `rmem` \
                 more",
                Bytes(room),
                lane.name,
                lane.bdp
            );
            Problem::Invalid(reason).at(format!("{place}.stack.{key}"))
        })
    });
    narrow.collect()
}

/// The headers of IPv4 and TCP without options, in bytes.
const HEADERS: u64 = 40;

/// Buffers that do not hold one segment.
pub(super) fn small_buffers(flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        let Some(TcpPlan { stack, peer_stack }) = flow.tcp() else { continue };
        let segment = Bytes((flow.mtu - HEADERS).min(stack.mss).min(peer_stack.mss));
        let buffers = [
            (
                "wmem",
                stack.wmem,
                "Linux still keeps one packet, other stacks send smaller \
              segments",
            ),
            ("rmem", peer_stack.rmem, "no full segment ever fits into the window"),
        ];
        for (option, size, effect) in buffers {
            if size < segment && places.insert((&flow.place, option)) {
                let reason = format!(
                    "{size} is less than a segment, which has up to {segment}: {effect}; to avoid \
                     that, give {segment} or more"
                );
                let place = format!("{}.stack.{option}", flow.place);
                warnings.push(Problem::Invalid(reason).at(place));
            }
        }
    }
    warnings
}
