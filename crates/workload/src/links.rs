//! Changes of links during an experiment, as lists of steps that every backend follows.

use crate::spread::exponential;
use tcplab_engine::Random;
use tcplab_model::schema::{
    DelayChanges, DelayRule, Handover, OutageRule, Outages, RandomWalk, RateRule, Sine,
};
use tcplab_model::{LanePlan, RateChanges};
use tcplab_units::{Duration, Rate};

/// Times after the start of the experiment, with new values.
pub type Steps<T> = Vec<(Duration, T)>;

/// The rates of a lane after the initial one, in a run with this seed and duration. A rate of zero
/// is an outage, which always ends, possibly after the run. A trace has no rates.
pub fn rates(lane: &LanePlan, seed: u64, duration: Duration) -> Steps<Rate> {
    let steps = match &lane.rate_changes {
        None | Some(RateChanges::Trace(_)) => Vec::new(),
        Some(RateChanges::Steps(steps)) => steps.clone(),
        Some(RateChanges::Rule(RateRule::Sine(it))) => sine(it, lane.rate, duration),
        Some(RateChanges::Rule(RateRule::RandomWalk(it))) => {
            let random = Random::new(seed, &format!("rate {}", lane.name));
            random_walk(it, lane.rate, duration, random)
        }
    };
    with_outages(lane.rate, steps, &outages(lane, seed, duration))
}

/// The delays of a lane after the initial one.
pub fn delays(lane: &LanePlan, seed: u64, duration: Duration) -> Steps<Duration> {
    match &lane.delay_changes {
        None => Vec::new(),
        Some(DelayChanges::Steps(steps)) => steps.clone(),
        Some(DelayChanges::Rule(DelayRule::Handover(it))) => {
            let random = Random::new(seed, &format!("delay {}", lane.name));
            handovers(it, duration, random)
        }
    }
}

/// The outages of a lane: the start and length of each. They do not touch.
pub fn outages(lane: &LanePlan, seed: u64, duration: Duration) -> Steps<Duration> {
    match &lane.outages {
        None => Vec::new(),
        Some(Outages::Listed(outages)) => outages.clone(),
        Some(Outages::Rule(OutageRule::Periodic(it))) => {
            times(it.every, duration).map(|at| (at, it.lasts)).collect()
        }
        Some(Outages::Rule(OutageRule::RandomOutages(it))) => {
            let mut random = Random::new(seed, &format!("outages {}", lane.name));
            let mut outages = Vec::new();
            let mut until = Duration::ZERO;
            loop {
                let at = until + exponential(it.up, random.unit());
                if at >= duration {
                    return outages;
                }
                let lasts = exponential(it.down, random.unit());
                outages.push((at, lasts));
                until = at + lasts;
            }
        }
    }
}

/// The delivery opportunities of a lane's trace outside of outages, repeated until the end of the
/// run if there are outages; and the period in milliseconds.
///
/// `None` if the lane has no trace.
pub fn opportunities(
    lane: &LanePlan,
    seed: u64,
    duration: Duration,
) -> Option<(Vec<(u64, u64)>, u64)> {
    let Some(RateChanges::Trace(trace)) = &lane.rate_changes else { return None };
    let outages = outages(lane, seed, duration);
    let period = trace.period_ms();
    if outages.is_empty() {
        return Some((trace.opportunities.clone(), period));
    }
    // Past the end there only has to be some opportunity.
    let last_outage = outages.last().map_or(Duration::ZERO, |last| last.0 + last.1);
    let rounds = duration.max(last_outage).as_millis() / period + 1;
    let mut left = Vec::new();
    let mut outage = outages.iter().peekable();
    for round in 0..rounds {
        for (ms, count) in &trace.opportunities {
            let ms = round * period + ms;
            let at = Duration::from_millis(ms);
            while outage.next_if(|outage| outage.0 + outage.1 <= at).is_some() {}
            if outage.peek().is_none_or(|outage| at < outage.0) {
                // The end of a period and the beginning of the next may be the same millisecond.
                match left.last_mut() {
                    Some((last, number)) if *last == ms => *number += count,
                    _ => left.push((ms, *count)),
                }
            }
        }
    }
    let end = rounds * period;
    if left.last().is_none_or(|last| last.0 < end) {
        left.push((end, 1));
    }
    Some((left, end))
}

/// Multiples of `every` before the end, beginning with one.
fn times(every: Duration, duration: Duration) -> impl Iterator<Item = Duration> {
    (1..).map(move |times| every.saturating_mul(times)).take_while(move |at| *at < duration)
}

/// Each piece has the rate of its middle.
fn sine(sine: &Sine, rate: Rate, duration: Duration) -> Steps<Rate> {
    let (middle, amplitude) =
        (rate.bits_per_second() as f64, sine.amplitude.bits_per_second() as f64);
    let half = sine.every / 2;
    std::iter::once(Duration::ZERO)
        .chain(times(sine.every, duration))
        .map(|at| {
            // The remainder of whole periods keeps the argument small, and its sine exact.
            let into = (at + half).as_picos() % sine.period.as_picos();
            let turn = into as f64 / sine.period.as_picos() as f64;
            let bits = middle + amplitude * libm::sin(std::f64::consts::TAU * turn);
            (at, Rate::from_bits_per_second((bits.round() as u64).max(1)))
        })
        .collect()
}

/// Each step is uniform, up or down, and reflected at the limits.
fn random_walk(
    walk: &RandomWalk,
    rate: Rate,
    duration: Duration,
    mut random: Random,
) -> Steps<Rate> {
    let [least, most, step] =
        [walk.least, walk.most, walk.step].map(|rate| i128::from(rate.bits_per_second()));
    let mut now = i128::from(rate.bits_per_second());
    times(walk.every, duration)
        .map(|at| {
            now += i128::from(random.up_to(2 * walk.step.bits_per_second())) - step;
            if now < least {
                now = 2 * least - now;
            } else if now > most {
                now = 2 * most - now;
            }
            (at, Rate::from_bits_per_second(now as u64))
        })
        .collect()
}

fn handovers(handover: &Handover, duration: Duration, mut random: Random) -> Steps<Duration> {
    let width = (handover.most - handover.least).as_picos();
    let mut draw = || handover.least + Duration::from_picos(random.up_to(width));
    let first = (Duration::ZERO, draw());
    std::iter::once(first).chain(times(handover.every, duration).map(|at| (at, draw()))).collect()
}

/// The same rates, with zero during outages.
fn with_outages(rate: Rate, steps: Steps<Rate>, outages: &[(Duration, Duration)]) -> Steps<Rate> {
    const NONE: Rate = Rate::from_bits_per_second(0);
    if outages.is_empty() {
        return steps;
    }
    let mut changed = Vec::with_capacity(steps.len() + 2 * outages.len());
    let mut steps = steps.into_iter().peekable();
    let mut now = rate;
    for &(from, lasts) in outages {
        while let Some(step) = steps.next_if(|step| step.0 < from) {
            now = step.1;
            changed.push(step);
        }
        changed.push((from, NONE));
        while let Some(step) = steps.next_if(|step| step.0 <= from + lasts) {
            now = step.1;
        }
        changed.push((from + lasts, now));
    }
    changed.extend(steps);
    changed
}

#[cfg(test)]
mod tests;
