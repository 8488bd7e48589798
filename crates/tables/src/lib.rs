//! The result tables: what a run, a flow, a sample and a link are, for every backend alike.
//!
//! A table is declared once, by its row: names with units, types, and what each column means. From
//! that come the columns in memory, their documentation and their digest. `crates/py` hands them to
//! Python as Arrow.

mod rows;
mod stored;
mod table;
mod totals;

pub use rows::{DropRow, FlowRow, LinkRow, RunRow, SampleRow};
pub use stored::StoredColumn;
pub use table::{Column, Kind, Label, Row, Table, Values, integer, number};

pub use totals::{FlowTotals, LaneTotals, Totals};

use sha2::{Digest, Sha256};

/// All that a run leaves.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The run itself: one row.
    pub runs: Table<RunRow>,
    /// One row for each connection.
    pub flows: Table<FlowRow>,
    /// One row for each flow and point in time.
    pub samples: Table<SampleRow>,
    /// One row for each direction of a link and point in time.
    pub links: Table<LinkRow>,
    /// One row for each packet that did not arrive.
    pub drops: Table<DropRow>,
    /// What the run counted in all. For `laws`: not a result, and not in the digest.
    pub totals: Totals,
}

/// A run, as its row in the table of runs says.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Its id.
    pub id: &'a str,
    /// The experiment's name.
    pub experiment: &'a str,
    /// What ran it.
    pub backend: &'a str,
    /// The version of what ran it.
    pub version: &'a str,
    /// Its seed.
    pub seed: u64,
    /// Which repetition it is.
    pub repetition: u64,
    /// How long the experiment lasts, in seconds.
    pub simulated_s: f64,
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
            packet_hops: run.packet_hops,
            wall_s: None,
        };
        runs.push(row);
        // A swept seed stands in the column of seeds already.
        let is_declared = |path: &str| RunRow::COLUMNS.iter().any(|column| column.name == path);
        for (path, value) in run.swept.iter().filter(|(path, _)| !is_declared(path)) {
            let column = runs.extra(path, Kind::Text);
            runs.set_text(column, value);
        }
    }

    /// A fingerprint of every value in every table: equal for equal results, on any machine.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        self.runs.add_to(&mut hash);
        self.flows.add_to(&mut hash);
        self.samples.add_to(&mut hash);
        self.links.add_to(&mut hash);
        self.drops.add_to(&mut hash);
        hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }
}
