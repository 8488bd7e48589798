//! The data recorded during an experiment.

use super::{OrOff, SOME_TIME};
use crate::mistake::Mistake;
use crate::read::{Bounded, Definitions, Place, Read, define, table};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tcplab_units::Duration;

table! {
    /// The data to record.
    pub struct Record {
        /// The sampling of each flow's state (cwnd, ssthresh, srtt, in flight, ...): at an interval
        /// ("100 ms"), at every ACK ("ack"), or never ("off").
        pub samples: Samples [SOME_TIME] = Samples::Every(Duration::from_millis(100)),
        /// The sampling of each link's queue and utilization: at an interval ("100 ms") or never
        /// ("off").
        pub links: OrOff<Duration> [SOME_TIME] = OrOff::On(Duration::from_millis(100)),
        /// The links on which packets are captured, by direction: `["left>right"]`.
        pub captures: Vec<String> = Vec::new(),
        /// The links whose packets become rows of the table `packets`, by direction:
        /// `["left>right"]`.
        pub packets: Vec<String> = Vec::new(),
    }
}

impl Default for Record {
    fn default() -> Self {
        let interval = Duration::from_millis(100);
        let (samples, links) = (Samples::Every(interval), OrOff::On(interval));
        Self { samples, links, captures: Vec::new(), packets: Vec::new() }
    }
}

/// When the state of a flow is sampled: `"100 ms"`, `"ack"` or `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// At this interval.
    Every(Duration),
    /// At every ACK.
    Ack,
    /// Never.
    Off,
}

impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Every(interval) => interval.serialize(serializer),
            Self::Ack => serializer.serialize_str("ack"),
            Self::Off => serializer.serialize_str("off"),
        }
    }
}

impl Bounded for Samples {
    type Item = Duration;
    fn items(&self) -> &[Duration] {
        match self {
            Self::Every(interval) => std::slice::from_ref(interval),
            Self::Ack | Self::Off => &[],
        }
    }
}

impl Read for Samples {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        match value.as_str() {
            Some("ack") => Some(Self::Ack),
            Some("off") => Some(Self::Off),
            _ => Duration::read(value, at, mistakes).map(Self::Every),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let interval = Duration::schema(definitions);
        define(
            "Samples",
            definitions,
            |_| json!({ "anyOf": [{ "enum": ["ack", "off"] }, interval] }),
        )
    }
}
