//! Tables as columns.

use crate::spilled::{PART, Spilled};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text, mostly one of a few.
    Text,
    /// A whole number, or nothing.
    Integer,
    /// A number, or nothing.
    Number,
}

/// A column, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether a row may have nothing in it.
    pub is_optional: bool,
    /// What it means.
    pub doc: &'static str,
}

/// A text that a table knows by number, because it stands in many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(u32);

impl Label {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The values of a column. Tables have millions of rows: nothing is a value of its own, not a flag.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers of texts; `u32::MAX` is nothing.
    Text(Vec<u32>),
    /// Whole numbers; `i64::MIN` is nothing.
    Integer(Vec<i64>),
    /// Numbers; what is not a number is nothing.
    Number(Vec<f64>),
}

/// A row of a table, which declares the columns.
pub trait Row: Clone + 'static {
    /// The table's name.
    const TABLE: &'static str;
    /// The columns, in order.
    const COLUMNS: &'static [Column];
    /// Puts one value into each column.
    fn push_to(self, columns: &mut [Values]);
}

/// A table: the columns of its rows, and further ones that only this run has.
///
/// Of a table that is [kept short](Table::keep_short), what is in memory is its last rows: look at such
/// ones [part by part](Table::parts).
#[derive(Clone, Debug)]
pub struct Table<R> {
    columns: Vec<Values>,
    extra: Vec<(String, Values)>,
    labels: Vec<String>,
    known: BTreeMap<String, Label>,
    /// Those in memory.
    rows: usize,
    spilled: Option<Spilled>,
    row: PhantomData<fn(R)>,
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        let columns = R::COLUMNS.iter().map(|column| Values::empty(column.kind)).collect();
        Self {
            columns,
            extra: Vec::new(),
            labels: Vec::new(),
            known: BTreeMap::new(),
            rows: 0,
            spilled: None,
            row: PhantomData,
        }
    }
}

impl<R: Row> Table<R> {
    /// The label for a text.
    pub fn label(&mut self, text: &str) -> Label {
        if let Some(&label) = self.known.get(text) {
            return label;
        }
        let label = Label(self.labels.len() as u32);
        self.labels.push(text.into());
        self.known.insert(text.into(), label);
        label
    }

    /// Makes room for this many rows more.
    pub fn reserve(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.reserve(rows);
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: R) {
        row.push_to(&mut self.columns);
        self.rows += 1;
    }

    /// The number of a column that only this run has; it is made if there is none of that name.
    pub fn extra(&mut self, name: &str, kind: Kind) -> usize {
        if let Some(index) = self.extra.iter().position(|(known, _)| known == name) {
            return index;
        }
        self.extra.push((name.into(), Values::empty(kind)));
        self.extra.len() - 1
    }

    /// Sets a number in such a column, in the row added last.
    pub fn set_number(&mut self, extra: usize, value: f64) {
        if let Values::Number(values) = &mut self.extra[extra].1 {
            values.resize(self.rows - 1, f64::NAN);
            values.push(value);
        }
    }

    /// Sets a text in such a column, in the row added last.
    pub fn set_text(&mut self, extra: usize, text: &str) {
        let label = self.label(text);
        if let Values::Text(values) = &mut self.extra[extra].1 {
            values.resize(self.rows - 1, u32::MAX);
            values.push(label.0);
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.spilled.as_ref().map_or(0, Spilled::parts) * PART + self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves rows into a file when there are many. Where that cannot be done, they stay in memory.
    pub fn keep_short(&mut self) {
        if self.rows != PART || !self.extra.is_empty() {
            return;
        }
        if self.spilled.is_none() {
            self.spilled = Spilled::create(R::COLUMNS).ok();
        }
        if self.spilled.as_mut().is_some_and(|spilled| spilled.add(&self.columns).is_ok()) {
            self.columns.iter_mut().for_each(Values::clear);
            self.rows = 0;
        }
    }

    /// The table in parts that fit into memory, in order; mostly there is one.
    pub fn parts(&self) -> impl Iterator<Item = Cow<'_, Self>> {
        (0..self.number_of_parts()).map(|number| self.part(number))
    }

    /// How many parts there are, at least one.
    pub fn number_of_parts(&self) -> usize {
        let number = self.spilled.as_ref().map_or(0, Spilled::parts);
        number + usize::from(self.rows > 0 || number == 0)
    }

    /// One of the parts.
    ///
    /// # Panics
    /// What was written to a file cannot be read back.
    pub fn part(&self, number: usize) -> Cow<'_, Self> {
        let Some(spilled) = &self.spilled else { return Cow::Borrowed(self) };
        if number == spilled.parts() {
            return Cow::Owned(Self { spilled: None, ..self.clone() });
        }
        let columns = spilled.read(number, R::COLUMNS);
        let columns = columns.expect("what was written to a file can be read");
        let labels = self.labels.clone();
        Cow::Owned(Self { columns, labels, rows: PART, ..Self::default() })
    }

