//! Tables as columns.

use crate::part::Part;
use crate::spilled::{PART, Spilled};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ops::Range;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text, usually one of a few.
    Text,
    /// An integer, or a missing value.
    Integer,
    /// A number, or a missing value.
    Number,
}

/// A column with its documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, with the unit.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// Whether values may be missing.
    pub is_optional: bool,
    /// The description.
    pub doc: &'static str,
}

/// A label: a text known to a table by number, because many rows contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(pub(crate) u32);

impl Label {
    /// The label's number in a column.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The values of a column. Tables have millions of rows, so a missing value is a special value
/// rather than a flag.
#[derive(Clone, Debug)]
pub enum Values {
    /// Labels; `u32::MAX` is missing.
    Text(Vec<u32>),
    /// Integers; `i64::MIN` is missing.
    Integer(Vec<i64>),
    /// Numbers; NaN is missing.
    Number(Vec<f64>),
}

/// A row of a table, which declares the columns.
pub trait Row: Clone + 'static {
    /// The table's name.
    const TABLE: &'static str;
    /// The columns, in order.
    const COLUMNS: &'static [Column];
    /// Consecutive values of each column.
    type Columns<'a>;
    /// Appends one value to each column.
    fn push_to(self, columns: &mut [Values]);
    /// A range of rows of the columns.
    fn slices(columns: &[Values], rows: Range<usize>) -> Self::Columns<'_>;
}

/// A table: the columns of its rows, and additional ones that only this run has.
///
/// Memory holds the last rows. When there are [`PART`] of them, they move into a file. A table is
/// therefore read [part by part](Table::parts).
#[derive(Clone, Debug)]
pub struct Table<R> {
    /// The columns of the rows in memory: the declared ones, then those that only this run has, as
    /// far as filled.
    columns: Vec<Values>,
    /// The names of the columns that only this run has.
    extra: Vec<String>,
    pub(crate) labels: Vec<String>,
    /// Labels by the hashes of their texts.
    known: HashTable<Label>,
    hashes: RandomState,
    /// The number of rows in memory.
    rows: usize,
    /// The limit of rows in memory.
    most: usize,
    spilled: Spilled,
    row: PhantomData<fn(R)>,
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        let columns = R::COLUMNS.iter().map(|column| Values::empty(column.kind)).collect();
        Self {
            columns,
            extra: Vec::new(),
            labels: Vec::new(),
            known: HashTable::new(),
            hashes: RandomState::default(),
            rows: 0,
            most: PART,
            spilled: Spilled::default(),
            row: PhantomData,
        }
    }
}

impl<R: Row> Table<R> {
    /// Changes the text of a label.
    pub(crate) fn rename(&mut self, text: &str, new: &str) {
        let Some(label) = self.forget(text) else { return };
        self.forget(new);
        new.clone_into(&mut self.labels[label.0 as usize]);
        self.know(label);
    }

    /// Makes a text unknown, and returns its label.
    fn forget(&mut self, text: &str) -> Option<Label> {
        let is_text = |label: &Label| self.labels[label.0 as usize] == text;
        let entry = self.known.find_entry(self.hashes.hash_one(text), is_text).ok()?;
        Some(entry.remove().0)
    }

    /// Makes a label known by its text.
    fn know(&mut self, label: Label) {
        let hash = |label: &Label| self.hashes.hash_one(&self.labels[label.0 as usize]);
        self.known.insert_unique(hash(&label), label, hash);
    }

    /// Keeps all rows in memory, without a limit.
    pub(crate) fn keep_in_memory(&mut self) {
        self.most = usize::MAX;
    }

    /// The label for a text.
    pub fn label(&mut self, text: &str) -> Label {
        let is_text = |label: &Label| self.labels[label.0 as usize] == text;
        if let Some(&label) = self.known.find(self.hashes.hash_one(text), is_text) {
            return label;
        }
        let label = Label(self.labels.len() as u32);
        self.labels.push(text.into());
        self.know(label);
        label
    }

