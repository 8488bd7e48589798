//! Transfers that arrive over time: at random, at fixed times, or when a user is ready.

use crate::sizes::Sampler;
use crate::start;
use tcplab_engine::Random;
use tcplab_model::schema::{ArrivalsPlan, Begin};
use tcplab_model::{FlowPlan, Plan};
use tcplab_pace::{exponential, nearest_nanosecond};
use tcplab_units::Duration;

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The start, after the flow's start.
    pub after: Duration,
    /// Its size in bytes.
    pub size: u64,
}

/// The transfers of a flow in order, drawn on demand, if their times do not depend on the network.
/// The transfers end with the experiment's number, if one is given.
#[derive(Clone, Debug)]
pub struct Transfers<'a> {
    gaps: Gaps,
    left: Option<u64>,
    sampler: Sampler<'a>,
    /// The time of the next transfer if gaps are fixed, else of the last one.
    time: Duration,
    sizes: Random,
}

#[derive(Clone, Debug)]
enum Gaps {
    /// Times and sizes have separate generators: other sizes do not change the times.
    Exponential {
        mean_s: f64,
        random: Random,
    },
    Fixed(Duration),
}

impl<'a> Transfers<'a> {
    /// The transfers of the flow called `name` in a run with this seed; `None` for a closed loop,
    /// whose users each have a [`User`].
    pub fn new(arrivals: &'a ArrivalsPlan, seed: u64, name: &str) -> Option<Self> {
        let gaps = match arrivals.begin {
            Begin::Poisson { per_second } => Gaps::Exponential {
                mean_s: 1.0 / per_second,
                random: Random::new(seed, &format!("arrivals {name}")),
            },
            Begin::Fixed { every } => Gaps::Fixed(every),
            Begin::Closed { .. } => return None,
        };
        Some(Self {
            gaps,
            left: arrivals.transfers,
            sampler: Sampler::new(&arrivals.sizes),
            time: Duration::ZERO,
            sizes: Random::new(seed, &format!("sizes {name}")),
        })
    }
}

impl Iterator for Transfers<'_> {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        let later = |gap: Duration| {
            Duration::from_picos(self.time.as_picos().saturating_add(gap.as_picos()))
        };
        let after = match &mut self.gaps {
            Gaps::Exponential { mean_s, random } => {
                self.time = later(exponential(random, *mean_s));
                self.time
            }
            Gaps::Fixed(every) => {
                let next = later(*every);
                std::mem::replace(&mut self.time, next)
            }
        };
        let size = self.sampler.draw(&mut self.sizes);
        Some(Transfer { after: nearest_nanosecond(after), size })
    }
}

/// The sizes of one user's transfers in a closed loop, drawn on demand. Each user has a generator
/// of its own, so the speed of other users has no effect. The sizes are unlimited; the backend
/// counts the transfers ([`ArrivalsPlan::transfers`]).
#[derive(Clone, Debug)]
pub struct User<'a> {
    sampler: Sampler<'a>,
    sizes: Random,
}

impl<'a> User<'a> {
    /// The user of this number, from 0, of the flow called `name` in a run with this seed.
    pub fn new(arrivals: &'a ArrivalsPlan, seed: u64, name: &str, user: u64) -> Self {
        let sizes = Random::new(seed, &format!("sizes {name} user {user}"));
        Self { sampler: Sampler::new(&arrivals.sizes), sizes }
    }
}

/// The most transfers for which a user of a closed loop with this think time could have time: none
/// is over before its first packet has arrived.
pub fn possible(plan: &Plan, flow: &FlowPlan, think: Duration) -> u64 {
    let room = plan.duration.saturating_sub(start(flow, plan.seed));
    let has_handshake = flow.tcp().is_none_or(|tcp| !tcp.stack.fast_open);
    let one_way = flow.forward.iter().map(|&lane| plan.lanes[lane].delay).sum::<Duration>();
    let least = if has_handshake { one_way + flow.base_rtt } else { one_way } + think;
    room.as_picos().checked_div(least.as_picos()).map_or(u64::MAX, |whole| whole + 1)
}

