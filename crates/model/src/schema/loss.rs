//! Losses that do not depend on queues: noise on the line.

use super::{AT_LEAST_ONE, Probability, SOME_TIME};
use crate::read::{choice, table, words};
use serde_json::{Value, json};
use tcplab_units::Duration;

choice! {
    /// Packet loss on the link: a probability alone (`"1 %"` or 0.01) for independent losses, or a
    /// table with the `kind` of loss and its settings.
    #[what("kind of loss")]
    #[short(only_probability)]
    pub enum Loss {
        /// Each packet is lost with the same probability, independently of others.
        "independent" => Independent,
        /// Exactly these packets are lost.
        "listed" => Listed,
        /// A good and a bad state that change from packet to packet (Gilbert & Elliott).
        "gilbert" => Gilbert,
        /// A good and a bad state with durations.
        "gilbert-time" => GilbertTime,
    }
}

table! {
    /// Each packet is lost with the same probability.
    pub struct Independent {
        /// The probability: "1 %" or 0.01.
        pub probability: Probability,
        /// The packets to which the loss applies: "data", "acks" or "both".
        #[serde(skip_serializing_if = "Carried::is_both")]
        pub on: Carried = Carried::Both,
    }
}

table! {
    /// Exactly these packets are lost.
    pub struct Listed {
        /// The lost packets, counted from 1 among the packets with data: `[3, 7]`.
        pub packets: Vec<u64> [AT_LEAST_ONE],
    }
}

table! {
    /// A good and a bad state; the state may change before each packet.
    pub struct Gilbert {
        /// The probability that the good state turns bad: 0.001.
        pub to_bad: Probability,
        /// The probability that the bad state turns good: 0.1.
        pub to_good: Probability,
        /// The probability of a loss in the good state: 0.
        pub loss_good: Probability = Probability(0.0),
        /// The probability of a loss in the bad state: 1.
        pub loss_bad: Probability = Probability(1.0),
        /// The packets to which the loss applies: "data", "acks" or "both". The others pass.
        #[serde(skip_serializing_if = "Carried::is_both")]
        pub on: Carried = Carried::Both,
    }
}

table! {
    /// A good and a bad state with durations that do not depend on the traffic.
    pub struct GilbertTime {
        /// The duration of the good state: "1 s".
        pub good: Duration [SOME_TIME],
        /// The duration of the bad state: "10 ms".
        pub bad: Duration [SOME_TIME],
        /// Whether durations are "fixed" or means of an "exponential" distribution.
        pub holding: Holding = Holding::Exponential,
        /// Whether states change with "time", so that a short bad state may affect no packet, or at
        /// "packets", so that every state affects at least one, as in ns-2.
        #[serde(skip_serializing_if = "Reading::is_literal")]
        pub reading: Reading = Reading::Literal,
        /// The probability that the state changes when its time is over. Otherwise the same state
        /// begins again.
        pub change: Probability = Probability(1.0),
        /// The probability of a loss in the good state: 0.
        pub loss_good: Probability = Probability(0.0),
        /// The probability of a loss in the bad state: 0.1.
        pub loss_bad: Probability = Probability(1.0),
        /// The packets to which the loss applies: "data", "acks" or "both". The others pass.
        #[serde(skip_serializing_if = "Carried::is_both")]
        pub on: Carried = Carried::Both,
    }
}

words! {
    /// The distribution of a state's duration.
    #[what("distribution of times")]
    pub enum Holding {
        /// All durations are equal.
        "fixed" => Fixed,
        /// Durations are exponentially distributed.
        "exponential" => Exponential,
    }
}

words! {
    /// When states change.
    #[what("reading")]
    pub enum Reading {
        /// States change with time, whatever is sent.
        "time" => Literal,
        /// A state ends at the first packet after its time, and the next duration begins there.
        "packets" => Sampled,
    }
}

words! {
    /// Classes of packets by payload.
    #[what("group of packets")]
    pub enum Carried {
        /// Packets with application data.
        "data" => Data,
        /// Packets without data, mostly ACKs.
        "acks" => Acks,
        /// All packets.
        "both" => Both,
    }
}

// Experiments without these settings keep the ids from before the settings existed.
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
    /// The packets to which the loss applies.
    pub fn on(&self) -> Carried {
        match self {
            Self::Independent(loss) => loss.on,
            Self::Listed(_) => Carried::Data,
            Self::Gilbert(loss) => loss.on,
            Self::GilbertTime(loss) => loss.on,
        }
    }

    /// Losses with probability zero mean no losses.
    pub(crate) fn is_none(&self) -> bool {
        match self {
            Self::Independent(loss) => loss.probability.0 <= 0.0,
            Self::Listed(loss) => loss.packets.is_empty(),
            Self::Gilbert(_) | Self::GilbertTime(_) => false,
        }
    }
}

/// A number, or a text that begins with one, is the probability of independent losses.
fn only_probability(value: &Value) -> Option<Value> {
    let is_number = match value {
        Value::Number(_) => true,
        Value::String(text) => !text.trim_start().starts_with(|c: char| c.is_alphabetic()),
        _ => false,
    };
    is_number.then(|| json!({ "kind": "independent", "probability": value }))
}
