//! The fingerprint of a table.

use crate::table::{Row, Table, Values};
use sha2::{Digest, Sha256};

impl<R: Row> Table<R> {
    /// Each column has its own hash, so that parts can be added one by one. Texts count by their
    /// first place in the column, not by the order in which they were added, which stored tables do
    /// not contain.
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
    /// For each label, the place of its text in `texts`, or `u32::MAX`.
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
            // All NaNs are equal: they mean a missing value.
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

/// Adds values to a hash in bulk.
fn add<T: Copy>(hash: &mut Sha256, values: &[T], bytes: impl Fn(T) -> [u8; 8]) {
    let mut block = Vec::with_capacity(8 * 1024);
    for values in values.chunks(1024) {
        block.clear();
        block.extend(values.iter().flat_map(|value| bytes(*value)));
        hash.update(&block);
    }
}
