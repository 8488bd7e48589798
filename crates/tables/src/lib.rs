//! The result tables of runs, flows, samples and links, for every backend alike.
//!
//! A table is declared once, by its row: names with units, types, and the meaning of each column.
//! The columns in memory, their documentation and their digest are derived from that. `crates/py`
//! passes them to Python as Arrow.

mod datagrams;
mod derived;
mod digest;
mod facts;
mod measure;
mod order;
mod packet;
mod part;
mod quantiles;
mod rows;
mod run_group;
mod spilled;
mod stored;
mod table;
mod totals;
mod transfers;

pub use datagrams::{DatagramFacts, Datagrams, Delays, MeasuredDatagrams};
pub use facts::{Counters, FlowFacts, FlowIdentity, Outcome, RoundTrips, TransferFacts, Transport};
pub use measure::{Activity, Meters, Window, Work};
pub use packet::{ecn, tcp_flags};
pub use part::Part;
pub use quantiles::Quantiles;
pub use rows::{
    DropColumns, FlowColumns, IntervalColumns, LinkColumns, PacketColumns, RunColumns,
    SampleColumns, TransferColumns,
};
pub use rows::{DropRow, FlowRow, IntervalRow, LinkRow, PacketRow, RunRow, SampleRow, TransferRow};
pub use run_group::Gathered;
pub use spilled::PART;
pub use stored::{Restored, StoredColumn};
pub use table::{Cell, Column, Kind, Label, Row, Table, Values, integer, number};

pub use totals::{FlowTotals, LaneTotals, Totals};
pub use transfers::Transfers;

use sha2::{Digest, Sha256};
use std::convert::Infallible;

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Produced {
    /// The tables.
    pub tables: Tables,
    /// Additional files by name: packet captures, the output of programs.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Declares all tables at once, so that every list of them is complete.
macro_rules! tables {
    ($($(#[doc = $doc:literal])+ $name:ident: $row:ident,)+) => {
        /// The tables of a run.
        #[derive(Clone, Debug, Default)]
        pub struct Tables {
            $($(#[doc = $doc])+ pub $name: Table<$row>,)+
            /// The counters of the whole run, for `laws`: not a result, and not in the digest.
            pub totals: Totals,
        }

        /// Every table with its columns, in order.
        pub const DECLARED: &[(&str, &[Column])] = &[$(($row::TABLE, $row::COLUMNS),)+];

        impl Tables {
            /// Passes each table to `look`, in order.
            ///
            /// # Errors
            /// The errors of `look`.
            pub fn each<L: Look>(&self, look: &mut L) -> Result<(), L::Error> {
                $(look.at(&self.$name)?;)+
                Ok(())
            }

            /// Passes each table to `change`, in order.
            ///
            /// # Errors
            /// The errors of `change`.
            pub fn each_mut<C: Change>(&mut self, change: &mut C) -> Result<(), C::Error> {
                $(change.to(&mut self.$name)?;)+
                Ok(())
            }

            /// Passes each table to `pair`, in order, with the other one of its name.
            pub(crate) fn each_with<P: Pair>(&mut self, other: &Self, pair: &mut P) {
                $(pair.both(&mut self.$name, &other.$name);)+
            }
        }
    };
}

tables! {
    /// The run itself: one row.
    runs: RunRow,
    /// One row for each flow.
    flows: FlowRow,
    /// One row for each object of a flow with many.
    transfers: TransferRow,
    /// One row for each flow and interval of the measuring window.
    intervals: IntervalRow,
    /// One row for each flow and point in time.
    samples: SampleRow,
    /// One row for each direction of a link and point in time.
    links: LinkRow,
    /// One row for each packet that was dropped or lost.
    drops: DropRow,
    /// One row for each packet and recorded point.
    packets: PacketRow,
}

/// An operation on every table, whatever its rows.
pub trait Look {
    /// The error of the operation.
    type Error;
    /// Performs the operation on one table.
    ///
    /// # Errors
    /// The operation failed.
    fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Self::Error>;
}

/// A change of every table, whatever its rows.
pub trait Change {
    /// The error of the change.
    type Error;
    /// Changes one table.
    ///
    /// # Errors
    /// The change failed.
    fn to<R: Row>(&mut self, table: &mut Table<R>) -> Result<(), Self::Error>;
}

/// An operation on two tables of one name, whatever their rows.
pub(crate) trait Pair {
    /// Performs the operation on one pair.
    fn both<R: Row>(&mut self, table: &mut Table<R>, other: &Table<R>);
}

/// A run, as in its row of the table of runs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Its id.
    pub id: &'a str,
    /// The experiment's name.
    pub experiment: &'a str,
    /// The backend.
    pub backend: &'a str,
    /// The version of the backend.
    pub version: &'a str,
    /// Its seed.
    pub seed: u64,
    /// The number of the repetition.
    pub repetition: u64,
    /// The duration of the experiment, in seconds.
    pub simulated_s: f64,
    /// The measuring window.
    pub window: Window,
    /// Packets that reached the end of a link.
    pub packet_hops: u64,
    /// The swept values, by path.
    pub swept: &'a [(String, String)],
}

impl Tables {
    /// Adds the row of a run, with a column for each swept value.
    pub fn add_run(&mut self, run: &Run<'_>) {
        let runs = &mut self.runs;
        let row = RunRow {
            run: runs.label(run.id),
            experiment: runs.label(run.experiment),
            backend: runs.label(run.backend),
            version: runs.label(run.version),
            seed: run.seed,
            repetition: run.repetition,
            simulated_s: run.simulated_s,
            measured_from_s: run.window.from().as_secs_f64(),
            measured_to_s: run.window.to().as_secs_f64(),
            packet_hops: run.packet_hops,
            wall_s: None,
        };
        runs.push(row);
        // A swept seed is in the column of seeds already.
        let is_declared = |path: &str| RunRow::COLUMNS.iter().any(|column| column.name == path);
        for (path, value) in run.swept.iter().filter(|(path, _)| !is_declared(path)) {
            let column = runs.extra(path, Kind::Text);
            runs.set_text(column, value);
        }
    }

    /// Changes the id of the run in all tables.
    pub fn rename(&mut self, run: &str, new: &str) {
        let Ok(()) = self.each_mut(&mut Renamed(run, new));
    }

    /// A fingerprint of every value in every table: equal for equal results, on any machine.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let Ok(()) = self.each(&mut Hashed(&mut hash));
        hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// Replaces a text in tables.
struct Renamed<'a>(&'a str, &'a str);

impl Change for Renamed<'_> {
    type Error = Infallible;

    fn to<R: Row>(&mut self, table: &mut Table<R>) -> Result<(), Infallible> {
        table.rename(self.0, self.1);
        Ok(())
    }
}

/// Adds tables to a hash.
struct Hashed<'a>(&'a mut Sha256);

impl Look for Hashed<'_> {
    type Error = Infallible;

    fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Infallible> {
        table.add_to(self.0);
        Ok(())
    }
}
