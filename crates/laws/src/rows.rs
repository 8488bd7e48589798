//! Rows of a table as they are checked, in blocks.

use crate::broken::{Broken, Law};
use std::ops::Range;
use tcplab_tables::{Part, Row, Table, Values};

/// The number of rows checked at once: their columns together fit into the cache, where freshly
/// written rows still are.
pub(crate) const BLOCK: usize = 1024;

/// Consecutive rows of a table.
pub(crate) struct Rows<'a, R: Row> {
    part: &'a Part<'a, R>,
    range: Range<usize>,
}

impl<'a, R: Row> Rows<'a, R> {
    /// All rows of a part.
    pub fn of(part: &'a Part<'a, R>) -> Self {
        Self { part, range: 0..part.len() }
    }

    /// The part of the table with these rows.
    pub fn part(&self) -> &'a Part<'a, R> {
        self.part
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// The index of a row in the table.
    pub fn number(&self, row: usize) -> usize {
        self.part.first() + self.range.start + row
    }

    /// The values of these rows.
    #[inline]
    pub fn columns(&self) -> R::Columns<'a> {
        self.part.slices(self.range.start..self.range.end)
    }

    /// The values of the rows so many places before these, if they are in the same part.
    pub fn columns_before(&self, places: usize) -> Option<R::Columns<'a>> {
        let start = self.range.start.checked_sub(places)?;
        Some(self.part.slices(start..self.range.end - places))
    }

    /// The labels of these rows in a declared column.
    pub fn labels(&self, name: &str) -> &'a [u32] {
        &self.part.labels(name)[self.range.clone()]
    }

    /// The columns by name, with the range of these rows: those that only this run has may be
    /// shorter.
    pub fn filled(&self) -> impl Iterator<Item = (&'a str, &'a Values, Range<usize>)> {
        self.part.filled().map(|(name, values)| {
            let end = self.range.end.min(values.len());
            (name, values, self.range.start.min(end)..end)
        })
    }

    /// The text of a label in a text column.
    pub fn text(&self, label: u32) -> Option<&'a str> {
        self.part.text(label)
    }

    /// A law that a row breaks.
    #[expect(clippy::unnecessary_box_returns, reason = "errors are boxed everywhere")]
    pub fn broken(&self, law: Law, row: usize, what: impl Into<String>) -> Box<Broken> {
        Broken::at(law, self.part, self.range.start + row, what)
    }
}

/// The laws of a table, which get all of its rows in order.
pub(crate) trait Check<R: Row> {
    fn check(&mut self, rows: &Rows<'_, R>) -> Result<(), Box<Broken>>;
}

/// Passes the rows of a table to its laws.
pub(crate) struct Walk<C> {
    pub laws: C,
    /// The number of checked rows.
    seen: usize,
}

impl<C> Walk<C> {
    pub fn new(laws: C) -> Self {
        Self { laws, seen: 0 }
    }

    /// Continues to the last row, if there are at least so many.
    pub fn go_on<R: Row>(&mut self, table: &Table<R>, least: usize) -> Result<(), Box<Broken>>
    where
        C: Check<R>,
    {
        while table.len() - self.seen >= least {
            let part = table.part_with(self.seen);
            let mut start = self.seen - part.first();
            while start < part.len() {
                let rows = Rows { part: &part, range: start..part.len().min(start + BLOCK) };
                self.laws.check(&rows)?;
                start = rows.range.end;
            }
            self.seen = part.first() + start;
        }
        Ok(())
    }
}

/// Values for labels, computed once for each label.
pub(crate) struct Known<T> {
    by_label: Vec<Option<T>>,
}

impl<T> Known<T> {
    pub fn new() -> Self {
        Self { by_label: Vec::new() }
    }

    /// The value for a label; `find` computes it the first time.
    #[inline]
    pub fn get(&mut self, label: u32, find: impl FnOnce() -> T) -> &mut T {
        let place = label as usize;
        if !matches!(self.by_label.get(place), Some(Some(_))) {
            self.learn(place, find());
        }
        match &mut self.by_label[place] {
            Some(found) => found,
            None => unreachable!("it was just found"),
        }
    }

    /// All known values with their labels.
    pub fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        let known = self.by_label.iter().enumerate();
        known.filter_map(|(label, found)| Some((label as u32, found.as_ref()?)))
    }

    #[cold]
    fn learn(&mut self, place: usize, found: T) {
        if self.by_label.len() <= place {
            self.by_label.resize_with(place + 1, || None);
        }
        self.by_label[place] = Some(found);
    }
}