    /// The columns by name, each as long as the table.
    pub fn columns(&self) -> impl Iterator<Item = (&str, Cow<'_, Values>)> {
        let declared = R::COLUMNS.iter().map(|column| column.name).zip(&self.columns);
        let declared = declared.map(|(name, values)| (name, Cow::Borrowed(values)));
        let extra = self.extra.iter().map(|(name, values)| {
            let mut values = Cow::Borrowed(values);
            if values.len() < self.rows {
                values.to_mut().lengthen(self.rows);
            }
            (name.as_str(), values)
        });
        declared.chain(extra)
    }

    /// The columns by name, as far as they are filled: those that only this run has may be shorter than
    /// the table.
    pub fn filled(&self) -> impl Iterator<Item = (&str, &Values)> {
        let declared = R::COLUMNS.iter().map(|column| column.name).zip(&self.columns);
        declared.chain(self.extra.iter().map(|(name, values)| (name.as_str(), values)))
    }

    /// The numbers of a declared column, if it has that kind.
    pub fn numbers(&self, name: &str) -> Option<Vec<Option<f64>>> {
        match self.declared(name)? {
            Values::Number(values) => Some(values.iter().map(number).collect()),
            _ => None,
        }
    }

    /// The whole numbers of a declared column, if it has that kind.
    pub fn integers(&self, name: &str) -> Option<Vec<Option<i64>>> {
        match self.declared(name)? {
            Values::Integer(values) => Some(values.iter().map(integer).collect()),
            _ => None,
        }
    }

    /// The texts of a declared column, if it has that kind.
    pub fn texts(&self, name: &str) -> Option<Vec<Option<&str>>> {
        match self.declared(name)? {
            Values::Text(values) => Some(values.iter().map(|label| self.text(*label)).collect()),
            _ => None,
        }
    }

    /// The values of a declared column.
    pub fn values(&self, name: &str) -> Option<&Values> {
        self.declared(name)
    }

    /// The text that a value of a column of texts stands for.
    pub fn text(&self, label: u32) -> Option<&str> {
        self.labels.get(label as usize).map(String::as_str)
    }

    fn declared(&self, name: &str) -> Option<&Values> {
        let index = R::COLUMNS.iter().position(|column| column.name == name)?;
        Some(&self.columns[index])
    }

    /// Adds columns as they were stored, after all rows of which there are `rows`.
    pub(crate) fn fill(
        &mut self,
        rows: usize,
        declared: Vec<Values>,
        extra: Vec<(String, Values)>,
    ) {
        (self.rows, self.columns, self.extra) = (rows, declared, extra);
    }

    /// Each column has a hash of its own, so that one part can follow another. Texts count by their first
    /// place in the column: not by when they became known, which stored tables do not tell.
    pub(crate) fn add_to(&self, hash: &mut Sha256) {
        hash.update(R::TABLE);
        hash.update((self.len() as u64).to_le_bytes());
        let mut hashes: Vec<(String, ColumnHash)> = Vec::new();
        for part in self.parts() {
            for (place, (name, values)) in part.columns().enumerate() {
                if hashes.len() == place {
                    hashes.push((name.into(), ColumnHash::new()));
                }
                hashes[place].1.add(&values);
            }
        }
        for (name, column) in hashes {
            hash.update(name);
            hash.update(column.finish(&self.labels));
        }
    }
}

/// The hash of a column, part by part.
struct ColumnHash {
    hash: Sha256,
    /// By label, the place of its text in `texts`, or `u32::MAX`.
    places: Vec<u32>,
    texts: Vec<u32>,
}

impl ColumnHash {
    fn new() -> Self {
        Self { hash: Sha256::new(), places: Vec::new(), texts: Vec::new() }
    }

    fn add(&mut self, values: &Values) {
        let Self { hash, places, texts } = self;
        match values {
            Values::Text(labels) => {
                for &label in labels.iter().filter(|label| **label != u32::MAX) {
                    let label = label as usize;
                    if places.len() <= label {
                        places.resize(label + 1, u32::MAX);
                    }
                    if places[label] == u32::MAX {
                        places[label] = texts.len() as u32;
                        texts.push(label as u32);
                    }
                }
                let place = |label: u32| places.get(label as usize).copied();
                add(hash, labels, |label| {
                    u64::from(place(label).unwrap_or(u32::MAX)).to_le_bytes()
                });
            }
            Values::Integer(values) => add(hash, values, i64::to_le_bytes),
            // There is one way to say nothing.
            Values::Number(values) => add(hash, values, |value| {
                if value.is_nan() { f64::NAN.to_le_bytes() } else { value.to_le_bytes() }
            }),
        }
    }

    fn finish(mut self, labels: &[String]) -> impl AsRef<[u8]> {
        for text in self.texts.iter().map(|label| &labels[*label as usize]) {
            self.hash.update((text.len() as u64).to_le_bytes());
            self.hash.update(text);
        }
        self.hash.finalize()
    }
}

/// A whole number of a column, if it is one.
pub fn integer(value: &i64) -> Option<i64> {
    (*value != i64::MIN).then_some(*value)
}

