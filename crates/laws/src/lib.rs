//! Laws that no run may break, whatever ran it: a number that breaks one is never shown.
//!
//! The tables of every run of every backend pass through [`check`] before anything is made of them.
//! `tcplab verify` checks tables that were stored by the same laws.
//!
//! | law | file |
//! |---|---|
//! | `value` | `values` |
//! | `time` | `order` |
//! | `rtt` | `rtt` |
//! | `rate`, `queue` | `links` |
//! | `bytes`, `outcome` | `flows`, `transfers`, `datagrams` |
//! | `packets`, `drops` | `packets` |

mod broken;
mod capacity;
mod datagrams;
mod flows;
mod links;
mod order;
mod packets;
mod path;
mod rtt;
mod samples;
mod transfers;
mod values;
mod view;

pub use broken::{Broken, Law, Row};

use tcplab_model::{Plan, TrafficPlan};
use tcplab_tables::Tables;

/// Tables with many rows are checked part by part, so that each part is read from memory once: so many
/// rows, whose columns together fit into a cache.
pub(crate) const PART: usize = 1024;

/// By how much the clocks of a backend are less exact than the tables' times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack {
    /// What is seen at a time may have happened that much later, in seconds.
    pub late_s: f64,
}

impl Slack {
    fn of(plan: &Plan) -> Self {
        // The kernel looks at its lanes in a timer. Each look at its clock moves the clock on: by a
        // nanosecond, or where programs run by a microsecond.
        let has_programs =
            plan.flows.iter().any(|flow| matches!(*flow.traffic, TrafficPlan::Command(_)));
        let late_s = match (plan.backend.as_str(), has_programs) {
            ("linux", true) => 1e-3,
            ("linux", false) => 1e-5,
            _ => 0.0,
        };
        Self { late_s }
    }
}

/// Tables that keep every law.
#[derive(Clone, Debug)]
pub struct Checked(Tables);

impl Checked {
    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.0
    }

    /// The tables, to keep.
    pub fn into_tables(self) -> Tables {
        self.0
    }
}

/// Checks the tables of a run that has just ended, with what it counted in all.
///
/// # Errors
/// They break a law.
pub fn check(plan: &Plan, tables: Tables) -> Result<Checked, Box<Broken>> {
    check_stored(plan, &tables)?;
    packets::check_totals(plan, &tables)?;
    flows::check_totals(&tables)?;
    Ok(Checked(tables))
}

/// Checks tables by themselves, as far as they tell.
///
/// # Errors
/// They break a law.
pub fn check_stored(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let slack = Slack::of(plan);
    values::check(plan, tables)?;
    order::check(plan, tables)?;
    rtt::check(plan, tables)?;
    samples::check(plan, tables)?;
    links::check(plan, tables, slack)?;
    flows::check(plan, tables, slack)?;
    transfers::check(plan, tables)?;
    datagrams::check(plan, tables)?;
    packets::check(plan, tables, slack)
}
