//! Packets do not vanish, and each that is dropped is listed.

use crate::Slack;
use crate::broken::{Broken, Law};
use crate::path::{Names, hint};
use crate::view::{Known, integers, labels, numbers};
use tcplab_model::Plan;
use tcplab_tables::{DropRow, Table, Tables};

/// Lost on the wire, not dropped by the queue.
const LOST: &str = "LOST_ON_THE_WIRE";
/// Dropped by the router before the link: no packet of the queue.
const TOO_LARGE: &str = "PKT_TOO_BIG";

/// What a drop counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dropped,
    Lost,
    Elsewhere,
}

/// The drops of one lane until a time: those before it, and those at the latest then.
#[derive(Clone, Copy, Default)]
struct Listed {
    dropped: [u64; 2],
    lost: [u64; 2],
}

/// A walk through the drops, which are in order.
struct Walk<'a> {
    drops: &'a Table<DropRow>,
    times: &'a [f64],
    links: &'a [u32],
    reasons: &'a [u32],
    planned: Names<'a>,
    lanes: Known<Option<usize>>,
    kinds: Known<Kind>,
}

impl<'a> Walk<'a> {
    fn new(plan: &'a Plan, drops: &'a Table<DropRow>) -> Self {
        Self {
            drops,
            times: numbers(drops, "time_s"),
            links: labels(drops, "link"),
            reasons: labels(drops, "reason"),
            planned: Names::new(plan),
            lanes: Known::new(),
            kinds: Known::new(),
        }
    }

    /// The lane of a drop and what it counts as; nothing if no lane counts it.
    fn drop(&mut self, row: usize) -> Option<(usize, Kind)> {
        let (drops, link, reason) = (self.drops, self.links[row], self.reasons[row]);
        let planned = &self.planned;
        if link == u32::MAX {
            return None;
        }
        let lane = self
            .lanes
            .get(link, || drops.text(link).and_then(|name| planned.lane(name, hint(link))))?;
        let kind = self.kinds.get(reason, || match drops.text(reason) {
            Some(LOST) => Kind::Lost,
            Some(TOO_LARGE) => Kind::Elsewhere,
            _ => Kind::Dropped,
        });
        (kind != Kind::Elsewhere).then_some((lane, kind))
    }
}

/// The drops that are listed for each lane and the counts in its last row.
pub(crate) fn check(plan: &Plan, tables: &Tables, slack: Slack) -> Result<(), Box<Broken>> {
    let links = &tables.links;
    let names = labels(links, "link");
    let mut last: Vec<Option<usize>> = vec![None; plan.lanes.len()];
    let mut known = Known::new();
    let planned = Names::new(plan);
    for (row, &label) in names.iter().enumerate() {
        let lane =
            known.get(label, || links.text(label).and_then(|name| planned.lane(name, hint(label))));
        if let Some(lane) = lane {
            last[lane] = Some(row);
        }
    }
    let times = numbers(links, "time_s");
    let mut listed = vec![Listed::default(); plan.lanes.len()];
    let mut walk = Walk::new(plan, &tables.drops);
    for row in 0..tables.drops.len() {
        let Some((lane, kind)) = walk.drop(row) else { continue };
        let Some(at) = last[lane].map(|row| times[row]) else { continue };
        let of = &mut listed[lane];
        let counts = if kind == Kind::Lost { &mut of.lost } else { &mut of.dropped };
        // Which of two things that happen at the same time is counted first, is open.
        counts[0] += u64::from(walk.times[row] < at - slack.late_s);
        counts[1] += u64::from(walk.times[row] <= at + slack.late_s);
    }
    for (lane, listed) in listed.iter().enumerate() {
        let Some(row) = last[lane] else { continue };
        for (name, [least, most]) in
            [("dropped_packets", listed.dropped), ("lost_packets", listed.lost)]
        {
            let counted = integers(links, name)[row].cast_unsigned();
            if !(least..=most).contains(&counted) {
                let what = format!("`{name}` is {counted}, and the table of drops has {least}");
                return Err(Broken::at(Law::Drops, links, row, what));
            }
        }
    }
    Ok(())
}

/// What each lane counted from beginning to end.
pub(crate) fn check_totals(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let lanes = &tables.totals.lanes;
    if lanes.len() != plan.lanes.len() {
        return Err(Broken::in_all(Law::Packets, "there is not one count for each link"));
    }
    for (lane, totals) in plan.lanes.iter().zip(lanes) {
        // A kernel may count anything; the sum has room for it.
        let gone = [totals.arrived, totals.dropped, totals.lost, totals.queued, totals.in_transit];
        if u128::from(totals.entered) != gone.into_iter().map(u128::from).sum() {
            let what = format!("{}: {totals:?}", lane.name);
            return Err(Broken::in_all(Law::Packets, what));
        }
    }
    let hops = lanes.iter().fold(0_u64, |hops, lane| hops.saturating_add(lane.arrived));
    if integers(&tables.runs, "packet_hops") != [hops.cast_signed()] {
        let what = format!("`packet_hops` is not {hops}, which is what all links counted");
        return Err(Broken::at(Law::Packets, &tables.runs, 0, what));
    }
    let mut listed = vec![(0, 0); lanes.len()];
    let mut walk = Walk::new(plan, &tables.drops);
    for row in 0..tables.drops.len() {
        match walk.drop(row) {
            Some((lane, Kind::Lost)) => listed[lane].1 += 1,
            Some((lane, _)) => listed[lane].0 += 1,
            None => {}
        }
    }
    for (lane, (totals, listed)) in plan.lanes.iter().zip(lanes.iter().zip(listed)) {
        let counted = (totals.dropped, totals.lost);
        if counted != listed {
            let what = format!(
                "{}: dropped and lost it has {counted:?}, and the table of drops {listed:?}",
                lane.name
            );
            return Err(Broken::in_all(Law::Drops, what));
        }
    }
    Ok(())
}
