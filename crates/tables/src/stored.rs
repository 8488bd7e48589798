//! Tables from stored columns.

use crate::table::{Kind, Row, Table, Values};
use crate::{Change, Tables};

/// A stored column.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredColumn {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
}

impl StoredColumn {
    fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Integer(_) => Kind::Integer,
            Self::Number(_) => Kind::Number,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Number(values) => values.len(),
        }
    }
}

type Columns = Vec<(String, StoredColumn)>;

/// Tables that are restored part by part.
#[derive(Debug, Default)]
pub struct Restored {
    tables: Tables,
    known: Vec<&'static str>,
}

impl Restored {
    /// Adds rows to the table of this name from these columns.
    ///
    /// # Errors
    /// There is no such table, or a column is missing or of the wrong kind.
    pub fn add(&mut self, name: &str, columns: Columns) -> Result<(), String> {
        let mut part = Some(columns);
        self.tables.each_mut(&mut Rows { name, part: &mut part, known: &mut self.known })?;
        if part.is_some() { Err(format!("there is no table `{name}`")) } else { Ok(()) }
    }

    /// The tables.
    ///
    /// # Errors
    /// One is missing.
    pub fn finish(self) -> Result<Tables, String> {
        match crate::DECLARED.iter().find(|(name, _)| !self.known.contains(name)) {
            Some((name, _)) => Err(format!("the table `{name}` is missing")),
            None => Ok(self.tables),
        }
    }
}

/// Rows for the table of this name.
struct Rows<'a> {
    name: &'a str,
    part: &'a mut Option<Columns>,
    known: &'a mut Vec<&'static str>,
}

impl Change for Rows<'_> {
    type Error = String;

    fn to<R: Row>(&mut self, table: &mut Table<R>) -> Result<(), String> {
        if self.name != R::TABLE {
            return Ok(());
        }
        self.known.push(R::TABLE);
        self.part.take().map_or(Ok(()), |columns| add(table, columns))
    }
}

fn add<R: Row>(table: &mut Table<R>, mut columns: Columns) -> Result<(), String> {
    let name = R::TABLE;
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if columns.iter().any(|(_, column)| column.len() != rows) {
        return Err(format!("the columns of `{name}` are not equally long"));
    }
    let mut all = Vec::new();
    for known in R::COLUMNS {
        let found = columns.iter().position(|(name, _)| name == known.name);
        let missing = || format!("the table `{name}` has no column `{}`", known.name);
        let (_, column) = columns.remove(found.ok_or_else(missing)?);
        if column.kind() != known.kind {
            return Err(format!("`{}` of the table `{name}` is of another kind", known.name));
        }
        all.push(Some(values(table, column)));
    }
    // Columns that only this run has.
    for (known, column) in columns {
        let place = R::COLUMNS.len() + table.extra(&known, column.kind());
        if table.like(place).kind() != column.kind() {
            return Err(format!("`{known}` of the table `{name}` is of several kinds"));
        }
        all.resize(all.len().max(place + 1), None);
        all[place] = Some(values(table, column));
    }
    table.append_columns(&all.iter().map(Option::as_ref).collect::<Vec<_>>(), 0..rows);
    Ok(())
}

fn values<R: Row>(table: &mut Table<R>, column: StoredColumn) -> Values {
    match column {
        StoredColumn::Text(values) => {
            let labels = values.iter().map(|text| match text {
                Some(text) => table.label(text).number(),
                None => u32::MAX,
            });
            Values::Text(labels.collect())
        }
        StoredColumn::Integer(values) => {
            Values::Integer(values.into_iter().map(|value| value.unwrap_or(i64::MIN)).collect())
        }
        StoredColumn::Number(values) => {
            Values::Number(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Look, PART, Part, Run, SampleRow, Window};
    use std::convert::Infallible;
    use tcplab_units::Duration;

    /// The columns of part of a table in stored form.
    fn columns<R: Row>(part: &Part<'_, R>) -> (String, Columns) {
        let columns = part.columns().map(|(name, values)| {
            let column = match &*values {
                Values::Text(labels) => {
                    let texts = labels.iter().map(|label| part.text(*label).map(String::from));
                    StoredColumn::Text(texts.collect())
                }
                Values::Integer(values) => {
                    StoredColumn::Integer(values.iter().map(crate::integer).collect())
                }
                Values::Number(values) => {
                    StoredColumn::Number(values.iter().map(crate::number).collect())
                }
            };
            (name.to_owned(), column)
        });
        (R::TABLE.into(), columns.collect())
    }

    fn tables() -> Tables {
        let mut tables = Tables::default();
        // A label that no row uses.
        tables.runs.label("nowhere");
        tables.add_run(&Run {
            id: "0123",
            experiment: "test",
            backend: "sim",
            version: "1",
            seed: 1,
            repetition: 0,
            simulated_s: 1.5,
            window: Window::whole(Duration::from_millis(1500)),
            packet_hops: 7,
            swept: &[("flows[1].cc".into(), "cubic".into())],
        });
        tables
    }

    fn stored(tables: &Tables) -> Vec<(String, Columns)> {
        struct All(Vec<(String, Columns)>);
        impl Look for All {
            type Error = Infallible;
            fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Infallible> {
                self.0.extend(table.parts().map(|part| columns(&part)));
                Ok(())
            }
        }
        let mut all = All(Vec::new());
        let Ok(()) = tables.each(&mut all);
        all.0
    }

    fn restore(stored: Vec<(String, Columns)>) -> Result<Tables, String> {
        let mut restored = Restored::default();
        for (name, columns) in stored {
            restored.add(&name, columns)?;
        }
        restored.finish()
    }

    #[test]
    fn stored_tables_have_the_digest_that_they_had() {
        let mut tables = tables();
        for number in 0..PART as u64 + 2 {
            let samples = &mut tables.samples;
            let labels =
                ["0123", ["b", "a"][(number % 2) as usize]].map(|text| samples.label(text));
            samples.push(SampleRow::numbered(number, labels));
        }
        let column = tables.samples.extra("late", Kind::Number);
        tables.samples.set_number(column, 4.5);
        let restored = restore(stored(&tables)).unwrap();
        assert_eq!((restored.samples.len(), restored.samples.in_memory()), (PART + 2, 2));
        assert_eq!(restored.digest(), tables.digest());
    }

    #[test]
    fn invalid_table_files_are_refused_by_name() {
        let wrong = |change: fn(&mut Vec<(String, Columns)>)| {
            let mut stored = stored(&tables());
            change(&mut stored);
            restore(stored).unwrap_err()
        };
        assert_eq!(wrong(|it| drop(it.remove(1))), "the table `flows` is missing");
        assert_eq!(wrong(|it| it[1].0 = "flow".into()), "there is no table `flow`");
        assert_eq!(wrong(|it| drop(it[0].1.remove(4))), "the table `runs` has no column `seed`");
        assert_eq!(
            wrong(|it| it[0].1[4].1 = StoredColumn::Number(vec![None])),
            "`seed` of the table `runs` is of another kind"
        );
        assert_eq!(
            wrong(|it| it[0].1[4].1 = StoredColumn::Integer(Vec::new())),
            "the columns of `runs` are not equally long"
        );
    }
}
