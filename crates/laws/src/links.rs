//! Links do not exceed their rate, and queues do not exceed their limit.

use crate::Slack;
use crate::broken::{Broken, Law};
use crate::capacity::Capacity;
use crate::path::{Names, hint};
use crate::rows::{Check, Known, Rows};
use crate::values;
use std::collections::BTreeMap;
use tcplab_model::{Discipline, LanePlan, Plan, QueueLimit, QueuePlan};
use tcplab_tables::{LinkColumns, LinkRow, Tables};

/// Counters since the start of the experiment.
const COUNTS: [&str; 5] =
    ["dropped_packets", "lost_packets", "marked_packets", "sent_packets", "sent_bytes"];

/// The relative rounding error of shares and means of whole numbers.
const ROUNDING: f64 = 1e-9;

/// The laws of links.
pub(crate) struct Links<'a> {
    plan: &'a Plan,
    planned: Names<'a>,
    late_s: f64,
    end_s: f64,
    /// The number of the lane of each label.
    known: Known<usize>,
    /// The lanes by number.
    pub lanes: Vec<Lane>,
    /// Whether there has been a row for each lane in turn so far.
    is_in_turn: bool,
    active: Active,
}

/// The state of a lane at its last sample.
pub(crate) struct Lane {
    capacity: Capacity,
    limit: QueueLimit,
    /// Whether accepted packets count as sent while they wait.
    waits_after_sent: bool,
    /// When such a queue is replaced: its waiting packets have counted as sent, but have not left.
    replaced_s: f64,
    mtu: f64,
    /// Bytes by which rounding of packet times, and a late sample, may put the lane ahead.
    rounding: f64,
    late: f64,
    /// The most bytes by which the lane had fallen behind its rate before the last row.
    least: f64,
    /// The index of the last row, and its values.
    pub last: Option<usize>,
    pub time_s: f64,
    left: f64,
    queue: [i64; 2],
    pub counted: [i64; COUNTS.len()],
}

impl Lane {
    fn new(plan: &Plan, (number, lane): (usize, &LanePlan), slack: Slack) -> Self {
        let change = plan.change.as_ref();
        let queue = plan.change_of(number).and_then(|change| change.queue.as_ref());
        let limit = match (limit(&lane.queue, lane.mtu), queue.map(|queue| limit(queue, lane.mtu)))
        {
            (before, None) => before,
            (QueueLimit::Packets(before), Some(QueueLimit::Packets(after))) => {
                QueueLimit::Packets(before.max(after))
            }
            (QueueLimit::Bytes(before), Some(QueueLimit::Bytes(after))) => {
                QueueLimit::Bytes(before.max(after))
            }
            _ => QueueLimit::Packets(u64::MAX),
        };
        let counts_waiting =
            |queue: &QueuePlan| matches!(queue.discipline, Discipline::DropTail(_));
        let stays = queue.is_none_or(counts_waiting);
        let replaced = change.filter(|_| counts_waiting(&lane.queue) && !stays);
        let limit = match limit {
            limit if !plan.has_qdisc(lane.from) => limit,
            // A host's own queue counts bursts, of any number of packets.
            QueueLimit::Packets(_) => QueueLimit::Packets(u64::MAX),
            // Besides the queue, the rest of a departing burst.
            QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes.saturating_mul(2)),
        };
        let capacity = Capacity::of(plan, lane);
        Self {
            rounding: capacity.rounding(),
            late: capacity.most_in(slack.late_s),
            capacity,
            limit,
            waits_after_sent: counts_waiting(&lane.queue),
            replaced_s: replaced.map_or(f64::INFINITY, |change| change.at.as_secs_f64()),
            mtu: lane.mtu as f64,
            least: 0.0,
            last: None,
            time_s: 0.0,
            left: 0.0,
            queue: [0; 2],
            counted: [0; COUNTS.len()],
        }
    }
}