impl Iterator for User<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(self.sampler.draw(&mut self.sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_model::schema::{Fixed, Sizes, Zipf};
    use tcplab_units::Bytes;

    fn arrivals(per_second: f64, transfers: Option<u64>) -> ArrivalsPlan {
        let sizes = Sizes::Fixed(Fixed { size: Bytes(20_000) });
        ArrivalsPlan { begin: Begin::Poisson { per_second }, sizes, transfers, offered: None }
    }

    fn zipf() -> Sizes {
        Sizes::Zipf(Zipf { exponent: 1.5, unit: Bytes(1000), max: Bytes(1_000_000) })
    }

    fn times(arrivals: &ArrivalsPlan, seed: u64) -> Vec<f64> {
        let transfers = Transfers::new(arrivals, seed, "a").unwrap().take(100_000);
        transfers.map(|it| it.after.as_secs_f64()).collect()
    }

    #[test]
    fn gaps_are_exponential() {
        let times = times(&arrivals(50.0, None), 1);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = gaps.len() as f64;
        // Mean and standard deviation are 1/50 s; the bound is five standard deviations of the
        // mean.
        let mean = gaps.iter().sum::<f64>() / count;
        assert!((mean * 50.0 - 1.0).abs() < 5.0 / count.sqrt(), "{mean}");
        // More than twice the mean: exp(-2); binomial.
        let share = gaps.iter().filter(|&&gap| gap > 0.04).count() as f64 / count;
        let expected = 0.135_335;
        let deviation = (expected * (1.0 - expected) / count).sqrt();
        assert!((share - expected).abs() < 5.0 * deviation, "{share}");
    }

    #[test]
    fn fixed_gaps_begin_at_once() {
        let every = Duration::from_millis(10);
        let fixed = ArrivalsPlan { begin: Begin::Fixed { every }, ..arrivals(1.0, Some(4)) };
        let transfers = Transfers::new(&fixed, 1, "a").unwrap();
        let millis: Vec<_> = transfers.map(|it| it.after.as_picos() / 1_000_000_000).collect();
        assert_eq!(millis, [0, 10, 20, 30]);
    }

    #[test]
    fn arrivals_end_after_the_number_of_transfers() {
        assert_eq!(times(&arrivals(1.0, Some(7)), 1).len(), 7);
    }

    #[test]
    fn times_are_in_whole_nanoseconds() {
        let transfers = arrivals(1e6, Some(1000));
        let mut transfers = Transfers::new(&transfers, 1, "a").unwrap();
        assert!(transfers.all(|it| it.after.as_picos().is_multiple_of(1000)));
    }

    #[test]
    fn arrival_times_depend_on_seed_and_name_but_not_on_sizes() {
        let fixed = arrivals(10.0, Some(100));
        assert_eq!(times(&fixed, 1), times(&fixed, 1));
        assert_ne!(times(&fixed, 1), times(&fixed, 2));
        let zipf = ArrivalsPlan { sizes: zipf(), ..fixed.clone() };
        assert_eq!(times(&fixed, 1), times(&zipf, 1));
        let first = |name| Transfers::new(&fixed, 1, name).unwrap().next().unwrap().after;
        assert_ne!(first("a"), first("b"));
    }

    #[test]
    fn each_user_draws_its_own_sizes() {
        let begin = Begin::Closed { users: 2, think: Duration::ZERO };
        let closed = ArrivalsPlan { begin, sizes: zipf(), ..arrivals(1.0, None) };
        assert!(Transfers::new(&closed, 1, "a").is_none());
        let sizes =
            |seed, name, user| User::new(&closed, seed, name, user).take(50).collect::<Vec<_>>();
        assert_eq!(sizes(1, "a", 0), sizes(1, "a", 0));
        assert_ne!(sizes(1, "a", 0), sizes(1, "a", 1));
        assert_ne!(sizes(1, "a", 0), sizes(2, "a", 0));
        assert_ne!(sizes(1, "a", 0), sizes(1, "b", 0));
    }
}
