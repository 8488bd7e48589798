//! Which packets a lane loses, apart from those its queue has no room for.
//!
//! A packet that is lost here has been transmitted: it took its time on the wire.

use crate::random::Random;

/// A lane's way of losing packets.
#[derive(Clone, Debug)]
pub enum Loss {
    /// Every packet alike, independently of the others.
    Independent {
        /// Chance to be lost, from 0 to 1.
        probability: f64,
    },
    /// These packets with payload, counted from 1 in the order in which they enter the wire.
    Listed {
        /// Their numbers.
        packets: Vec<u64>,
    },
}

/// The running state of a [`Loss`].
#[derive(Clone, Debug)]
pub(crate) enum LossState {
    Independent {
        /// Lost if 64 random bits are below this; one more bit, so that 1 loses all.
        below: u128,
        random: Random,
    },
    Listed {
        /// Numbers yet to come, the next one last.
        left: Vec<u64>,
        seen: u64,
    },
}

impl LossState {
    pub fn new(loss: Loss, random: Random) -> Self {
        match loss {
            Loss::Independent { probability } => {
                let two_to_64 = 18_446_744_073_709_551_616.0;
                Self::Independent {
                    below: (probability.clamp(0.0, 1.0) * two_to_64) as u128,
                    random,
                }
            }
            Loss::Listed { packets: mut left } => {
                left.sort_unstable_by(|a, b| b.cmp(a));
                left.dedup();
                Self::Listed { left, seen: 0 }
            }
        }
    }

    /// Whether the packet that enters the wire now is lost.
    pub fn takes(&mut self, has_payload: bool) -> bool {
        match self {
            Self::Independent { below, random } => u128::from(random.bits()) < *below,
            Self::Listed { left, seen } => {
                *seen += u64::from(has_payload);
                let lost = has_payload && left.last() == Some(seen);
                if lost {
                    left.pop();
                }
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(loss: Loss, packets: u64) -> Vec<u64> {
        let mut state = LossState::new(loss, Random::new(1, "test"));
        (1..=packets).filter(|_| state.takes(true)).collect()
    }

    #[test]
    fn independent_loss_takes_its_share() {
        let count = lost(Loss::Independent { probability: 0.01 }, 1_000_000).len() as f64;
        // Binomial: mean 10,000, standard deviation sqrt(1e6 * 0.01 * 0.99) = 99.5; five of them.
        assert!((count - 10_000.0).abs() < 5.0 * 99.5, "{count}");
    }

    #[test]
    fn never_and_always_are_exact() {
        assert!(lost(Loss::Independent { probability: 0.0 }, 10_000).is_empty());
        assert_eq!(lost(Loss::Independent { probability: 1.0 }, 10_000).len(), 10_000);
    }

    #[test]
    fn listed_packets_are_counted_among_those_with_payload() {
        let mut state =
            LossState::new(Loss::Listed { packets: vec![3, 1, 3] }, Random::new(1, "test"));
        let fates: Vec<bool> =
            [true, false, true, true, false, true].map(|payload| state.takes(payload)).to_vec();
        assert_eq!(fates, [true, false, false, true, false, false]);
    }
}
