//! Links, and what can be said of each of their directions.

use super::{Loss, Probability, Queue, SOME_TIME};
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, table, wrong_type};
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use tcplab_units::{Duration, Rate};

/// From the least of IPv4 (RFC 791 §3.2) to the largest packet there can be.
pub(crate) const MTU: RangeInclusive<u64> = 68..=65_535;

/// A table with keys of its own, followed by all that can be said of a link.
macro_rules! link_table {
    ($(#$about:tt)+ pub struct $name:ident { $($own:tt)* }) => {
        $crate::read::table! {
            $(#$about)+
            pub struct $name {
                $($own)*
                /// How fast bits leave: "10 Mbit/s".
                pub rate: Option<Rate> = None,
                /// How long a bit travels, one way: "20 ms".
                pub delay: Option<Duration> = None,
                /// The queue where packets wait for the link: "1 BDP" (the default),
                /// "250 packets", "64 kB", or a table with the `kind` of discipline.
                pub queue: Option<Queue> = None,
                /// Packets lost on the way: "1 %", or a table with the `kind` of loss. By default
                /// none.
                pub loss: Option<Loss> = None,
                /// The most that is added to the delay of a packet, by chance: "1 ms". Packets stay
                /// in order.
                pub jitter: Option<Duration> = None,
                /// Packets that others overtake. By default none.
                pub reordering: Option<Reordering> = None,
                /// The largest packet, with its IP header, in bytes: 1500.
                pub mtu: Option<u64> [$crate::schema::link::MTU] = None,
                /// Whether the router before it says so when a packet is too large for it (RFC 1191): true.
                /// Without, such packets disappear, as in a black hole.
                pub icmp: Option<bool> = None,
                /// How the rate changes: `[["10 s", "5 Mbit/s"], ["20 s", "10 Mbit/s"]]`, or
                /// `{ trace = "lte.txt" }`.
                pub rate_changes: Option<RateChanges> = None,
            }
        }

        impl From<&$name> for LinkSettings {
            fn from(table: &$name) -> Self {
                Self {
                    rate: table.rate,
                    delay: table.delay,
                    queue: table.queue.clone(),
                    loss: table.loss.clone(),
                    jitter: table.jitter,
                    reordering: table.reordering.clone(),
                    mtu: table.mtu,
                    icmp: table.icmp,
                    rate_changes: table.rate_changes.clone(),
                }
            }
        }
    };
}
pub(crate) use link_table;

link_table! {
    /// What can be said of a link, or of one of its directions.
    #[derive(Default)]
    pub struct LinkSettings {}
}

link_table! {
    /// A link between two nodes. What is said of it holds for both directions, unless `forward` or
    /// `back` say otherwise.
    pub struct Link {
        /// The two nodes: `["client", "router"]`. A node is there as soon as a link names it.
        pub between: (String, String),
        /// What differs from the first node to the second.
        pub forward: LinkSettings = LinkSettings::default(),
        /// What differs from the second node to the first.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

table! {
    /// Packets that others overtake.
    pub struct Reordering {
        /// Which share of the packets is held back: "1 %".
        pub probability: Probability,
        /// For how long: "5 ms".
        pub delay: Duration [SOME_TIME],
    }
}

/// How the rate of a link changes over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RateChanges {
    /// At these times to these rates.
    Steps(Vec<(Duration, Rate)>),
    /// As a file of times at which a packet may leave says (the format of Mahimahi).
    Trace {
        /// The file.
        trace: String,
    },
}

impl Read for RateChanges {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        match value {
            Value::Array(_) => {
                let steps: Vec<(Duration, Rate)> = Read::read(value, at, mistakes)?;
                for (i, pair) in steps.windows(2).enumerate() {
                    if pair[0].0 >= pair[1].0 {
                        let problem = Problem::Invalid("is not later than the one before".into());
                        mistakes.push(problem.at(at.index(i + 1)));
                        return None;
                    }
                }
                Some(Self::Steps(steps))
            }
            Value::Object(_) => {
                let mut table = crate::read::Table::open(value, at, &[&["trace"]], mistakes)?;
                Some(Self::Trace { trace: table.read("trace", None)? })
            }
            _ => {
                let problem = wrong_type(value, "a list like [[\"10 s\", \"5 Mbit/s\"]]");
                mistakes.push(problem.at(at));
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let steps = Vec::<(Duration, Rate)>::schema(definitions);
        define("RateChanges", definitions, |_| {
            json!({
                "anyOf": [
                    steps,
                    {
                        "type": "object",
                        "properties": { "trace": { "type": "string", "minLength": 1 } },
                        "required": ["trace"],
                        "additionalProperties": false,
                    },
                ],
            })
        })
    }
}

/// One direction of a link with everything decided, except how much a relative queue holds.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub rate: Rate,
    pub delay: Duration,
    pub queue: Queue,
    pub loss: Option<Loss>,
    pub jitter: Duration,
    pub reordering: Option<Reordering>,
    pub mtu: u64,
    pub icmp: bool,
    pub rate_changes: Option<RateChanges>,
}

impl LinkSettings {
    /// These settings, and those of `base` where these say nothing.
    pub(crate) fn or(&self, base: &Self) -> Self {
        Self {
            rate: self.rate.or(base.rate),
            delay: self.delay.or(base.delay),
            queue: self.queue.clone().or_else(|| base.queue.clone()),
            loss: self.loss.clone().or_else(|| base.loss.clone()),
            jitter: self.jitter.or(base.jitter),
            reordering: self.reordering.clone().or_else(|| base.reordering.clone()),
            mtu: self.mtu.or(base.mtu),
            icmp: self.icmp.or(base.icmp),
            rate_changes: self.rate_changes.clone().or_else(|| base.rate_changes.clone()),
        }
    }

    /// Fills in the defaults; a rate and a delay must have been given.
    pub(crate) fn lane(&self, at: &str, mistakes: &mut Vec<Mistake>) -> Option<Lane> {
        if self.rate.is_none() {
            mistakes.push(Problem::Missing { example: Rate::EXAMPLE }.at(format!("{at}.rate")));
        }
        if self.delay.is_none() {
            mistakes
                .push(Problem::Missing { example: Duration::EXAMPLE }.at(format!("{at}.delay")));
        }
        Some(Lane {
            rate: self.rate?,
            delay: self.delay?,
            queue: self.queue.clone().unwrap_or_default(),
            loss: self.loss.clone().filter(|loss| !loss.is_none()),
            jitter: self.jitter.unwrap_or_default(),
            reordering: self.reordering.clone(),
            mtu: self.mtu.unwrap_or(1500),
            icmp: self.icmp.unwrap_or(true),
            rate_changes: self.rate_changes.clone(),
        })
    }
}
