//! Tables with more rows than fit in memory.

use tcplab_model::Watch;
use tcplab_model::memory::ROW;
use tcplab_sim::{SHOWN, run_shown};
use tcplab_tables::{Look, PART, Row, Table, Tables, Values};

/// More rows than one part holds, in each of the tables that grow during a run.
const LONG: &str = r#"
duration = "1 s"
record = { samples = "ack", links = "20 us", packets = ["c>d"] }

[[network.links]]
between = ["a", "b"]
rate = "1 Gbit/s"
delay = "1 ms"
mtu = 576
queue = "1000 packets"

[[network.links]]
between = ["c", "d"]
rate = "2 Gbit/s"
delay = "1 ms"
queue = "100 packets"
loss = "60 %"

[[flows]]
from = "a"
to = "b"
stack = { cc = "bbr" }

[[flows]]
from = "c"
to = "d"
traffic = { kind = "udp", rate = "1 Gbit/s", payload = "972 B" }
"#;

/// The values of the growing tables as text: all rows, or those added since the last look.
#[derive(Default)]
struct Rows {
    seen: Vec<(&'static str, usize)>,
    values: Vec<(String, Vec<u64>)>,
}

impl Look for Rows {
    type Error = std::convert::Infallible;

    fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Self::Error> {
        if !["samples", "links", "drops", "packets"].contains(&R::TABLE) {
            return Ok(());
        }
        if !self.seen.iter().any(|seen| seen.0 == R::TABLE) {
            self.seen.push((R::TABLE, 0));
        }
        let seen = self.seen.iter_mut().find(|seen| seen.0 == R::TABLE).unwrap();
        while seen.1 < table.len() {
            let part = table.part_with(seen.1);
            let start = seen.1 - part.first();
            for (name, values) in part.columns() {
                let name = format!("{}.{name}", R::TABLE);
                let place = self.values.iter().position(|known| known.0 == name);
                let place = place.unwrap_or_else(|| {
                    // Unset before.
                    let nothing = vec![f64::NAN.to_bits(); seen.1];
                    self.values.push((name, nothing));
                    self.values.len() - 1
                });
                let column = &mut self.values[place].1;
                match &*values {
                    Values::Text(all) => {
                        column.extend(all[start..].iter().map(|it| u64::from(*it)));
                    }
                    Values::Integer(all) => column.extend(all[start..].iter().map(|it| *it as u64)),
                    Values::Number(all) => {
                        column.extend(all[start..].iter().map(|it| it.to_bits()));
                    }
                }
            }
            seen.1 = part.first() + part.len();
        }
        Ok(())
    }
}

#[test]
fn spilled_rows_are_read_back_as_written() {
    let document = tcplab_model::from_toml(LONG).unwrap();
    let plan = document.plans(&tcplab_sim::backend()).unwrap().remove(0);
    let mut shown = Rows::default();
    let mut most = 0;
    let mut show = |tables: &Tables| {
        let Tables { samples, links, drops, packets, .. } = tables;
        let held = [samples.in_memory(), links.in_memory(), drops.in_memory(), packets.in_memory()];
        most = most.max(held.into_iter().max().unwrap());
        // New rows are never in a file: only rows in memory have just been added.
        let Ok(()) = tables.each(&mut shown);
    };
    // A full part of each of the four tables, and the memory of the network and two flows.
    let memory = 4 * PART as u64 * 400 + 10_000_000;
    let watch = Watch::with_memory(Some(memory));
    let tables = run_shown(&plan, &watch, &mut show).unwrap().tables;
    assert_eq!(most, PART);
    let lengths =
        [tables.samples.len(), tables.links.len(), tables.drops.len(), tables.packets.len()];
    assert!(lengths.iter().all(|rows| *rows > PART + SHOWN), "{lengths:?}");
    // More than the memory limit.
    assert!(lengths.iter().sum::<usize>() as u64 * ROW > memory);
    // Columns that only this run has are in a file, too.
    assert!(tables.samples.part(0).columns().any(|(name, _)| name == "bbr_min_rtt_ms"));
    let mut read = Rows::default();
    let Ok(()) = tables.each(&mut read);
    let Ok(()) = tables.each(&mut shown);
    for ((name, written), (_, read)) in shown.values.iter().zip(&read.values) {
        assert!(written == read, "{name}");
    }
    assert_eq!(shown.values.len(), read.values.len());
}
