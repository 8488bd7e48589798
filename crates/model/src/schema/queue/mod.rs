//! Queue disciplines.
//!
//! Each discipline has a file with the table that experiments contain and its resolved form, which
//! plans contain and backends read (`...Plan`). [`crate::support`] lists the backends that run each
//! discipline.

mod cake;
mod codel;
mod drophead;
mod droptail;
mod dualpi2;
mod fq;
mod fq_codel;
mod fq_pie;
mod pie;
mod policer;
mod red;
mod sfq;
mod tbf;

pub use cake::{AckFilter, Cake, CakePlan, Framing, Isolation, Tins};
pub use codel::{CoDel, CoDelPlan};
pub use drophead::{DropHead, DropHeadPlan};
pub use droptail::{DropTail, DropTailPlan};
pub use dualpi2::{DualPi2, DualPi2Plan, DualScheduler};
pub use fq::{Fq, FqPlan};
pub use fq_codel::{FqCoDel, FqCoDelPlan};
pub use fq_pie::{FqPie, FqPiePlan};
pub use pie::{Pie, PiePlan};
pub use policer::{Policer, PolicerPlan};
pub use red::{Red, RedPlan};
pub use sfq::{Sfq, SfqPlan};
pub use tbf::{Tbf, TbfPlan};

use super::Limit;
use crate::plan::{QueueLimit, QueuePlan};
use crate::read::choice;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tcplab_units::Rate;

/// All disciplines, each with its description, its word, its table and its resolved form.
macro_rules! disciplines {
    ($($(#[doc = $doc:literal])+ $word:literal => $table:ident, $plan:ident;)+) => {
        choice! {
            /// The queue in front of a link: a limit alone (`"1 BDP"`, `"250 packets"`, `"64 kB"`,
            /// `"50 ms"`) for drop-tail, or a table with the `kind` of discipline and its settings.
            #[what("queue discipline")]
            #[short(only_limit)]
            pub enum Queue {
                $($(#[doc = $doc])+ $word => $table,)+
            }
        }

        /// A queue discipline: which packets are dropped, and in which order packets are served.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Discipline {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $table($plan),)+
        }

        impl Discipline {
            /// The word in experiments.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$table(_) => $word,)+
                }
            }
        }

        impl Queue {
            /// The limit as written.
            pub(crate) fn limit(&self) -> Limit {
                match self {
                    $(Self::$table(queue) => queue.limit,)+
                }
            }

            /// The resolved form; `size` resolves sizes.
            pub(crate) fn plan(&self, size: &dyn Fn(Limit) -> QueueLimit) -> QueuePlan {
                let discipline = match self {
                    $(Self::$table(queue) => Discipline::$table(queue.plan(size)),)+
                };
                QueuePlan { discipline, limit: size(self.limit()) }
            }
        }
    };
}

disciplines! {
    /// A full queue drops arriving packets.
    "droptail" => DropTail, DropTailPlan;
    /// A full queue drops its oldest packets.
    "drophead" => DropHead, DropHeadPlan;
    /// Random Early Detection (Floyd & Jacobson 1993).
    "red" => Red, RedPlan;
    /// Controlled Delay (RFC 8289).
    "codel" => CoDel, CoDelPlan;
    /// Fair queueing of flows, each under `CoDel` (RFC 8290).
    "fq-codel" => FqCoDel, FqCoDelPlan;
    /// Proportional Integral controller Enhanced (RFC 8033).
    "pie" => Pie, PiePlan;
    /// Fair queueing of flows, each under `PIE`, as in Linux `fq_pie`.
    "fq-pie" => FqPie, FqPiePlan;
    /// Stochastic Fairness Queueing, as in Linux `sch_sfq`.
    "sfq" => Sfq, SfqPlan;
    /// A token bucket with a rate below that of the link, as in Linux `sch_tbf`.
    "tbf" => Tbf, TbfPlan;
    /// Fair queueing of flows with pacing, as in Linux `sch_fq`.
    "fq" => Fq, FqPlan;
    /// Fair queueing of hosts and their flows under COBALT, with a shaper, as in Linux `sch_cake`.
    "cake" => Cake, CakePlan;
    /// Two coupled queues, one for L4S and one for all other packets (RFC 9332).
    "dualpi2" => DualPi2, DualPi2Plan;
    /// A token bucket that drops packets for which it has no tokens.
    "policer" => Policer, PolicerPlan;
}

impl Queue {
    /// Whether sizes are counted in bytes, as in Linux. Other disciplines count packets.
    pub(crate) fn counts_bytes(&self) -> bool {
        matches!(
            self,
            Self::DropTail(_) | Self::DropHead(_) | Self::Red(_) | Self::Cake(_) | Self::Tbf(_)
        )
    }
}

impl Discipline {
    /// The rate to which traffic is limited, if the discipline is a shaper or a policer.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::Tbf(tbf) => Some(tbf.rate),
            Self::Cake(cake) => cake.rate,
            Self::Policer(policer) => Some(policer.rate),
            _ => None,
        }
    }

    /// Whether ECN-capable packets are marked.
    pub fn marks(&self) -> bool {
        match self {
            Self::Red(red) => red.ecn,
            Self::CoDel(codel) => codel.ecn,
            Self::FqCoDel(codel) => codel.ecn,
            Self::Pie(pie) => pie.ecn,
            Self::FqPie(pie) => pie.ecn,
            Self::Cake(_) | Self::DualPi2(_) => true,
            _ => false,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail { limit: Limit::Bdp(1.0) })
    }
}

/// A limit alone is drop-tail; a word alone is a discipline.
fn only_limit(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if text.trim_start().starts_with(|c: char| c.is_alphabetic()) => None,
        Value::String(_) | Value::Number(_) => Some(json!({ "kind": "droptail", "limit": value })),
        _ => None,
    }
}