    /// Reserves space for additional rows, as far as they will be in memory.
    pub fn reserve(&mut self, rows: usize) {
        for column in &mut self.columns[..R::COLUMNS.len()] {
            column.reserve(rows.min(PART));
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: R) {
        if self.rows == self.most {
            self.spill();
        }
        row.push_to(&mut self.columns);
        self.rows += 1;
    }

    /// The index of a column that only this run has, which is created if there is none of that
    /// name.
    pub fn extra(&mut self, name: &str, kind: Kind) -> usize {
        if let Some(index) = self.extra.iter().position(|known| known == name) {
            return index;
        }
        self.extra.push(name.into());
        self.columns.push(Values::empty(kind));
        self.extra.len() - 1
    }

    /// Sets a number in such a column, in the last row.
    pub fn set_number(&mut self, extra: usize, value: f64) {
        if let Values::Number(values) = &mut self.columns[R::COLUMNS.len() + extra] {
            values.resize(self.rows - 1, f64::NAN);
            values.push(value);
        }
    }

    /// Sets a text in such a column, in the last row.
    pub fn set_text(&mut self, extra: usize, text: &str) {
        let label = self.label(text);
        if let Values::Text(values) = &mut self.columns[R::COLUMNS.len() + extra] {
            values.resize(self.rows - 1, u32::MAX);
            values.push(label.0);
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.spilled.parts() * PART + self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows in memory: at most [`PART`], unless no file can be written.
    pub fn in_memory(&self) -> usize {
        self.rows
    }

    /// Moves the rows in memory into a file. If that fails, they stay.
    #[cold]
    fn spill(&mut self) {
        self.columns.iter_mut().for_each(|column| column.lengthen(PART));
        if self.spilled.add(&self.columns).is_ok() {
            self.columns.iter_mut().for_each(Values::clear);
            self.rows = 0;
        }
    }

    /// The parts of the table, each of which fits in memory, in order; usually there is one.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_, R>> {
        (0..self.number_of_parts()).map(|number| self.part(number))
    }

    /// The number of parts, at least one.
    pub fn number_of_parts(&self) -> usize {
        let number = self.spilled.parts();
        number + usize::from(self.rows > 0 || number == 0)
    }

    /// One of the parts.
    ///
    /// # Panics
    /// Rows in a file cannot be read back.
    pub fn part(&self, number: usize) -> Part<'_, R> {
        let first = number * PART;
        if number < self.spilled.parts() {
            return self.block(first, PART);
        }
        Part { table: self, first, rows: self.rows, columns: Cow::Borrowed(&self.columns) }
    }

    /// The part with this row, or to which this row would be appended.
    pub fn part_with(&self, row: usize) -> Part<'_, R> {
        self.part((row / PART).min(self.spilled.parts()))
    }