/// The limit of a queue, in its own unit.
fn limit(queue: &QueuePlan, mtu: u64) -> QueueLimit {
    let in_bytes =
        matches!(queue.discipline, Discipline::Red(_) | Discipline::Cake(_) | Discipline::Tbf(_));
    match queue.limit {
        QueueLimit::Packets(packets) if in_bytes => QueueLimit::Bytes(packets.saturating_mul(mtu)),
        // Linux limits each of three bands, and control packets not at all (`fq_enqueue`).
        _ if matches!(queue.discipline, Discipline::Fq(_)) => QueueLimit::Packets(u64::MAX),
        limit => limit,
    }
}

/// A row.
#[derive(Clone, Copy)]
struct Seen {
    time_s: f64,
    queue: [i64; 2],
    most: [i64; 2],
    mean: [f64; 2],
    counted: [i64; COUNTS.len()],
    utilisation: f64,
}

impl Seen {
    #[expect(clippy::inline_always, reason = "its values stay where they are")]
    #[inline(always)]
    fn of(links: &LinkColumns<'_>, row: usize) -> Self {
        Self {
            time_s: links.time_s[row],
            queue: [links.queue_packets[row], links.queue_bytes[row]],
            most: [links.queue_max_packets[row], links.queue_max_bytes[row]],
            mean: [links.queue_mean_packets[row], links.queue_mean_bytes[row]],
            counted: [
                links.dropped_packets[row],
                links.lost_packets[row],
                links.marked_packets[row],
                links.sent_packets[row],
                links.sent_bytes[row],
            ],
            utilisation: links.utilisation[row],
        }
    }
}

impl Lane {
    /// Bytes by which the lane was ahead of its rate when so many had left.
    fn ahead(&self, left: f64, time_s: f64) -> f64 {
        left - self.capacity.until(time_s)
    }
}

impl<'a> Links<'a> {
    pub fn new(plan: &'a Plan, slack: Slack) -> Self {
        Self {
            plan,
            planned: Names::new(plan),
            late_s: slack.late_s,
            end_s: plan.duration.as_secs_f64(),
            known: Known::new(),
            lanes: plan.lanes.iter().enumerate().map(|lane| Lane::new(plan, lane, slack)).collect(),
            is_in_turn: true,
            active: Active::default(),
        }
    }

    fn check_rows(&mut self, rows: &Rows<'_, LinkRow>) -> Result<(), Box<Broken>> {
        let now = rows.columns();
        match rows.columns_before(self.lanes.len()) {
            Some(before) if self.is_in_turn && now.link == before.link => {
                self.check_active(rows, &now, &before)
            }
            _ => self.check_each(rows, &now),
        }
    }

    /// Checks that all stations of a shared medium together have not exceeded its rate: there is
    /// one frame at a time.
    pub fn check_media(&self, tables: &Tables) -> Result<(), Box<Broken>> {
        let mut left: BTreeMap<usize, f64> = BTreeMap::new();
        for (plan, lane) in self.plan.lanes.iter().zip(&self.lanes) {
            let (Some(lan), Some(row)) = (&plan.lan, lane.last) else { continue };
            if plan.leaves_lan() {
                continue;
            }
            let left = left.entry(lan.node).or_default();
            *left += lane.left;
            let excess = lane.ahead(*left, lane.time_s) - lane.mtu;
            if excess > ROUNDING * left.max(1.0) {
                let excess = excess.ceil();
                let what = "bytes more have left its stations than the rate of the LAN allows, and one packet";
                let part = tables.links.part_with(row);
                let what = format!("{}: {excess:.0} {what}", lan.name);
                return Err(Broken::at(Law::Rate, &part, row - part.first(), what));
            }
        }
        Ok(())
    }

    /// The lane of a row, and its number.
    #[inline]
    fn lane(&mut self, rows: &Rows<'_, LinkRow>, label: u32) -> Option<(usize, &mut Lane)> {
        let number = *self.known.get(label, || {
            let name = rows.text(label);
            let lane = name.and_then(|name| self.planned.lane(name, hint(label)));
            lane.unwrap_or(usize::MAX)
        });
        Some((number, self.lanes.get_mut(number)?))
    }

