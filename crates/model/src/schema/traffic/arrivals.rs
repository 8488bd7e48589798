//! Transfers that arrive over time.

use super::{POSITIVE, Setting, Sizes, invalid};
use crate::mistake::Problem;
use crate::read::table;
use crate::schema::{AT_LEAST_ONE, Load, MILLION, SOME_TIME};
use crate::stored;
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Transfers that arrive over time, each over a connection of its own: at random (`per_second`,
    /// or at the rate of a `load`), at fixed times (`every`), or when one of several `users` has
    /// finished thinking after the previous transfer. Exactly one of these four keys is required.
    pub struct Arrivals {
        /// The mean number of transfers in a second: 0.15. Arrivals are a Poisson process.
        pub per_second: Option<f64> [POSITIVE] = None,
        /// The load on the bottleneck, instead of `per_second`: "50 %" of its rate, or of that of
        /// its shaper or policer. If the rate changes (`rate_changes`), the initial one counts. The
        /// load counts the data and the headers of full segments, not handshakes, ACKs and
        /// retransmissions: transfers of the mean size S arrive at a rate of load x rate / (8 S x
        /// segment / data), with the sizes of a full segment with and without its headers. The
        /// flows of one entry with the same bottleneck make this load together.
        pub load: Option<Load> = None,
        /// The time between arrivals: "10 ms". The first transfer begins at once.
        pub every: Option<Duration> [SOME_TIME] = None,
        /// The number of users, each with one transfer at a time: 5. All begin at once.
        pub users: Option<u64> [1..=MILLION] = None,
        /// The think time from the end of a user's transfer, when all its data has arrived, to the
        /// beginning of the next: "1 s". Only with `users`.
        pub think: Option<Duration> = None,
        /// The sizes of transfers: one size ("20 kB") or a distribution.
        pub sizes: Sizes,
        /// The total number of transfers: 1000. By default transfers arrive until the experiment
        /// ends.
        pub transfers: Option<u64> [AT_LEAST_ONE] = None,
    }
}

/// Transfers that arrive over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalsPlan {
    /// When transfers begin.
    pub begin: Begin,
    /// The sizes of transfers.
    #[serde(deserialize_with = "stored::setting")]
    pub sizes: Sizes,
    /// The total number of transfers; `None` means until the experiment ends.
    pub transfers: Option<u64>,
    /// The offered load, as a share of the bottleneck's rate. Unknown for a closed loop, and for
    /// sizes without a mean.
    pub offered: Option<f64>,
}

impl ArrivalsPlan {
    /// The mean number of transfers that begin in this time; unknown for a closed loop.
    pub(crate) fn expected(&self, duration: Duration) -> Option<f64> {
        let number = match self.begin {
            Begin::Poisson { per_second } => per_second * duration.as_secs_f64(),
            Begin::Fixed { every } => duration.as_secs_f64() / every.as_secs_f64(),
            Begin::Closed { .. } => return None,
        };
        Some(self.transfers.map_or(number, |most| number.min(most as f64)))
    }
}

/// When transfers begin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Begin {
    /// At random: a Poisson process.
    Poisson {
        /// The mean number in a second.
        per_second: f64,
    },
    /// At fixed times, the first at once.
    Fixed {
        /// The time between transfers.
        every: Duration,
    },
    /// Each user has one transfer at a time; all users begin at once.
    Closed {
        /// The number of users.
        users: u64,
        /// The time from the end of a transfer to the beginning of the next.
        think: Duration,
    },
}

impl Arrivals {
    pub(super) fn plan(&self, setting: &Setting<'_>) -> Result<ArrivalsPlan, Problem> {
        self.sizes.check()?;
        let begin = self.begin(setting)?;
        let per_second = match begin {
            Begin::Poisson { per_second } => Some(per_second),
            Begin::Fixed { every } => Some(1.0 / every.as_secs_f64()),
            Begin::Closed { .. } => None,
        };
        let bits = self.sizes.mean().map(|mean| bits(mean, setting));
        let rate = setting.bottleneck.bits_per_second() as f64;
        let offered = match self.load {
            Some(Load(load)) => Some(load / setting.sharers as f64),
            None => per_second.zip(bits).map(|(per_second, bits)| per_second * bits / rate),
        };
        let (sizes, transfers) = (self.sizes.clone(), self.transfers);
        Ok(ArrivalsPlan { begin, sizes, transfers, offered })
    }

    /// The key that sets the arrivals.
    pub(crate) fn key(&self) -> &'static str {
        match (self.per_second, self.load) {
            (Some(_), _) => "per_second",
            (_, Some(_)) => "load",
            _ => "every",
        }
    }

    fn begin(&self, setting: &Setting<'_>) -> Result<Begin, Problem> {
        let keys = [
            ("per_second", self.per_second.is_some()),
            ("load", self.load.is_some()),
            ("every", self.every.is_some()),
            ("users", self.users.is_some()),
        ];
        let given: Vec<_> = keys.iter().filter(|key| key.1).map(|key| key.0).collect();
        match given.as_slice() {
            [] => return Err(invalid("needs `per_second`, `load`, `every` or `users`")),
            [_] => {}
            [first, second, ..] => {
                let reason = format!("has `{first}` and `{second}`; give one of them");
                return Err(Problem::Invalid(reason));
            }
        }
        if self.think.is_some() && self.users.is_none() {
            return Err(invalid("has a `think`, which is only of use with `users`"));
        }
        Ok(match (self.per_second, self.every, self.users) {
            (Some(per_second), ..) => Begin::Poisson { per_second },
            (_, Some(every), _) => Begin::Fixed { every },
            (.., Some(users)) => {
                let most = self.transfers.unwrap_or(users);
                let think = self.think.unwrap_or(Duration::ZERO);
                Begin::Closed { users: users.min(most), think }
            }
            _ => {
                let mean = self.sizes.mean().ok_or_else(|| {
                    invalid(
                        "has a `load`, and sizes without a mean: a Pareto distribution of shape 1 or \
                         less needs a `max`",
                    )
                })?;
                let load = self.load.map_or(0.0, |load| load.0) / setting.sharers as f64;
                let rate = setting.bottleneck.bits_per_second() as f64;
                Begin::Poisson { per_second: load * rate / bits(mean, setting) }
            }
        })
    }
}

/// The bits on the wire of a transfer with so many bytes, with the headers of full segments.
fn bits(mean: f64, setting: &Setting<'_>) -> f64 {
    mean * 8.0 * setting.segment_bytes as f64 / setting.segment_data as f64
}
