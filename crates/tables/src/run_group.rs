//! The tables of several runs, one run after the other.

use crate::table::{Kind, Row, Table};
use crate::{Change, Look, Pair, Tables};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The tables of several runs in memory: in each table, the rows of one run follow those of
/// another.
#[derive(Clone, Debug)]
pub struct Gathered {
    tables: Tables,
    /// The kinds of columns that not all runs have, by table and name.
    kinds: Kinds,
}

type Kinds = BTreeMap<&'static str, BTreeMap<String, Kind>>;

impl Default for Gathered {
    fn default() -> Self {
        let mut tables = Tables::default();
        let Ok(()) = tables.each_mut(&mut Kept);
        Self { tables, kinds: BTreeMap::new() }
    }
}

impl Gathered {
    /// Whether the tables of a run can be added: all of its columns have the same kind here, and
    /// none of its tables is partly in a file.
    pub fn takes(&self, tables: &Tables) -> bool {
        struct Fits<'a>(&'a Gathered, bool);
        impl Look for Fits<'_> {
            type Error = Infallible;
            fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Infallible> {
                let known = self.0.kinds.get(R::TABLE);
                let known = |name: &str| known.and_then(|kinds| kinds.get(name));
                let agree = |(name, kind)| known(name).is_none_or(|known| *known == kind);
                self.1 &= table.in_memory() == table.len() && table.further().all(agree);
                Ok(())
            }
        }
        let mut fits = Fits(self, true);
        let Ok(()) = tables.each(&mut fits);
        fits.1
    }

    /// Adds the tables of a run, which must be possible.
    pub fn add(&mut self, tables: &Tables) {
        let Ok(()) = tables.each(&mut Learn(&mut self.kinds));
        self.tables.each_with(tables, &mut Gather);
    }

    /// All rows.
    pub fn into_tables(self) -> Tables {
        self.tables
    }

    /// The approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        struct Bytes(usize);
        impl Look for Bytes {
            type Error = Infallible;
            fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Infallible> {
                self.0 += 8 * table.len() * (R::COLUMNS.len() + table.further().count());
                Ok(())
            }
        }
        let mut bytes = Bytes(0);
        let Ok(()) = self.tables.each(&mut bytes);
        bytes.0
    }
}

struct Kept;

impl Change for Kept {
    type Error = Infallible;
    fn to<R: Row>(&mut self, table: &mut Table<R>) -> Result<(), Infallible> {
        table.keep_in_memory();
        Ok(())
    }
}

struct Learn<'a>(&'a mut Kinds);

impl Look for Learn<'_> {
    type Error = Infallible;
    fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Infallible> {
        for (name, kind) in table.further() {
            let known = self.0.entry(R::TABLE).or_default();
            if !known.contains_key(name) {
                known.insert(name.into(), kind);
            }
        }
        Ok(())
    }
}

struct Gather;

impl Pair for Gather {
    fn both<R: Row>(&mut self, table: &mut Table<R>, other: &Table<R>) {
        table.gather(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PART, SampleRow};

    /// Tables of a run with this many samples, and an additional column that the last one fills.
    fn tables(run: &str, samples: u64, column: &str, kind: Kind) -> Tables {
        let mut tables = Tables::default();
        let table = &mut tables.samples;
        for number in 0..samples {
            let labels = [run, ["b", "a"][(number % 2) as usize]].map(|text| table.label(text));
            table.push(SampleRow::numbered(number, labels));
        }
        let place = table.extra(column, kind);
        match kind {
            Kind::Text => table.set_text(place, "x"),
            _ => table.set_number(place, 4.5),
        }
        tables
    }

    #[test]
    fn rows_of_runs_follow_each_other() {
        let mut gathered = Gathered::default();
        gathered.add(&tables("one", 2, "k", Kind::Number));
        gathered.add(&tables("two", 1, "w", Kind::Number));
        gathered.add(&tables("three", 2, "k", Kind::Number));
        let samples = gathered.into_tables().samples;
        let some = |texts: &[&'static str]| texts.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(samples.texts("run"), Some(some(&["one", "one", "two", "three", "three"])));
        assert_eq!(samples.texts("flow"), Some(some(&["b", "a", "b", "b", "a"])));
        let further: Vec<_> = samples.further().collect();
        assert_eq!(further, [("k", Kind::Number), ("w", Kind::Number)]);
        let part = samples.part(0);
        let set: Vec<Vec<bool>> = part
            .columns()
            .skip(SampleRow::COLUMNS.len())
            .map(|(_, values)| match &*values {
                crate::Values::Number(values) => {
                    values.iter().map(|value| crate::number(value).is_some()).collect()
                }
                _ => unreachable!("numbers"),
            })
            .collect();
        assert_eq!(set[0], [false, true, false, false, true]);
        assert_eq!(set[1], [false, false, true, false, false]);
    }

    #[test]
    fn gathered_rows_stay_in_memory_beyond_one_part() {
        let mut gathered = Gathered::default();
        let half = tables("one", PART as u64 / 2 + 1, "k", Kind::Number);
        gathered.add(&half);
        gathered.add(&half);
        let samples = gathered.into_tables().samples;
        assert_eq!((samples.number_of_parts(), samples.in_memory()), (1, PART + 2));
    }

    #[test]
    fn other_kinds_and_long_tables_are_not_grouped() {
        let mut gathered = Gathered::default();
        assert!(gathered.takes(&tables("one", 1, "k", Kind::Number)));
        gathered.add(&tables("one", 1, "k", Kind::Number));
        assert!(!gathered.takes(&tables("two", 1, "k", Kind::Text)));
        assert!(!gathered.takes(&tables("two", PART as u64 + 1, "k", Kind::Number)));
        assert!(gathered.takes(&tables("two", PART as u64, "k", Kind::Number)));
    }
}