    fn check_each(
        &mut self,
        rows: &Rows<'_, LinkRow>,
        links: &LinkColumns<'_>,
    ) -> Result<(), Box<Broken>> {
        let (late_s, end_s, lanes) = (self.late_s, self.end_s, self.lanes.len());
        for row in 0..rows.len() {
            let Some((number, lane)) = self.lane(rows, links.link[row]) else {
                return Err(rows.broken(Law::Value, row, "the experiment has no such link"));
            };
            let checked = lane.check(&Seen::of(links, row), late_s, end_s);
            checked.map_err(|(law, what)| rows.broken(law, row, what))?;
            (lane.last, lane.time_s) = (Some(rows.number(row)), links.time_s[row]);
            self.is_in_turn &= number == rows.number(row) % lanes;
        }
        Ok(())
    }

    /// Checks rows of lanes in turn, with the previous rows available. If nothing has happened
    /// since and nothing waits, all conditions except those of time hold. Most rows are like that
    /// when samples are closer than packets.
    fn check_active(
        &mut self,
        rows: &Rows<'_, LinkRow>,
        now: &LinkColumns<'_>,
        before: &LinkColumns<'_>,
    ) -> Result<(), Box<Broken>> {
        let (late_s, end_s) = (self.late_s, self.end_s);
        let mut active = std::mem::take(&mut self.active);
        active.find(now, before, end_s);
        for row in active.rows() {
            let Some((_, lane)) = self.lane(rows, now.link[row]) else { continue };
            lane.time_s = before.time_s[row];
            let checked = lane.check(&Seen::of(now, row), late_s, end_s);
            checked.map_err(|(law, what)| rows.broken(law, row, what))?;
        }
        self.active = active;
        for row in rows.len().saturating_sub(self.lanes.len())..rows.len() {
            let Some((_, lane)) = self.lane(rows, now.link[row]) else { continue };
            (lane.last, lane.time_s) = (Some(rows.number(row)), now.time_s[row]);
        }
        Ok(())
    }
}

/// Rows with activity.
#[derive(Default)]
struct Active {
    /// A bit for each row, 0 without activity.
    bits: Vec<u64>,
    rows: Vec<u32>,
    number: usize,
}

impl Active {
    fn rows(&self) -> impl Iterator<Item = usize> {
        self.rows[..self.number].iter().map(|row| *row as usize)
    }

    /// Finds rows with activity since the previous row, with waiting packets, or with a wrong time.
    /// Branch-free and with few columns at a time, so that compilers vectorize it.
    #[inline(never)]
    fn find(&mut self, now: &LinkColumns<'_>, before: &LinkColumns<'_>, end_s: f64) {
        let rows = now.time_s.len();
        self.bits.resize(rows, 0);
        let waits =
            [now.queue_packets, now.queue_bytes, now.queue_max_packets, now.queue_max_bytes];
        let [packets, bytes, most_packets, most_bytes] = waits.map(|column| &column[..rows]);
        let [packets_before, bytes_before] =
            [before.queue_packets, before.queue_bytes].map(|column| &column[..rows]);
        let means = [now.queue_mean_packets, now.queue_mean_bytes, now.utilisation];
        let [mean_packets, mean_bytes, share] = means.map(|column| &column[..rows]);
        for (row, bits) in self.bits.iter_mut().enumerate() {
            let waits = packets[row] | bytes[row] | most_packets[row] | most_bytes[row];
            let waited = packets_before[row] | bytes_before[row];
            let means =
                mean_packets[row].to_bits() | mean_bytes[row].to_bits() | share[row].to_bits();
            *bits = (waits | waited).cast_unsigned() | means;
        }
        let counts = [
            (now.dropped_packets, before.dropped_packets),
            (now.lost_packets, before.lost_packets),
            (now.marked_packets, before.marked_packets),
            (now.sent_packets, before.sent_packets),
            (now.sent_bytes, before.sent_bytes),
        ];
        let [dropped, lost, marked, sent, bytes] =
            counts.map(|(now, before)| (&now[..rows], &before[..rows]));
        let (times, times_before) = (&now.time_s[..rows], &before.time_s[..rows]);
        for (row, bits) in self.bits.iter_mut().enumerate() {
            let changed = (dropped.0[row] ^ dropped.1[row])
                | (lost.0[row] ^ lost.1[row])
                | (marked.0[row] ^ marked.1[row])
                | (sent.0[row] ^ sent.1[row])
                | (bytes.0[row] ^ bytes.1[row]);
            let in_time = (times_before[row]..=end_s).contains(&times[row]);
            *bits |= changed.cast_unsigned() | u64::from(!in_time);
        }
        self.rows.resize(rows, 0);
        self.number = 0;
        for (row, bits) in self.bits.iter().enumerate() {
            self.rows[self.number] = row as u32;
            self.number += usize::from(*bits != 0);
        }
    }
}