    /// At most this many rows from `first` on, within one part.
    pub(crate) fn block(&self, first: usize, rows: usize) -> Part<'_, R> {
        let number = (first / PART).min(self.spilled.parts());
        let start = first - number * PART;
        let is_spilled = number < self.spilled.parts();
        let rows = start..(start + rows).min(if is_spilled { PART } else { self.rows });
        let columns = if is_spilled {
            let columns = self.spilled.read(number, &rows, &self.columns);
            columns.expect("what was written to a file can be read")
        } else {
            self.columns.iter().map(|values| values.slice(&rows)).collect()
        };
        Part { table: self, first, rows: rows.len(), columns: Cow::Owned(columns) }
    }

    /// A table without rows that has the same labels.
    pub(crate) fn with_labels(&self) -> Self {
        let (labels, known) = (self.labels.clone(), self.known.clone());
        Self { labels, known, hashes: self.hashes.clone(), ..Self::default() }
    }

    /// Appends rows of a part of a table with the same labels. Columns that only this run has are
    /// created when a row needs them.
    pub(crate) fn append(&mut self, part: &Part<'_, R>, rows: Range<usize>) {
        let own = R::COLUMNS.len();
        let mut needed: Vec<(usize, usize)> = Vec::new();
        for (place, (name, values)) in part.filled().enumerate().skip(own) {
            if !self.extra.iter().any(|known| known == name) {
                needed.extend(values.slice(&rows).first_set().map(|row| (row, place)));
            }
        }
        needed.sort_unstable();
        for (_, place) in needed {
            self.extra(&part.table.extra[place - own], part.columns[place].kind());
        }
        let places =
            self.extra.iter().map(|name| part.table.extra.iter().position(|it| it == name));
        let places = (0..own).map(Some).chain(places.map(|place| Some(own + place?)));
        let columns: Vec<_> = places.map(|place| part.columns.get(place?)).collect();
        self.append_columns(&columns, rows);
    }

    /// Appends rows of columns, each as far as it is filled.
    pub(crate) fn append_columns(&mut self, columns: &[Option<&Values>], mut rows: Range<usize>) {
        while !rows.is_empty() {
            if self.rows == self.most {
                self.spill();
            }
            // If rows could not be written to a file, all later rows stay in memory too.
            let room = if self.rows < self.most { self.most - self.rows } else { usize::MAX };
            let now = rows.start..rows.end.min(rows.start.saturating_add(room));
            for (own, values) in self.columns.iter_mut().zip(columns) {
                if let Some(values) = values {
                    own.extend(self.rows, values, &now);
                }
            }
            self.rows += now.len();
            rows.start = now.end;
        }
    }

    /// The columns that only this run has: their names and kinds.
    pub fn further(&self) -> impl Iterator<Item = (&str, Kind)> {
        let kinds = self.columns[R::COLUMNS.len()..].iter().map(Values::kind);
        self.extra.iter().map(String::as_str).zip(kinds)
    }

    /// Appends the rows of another table. A column that only some runs have must be of the same
    /// kind in both.
    ///
    /// The labels of the other table are appended too, although some texts then have several: a
    /// table of many runs has thousands of labels, and looking each up takes longer than the rows.
    pub(crate) fn gather(&mut self, other: &Self) {
        let first = self.labels.len() as u32;
        let further = other.further().map(|(name, kind)| R::COLUMNS.len() + self.extra(name, kind));
        let places: Vec<usize> = (0..R::COLUMNS.len()).chain(further).collect();
        if other.is_empty() {
            return;
        }
        self.labels.extend_from_slice(&other.labels);
        for part in other.parts() {
            let columns: Vec<Cow<'_, Values>> =
                part.columns.iter().map(|values| values.relabelled(first)).collect();
            let mut all = vec![None; self.columns.len()];
            for (place, values) in places.iter().zip(&columns) {
                all[*place] = Some(&**values);
            }
            self.append_columns(&all, 0..part.len());
        }
    }

    /// The names of all columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let declared = R::COLUMNS.iter().map(|column| column.name);
        declared.chain(self.extra.iter().map(String::as_str))
    }

    /// An empty column of the same kind as the one at this index.
    pub(crate) fn like(&self, place: usize) -> Values {
        Values::empty(self.columns[place].kind())
    }

    /// The numbers of a declared column, if it is of that kind.
    pub fn numbers(&self, name: &str) -> Option<Vec<Option<f64>>> {
        has::<R>(name, Kind::Number)?;
        Some(self.parts().flat_map(|part| to_vec(part.numbers(name), number)).collect())
    }

    /// The integers of a declared column, if it is of that kind.
    pub fn integers(&self, name: &str) -> Option<Vec<Option<i64>>> {
        has::<R>(name, Kind::Integer)?;
        Some(self.parts().flat_map(|part| to_vec(part.integers(name), integer)).collect())
    }

    /// The texts of a declared column, if it is of that kind.
    pub fn texts(&self, name: &str) -> Option<Vec<Option<&str>>> {
        has::<R>(name, Kind::Text)?;
        let text = |label: &u32| self.text(*label);
        Some(self.parts().flat_map(|part| to_vec(part.labels(name), text)).collect())
    }

    /// The text of a label in a text column.
    pub fn text(&self, label: u32) -> Option<&str> {
        self.labels.get(label as usize).map(String::as_str)
    }
}

/// Whether there is a declared column of this name and kind.
fn has<R: Row>(name: &str, kind: Kind) -> Option<()> {
    R::COLUMNS.iter().any(|it| it.name == name && it.kind == kind).then_some(())
}

fn to_vec<T, U>(values: &[T], each: impl Fn(&T) -> U) -> Vec<U> {
    values.iter().map(each).collect()
}

/// The integer of a column's value, unless missing.
pub fn integer(value: &i64) -> Option<i64> {
    (*value != i64::MIN).then_some(*value)
}

/// The number of a column's value, unless missing.
pub fn number(value: &f64) -> Option<f64> {
    (!value.is_nan()).then_some(*value)
}

