//! Loss models: which packets a lane loses, apart from queue drops.
//!
//! A packet that is lost here has been transmitted: its time on the wire is spent.

use crate::random::Random;
use tcplab_units::{Duration, Time};

/// A loss model.
#[derive(Clone, Debug)]
pub enum Loss {
    /// Every packet with the same probability, independently of the others.
    Independent {
        /// Loss probability, from 0 to 1.
        probability: f64,
    },
    /// The packets with payload at these positions, counted from 1 in the order in which they enter
    /// the wire.
    Listed {
        /// Positions of the lost packets.
        packets: Vec<u64>,
    },
    /// A good and a bad state; the state may change before each packet (Gilbert 1960, Elliott
    /// 1963).
    Gilbert {
        /// Probability that the good state turns bad.
        to_bad: f64,
        /// Probability that the bad state turns good.
        to_good: f64,
        /// Loss probability in the good state and in the bad one.
        loss: [f64; 2],
    },
    /// A good and a bad state whose durations do not depend on the traffic. The first state is
    /// good.
    Timed {
        /// Durations of the good state and of the bad one.
        lasts: [Duration; 2],
        /// Whether the durations are means of exponential distributions.
        is_exponential: bool,
        /// The state changes only at packets, at most once at each; a state's duration is counted
        /// from there.
        is_sampled: bool,
        /// Probability that the state changes when its time is over.
        change: f64,
        /// Loss probability in the good state and in the bad one.
        loss: [f64; 2],
    },
}

/// The running state of a [`Loss`].
#[derive(Clone, Debug)]
pub(crate) enum LossState {
    Independent {
        /// A packet is lost if 64 random bits are below this bound. The bound has one more bit, so
        /// that probability 1 loses all.
        below: u128,
        random: Random,
    },
    Listed {
        /// Positions yet to come, the next one last.
        left: Vec<u64>,
        seen: u64,
    },
    Gilbert {
        /// Bounds of the good state's and the bad state's transition probabilities.
        change: [u128; 2],
        loss: [u128; 2],
        is_bad: bool,
        random: Random,
    },
    Timed {
        lasts: [Duration; 2],
        is_exponential: bool,
        is_sampled: bool,
        change: u128,
        loss: [u128; 2],
        is_bad: bool,
        until: Time,
        /// The durations of states have their own generator, so that they do not depend on the
        /// packets.
        states: Random,
        random: Random,
    },
}

/// The bound that 64 random bits are below with this probability. It has one more bit, so that 1
/// means always.
pub(crate) fn share_of_bits(chance: f64) -> u128 {
    let two_to_64 = 18_446_744_073_709_551_616.0;
    (chance.clamp(0.0, 1.0) * two_to_64) as u128
}

impl LossState {
    /// `random` makes the generator for a name.
    pub fn new(loss: Loss, random: impl Fn(&str) -> Random) -> Self {
        match loss {
            Loss::Independent { probability } => {
                Self::Independent { below: share_of_bits(probability), random: random("loss") }
            }
            Loss::Gilbert { to_bad, to_good, loss } => Self::Gilbert {
                change: [to_bad, to_good].map(share_of_bits),
                loss: loss.map(share_of_bits),
                is_bad: false,
                random: random("loss"),
            },
            Loss::Timed { lasts, is_exponential, is_sampled, change, loss } => Self::Timed {
                lasts,
                is_exponential,
                is_sampled,
                change: share_of_bits(change),
                loss: loss.map(share_of_bits),
                is_bad: false,
                until: Time::ZERO,
                states: random("states"),
                random: random("loss"),
            },
            Loss::Listed { packets: mut left } => {
                left.sort_unstable_by(|a, b| b.cmp(a));
                left.dedup();
                Self::Listed { left, seen: 0 }
            }
        }
    }

