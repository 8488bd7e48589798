//! Links are no faster than their rate, and queues hold no more than they have room for.

use crate::broken::{Broken, Law};
use crate::capacity::Capacity;
use crate::path::{Names, hint};
use crate::values;
use crate::view::{Known, integers, labels, numbers};
use crate::{PART, Slack};
use tcplab_model::{Discipline, LanePlan, Plan, QueueLimit};
use tcplab_tables::Tables;

/// What is counted from the start of the experiment.
const COUNTS: [&str; 5] =
    ["dropped_packets", "lost_packets", "marked_packets", "sent_packets", "sent_bytes"];

/// Of a share or a mean that is computed from whole numbers.
const ROUNDING: f64 = 1e-9;
/// The transmission time of each packet is rounded to a picosecond.
const HALF_PICOSECOND: f64 = 0.5e-12;

/// A lane as it was when it was last sampled.
struct Lane {
    capacity: Capacity,
    limit: QueueLimit,
    /// What is accepted counts as sent, although it waits.
    waits_after_sent: bool,
    mtu: f64,
    /// Bytes by which the rounding of a packet's time, and a late look, may put it ahead.
    rounding: f64,
    late: f64,
    /// Bytes by which it has fallen behind its rate at the most so far.
    least: f64,
    time_s: f64,
    queue: [i64; 2],
    counted: [i64; COUNTS.len()],
}

impl Lane {
    fn new(lane: &LanePlan, slack: Slack) -> Self {
        let in_bytes = matches!(lane.queue.discipline, Discipline::Red(_) | Discipline::Cake(_));
        let limit = match lane.queue.limit {
            QueueLimit::Packets(packets) if in_bytes => {
                QueueLimit::Bytes(packets.saturating_mul(lane.mtu))
            }
            // Linux limits each of three bands, and control packets not at all (`fq_enqueue`).
            _ if matches!(lane.queue.discipline, Discipline::Fq(_)) => {
                QueueLimit::Packets(u64::MAX)
            }
            limit => limit,
        };
        let capacity = Capacity::of(lane);
        Self {
            rounding: HALF_PICOSECOND * capacity.most(),
            late: slack.late_s * capacity.most(),
            capacity,
            limit,
            waits_after_sent: matches!(lane.queue.discipline, Discipline::DropTail(_)),
            mtu: lane.mtu as f64,
            least: 0.0,
            time_s: 0.0,
            queue: [0; 2],
            counted: [0; COUNTS.len()],
        }
    }
}

pub(crate) fn check(plan: &Plan, tables: &Tables, slack: Slack) -> Result<(), Box<Broken>> {
    let links = &tables.links;
    let times = numbers(links, "time_s");
    let utilisation = numbers(links, "utilisation");
    let names = labels(links, "link");
    let (sent_packets, sent_bytes) =
        (integers(links, "sent_packets"), integers(links, "sent_bytes"));
    let now = ["queue_packets", "queue_bytes"].map(|name| integers(links, name));
    let most = ["queue_max_packets", "queue_max_bytes"].map(|name| integers(links, name));
    let mean = ["queue_mean_packets", "queue_mean_bytes"].map(|name| numbers(links, name));
    let mut lanes: Vec<Lane> = plan.lanes.iter().map(|lane| Lane::new(lane, slack)).collect();
    let mut known = Known::new();
    let planned = Names::new(plan);
    let end_s = plan.duration.as_secs_f64();
    let counts = COUNTS.map(|name| integers(links, name));
    for start in (0..links.len()).step_by(PART) {
        let rows = start..links.len().min(start + PART);
        values::check_rows(plan, links, rows.clone())?;
        for row in rows {
            let label = names[row];
            let lane = known
                .get(label, || links.text(label).and_then(|name| planned.lane(name, hint(label))));
            let Some(lane) = lane else {
                let what = "the experiment has no such link";
                return Err(Broken::at(Law::Value, links, row, what));
            };
            let lane = &mut lanes[lane];
            let queue = [now[0][row], now[1][row]];
            let most = [most[0][row], most[1][row]];

            let counted = counts.map(|counts| counts[row]);
            let fallen = (0..COUNTS.len()).find(|&it| counted[it] < lane.counted[it]);
            if let Some(fallen) = fallen {
                let (name, count) = (COUNTS[fallen], counted[fallen]);
                let what = format!("`{name}` is {count}, after {}", lane.counted[fallen]);
                return Err(Broken::at(Law::Time, links, row, what));
            }
            if !(lane.time_s..=end_s).contains(&times[row]) {
                let what = format!("`time_s` is not from {} to {end_s}", lane.time_s);
                return Err(Broken::at(Law::Time, links, row, what));
            }

            let waiting = if lane.waits_after_sent { queue[1] } else { 0 };
            let left = sent_bytes[row].saturating_sub(waiting) as f64;
            let rounding = sent_packets[row] as f64 * lane.rounding;
            let ahead = left - lane.capacity.until(times[row]);
            let excess = ahead - lane.least - lane.mtu - rounding - lane.late;
            if excess > ROUNDING * left.max(1.0) {
                let what = format!(
                    "{:.0} bytes more have left it than its rate allows, and one packet",
                    excess.ceil()
                );
                return Err(Broken::at(Law::Rate, links, row, what));
            }
            lane.least = lane.least.min(ahead);
            let time = times[row] - lane.time_s;
            let tolerance =
                if slack.late_s > 0.0 { slack.late_s / time.max(slack.late_s) } else { 0.0 };
            let share = 1.0 + ROUNDING + tolerance;
            if !(0.0..=share).contains(&utilisation[row]) {
                return Err(Broken::at(
                    Law::Rate,
                    links,
                    row,
                    "`utilisation` is not between 0 and 1",
                ));
            }

            let (held, limit, what) = match lane.limit {
                QueueLimit::Packets(limit) => (most[0], limit, "packets"),
                QueueLimit::Bytes(limit) => (most[1], limit, "bytes"),
            };
            let what = if held.cast_unsigned() > limit {
                format!("`queue_max_{what}` is {held}, above the limit of {limit}")
            } else if (0..2).any(|unit| most[unit] < queue[unit].max(lane.queue[unit])) {
                "the greatest queue is less than the queue now, or in the row before".into()
            } else if (0..2)
                .any(|unit| mean[unit][row] > most[unit] as f64 * share || mean[unit][row] < 0.0)
            {
                "the mean queue is more than the greatest".into()
            } else if queue[1] as f64 > queue[0] as f64 * lane.mtu
                || queue[1] < queue[0]
                || queue[0] < 0
            {
                "`queue_packets` cannot have `queue_bytes`".into()
            } else {
                lane.time_s = times[row];
                lane.counted = counted;
                lane.queue = queue;
                continue;
            };
            return Err(Broken::at(Law::Queue, links, row, what));
        }
    }
    Ok(())
}