impl Values {
    pub(crate) fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(Vec::new()),
            Kind::Integer => Self::Integer(Vec::new()),
            Kind::Number => Self::Number(Vec::new()),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Integer(_) => Kind::Integer,
            Self::Number(_) => Kind::Number,
        }
    }

    fn reserve(&mut self, rows: usize) {
        match self {
            Self::Text(values) => values.reserve_exact(rows),
            Self::Integer(values) => values.reserve_exact(rows),
            Self::Number(values) => values.reserve_exact(rows),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Text(values) => values.clear(),
            Self::Integer(values) => values.clear(),
            Self::Number(values) => values.clear(),
        }
    }

    pub(crate) fn lengthen(&mut self, rows: usize) {
        match self {
            Self::Text(values) => values.resize(rows, u32::MAX),
            Self::Integer(values) => values.resize(rows, i64::MIN),
            Self::Number(values) => values.resize(rows, f64::NAN),
        }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Number(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A range of rows, as far as filled.
    fn slice(&self, rows: &Range<usize>) -> Self {
        let mut slice = Self::empty(self.kind());
        slice.extend(0, self, rows);
        slice
    }

    /// Appends rows of another column, as far as filled, after this many rows.
    fn extend(&mut self, after: usize, others: &Self, rows: &Range<usize>) {
        let rows = rows.start..rows.end.min(others.len());
        if rows.is_empty() {
            return;
        }
        self.lengthen(after);
        match (self, others) {
            (Self::Text(own), Self::Text(others)) => own.extend_from_slice(&others[rows]),
            (Self::Integer(own), Self::Integer(others)) => own.extend_from_slice(&others[rows]),
            (Self::Number(own), Self::Number(others)) => own.extend_from_slice(&others[rows]),
            _ => unreachable!("columns of one name are of one kind"),
        }
    }

    /// The same values with labels whose numbers begin at `first`.
    fn relabelled(&self, first: u32) -> Cow<'_, Self> {
        let Self::Text(values) = self else { return Cow::Borrowed(self) };
        let new = |label: &u32| if *label == u32::MAX { u32::MAX } else { first + label };
        Cow::Owned(Self::Text(values.iter().map(new).collect()))
    }

    /// The first row with a value.
    fn first_set(&self) -> Option<usize> {
        match self {
            Self::Text(values) => values.iter().position(|label| *label != u32::MAX),
            Self::Integer(values) => values.iter().position(|value| integer(value).is_some()),
            Self::Number(values) => values.iter().position(|value| number(value).is_some()),
        }
    }
}

/// A value of a column.
pub trait Cell {
    /// The kind of the column.
    const KIND: Kind;
    /// Whether the value may be missing.
    const IS_OPTIONAL: bool;
    /// The representation in the column.
    type Value: Copy;
    /// Appends the value to a column.
    fn push_to(self, values: &mut Values);
    /// A range of rows of a column.
    fn slice(values: &Values, rows: Range<usize>) -> &[Self::Value];
}

macro_rules! cell {
    ($type:ty, $kind:ident($in:ty), $is_optional:literal, $value:ident => $cell:expr) => {
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;
            const IS_OPTIONAL: bool = $is_optional;
            type Value = $in;
            fn push_to(self, values: &mut Values) {
                let $value = self;
                if let Values::$kind(values) = values {
                    values.push($cell);
                }
            }
            #[inline]
            fn slice(values: &Values, rows: Range<usize>) -> &[$in] {
                let Values::$kind(values) = values else { unreachable!("as declared") };
                &values[rows]
            }
        }
    };
}
cell!(Label, Text(u32), false, value => value.0);
cell!(Option<Label>, Text(u32), true, value => value.map_or(u32::MAX, |label| label.0));
cell!(u64, Integer(i64), false, value => value.cast_signed());
cell!(Option<u64>, Integer(i64), true, value => value.map_or(i64::MIN, u64::cast_signed));
cell!(f64, Number(f64), false, value => value);
cell!(Option<f64>, Number(f64), true, value => value.unwrap_or(f64::NAN));

