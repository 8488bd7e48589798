//! Tables from columns that were stored.

use crate::table::{Kind, Row, Table, Values};
use crate::{Change, Tables};

/// A column as it was stored.
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

impl Tables {
    /// The tables of a run, from their columns by name.
    ///
    /// # Errors
    /// A table or a column is missing or of another kind, or there is one too many.
    pub fn restore(mut stored: Vec<(String, Columns)>) -> Result<Self, String> {
        let mut tables = Self::default();
        tables.each_mut(&mut Restored(&mut stored))?;
        match stored.first() {
            Some((name, _)) => Err(format!("there is no table `{name}`")),
            None => Ok(tables),
        }
    }
}

/// Fills tables with what was stored.
struct Restored<'a>(&'a mut Vec<(String, Columns)>);

impl Change for Restored<'_> {
    type Error = String;

    fn to<R: Row>(&mut self, table: &mut Table<R>) -> Result<(), String> {
        restore(table, self.0)
    }
}

fn restore<R: Row>(
    table: &mut Table<R>,
    stored: &mut Vec<(String, Columns)>,
) -> Result<(), String> {
    let name = R::TABLE;
    let found = stored.iter().position(|(known, _)| known == name);
    let (_, mut columns) =
        stored.remove(found.ok_or_else(|| format!("the table `{name}` is missing"))?);
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if columns.iter().any(|(_, column)| column.len() != rows) {
        return Err(format!("the columns of `{name}` are not equally long"));
    }
    let mut declared = Vec::new();
    for known in R::COLUMNS {
        let found = columns.iter().position(|(name, _)| name == known.name);
        let missing = || format!("the table `{name}` has no column `{}`", known.name);
        let (_, column) = columns.remove(found.ok_or_else(missing)?);
        if column.kind() != known.kind {
            return Err(format!("`{}` of the table `{name}` is of another kind", known.name));
        }
        declared.push(values(table, column));
    }
    let extra = columns.into_iter().map(|(name, column)| (name, values(table, column)));
    let extra = extra.collect();
    table.fill(rows, declared, extra);
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
    use crate::{Look, Run};
    use std::convert::Infallible;

    /// The columns of a table as they are stored.
    fn columns<R: Row>(table: &Table<R>) -> (String, Columns) {
        let columns = table.columns().map(|(name, values)| {
            let column = match &*values {
                Values::Text(labels) => {
                    let texts = labels.iter().map(|label| table.text(*label).map(String::from));
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
        // A text that is known and stands nowhere.
        tables.runs.label("nowhere");
        tables.add_run(&Run {
            id: "0123",
            experiment: "test",
            backend: "sim",
            version: "1",
            seed: 1,
            repetition: 0,
            simulated_s: 1.5,
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
                self.0.push(columns(table));
                Ok(())
            }
        }
        let mut all = All(Vec::new());
        let Ok(()) = tables.each(&mut all);
        all.0
    }

    #[test]
    fn stored_tables_have_the_digest_that_they_had() {
        let tables = tables();
        let restored = Tables::restore(stored(&tables)).unwrap();
        assert_eq!(restored.digest(), tables.digest());
    }

    #[test]
    fn what_is_no_table_is_named() {
        let wrong = |change: fn(&mut Vec<(String, Columns)>)| {
            let mut stored = stored(&tables());
            change(&mut stored);
            Tables::restore(stored).unwrap_err()
        };
        assert_eq!(wrong(|it| drop(it.remove(1))), "the table `flows` is missing");
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
