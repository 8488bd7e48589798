//! Consecutive rows of a table in memory.

use crate::table::{Label, Row, Table, Values};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Consecutive rows of a table in memory.
#[derive(Debug)]
pub struct Part<'a, R: Row> {
    pub(crate) table: &'a Table<R>,
    pub(crate) first: usize,
    pub(crate) rows: usize,
    /// The columns of the table; those that only this run has may be shorter, or missing at the
    /// end.
    pub(crate) columns: Cow<'a, [Values]>,
}

impl<R: Row> Part<'_, R> {
    /// The index of the first row in the table.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// All columns of the table by name, each as long as the part.
    pub fn columns(&self) -> impl Iterator<Item = (&str, Cow<'_, Values>)> {
        self.table.names().enumerate().map(|(place, name)| {
            let mut values = match self.columns.get(place) {
                Some(values) => Cow::Borrowed(values),
                None => Cow::Owned(self.table.like(place)),
            };
            if values.len() < self.rows {
                values.to_mut().lengthen(self.rows);
            }
            (name, values)
        })
    }

    /// The filled columns by name: those that only this run has may be shorter than the part.
    pub fn filled(&self) -> impl Iterator<Item = (&str, &Values)> {
        self.table.names().zip(&*self.columns)
    }

    /// Some rows of the declared columns.
    #[inline]
    pub fn slices(&self, rows: Range<usize>) -> R::Columns<'_> {
        R::slices(&self.columns, rows)
    }

    /// The integers of a declared column.
    ///
    /// # Panics
    /// There is no such column.
    pub fn integers(&self, name: &str) -> &[i64] {
        match &self.columns[place::<R>(name)] {
            Values::Integer(values) => values,
            _ => unreachable!("`{name}` of {} has no whole numbers", R::TABLE),
        }
    }

    /// The numbers of a declared column.
    ///
    /// # Panics
    /// There is no such column.
    pub fn numbers(&self, name: &str) -> &[f64] {
        match &self.columns[place::<R>(name)] {
            Values::Number(values) => values,
            _ => unreachable!("`{name}` of {} has no numbers", R::TABLE),
        }
    }

    /// The labels of a declared text column: see [`Part::text`].
    ///
    /// # Panics
    /// There is no such column.
    pub fn labels(&self, name: &str) -> &[u32] {
        match &self.columns[place::<R>(name)] {
            Values::Text(values) => values,
            _ => unreachable!("`{name}` of {} has no texts", R::TABLE),
        }
    }

    /// The text of a label in a text column.
    pub fn text(&self, label: u32) -> Option<&str> {
        self.table.text(label)
    }

    /// Replaces or removes some texts of a declared column.
    ///
    /// # Panics
    /// There is no such column.
    pub fn relabel(&mut self, name: &str, by: &BTreeMap<Label, Option<Label>>) {
        if by.is_empty() {
            return;
        }
        let Values::Text(values) = &mut self.columns.to_mut()[place::<R>(name)] else { return };
        for value in values {
            if let Some(label) = by.get(&Label(*value)) {
                *value = label.map_or(u32::MAX, Label::number);
            }
        }
    }
}

fn place<R: Row>(name: &str) -> usize {
    let found = R::COLUMNS.iter().position(|column| column.name == name);
    found.unwrap_or_else(|| unreachable!("{} has no column `{name}`", R::TABLE))
}
