//! What applications do: the data they send, and when.
//!
//! Each kind has a file: the table that experiments write, and its resolved form, which plans hold and
//! backends read (`...Plan`, or the table itself where nothing in it is left open).

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

/// Any number but zero that makes sense.
const POSITIVE: RangeInclusive<f64> = 1e-9..=1e9;

/// All kinds, each with what it does, its word, its table and its resolved form.
macro_rules! applications {
    ($($(#[doc = $doc:literal])+ $word:literal => $table:ident, $plan:ident;)+) => {
        choice! {
            /// What the application does: a word (`"bulk"`) where the rest has defaults, or a table with
            /// its `kind`.
            #[what("kind of traffic")]
            pub enum Traffic {
                $($(#[doc = $doc])+ $word => $table,)+
            }
        }

        /// What the application of a flow does, with nothing left open.
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
    /// Sends as fast as the transport allows, at times.
    "on-off" => OnOff, OnOffPlan;
    /// Loads things like a web browser, over several connections.
    "web" => Web, WebPlan;
    /// New transfers begin one after another, each over a connection of its own.
    "arrivals" => Arrivals, ArrivalsPlan;
    /// Sends datagrams at a pace of its own, whatever becomes of them.
    "udp" => Udp, UdpPlan;
    /// Asks, is answered, thinks, and asks again, over one connection.
    "requests" => Requests, Requests;
    /// Real programs do the sending. Only where there are real hosts.
    "command" => Command, Command;
}

/// What the resolved form of traffic depends on, besides the table itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Setting<'a> {
    /// How long the experiment lasts.
    pub duration: Duration,
    /// The class of the flow.
    pub class: &'a str,
    /// The largest packet that the path carries, with its IP header.
    pub mtu: u64,
    /// The data in a full TCP segment.
    pub segment_data: u64,
    /// A full TCP segment with its headers.
    pub segment_bytes: u64,
    /// The rate of the bottleneck.
    pub bottleneck: Rate,
    /// The flows of the same entry that have this bottleneck.
    pub sharers: u64,
}

impl Traffic {
    /// What carries the data: datagrams for `udp`.
    pub(crate) fn is_datagrams(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Whether the resolved form depends on the path of a flow.
    pub(crate) fn depends_on_path(&self) -> bool {
        matches!(self, Self::Udp(_) | Self::Arrivals(_))
    }
}

impl TrafficPlan {
    /// Whether it is over when so much has arrived, rather than with the experiment.
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

    /// The load that it offers to its bottleneck, as a share of its rate, where that is known.
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
