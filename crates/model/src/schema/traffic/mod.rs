//! Application traffic: the data that applications send, and when.
//!
//! Each kind has a file with the table that experiments contain and its resolved form, which plans
//! contain and backends read (`...Plan`, or the table itself where it leaves nothing open).

mod arrivals;
mod bulk;
mod command;
mod on_off;
mod requests;
mod sizes;
mod udp;
mod web;

pub use arrivals::{Arrivals, ArrivalsPlan, Begin};
pub use bulk::Bulk;
pub use command::Command;
pub use on_off::{OnOff, OnOffPlan};
pub use requests::Requests;
pub use sizes::{Empirical, Fixed, LogNormal, Pareto, Sizes, Zipf};
pub use udp::{Gaps, MOST_PAYLOAD, Udp, UdpPlan};
pub use web::{ClassPlan, SessionClass, Sessions, Web, WebPlan};

use crate::mistake::Problem;
use crate::read::choice;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tcplab_units::{Duration, Rate};

/// The range of positive numbers that make sense.
const POSITIVE: RangeInclusive<f64> = 1e-9..=1e9;

/// All kinds, each with its description, its word, its table and its resolved form.
macro_rules! applications {
    ($($(#[doc = $doc:literal])+ $word:literal => $table:ident, $plan:ident;)+) => {
        choice! {
            /// The traffic of the application: a word (`"bulk"`) if all settings have defaults, or
            /// a table with its `kind`.
            #[what("kind of traffic")]
            pub enum Traffic {
                $($(#[doc = $doc])+ $word => $table,)+
            }
        }

        /// The traffic of a flow's application, fully resolved.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum TrafficPlan {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $table($plan),)+
        }

        impl Traffic {
            /// The resolved form.
            pub(crate) fn plan(&self, setting: &Setting<'_>) -> Result<TrafficPlan, Problem> {
                Ok(match self {
                    $(Self::$table(traffic) => TrafficPlan::$table(traffic.plan(setting)?),)+
                })
            }
        }

        impl TrafficPlan {
            /// The word for its kind.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$table(_) => $word,)+
                }
            }
        }
    };
}

applications! {
    /// Sends as fast as the transport allows.
    "bulk" => Bulk, Bulk;
    /// Sends as fast as the transport allows, in on periods.
    "on-off" => OnOff, OnOffPlan;
    /// Loads objects like a web browser, over several connections.
    "web" => Web, WebPlan;
    /// Transfers that arrive over time, each over a connection of its own.
    "arrivals" => Arrivals, ArrivalsPlan;
    /// Sends datagrams at a given rate, regardless of their fate.
    "udp" => Udp, UdpPlan;
    /// Requests and responses over one connection, with think times.
    "requests" => Requests, Requests;
    /// Real programs send the data. Only for backends with real hosts.
    "command" => Command, Command;
}

/// The inputs of the resolved form of traffic, besides the table itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Setting<'a> {
    /// The duration of the experiment.
    pub duration: Duration,
    /// The class of the flow.
    pub class: &'a str,
    /// The largest packet on the path, with its IP header.
    pub mtu: u64,
    /// The payload of a full TCP segment.
    pub segment_data: u64,
    /// The size of a full TCP segment with its headers.
    pub segment_bytes: u64,
    /// The rate of the bottleneck.
    pub bottleneck: Rate,
    /// The number of flows of the same entry with this bottleneck.
    pub sharers: u64,
}

impl Traffic {
    /// Whether the data is sent as datagrams.
    pub(crate) fn is_datagrams(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Whether the resolved form depends on the path of a flow.
    pub(crate) fn depends_on_path(&self) -> bool {
        matches!(self, Self::Udp(_) | Self::Arrivals(_))
    }
}

impl TrafficPlan {
    /// Whether the flow ends when a given amount of data has arrived, rather than with the
    /// experiment.
    pub fn has_end(&self) -> bool {
        match self {
            Self::Bulk(bulk) => bulk.size.is_some(),
            Self::Web(_) => true,
            Self::Arrivals(arrivals) => arrivals.transfers.is_some(),
            Self::Udp(udp) => udp.packets.is_some(),
            Self::Requests(requests) => requests.requests.is_some(),
            _ => false,
        }
    }

    /// The offered load, as a share of the bottleneck's rate, if known.
    pub fn offered(&self) -> Option<f64> {
        match self {
            Self::Arrivals(arrivals) => arrivals.offered,
            Self::Udp(udp) => Some(udp.offered),
            _ => None,
        }
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Self::Bulk(Bulk { size: None, write: None })
    }
}

fn invalid(reason: &str) -> Problem {
    Problem::Invalid(reason.into())
}
