//! Delays and opportunities under light load, from recordings of cellular networks (CellReplay,
//! Sentosa et al. 2025).

use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, table};
use serde::Serialize;
use serde_json::{Value, json};
use tcplab_units::Duration;

/// The longest delay before a train: both backends compute weighted sums of delays in 64 bits.
const MOST_DELAY: Duration = Duration::from_secs(60);

/// The longest recording, for the same reason.
const MOST_TIME: Duration = Duration::from_secs(100_000);

/// The most opportunities in all trains: 160 MB.
const MOST_OPPORTUNITIES: usize = 10_000_000;

table! {
    /// A link with other delays and opportunities under light load than under heavy load. After a
    /// pause, packets follow a train: the delay and the opportunities that a few packets had in a
    /// recording. When these are used up, packets follow the trace of `rate_changes`, until the
    /// next pause.
    pub struct Light {
        /// Delays and opportunities of a few packets over time: a list of tables, or a file
        /// `{ file = "light.txt" }` with a time, a delay, and opportunities after the first packet
        /// in each line, all in milliseconds. The last train ends the recording, which then
        /// repeats.
        pub trains: Trains,
        /// A packet begins a train when nothing has left for longer than this: "0 s".
        pub after: Duration = Duration::ZERO,
    }
}

/// Trains in the order of their times.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Trains(pub Vec<Train>);

table! {
    /// Delay and opportunities of a few packets that were sent back to back.
    pub struct Train {
        /// The time of the recording: "500 ms". Until the next train, packets use this one's
        /// opportunities, and delays are interpolated between the two.
        pub at: Duration,
        /// The one-way delay of the train's packets: "25 ms".
        pub delay: Duration,
        /// The milliseconds of its opportunities after the first packet, ascending: `[0, 0, 2, 5]`.
        pub opportunities: Vec<u64>,
    }
}

impl Trains {
    /// The period after which the recording repeats.
    pub fn period(&self) -> Duration {
        self.0.last().map_or(Duration::ZERO, |last| last.at)
    }

    /// The lowest delay of all trains.
    pub fn least_delay(&self) -> Duration {
        self.0.iter().map(|train| train.delay).min().unwrap_or(Duration::ZERO)
    }

    /// The mean delay over time, with linear interpolation between trains, in whole microseconds.
    pub fn mean_delay(&self) -> Duration {
        let weighted = self.0.windows(2).map(|pair| {
            let both = pair[0].delay.as_micros() + pair[1].delay.as_micros();
            u128::from(both) * u128::from((pair[1].at - pair[0].at).as_micros())
        });
        let mean = weighted.sum::<u128>() / (2 * u128::from(self.period().as_micros().max(1)));
        Duration::from_micros(mean as u64)
    }

    /// Checks the trains. An error has the place within the list and the problem.
    fn check(&self) -> Result<(), (Option<usize>, Problem)> {
        let invalid = |place, reason: &str| Err((place, Problem::Invalid(reason.into())));
        if self.0.len() < 2 {
            return invalid(None, "has fewer than two trains; the last one ends the recording");
        }
        if !self.0[0].at.is_zero() {
            return invalid(Some(0), "is not at 0 s, where a recording begins");
        }
        let mut number = 0;
        for (i, train) in self.0.iter().enumerate() {
            number += train.opportunities.len();
            let list = &train.opportunities;
            let reason = if i > 0 && self.0[i - 1].at >= train.at {
                "is not later than the one before"
            } else if train.at > MOST_TIME {
                "is later than 100000 s"
            } else if train.delay > MOST_DELAY {
                "has a delay of more than 60 s"
            } else if !is_whole(train.at) || !is_whole(train.delay) {
                "has a time that is no whole number of microseconds"
            } else if list.is_empty() {
                "has no opportunity"
            } else if list.windows(2).any(|pair| pair[0] > pair[1]) {
                "has opportunities that do not ascend"
            } else if list.last().is_some_and(|last| u32::try_from(*last).is_err()) {
                "has opportunities that are too late"
            } else {
                continue;
            };
            return invalid(Some(i), reason);
        }
        if number > MOST_OPPORTUNITIES {
            let (what, number) = ("opportunities", number as u128);
            return Err((None, Problem::TooMany { what, number, most: MOST_OPPORTUNITIES as u64 }));
        }
        Ok(())
    }
}

/// Whether a time is a whole number of microseconds.
fn is_whole(time: Duration) -> bool {
    Duration::from_micros(time.as_micros()) == time
}

impl Read for Trains {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        // The name of a file has been replaced with the list by now.
        let trains = Self(Read::read(value, at, mistakes)?);
        if let Err((place, problem)) = trains.check() {
            mistakes.push(match place {
                Some(place) => problem.at(at.index(place)),
                None => problem.at(at),
            });
            return None;
        }
        Some(trains)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let list = Vec::<Train>::schema(definitions);
        define("Trains", definitions, |_| {
            json!({
                "anyOf": [
                    list,
                    {
                        "type": "object",
                        "properties": {
                            "file": {
                                "type": "string",
                                "minLength": 1,
                                "description": "A file whose lines are a time, a delay and opportunities, \
                                                in milliseconds (the format of CellReplay).",
                            },
                        },
                        "required": ["file"],
                        "additionalProperties": false,
                    },
                ],
            })
        })
    }
}
