//! Losses on the wire, in the form of `kernel/net/lane.c`.

use tcplab_model::schema::{Carried, Holding, Reading};
use tcplab_model::{Loss, Probability};

/// The fields of `lane_config` about losses.
pub(super) struct LossWords {
    pub kind: u64,
    /// Probabilities: to bad, to good, loss in the good state, loss in the bad state.
    pub chances: [Probability; 4],
    pub good: u64,
    pub bad: u64,
    pub exponential: bool,
    pub sampled: bool,
    /// `LOSS_ON_DATA`, `LOSS_ON_ACKS`, or both.
    pub on: u64,
}

pub(super) fn words(loss: Option<&Loss>) -> LossWords {
    let never = Probability(0.0);
    let on = match loss.map(Loss::on) {
        Some(Carried::Data) => 1,
        Some(Carried::Acks) => 2,
        Some(Carried::Both) | None => 3,
    };
    let none = LossWords {
        kind: 0,
        chances: [never; 4],
        good: 0,
        bad: 0,
        exponential: false,
        sampled: false,
        on,
    };
    match loss {
        None => none,
        Some(Loss::Independent(it)) => {
            LossWords { kind: 1, chances: [never, never, it.probability, never], ..none }
        }
        Some(Loss::Listed(_)) => LossWords { kind: 2, ..none },
        Some(Loss::Gilbert(it)) => {
            let chances = [it.to_bad, it.to_good, it.loss_good, it.loss_bad];
            LossWords { kind: 3, chances, ..none }
        }
        Some(Loss::GilbertTime(it)) => LossWords {
            kind: 4,
            chances: [it.change, never, it.loss_good, it.loss_bad],
            good: it.good.as_picos(),
            bad: it.bad.as_picos(),
            exponential: it.holding == Holding::Exponential,
            sampled: it.reading == Reading::Sampled,
            on,
        },
    }
}

/// The numbers of the lost packets, in order, each once.
pub(super) fn listed(loss: Option<&Loss>) -> Vec<u64> {
    let Some(Loss::Listed(loss)) = loss else { return Vec::new() };
    let mut listed = loss.packets.clone();
    listed.sort_unstable();
    listed.dedup();
    listed
}
