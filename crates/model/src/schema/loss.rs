//! Losses that have nothing to do with queues: noise on the line.

use super::{AT_LEAST_ONE, Probability, SOME_TIME};
use crate::read::{choice, table, words};
use serde_json::{Value, json};
use tcplab_units::Duration;

choice! {
    /// Packets lost on the way: a probability alone (`"1 %"` or 0.01) for independent losses, or
    /// a table with the `kind` of loss and its settings.
    #[what("kind of loss")]
    #[short(only_probability)]
    pub enum Loss {
        /// Each packet is lost with the same probability, whatever happened to the others.
        "independent" => Independent,
        /// Exactly these packets are lost.
        "listed" => Listed,
        /// A good and a bad state that change from packet to packet (Gilbert & Elliott).
        "gilbert" => Gilbert,
        /// A good and a bad state that last for a time.
        "gilbert-time" => GilbertTime,
    }
}

table! {
    /// Each packet is lost with the same probability.
    pub struct Independent {
        /// The probability: "1 %" or 0.01.
        pub probability: Probability,
        /// Which packets it looks at: "data", "acks" or "both".
        #[serde(skip_serializing_if = "Carried::is_both")]
        pub on: Carried = Carried::Both,
    }
}

table! {
    /// Exactly these packets are lost.
    pub struct Listed {
        /// Which packets with data, counted from 1 as they come through: `[3, 7]`.
        pub packets: Vec<u64> [AT_LEAST_ONE],
    }
}

table! {
    /// A good and a bad state; before each packet the state may change.
    pub struct Gilbert {
        /// The probability that the good state turns bad: 0.001.
        pub to_bad: Probability,
        /// The probability that the bad state turns good: 0.1.
        pub to_good: Probability,
        /// The probability of a loss in the good state: 0.
        pub loss_good: Probability = Probability(0.0),
        /// The probability of a loss in the bad state: 1.
        pub loss_bad: Probability = Probability(1.0),
        /// Which packets it looks at: "data", "acks" or "both". The others pass.
        #[serde(skip_serializing_if = "Carried::is_both")]
        pub on: Carried = Carried::Both,
    }
}

table! {
    /// A good and a bad state that last for a time, whatever is sent.
    pub struct GilbertTime {
        /// How long the good state lasts: "1 s".
        pub good: Duration [SOME_TIME],
        /// How long the bad state lasts: "10 ms".
        pub bad: Duration [SOME_TIME],
        /// Whether these times are "fixed" or the means of an "exponential" distribution.
        pub holding: Holding = Holding::Exponential,
        /// Whether states change with "time", so that a short bad state may hit no packet, or at
        /// "packets", so that every state hits one at least, as in ns-2.
        #[serde(skip_serializing_if = "Reading::is_literal")]
        pub reading: Reading = Reading::Literal,
        /// The probability that the state changes when its time is over; otherwise it lasts once
        /// more.
        pub change: Probability = Probability(1.0),
        /// The probability of a loss in the good state: 0.
        pub loss_good: Probability = Probability(0.0),
        /// The probability of a loss in the bad state: 0.1.
        pub loss_bad: Probability = Probability(1.0),
        /// Which packets it looks at: "data", "acks" or "both". The others pass.
        #[serde(skip_serializing_if = "Carried::is_both")]
        pub on: Carried = Carried::Both,
    }
}

words! {
    /// How the times that a state lasts are spread.
    #[what("distribution of times")]
    pub enum Holding {
        /// Each time is the same.
        "fixed" => Fixed,
        /// Times are exponentially distributed.
        "exponential" => Exponential,
    }
}

words! {
    /// What it means that a state lasts for a time.
    #[what("reading")]
    pub enum Reading {
        /// States come and go with time, whatever is sent.
        "time" => Literal,
        /// A state is over with the first packet after its time, from which on the next one counts.
        "packets" => Sampled,
    }
}

words! {
    /// Packets by what they carry.
    #[what("group of packets")]
    pub enum Carried {
        /// Packets with data of an application.
        "data" => Data,
        /// Packets without, most of which are ACKs.
        "acks" => Acks,
        /// All packets.
        "both" => Both,
    }
}

// Experiments without these settings keep the ids that they had before the settings were there.
impl Carried {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
    fn is_both(&self) -> bool {
        *self == Self::Both
    }
}

impl Reading {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
    fn is_literal(&self) -> bool {
        *self == Self::Literal
    }
}

impl Loss {
    /// Which packets it looks at.
    pub fn on(&self) -> Carried {
        match self {
            Self::Independent(loss) => loss.on,
            Self::Listed(_) => Carried::Data,
            Self::Gilbert(loss) => loss.on,
            Self::GilbertTime(loss) => loss.on,
        }
    }

    /// Losses that never happen are none.
    pub(crate) fn is_none(&self) -> bool {
        match self {
            Self::Independent(loss) => loss.probability.0 <= 0.0,
            Self::Listed(loss) => loss.packets.is_empty(),
            Self::Gilbert(_) | Self::GilbertTime(_) => false,
        }
    }
}

/// A number, or text that begins like one, is the probability of independent losses.
fn only_probability(value: &Value) -> Option<Value> {
    let is_number = match value {
        Value::Number(_) => true,
        Value::String(text) => !text.trim_start().starts_with(|c: char| c.is_alphabetic()),
        _ => false,
    };
    is_number.then(|| json!({ "kind": "independent", "probability": value }))
}
