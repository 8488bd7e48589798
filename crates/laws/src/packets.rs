//! Packets do not vanish, and each dropped packet is listed.

use crate::Slack;
use crate::broken::{Broken, Law};
use crate::links::Links;
use crate::order::Times;
use crate::path::{Names, hint};
use crate::rows::{Check, Known, Rows};
use crate::values;
use std::ops::ControlFlow;
use tcplab_model::Plan;
use tcplab_tables::{DropColumns, DropRow, PacketRow, Part, Tables};

/// Lost or corrupted on the wire, not dropped by the queue.
const LOST: &str = "LOST_ON_THE_WIRE";
const CORRUPTED: &str = "CORRUPTED";
/// Dropped by the router before the link, and never in the queue.
const TOO_LARGE: &str = "PKT_TOO_BIG";

/// The laws of the table of packets.
pub(crate) struct Packets<'a> {
    plan: &'a Plan,
    times: Times,
}

impl<'a> Packets<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, times: Times::new(plan) }
    }
}

impl Check<PacketRow> for Packets<'_> {
    fn check(&mut self, rows: &Rows<'_, PacketRow>) -> Result<(), Box<Broken>> {
        values::check(self.plan, rows)?;
        self.times.check(rows, rows.columns().time_s)
    }
}

/// The counter of a drop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dropped,
    Lost,
    Elsewhere,
}

/// The drops of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Listed {
    dropped: u64,
    lost: u64,
}

impl Listed {
    fn of(&mut self, kind: Kind) -> &mut u64 {
        if kind == Kind::Lost { &mut self.lost } else { &mut self.dropped }
    }
}

/// The laws of drops.
pub(crate) struct Drops<'a> {
    plan: &'a Plan,
    planned: Names<'a>,
    times: Times,
    lanes: Known<Option<usize>>,
    kinds: Known<Kind>,
    /// The drops of each lane.
    listed: Vec<Listed>,
}

impl<'a> Drops<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            planned: Names::new(plan),
            times: Times::new(plan),
            lanes: Known::new(),
            kinds: Known::new(),
            listed: vec![Listed::default(); plan.lanes.len()],
        }
    }

    /// The lane and counter of a drop; `None` if no lane counts it.
    fn drop(
        &mut self,
        part: &Part<'_, DropRow>,
        drops: &DropColumns<'_>,
        row: usize,
    ) -> Option<(usize, Kind)> {
        let (link, reason) = (drops.link[row], drops.reason[row]);
        if link == u32::MAX {
            return None;
        }
        let planned = &self.planned;
        let lane = (*self
            .lanes
            .get(link, || part.text(link).and_then(|name| planned.lane(name, hint(link)))))?;
        let kind = *self.kinds.get(reason, || match part.text(reason) {
            Some(LOST | CORRUPTED) => Kind::Lost,
            Some(TOO_LARGE) => Kind::Elsewhere,
            _ => Kind::Dropped,
        });
        (kind != Kind::Elsewhere).then_some((lane, kind))
    }

    /// Compares the listed drops of each lane with the counters in its last row of the table of
    /// links.
    pub fn check_links(
        &mut self,
        tables: &Tables,
        links: &Links<'_>,
        slack: Slack,
    ) -> Result<(), Box<Broken>> {
        let sampled = links.lanes.iter().filter(|lane| lane.last.is_some());
        let first = sampled.map(|lane| lane.time_s).fold(f64::INFINITY, f64::min);
        // Rows until then: of simultaneous events either may be counted first.
        let (mut least, mut most) = (self.listed.clone(), self.listed.clone());
        self.each_from_last(tables, |time, lane, kind| {
            if time < first - slack.late_s {
                return ControlFlow::Break(());
            }
            let at = links.lanes[lane].time_s;
            *least[lane].of(kind) -= u64::from(time >= at - slack.late_s);
            *most[lane].of(kind) -= u64::from(time > at + slack.late_s);
            ControlFlow::Continue(())
        });
        for (number, lane) in links.lanes.iter().enumerate() {
            let Some(row) = lane.last else { continue };
            let [dropped, lost, ..] = lane.counted.map(i64::cast_unsigned);
            let (least, most) = (least[number], most[number]);
            for (name, counted, listed) in [
                ("dropped_packets", dropped, least.dropped..=most.dropped),
                ("lost_packets", lost, least.lost..=most.lost),
            ] {
                if !listed.contains(&counted) {
                    let least = listed.start();
                    let what = format!("`{name}` is {counted}, and the table of drops has {least}");
                    let part = tables.links.part_with(row);
                    return Err(Broken::at(Law::Drops, &part, row - part.first(), what));
                }
            }
        }
        Ok(())
    }

    /// Visits drops with their times, the last first.
    fn each_from_last(
        &mut self,
        tables: &Tables,
        mut each: impl FnMut(f64, usize, Kind) -> ControlFlow<()>,
    ) {
        let drops = &tables.drops;
        for number in (0..drops.number_of_parts()).rev() {
            let part = drops.part(number);
            let columns = part.slices(0..part.len());
            for row in (0..part.len()).rev() {
                let Some((lane, kind)) = self.drop(&part, &columns, row) else { continue };
                if each(columns.time_s[row], lane, kind).is_break() {
                    return;
                }
            }
        }
    }

    /// Compares rows with the counters of each lane over the whole run.
    pub fn check_totals(&self, tables: &Tables) -> Result<(), Box<Broken>> {
        let (plan, lanes) = (self.plan, &tables.totals.lanes);
        if lanes.len() != plan.lanes.len() {
            return Err(Broken::in_all(Law::Packets, "there is not one count for each link"));
        }
        for (lane, totals) in plan.lanes.iter().zip(lanes) {
            // A kernel's counters may be arbitrary; the sum cannot overflow.
            let gone =
                [totals.arrived, totals.dropped, totals.lost, totals.queued, totals.in_transit];
            if u128::from(totals.entered) != gone.into_iter().map(u128::from).sum() {
                let what = format!("{}: {totals:?}", lane.name);
                return Err(Broken::in_all(Law::Packets, what));
            }
        }
        let hops = lanes.iter().fold(0_u64, |hops, lane| hops.saturating_add(lane.arrived));
        let runs = tables.runs.part(0);
        if runs.slices(0..runs.len()).packet_hops != [hops.cast_signed()] {
            let what = format!("`packet_hops` is not {hops}, the sum over all links");
            return Err(Broken::at(Law::Packets, &runs, 0, what));
        }
        for (lane, (totals, listed)) in plan.lanes.iter().zip(lanes.iter().zip(&self.listed)) {
            let counted = (totals.dropped, totals.lost);
            let listed = (listed.dropped, listed.lost);
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
}

impl Check<DropRow> for Drops<'_> {
    fn check(&mut self, rows: &Rows<'_, DropRow>) -> Result<(), Box<Broken>> {
        values::check(self.plan, rows)?;
        let drops = rows.columns();
        self.times.check(rows, drops.time_s)?;
        for row in 0..rows.len() {
            if let Some((lane, kind)) = self.drop(rows.part(), &drops, row) {
                *self.listed[lane].of(kind) += 1;
            }
        }
        Ok(())
    }
}