/// A number of a column, if it is one.
pub fn number(value: &f64) -> Option<f64> {
    (!value.is_nan()).then_some(*value)
}

impl Values {
    fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(Vec::new()),
            Kind::Integer => Self::Integer(Vec::new()),
            Kind::Number => Self::Number(Vec::new()),
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

    fn lengthen(&mut self, rows: usize) {
        match self {
            Self::Text(values) => values.resize(rows, u32::MAX),
            Self::Integer(values) => values.resize(rows, i64::MIN),
            Self::Number(values) => values.resize(rows, f64::NAN),
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

/// Adds values to a hash, many at a time.
fn add<T: Copy>(hash: &mut Sha256, values: &[T], bytes: impl Fn(T) -> [u8; 8]) {
    let mut block = Vec::with_capacity(8 * 1024);
    for values in values.chunks(1024) {
        block.clear();
        block.extend(values.iter().flat_map(|value| bytes(*value)));
        hash.update(&block);
    }
}

/// A value that goes into a column of one kind.
pub(crate) trait Cell {
    const KIND: Kind;
    const IS_OPTIONAL: bool;
    fn push_to(self, values: &mut Values);
}

macro_rules! cell {
    ($type:ty, $kind:ident, $is_optional:literal, $value:ident => $cell:expr) => {
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;
            const IS_OPTIONAL: bool = $is_optional;
            fn push_to(self, values: &mut Values) {
                let $value = self;
                if let Values::$kind(values) = values {
                    values.push($cell);
                }
            }
        }
    };
}
cell!(Label, Text, false, value => value.0);
cell!(Option<Label>, Text, true, value => value.map_or(u32::MAX, |label| label.0));
cell!(u64, Integer, false, value => value.cast_signed());
cell!(Option<u64>, Integer, true, value => value.map_or(i64::MIN, u64::cast_signed));
cell!(f64, Number, false, value => value);
cell!(Option<f64>, Number, true, value => value.unwrap_or(f64::NAN));

/// Declares a table by its row: each column with its type and what it means.
macro_rules! rows {
    ($(
        $(#[doc = $about:literal])+
        $table:literal $row:ident {
            $($(#[doc = $doc:literal])+ $column:ident: $type:ty,)+
        }
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $column: $type,)+
        }

        impl $crate::table::Row for $row {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [$crate::table::Column] = &[$($crate::table::Column {
                name: stringify!($column),
                kind: <$type as $crate::table::Cell>::KIND,
                is_optional: <$type as $crate::table::Cell>::IS_OPTIONAL,
                doc: concat!($($doc),+),
            }),+];

            fn push_to(self, columns: &mut [$crate::table::Values]) {
                let mut columns = columns.iter_mut();
                $(if let Some(column) = columns.next() {
                    $crate::table::Cell::push_to(self.$column, column);
                })+
            }
        }
    )+};
}
pub(crate) use rows;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleRow;

    fn row(table: &mut Table<SampleRow>, flow: &str, cwnd_segments: u64) -> SampleRow {
        SampleRow {
            run: table.label("0123"),
            flow: table.label(flow),
            time_s: 0.5,
            cwnd_segments,
            ssthresh_segments: None,
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
        let (name, values) = table.columns().last().unwrap();
        let Values::Number(values) = &*values else { panic!("{values:?}") };
        assert_eq!(name, "cubic_k");
        assert_eq!(values.iter().map(number).collect::<Vec<_>>(), [None, Some(4.5), None, None]);
    }

    #[test]
    fn a_long_table_is_in_a_file_and_the_same() {
        let (mut short, mut whole) = (Table::default(), Table::default());
        for number in 0..2 * PART as u64 + 3 {
            for table in [&mut short, &mut whole] {
                let row = row(table, ["a", "b", "c"][(number >> 16) as usize], number);
                table.push(row);
            }
            short.keep_short();
        }
        assert_eq!((short.len(), short.rows), (2 * PART + 3, 3));
        let digest = |table: &Table<SampleRow>| {
            let mut hash = Sha256::new();
            table.add_to(&mut hash);
            hash.finalize()
        };
        assert_eq!(digest(&short), digest(&whole));
        let parts: Vec<_> = short.parts().collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [PART, PART, 3]);
        let of = |name| parts.iter().flat_map(|part| part.integers(name).unwrap()).collect();
        assert_eq!(Some(of("cwnd_segments")), whole.integers("cwnd_segments"));
        assert_eq!(Some(of("ssthresh_segments")), whole.integers("ssthresh_segments"));
        assert_eq!(parts[1].texts("flow").unwrap()[0], Some("b"));
        assert_eq!(parts[0].numbers("srtt_ms").unwrap()[7], Some(40.0));
        // A copy shares the file: what comes then stays in memory.
        let copy = short.clone();
        for number in 0..PART as u64 {
            let row = row(&mut short, "d", number);
            short.push(row);
            short.keep_short();
        }
        assert_eq!((short.len(), copy.len()), (3 * PART + 3, 2 * PART + 3));
        assert_eq!(digest(&copy), digest(&whole));
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
