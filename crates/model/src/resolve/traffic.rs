//! Checks what a kind of traffic must have together, and writes out when it is on.

use super::names;
use crate::mistake::{Mistake, Problem};
use crate::schema::{Flow, MILLION, OnOff, Sizes, Traffic};
use std::sync::Arc;
use tcplab_units::{Bytes, Duration};

/// The traffic of a flow, on and off times as `periods`.
pub(crate) fn resolve(
    flow: &Flow,
    duration: Duration,
    place: &str,
    mistakes: &mut Vec<Mistake>,
) -> Option<Arc<Traffic>> {
    let checked = match &flow.traffic {
        Traffic::OnOff(traffic) => {
            return match periods(traffic, duration) {
                Ok(periods) => {
                    Some(Arc::new(Traffic::OnOff(OnOff { periods, on: None, off: None })))
                }
                Err(problem) => {
                    mistakes.push(problem.at(format!("{place}.traffic")));
                    None
                }
            };
        }
        Traffic::Udp(udp) => match (udp.rate, udp.interval) {
            (Some(_), Some(_)) => Err("has a `rate` and an `interval`; give one of them"),
            (None, None) => Err("needs a `rate` or an `interval`"),
            _ => Ok(()),
        },
        Traffic::Web(web) if web.classes.is_empty() => Err("needs one class at least"),
        Traffic::Web(web) => {
            for (i, class) in web.classes.iter().enumerate() {
                names::check(&class.name, format!("{place}.traffic.classes[{i}].name"), mistakes);
            }
            Ok(())
        }
        Traffic::Arrivals(arrivals) => sizes(&arrivals.sizes),
        Traffic::Command(command) => {
            for (side, line) in [("server", &command.server), ("client", &command.client)] {
                if let Some(word) = unknown_place(line) {
                    mistakes.push(unknown(word).at(format!("{place}.traffic.{side}")));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    };
    match checked {
        Ok(()) => Some(Arc::new(flow.traffic.clone())),
        Err(reason) => {
            mistakes.push(Problem::Invalid(reason.into()).at(format!("{place}.traffic")));
            None
        }
    }
}

/// What command lines may name in braces: addresses.
const PLACES: [&str; 2] = ["server", "client"];

/// The first word in braces that is none of these. Variables of a shell, `${NAME}`, are the shell's.
fn unknown_place(line: &str) -> Option<&str> {
    line.match_indices('{').find_map(|(open, _)| {
        let (word, _) = line[open + 1..].split_once('}')?;
        let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (is_word && !line[..open].ends_with('$') && !PLACES.contains(&word)).then_some(word)
    })
}

fn unknown(word: &str) -> Problem {
    Problem::Invalid(format!(
        "nothing stands for {{{word}}}; there are {{server}} and {{client}}, the addresses of the two \
         sides (braces of the program's own need a space: {{ {word} }})"
    ))
}

fn periods(traffic: &OnOff, duration: Duration) -> Result<Vec<(Duration, Duration)>, Problem> {
    let invalid = |reason: &str| Err(Problem::Invalid(reason.into()));
    match (traffic.periods.is_empty(), traffic.on, traffic.off) {
        (true, Some(on), Some(off)) => {
            let cycle = on + off;
            let number = u128::from(duration.as_picos().div_ceil(cycle.as_picos()));
            if number > u128::from(MILLION) {
                return Err(Problem::TooMany { what: "periods", number, most: MILLION });
            }
            let starts = (0..number as u64).map(|k| cycle.saturating_mul(k));
            Ok(starts.map(|start| (start, start + on)).collect())
        }
        (false, None, None) => {
            let mut end = Duration::ZERO;
            for (from, to) in &traffic.periods {
                if from >= to {
                    return invalid("has a period that ends before it begins");
                }
                if *from < end {
                    return invalid("has a period that begins before the one before it ends");
                }
                end = *to;
            }
            Ok(traffic.periods.clone())
        }
        (true, ..) => invalid("needs `periods`, or both `on` and `off`"),
        (false, ..) => invalid("has `periods` and `on` or `off`; give one of them"),
    }
}

fn sizes(sizes: &Sizes) -> Result<(), &'static str> {
    let is_upside_down = |min: Bytes, max: Option<Bytes>| max.is_some_and(|max| max < min);
    match sizes {
        Sizes::Zipf(zipf) if is_upside_down(zipf.unit, Some(zipf.max)) => {
            Err("has sizes whose `max` is less than their `unit`")
        }
        Sizes::Pareto(pareto) if is_upside_down(pareto.min, pareto.max) => {
            Err("has sizes whose `max` is less than their `min`")
        }
        Sizes::LogNormal(sizes) if is_upside_down(sizes.median, sizes.max) => {
            Err("has sizes whose `max` is less than their `median`")
        }
        Sizes::Empirical(sizes) if sizes.sizes.is_empty() => Err("has no sizes"),
        _ => Ok(()),
    }
}
