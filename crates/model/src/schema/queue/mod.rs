//! Queues: where packets wait for a link, and which of them are dropped.
//!
//! Each discipline has a file: the table that experiments write, and its resolved form, which plans hold
//! and backends read (`...Plan`). Which backend runs it says [`crate::support`].

mod cake;
mod codel;
mod droptail;
mod fq;
mod fq_codel;
mod pie;
mod red;

pub use cake::{Cake, CakePlan};
pub use codel::{CoDel, CoDelPlan};
pub use droptail::{DropTail, DropTailPlan};
pub use fq::{Fq, FqPlan};
pub use fq_codel::{FqCoDel, FqCoDelPlan};
pub use pie::{Pie, PiePlan};
pub use red::{Red, RedPlan};

use super::Limit;
use crate::plan::{QueueLimit, QueuePlan};
use crate::read::choice;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// All disciplines, each with what it is, its word, its table and its resolved form.
macro_rules! disciplines {
    ($($(#[doc = $doc:literal])+ $word:literal => $table:ident, $plan:ident;)+) => {
        choice! {
            /// The queue in front of a link: its size alone (`"1 BDP"`, `"250 packets"`, `"64 kB"`) for
            /// drop-tail, or a table with the `kind` of discipline and its settings.
            #[what("queue discipline")]
            #[short(only_limit)]
            pub enum Queue {
                $($(#[doc = $doc])+ $word => $table,)+
            }
        }

        /// Which packets a queue drops, and in which order it serves them.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Discipline {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $table($plan),)+
        }

        impl Discipline {
            /// What experiments call it.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$table(_) => $word,)+
                }
            }
        }

        impl Queue {
            /// How much it holds, as it was written.
            pub(crate) fn limit(&self) -> Limit {
                match self {
                    $(Self::$table(queue) => queue.limit,)+
                }
            }

            /// The resolved form, with the means to resolve sizes.
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
    /// Drops what does not fit.
    "droptail" => DropTail, DropTailPlan;
    /// Random Early Detection (Floyd & Jacobson 1993).
    "red" => Red, RedPlan;
    /// Controlled Delay (RFC 8289).
    "codel" => CoDel, CoDelPlan;
    /// A fair queue of flows, each under `CoDel` (RFC 8290).
    "fq-codel" => FqCoDel, FqCoDelPlan;
    /// Proportional Integral controller Enhanced (RFC 8033).
    "pie" => Pie, PiePlan;
    /// A fair queue of flows that also paces them, as Linux `fq`.
    "fq" => Fq, FqPlan;
    /// A fair queue with `CoDel`, host by host and flow by flow, as Linux `cake`.
    "cake" => Cake, CakePlan;
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail { limit: Limit::Bdp(1.0) })
    }
}

/// A size alone is drop-tail; a word alone is a discipline.
fn only_limit(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if text.trim_start().starts_with(|c: char| c.is_alphabetic()) => None,
        Value::String(_) | Value::Number(_) => Some(json!({ "kind": "droptail", "limit": value })),
        _ => None,
    }
}
