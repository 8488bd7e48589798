//! The result tables: what a run, a flow, a sample and a link are, for every backend alike.
//!
//! A table is declared once, by its row: names with units, types, and what each column means. From
//! that come the columns in memory, their documentation and their digest. `crates/py` hands them to
//! Python as Arrow.

mod rows;
mod table;

pub use rows::{FlowRow, LinkRow, RunRow, SampleRow};
pub use table::{Column, Kind, Label, Row, Table, Values, integer, number};

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
}

impl Tables {
    /// A fingerprint of every value in every table: equal for equal results, on any machine.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        self.runs.add_to(&mut hash);
        self.flows.add_to(&mut hash);
        self.samples.add_to(&mut hash);
        self.links.add_to(&mut hash);
        hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }
}
