//! Tables of packet captures.

use crate::batch::now;
use crate::errors::ConfigError;
use crate::frames::{Frame, frame};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;
use tcplab_capture::{DECLARED, Flows, Info, Reader};
use tcplab_model::printable;

/// The time between two looks at signals.
const ASKED: Duration = Duration::from_millis(100);

/// Reads a capture and returns its tables by name. At most `connections` are followed at once.
/// Packets of `chosen` connections have rows, and so have all turns if `turns` is set.
///
/// # Errors
/// The capture cannot be read, or the user has interrupted.
#[pyfunction]
#[pyo3(signature = (path, connections, chosen, turns = false))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn read_capture(
    py: Python<'_>,
    path: PathBuf,
    connections: usize,
    chosen: Vec<u64>,
    turns: bool,
) -> PyResult<Vec<(&'static str, Frame)>> {
    let mut asked: PyResult<()> = Ok(());
    let read = py.detach(|| {
        let mut reader = Reader::open(&path)?;
        let mut before = now();
        let mut goes_on = |_| {
            // Another thread of Python may be busy, and gives way only after milliseconds.
            if before.elapsed() < ASKED {
                return true;
            }
            before = now();
            asked = Python::attach(|py| {
                py.check_signals()?;
                Ok(())
            });
            asked.is_ok()
        };
        let mut flows = Flows::new(connections).with_packets_of(&chosen);
        if turns {
            flows = flows.with_turns();
        }
        Ok(Info::read(&mut reader, &path.to_string_lossy(), flows, &mut goes_on))
    });
    asked?;
    let read = read.map_err(|error: tcplab_capture::Error| {
        ConfigError::new_err(printable(&error.to_string()).into_owned())
    })?;
    let Some(Info { totals, lengths, protocols, faults, flows, packets, turns }) = read else {
        return Ok(Vec::new());
    };
    Ok(vec![
        ("capture_totals", frame(totals)),
        ("capture_lengths", frame(lengths)),
        ("capture_protocols", frame(protocols)),
        ("capture_faults", frame(faults)),
        ("capture_flows", frame(flows)),
        ("capture_packets", frame(packets)),
        ("capture_turns", frame(turns)),
    ])
}

/// The columns of a capture's tables: table, column, description.
#[pyfunction]
pub(crate) fn capture_columns() -> Vec<(&'static str, &'static str, &'static str)> {
    let rows = DECLARED.iter().flat_map(|&(table, columns)| {
        columns.iter().map(move |column| (table, column.name, column.doc.trim()))
    });
    rows.collect()
}