    /// Whether the packet that enters the wire now is lost.
    pub fn takes(&mut self, has_payload: bool, now: Time) -> bool {
        let happens = |random: &mut Random, below: u128| u128::from(random.bits()) < below;
        match self {
            Self::Independent { below, random } => happens(random, *below),
            Self::Listed { left, seen } => {
                *seen += u64::from(has_payload);
                let lost = has_payload && left.last() == Some(seen);
                if lost {
                    left.pop();
                }
                lost
            }
            Self::Gilbert { change, loss, is_bad, random } => {
                *is_bad ^= happens(random, change[usize::from(*is_bad)]);
                happens(random, loss[usize::from(*is_bad)])
            }
            Self::Timed {
                lasts,
                is_exponential,
                is_sampled,
                change,
                loss,
                is_bad,
                until,
                states,
                random,
            } => {
                while *until <= now {
                    // The first state begins with the experiment, and is good.
                    let is_first = *until == Time::ZERO;
                    if !is_first {
                        *is_bad ^= happens(states, *change);
                    }
                    let mean = lasts[usize::from(*is_bad)];
                    let lasts = if *is_exponential { states.exponential(mean) } else { mean };
                    let lasts = lasts.max(Duration::from_picos(1));
                    if *is_sampled && !is_first {
                        *until = now + lasts;
                        break;
                    }
                    *until += lasts;
                }
                happens(random, loss[usize::from(*is_bad)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of packets lost, and the mean length of a burst of them.
    fn bursts(model: Loss, packets: u64) -> (f64, f64, f64) {
        let mut state = LossState::new(model, |name: &str| Random::new(7, name));
        let (mut gone, mut runs, mut was_lost) = (0.0, 0.0, false);
        for _ in 0..packets {
            let is_lost = state.takes(true, Time::ZERO);
            gone += f64::from(u8::from(is_lost));
            runs += f64::from(u8::from(is_lost && !was_lost));
            was_lost = is_lost;
        }
        (gone / packets as f64, gone / runs, runs)
    }

    #[test]
    fn gilbert_has_its_loss_rate_and_burst_length() {
        let (to_bad, to_good, packets) = (0.01, 0.2, 1_000_000);
        let (share, length, number) =
            bursts(Loss::Gilbert { to_bad, to_good, loss: [0.0, 1.0] }, packets);
        // The bad state has a share of p/(p+r). Its variance over n packets is that of independent
        // ones times (1 + c)/(1 - c), where c = 1 - p - r is the correlation of neighbours.
        let expected = to_bad / (to_bad + to_good);
        let correlation: f64 = 1.0 - to_bad - to_good;
        let inflation = (1.0 + correlation) / (1.0 - correlation);
        let deviation = (expected * (1.0 - expected) * inflation / packets as f64).sqrt();
        assert!((share - expected).abs() < 4.0 * deviation, "{share} {expected} {deviation}");
        // Bursts are geometric, with mean 1/r and standard deviation sqrt(1 - r)/r.
        let deviation = (1.0 - to_good).sqrt() / to_good / number.sqrt();
        assert!((length - 1.0 / to_good).abs() < 4.0 * deviation, "{length} {deviation}");
    }

    #[test]
    fn gilbert_elliott_loses_in_both_states() {
        let loss = Loss::Gilbert { to_bad: 0.1, to_good: 0.3, loss: [0.01, 0.5] };
        let (share, ..) = bursts(loss, 1_000_000);
        // Expected: 0.75 x 0.01 + 0.25 x 0.5. The deviation is at most that of the state's share
        // times 0.49, and that of independent losses: sqrt((0.1875 x 4 x 0.24 + 0.117)/1e6) =
        // 0.00055.
        assert!((share - 0.1325).abs() < 4.0 * 0.00055, "{share}");
    }

    fn timed(is_exponential: bool, is_sampled: bool, [good, bad]: [u64; 2]) -> LossState {
        let lasts = [good, bad].map(Duration::from_micros);
        let loss = Loss::Timed { lasts, is_exponential, is_sampled, change: 1.0, loss: [0.0, 1.0] };
        LossState::new(loss, |name: &str| Random::new(7, name))
    }

    #[test]
    fn timed_states_do_not_depend_on_the_packets_sent() {
        let lost = |step: u64| {
            let mut state = timed(true, false, [20_000, 5_000]);
            let times = (0..6000).step_by(step as usize);
            let mut takes = |millis| state.takes(true, Time::ZERO + Duration::from_millis(millis));
            times
                .map(|millis| (millis, takes(millis)))
                .filter(|(millis, _)| millis % 6 == 0)
                .collect()
        };
        let (two, three): (Vec<_>, Vec<_>) = (lost(2), lost(3));
        assert_eq!(two, three);
        assert!(two.iter().any(|(_, is_lost)| *is_lost));
    }

    /// Positions of the lost packets, with one packet each millisecond from 0 on.
    fn each_millisecond(state: &mut LossState, packets: u64) -> Vec<u64> {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        (0..packets).filter(|millis| state.takes(true, at(*millis))).collect()
    }

    #[test]
    fn fixed_bad_periods_lose_the_packets_within_them() {
        // Good until 5 ms, bad until 8 ms, good until 13 ms, bad until 16 ms.
        let lost = each_millisecond(&mut timed(false, false, [5_000, 3_000]), 16);
        assert_eq!(lost, [5, 6, 7, 13, 14, 15]);
        // Bad from 4.5 ms on for 0.2 ms, and from 9.2 ms on: no packet comes in either period.
        assert!(each_millisecond(&mut timed(false, false, [4_500, 200]), 12).is_empty());
    }

    #[test]
    fn each_sampled_bad_state_loses_one_packet() {
        // The packet at 5 ms finds the good state over and is lost. The one at 6 ms finds the bad
        // state over, and the 4.5 ms of the next good state end with the packet at 11 ms.
        let lost = each_millisecond(&mut timed(false, true, [4_500, 200]), 20);
        assert_eq!(lost, [5, 11, 17]);
    }

    #[test]
    fn exponential_bad_periods_have_their_share_and_length() {
        let (good, bad, packets) = (900_000.0, 100_000.0, 20_000_000_u64);
        let mut state = timed(true, false, [900_000, 100_000]);
        let lost = each_millisecond(&mut state, packets);
        let periods = 1 + lost.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
        // 20,000 s hold 20,000 cycles with a mean of one second. The share of the bad state is
        // asymptotically normal with a variance of 2 (ab)^2 / (a+b)^3 / T (alternating renewal
        // process).
        let share = lost.len() as f64 / packets as f64;
        let (a, b, span): (f64, f64, f64) = (good / 1e6, bad / 1e6, packets as f64 / 1e3);
        let deviation = (2.0 * (a * b) * (a * b) / ((a + b) * (a + b) * (a + b)) / span).sqrt();
        assert!((share - b / (a + b)).abs() < 4.0 * deviation, "{share} {deviation}");
        // A period of exponential length covers a whole number of milliseconds, which is geometric
        // with a mean of 1/(1 - e^(-1/100)) = 100.5 and a standard deviation of about the same
        // size.
        let mean = lost.len() as f64 / periods as f64;
        assert!((mean - 100.5).abs() < 4.0 * 100.0 / (periods as f64).sqrt(), "{mean}");
    }

    fn lost(loss: Loss, packets: u64) -> Vec<u64> {
        let mut state = LossState::new(loss, |name: &str| Random::new(1, name));
        (1..=packets).filter(|_| state.takes(true, Time::ZERO)).collect()
    }

    #[test]
    fn independent_loss_has_its_rate() {
        let count = lost(Loss::Independent { probability: 0.01 }, 1_000_000).len() as f64;
        // Binomial: mean 10,000, standard deviation sqrt(1e6 * 0.01 * 0.99) = 99.5. The bound is
        // five of them.
        assert!((count - 10_000.0).abs() < 5.0 * 99.5, "{count}");
    }

    #[test]
    fn loss_rates_zero_and_one_are_exact() {
        assert!(lost(Loss::Independent { probability: 0.0 }, 10_000).is_empty());
        assert_eq!(lost(Loss::Independent { probability: 1.0 }, 10_000).len(), 10_000);
    }

    #[test]
    fn listed_losses_count_packets_with_payload_only() {
        let mut state = LossState::new(Loss::Listed { packets: vec![3, 1, 3] }, |name: &str| {
            Random::new(1, name)
        });
        let fates: Vec<bool> = [true, false, true, true, false, true]
            .map(|payload| state.takes(payload, Time::ZERO))
            .to_vec();
        assert_eq!(fates, [true, false, false, true, false, false]);
    }
}