impl Lane {
    /// Checks a row, and keeps its values.
    #[expect(clippy::inline_always, reason = "most of a row needs not be moved then")]
    #[inline(always)]
    fn check(&mut self, row: &Seen, late_s: f64, end_s: f64) -> Result<(), (Law, String)> {
        let Seen { time_s, queue, most, mean, counted, utilisation } = *row;
        let mut pairs = counted.iter().zip(&self.counted).zip(COUNTS);
        if let Some(((count, before), name)) = pairs.find(|((now, before), _)| now < before) {
            return Err((Law::Time, format!("`{name}` is {count}, after {before}")));
        }
        if !(self.time_s..=end_s).contains(&time_s) {
            let what = format!("`time_s` is not from {} to {end_s}", self.time_s);
            return Err((Law::Time, what));
        }

        let [.., sent_packets, sent_bytes] = counted;
        if time_s >= self.replaced_s {
            (self.waits_after_sent, self.replaced_s) = (false, f64::INFINITY);
            (self.left, self.least) = (sent_bytes as f64, self.ahead(sent_bytes as f64, time_s));
        }
        let waiting = if self.waits_after_sent { queue[1] } else { 0 };
        let left = sent_bytes.saturating_sub(waiting) as f64;
        let rounding = sent_packets as f64 * self.rounding;
        self.least = self.least.min(self.ahead(self.left, self.time_s));
        let excess = self.ahead(left, time_s) - self.least - self.mtu - rounding - self.late;
        if excess > ROUNDING * left.max(1.0) {
            let excess = excess.ceil();
            let what = "bytes more have left it than its rate allows, and one packet";
            return Err((Law::Rate, format!("{excess:.0} {what}")));
        }
        let tolerance =
            if late_s > 0.0 { late_s / (time_s - self.time_s).max(late_s) } else { 0.0 };
        let share = 1.0 + ROUNDING + tolerance;
        if !(0.0..=share).contains(&utilisation) {
            return Err((Law::Rate, "`utilisation` is not between 0 and 1".into()));
        }

        let (held, limit, what) = match self.limit {
            QueueLimit::Packets(limit) => (most[0], limit, "packets"),
            QueueLimit::Bytes(limit) => (most[1], limit, "bytes"),
        };
        let what = if held.cast_unsigned() > limit {
            format!("`queue_max_{what}` is {held}, above the limit of {limit}")
        } else if (0..2).any(|unit| most[unit] < queue[unit].max(self.queue[unit])) {
            "the greatest queue is less than the queue now, or in the row before".into()
        } else if !(0..2).all(|unit| (0.0..=most[unit] as f64 * share).contains(&mean[unit])) {
            "the mean queue is more than the greatest".into()
        } else if queue[1] as f64 > queue[0] as f64 * self.mtu
            || queue[1] < queue[0]
            || queue[0] < 0
        {
            "`queue_packets` cannot have `queue_bytes`".into()
        } else {
            (self.left, self.queue, self.counted) = (left, queue, counted);
            return Ok(());
        };
        Err((Law::Queue, what))
    }
}

impl Check<LinkRow> for Links<'_> {
    fn check(&mut self, rows: &Rows<'_, LinkRow>) -> Result<(), Box<Broken>> {
        // The conditions of a link imply that numbers are valid: the reason is determined only if
        // one does not hold.
        values::check_run(self.plan, rows)?;
        self.check_rows(rows).or_else(|broken| values::check(self.plan, rows).and(Err(broken)))
    }
}
