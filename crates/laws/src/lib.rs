//! Laws that no run may break, whatever backend ran it: numbers that break one are never shown.
//!
//! The tables of every run of every backend are checked by [`Laws`] before they are used: rows at
//! the time of writing if the backend shows them then, and all others at the end. `tcplab verify`
//! checks stored tables by the same laws.
//!
//! | law | file |
//! |---|---|
//! | `value` | `values` |
//! | `time` | `order`, `samples`, `links` |
//! | `rtt` | `rtt`, `samples`, `datagrams` |
//! | `rate`, `queue` | `links` |
//! | `bytes`, `outcome` | `flows`, `transfers`, `intervals`, `datagrams` |
//! | `packets`, `drops` | `packets` |

mod broken;
mod capacity;
mod datagrams;
mod flows;
mod intervals;
mod links;
mod order;
mod packets;
mod path;
mod rows;
mod rtt;
mod samples;
mod transfers;
mod values;

pub use broken::{Broken, Law, Row};

use flows::Flows;
use intervals::Intervals;
use links::Links;
use packets::{Drops, Packets};
use rows::{BLOCK, Check, Rows, Walk};
use samples::Samples;
use tcplab_model::{Plan, TrafficPlan};
use tcplab_tables::{RunRow, Tables};
use transfers::Transfers;

/// The precision of a backend's clocks, if lower than that of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack {
    /// The most that an observation may be late, in seconds.
    pub late_s: f64,
}

impl Slack {
    fn of(plan: &Plan) -> Self {
        // The kernel samples its lanes in a timer. Each read of its clock advances the clock by a
        // nanosecond, or with programs by a microsecond.
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

/// Tables that keep all laws.
#[derive(Clone, Debug)]
pub struct Checked(Tables);

impl Checked {
    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.0
    }

    /// The tables, by value.
    pub fn into_tables(self) -> Tables {
        self.0
    }
}

/// The laws of one run, and how far its tables were checked.
pub struct Laws<'a> {
    slack: Slack,
    runs: Walk<Runs<'a>>,
    transfers: Walk<Transfers<'a>>,
    intervals: Walk<Intervals<'a>>,
    flows: Walk<Flows<'a>>,
    samples: Walk<Samples<'a>>,
    links: Walk<Links<'a>>,
    drops: Walk<Drops<'a>>,
    packets: Walk<Packets<'a>>,
    broken: Option<Box<Broken>>,
}

/// The laws of the single row of a run.
struct Runs<'a>(&'a Plan);

impl Check<RunRow> for Runs<'_> {
    fn check(&mut self, rows: &Rows<'_, RunRow>) -> Result<(), Box<Broken>> {
        values::check(self.0, rows)
    }
}

impl<'a> Laws<'a> {
    /// The laws of a plan whose changes of links are steps ([`Plan::with_steps`]).
    pub fn new(plan: &'a Plan) -> Self {
        let slack = Slack::of(plan);
        Self {
            slack,
            runs: Walk::new(Runs(plan)),
            transfers: Walk::new(Transfers::new(plan)),
            intervals: Walk::new(Intervals::new(plan)),
            flows: Walk::new(Flows::new(plan, slack)),
            samples: Walk::new(Samples::new(plan)),
            links: Walk::new(Links::new(plan, slack)),
            drops: Walk::new(Drops::new(plan)),
            packets: Walk::new(Packets::new(plan)),
            broken: None,
        }
    }

    /// Checks added rows if there are many. This is only faster than checking at the end, while the
    /// rows are still cached: [`Laws::finish`] checks the rest.
    pub fn look(&mut self, tables: &Tables) {
        if self.broken.is_none() {
            self.broken = self.check_rows(tables, BLOCK).err();
        }
    }

    /// Checks the rest of the tables of a run that has just ended, with its total counters.
    ///
    /// # Errors
    /// The tables break a law.
    pub fn finish(mut self, tables: Tables) -> Result<Checked, Box<Broken>> {
        self.check(&tables)?;
        self.drops.laws.check_totals(&tables)?;
        flows::check_totals(&tables)?;
        Ok(Checked(tables))
    }

    /// Checks the tables by themselves.
    fn check(&mut self, tables: &Tables) -> Result<(), Box<Broken>> {
        self.broken.take().map_or(Ok(()), Err)?;
        self.runs.go_on(&tables.runs, 1)?;
        if tables.runs.len() != 1 {
            let what = format!("the table of runs has {} rows", tables.runs.len());
            return Err(Broken::in_all(Law::Value, what));
        }
        self.transfers.go_on(&tables.transfers, 1)?;
        self.intervals.go_on(&tables.intervals, 1)?;
        self.flows.laws.sums = self.transfers.laws.sums(&tables.transfers).collect();
        self.flows.laws.intervals = self.intervals.laws.sums(&tables.intervals);
        self.flows.go_on(&tables.flows, 1)?;
        self.check_rows(tables, 1)?;
        self.links.laws.check_media(tables)?;
        self.drops.laws.check_links(tables, &self.links.laws, self.slack)
    }

    /// Checks added rows of growing tables, if there are at least so many.
    fn check_rows(&mut self, tables: &Tables, least: usize) -> Result<(), Box<Broken>> {
        self.transfers.go_on(&tables.transfers, least)?;
        self.intervals.go_on(&tables.intervals, least)?;
        self.samples.go_on(&tables.samples, least)?;
        self.links.go_on(&tables.links, least)?;
        self.drops.go_on(&tables.drops, least)?;
        self.packets.go_on(&tables.packets, least)
    }
}

/// Checks the tables of a run that has just ended, with its total counters.
///
/// # Errors
/// The tables break a law.
pub fn check(plan: &Plan, tables: Tables) -> Result<Checked, Box<Broken>> {
    Laws::new(&plan.with_steps()).finish(tables)
}

/// Checks stored tables, which have no total counters.
///
/// # Errors
/// The tables break a law.
pub fn check_stored(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    Laws::new(&plan.with_steps()).check(tables)
}