/// Declares a table by its row: each column with its type and description.
#[macro_export]
macro_rules! rows {
    ($(
        $(#[doc = $about:literal])+
        $table:literal $row:ident $columns:ident {
            $($(#[doc = $doc:literal])+ $column:ident: $type:ty,)+
        }
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $column: $type,)+
        }

        #[doc = concat!("The values of rows of `", $table, "`, by column.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $columns<'a> {
            $($(#[doc = $doc])+ pub $column: &'a [<$type as $crate::Cell>::Value],)+
        }

        impl $crate::Row for $row {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [$crate::Column] = &[$($crate::Column {
                name: stringify!($column),
                kind: <$type as $crate::Cell>::KIND,
                is_optional: <$type as $crate::Cell>::IS_OPTIONAL,
                doc: concat!($($doc),+),
            }),+];

            type Columns<'a> = $columns<'a>;

            fn push_to(self, columns: &mut [$crate::Values]) {
                let mut columns = columns.iter_mut();
                $(if let Some(column) = columns.next() {
                    $crate::Cell::push_to(self.$column, column);
                })+
            }

            #[inline]
            fn slices(
                columns: &[$crate::Values],
                rows: std::ops::Range<usize>,
            ) -> $columns<'_> {
                let mut columns = columns.iter();
                $columns {
                    $($column: match columns.next() {
                        Some(column) => {
                            <$type as $crate::Cell>::slice(column, rows.start..rows.end)
                        }
                        None => unreachable!("as declared"),
                    },)+
                }
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleRow;
    use sha2::{Digest, Sha256};
    use std::collections::BTreeMap;

    fn row(table: &mut Table<SampleRow>, flow: &str, cwnd_segments: u64) -> SampleRow {
        SampleRow {
            run: table.label("0123"),
            flow: table.label(flow),
            time_s: 0.5,
            cwnd_segments,
            ssthresh_segments: None,
            rtt_ms: Some(41.0),
            srtt_ms: Some(40.0),
            rto_ms: 200.0,
            in_flight_segments: cwnd_segments,
            acked_bytes: 0,
            pacing_mbit_s: None,
            delivery_rate_mbit_s: None,
        }
    }

    #[test]
    fn rows_become_columns() {
        let mut table = Table::default();
        for (flow, cwnd) in [("a", 10), ("b", 20), ("a", 30)] {
            let row = row(&mut table, flow, cwnd);
            table.push(row);
        }
        assert_eq!(table.len(), 3);
        assert_eq!(table.integers("cwnd_segments"), Some(vec![Some(10), Some(20), Some(30)]));
        assert_eq!(table.integers("ssthresh_segments"), Some(vec![None; 3]));
        assert_eq!(table.texts("flow"), Some(vec![Some("a"), Some("b"), Some("a")]));
        assert_eq!(table.labels, ["0123", "a", "b"]);
    }

    #[test]
    fn further_columns_are_empty_where_nothing_was_set() {
        let mut table = Table::default();
        for cwnd in 1..=4 {
            let row = row(&mut table, "a", cwnd);
            table.push(row);
            if cwnd == 2 {
                let column = table.extra("cubic_k", Kind::Number);
                table.set_number(column, 4.5);
            }
        }
        assert_eq!(extra(&table, "cubic_k"), [None, Some(4.5), None, None]);
    }

    /// The values of a number column that only this run has.
    fn extra(table: &Table<SampleRow>, name: &str) -> Vec<Option<f64>> {
        let parts = table.parts().map(|part| {
            let (_, values) = part.columns().find(|column| column.0 == name).unwrap();
            let Values::Number(values) = &*values else { panic!("{values:?}") };
            values.iter().map(number).collect::<Vec<_>>()
        });
        parts.flatten().collect()
    }

    fn digest(table: &Table<SampleRow>) -> Vec<u8> {
        let mut hash = Sha256::new();
        table.add_to(&mut hash);
        hash.finalize().to_vec()
    }

    /// Two parts and three rows, with an additional column in each; in the last one it is empty.
    fn long() -> Table<SampleRow> {
        let mut table = Table::default();
        for number in 0..2 * PART as u64 + 3 {
            let row = row(&mut table, ["a", "b", "c"][(number >> 16) as usize], number);
            table.push(row);
            if number == 7 || number == PART as u64 + 9 {
                let column = table.extra(["early", "late"][(number >> 16) as usize], Kind::Number);
                table.set_number(column, 4.5);
            }
        }
        table
    }

    #[test]
    fn a_long_table_is_spilled_to_a_file_unchanged() {
        let short = long();
        assert_eq!((short.len(), short.in_memory()), (2 * PART + 3, 3));
        let numbers = (0..2 * PART as i64 + 3).map(Some);
        assert_eq!(short.integers("cwnd_segments"), Some(numbers.collect()));
        assert_eq!(short.integers("ssthresh_segments"), Some(vec![None; 2 * PART + 3]));
        assert_eq!(short.texts("flow").unwrap()[PART - 1..=PART], [Some("a"), Some("b")]);
        for (name, row) in [("early", 7), ("late", PART + 9)] {
            let mut expected = vec![None; 2 * PART + 3];
            expected[row] = Some(4.5);
            assert_eq!(extra(&short, name), expected);
        }
        let parts: Vec<_> = short.parts().map(|part| (part.first(), part.len())).collect();
        assert_eq!(parts, [(0, PART), (PART, PART), (2 * PART, 3)]);
        assert_eq!(short.part_with(PART).first(), PART);
        assert_eq!(short.part_with(2 * PART + 3).first(), 2 * PART);
        // Everything in memory, as if no file could be written, is a single part.
        let mut whole = short.with_labels();
        whole.columns.resize_with(whole.columns.len() + 2, || Values::empty(Kind::Number));
        whole.extra.clone_from(&short.extra);
        for part in short.parts() {
            for (own, (_, values)) in whole.columns.iter_mut().zip(part.columns()) {
                own.extend(whole.rows, &values, &(0..part.len()));
            }
            whole.rows += part.len();
        }
        assert_eq!((whole.number_of_parts(), whole.part(0).len()), (1, 2 * PART + 3));
        assert_eq!(digest(&whole), digest(&short));
    }

    #[test]
    fn a_copy_shares_the_file_until_rows_are_added_to_one_of_them() {
        let mut table = long();
        let copy = table.clone();
        for number in 0..PART as u64 {
            let row = row(&mut table, "d", number);
            table.push(row);
        }
        // Another part was written to the table's own file.
        assert_eq!((table.len(), table.in_memory()), (3 * PART + 3, 3));
        assert_eq!((copy.len(), copy.in_memory()), (2 * PART + 3, 3));
        assert_eq!(digest(&copy), digest(&long()));
        assert_eq!(table.texts("flow").unwrap()[2 * PART + 2..][..2], [Some("c"), Some("d")]);
    }

    #[test]
    fn sorting_a_long_table_is_stable() {
        // Rows of three parts, without every seventh number, sorted by a remainder.
        let key = |number: i64| (number % 7 != 0).then_some(number % 5);
        let by_rest = |part: &Part<'_, SampleRow>| {
            part.integers("cwnd_segments").iter().map(|number| key(*number)).collect()
        };
        let table = long();
        let ordered = table.in_order(|_| {}, by_rest);
        let mut numbers: Vec<i64> =
            (0..2 * PART as i64 + 3).filter(|number| key(*number).is_some()).collect();
        numbers.sort_by_key(|number| key(*number));
        let found = ordered.integers("cwnd_segments").unwrap();
        assert!(found.iter().copied().eq(numbers.iter().copied().map(Some)));
        let flows = numbers.iter().map(|number| Some(["a", "b", "c"][(number >> 16) as usize]));
        assert_eq!(ordered.texts("flow").unwrap(), flows.collect::<Vec<_>>());
        // Row 7 was removed, and its column with it.
        assert_eq!(ordered.extra, ["late"]);
        let set = extra(&ordered, "late").iter().position(Option::is_some).unwrap();
        assert_eq!(numbers[set], PART as i64 + 9);
        // Sorted rows stay in order.
        let same = table.in_order(|_| {}, |part| vec![Some(part.first()); part.len()]);
        assert_eq!(digest(&same), digest(&table));
    }

    #[test]
    fn text_columns_are_replaced_and_removed() {
        let mut table = Table::default();
        for flow in ["a", "b", "c"] {
            let row = row(&mut table, flow, 1);
            table.push(row);
        }
        // The run is the first label.
        let by = BTreeMap::from([(Label(2), Some(Label(1))), (Label(3), None)]);
        let same = |part: &Part<'_, SampleRow>| vec![Some(()); part.len()];
        let table = table.in_order(|part| part.relabel("flow", &by), same);
        assert_eq!(table.texts("flow").unwrap(), [Some("a"), Some("a"), None]);
    }

    #[test]
    fn the_digest_sees_every_value() {
        let digest = |cwnd, extra| {
            let mut tables = crate::Tables::default();
            let row = row(&mut tables.samples, "a", cwnd);
            tables.samples.push(row);
            let column = tables.samples.extra("cubic_k", Kind::Number);
            tables.samples.set_number(column, extra);
            tables.digest()
        };
        assert_eq!(digest(10, 1.0), digest(10, 1.0));
        assert_ne!(digest(10, 1.0), digest(11, 1.0));
        assert_ne!(digest(10, 1.0), digest(10, 2.0));
    }
}
