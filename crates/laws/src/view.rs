//! The columns of a table as slices.

use tcplab_tables::{Row, Table, Values};

/// The whole numbers of a column.
pub(crate) fn integers<'a, R: Row>(table: &'a Table<R>, name: &str) -> &'a [i64] {
    match table.values(name) {
        Some(Values::Integer(values)) => values,
        _ => unreachable!("{} has no whole numbers called {name}", R::TABLE),
    }
}

/// The numbers of a column.
pub(crate) fn numbers<'a, R: Row>(table: &'a Table<R>, name: &str) -> &'a [f64] {
    match table.values(name) {
        Some(Values::Number(values)) => values,
        _ => unreachable!("{} has no numbers called {name}", R::TABLE),
    }
}

/// The texts of a column, by their number.
pub(crate) fn labels<'a, R: Row>(table: &'a Table<R>, name: &str) -> &'a [u32] {
    match table.values(name) {
        Some(Values::Text(values)) => values,
        _ => unreachable!("{} has no texts called {name}", R::TABLE),
    }
}

/// What texts stand for, found out once for each text.
pub(crate) struct Known<T> {
    by_label: Vec<Option<T>>,
}

impl<T: Copy> Known<T> {
    pub fn new() -> Self {
        Self { by_label: Vec::new() }
    }

    /// What the text of this number stands for; `find` is asked the first time.
    #[inline]
    pub fn get(&mut self, label: u32, find: impl FnOnce() -> T) -> T {
        let place = label as usize;
        if let Some(Some(found)) = self.by_label.get(place) {
            return *found;
        }
        if self.by_label.len() <= place {
            self.by_label.resize(place + 1, None);
        }
        *self.by_label[place].insert(find())
    }
}
