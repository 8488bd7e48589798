//! Sorting of long tables.

use crate::part::Part;
use crate::table::{Row, Table};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The number of rows read at once when sorted parts are merged.
const BLOCK: usize = 256;

impl<R: Row> Table<R> {
    /// The rows sorted by the keys that `key` computes for each part. The sort is stable, and rows
    /// without a key are removed. `prepare` may change each part first. Memory holds one part, and
    /// one block of each part.
    #[must_use]
    pub fn in_order<K: Ord + Copy>(
        &self,
        prepare: impl Fn(&mut Part<'_, R>),
        key: impl Fn(&Part<'_, R>) -> Vec<Option<K>>,
    ) -> Self {
        // Sorts each part by itself. Parts in ascending order are joined instead of merged.
        let mut sorted = self.with_labels();
        let mut ends: Vec<usize> = Vec::new();
        let mut last = None;
        for mut part in self.parts() {
            prepare(&mut part);
            let keys = key(&part).into_iter().enumerate();
            let mut order: Vec<(K, usize)> =
                keys.filter_map(|(row, key)| Some((key?, row))).collect();
            order.sort_unstable();
            let (Some(&(first, _)), Some(&(greatest, _))) = (order.first(), order.last()) else {
                continue;
            };
            if last.is_some_and(|last| last <= first) {
                ends.pop();
            }
            last = Some(greatest);
            for rows in order.chunk_by(|one, next| one.1 + 1 == next.1) {
                sorted.append(&part, rows[0].1..rows[rows.len() - 1].1 + 1);
            }
            ends.push(sorted.len());
        }
        if ends.len() < 2 { sorted } else { sorted.merge(&ends, &key) }
    }

    /// Merges consecutive sorted ranges of rows.
    fn merge<K: Ord + Copy>(
        &self,
        ends: &[usize],
        key: &impl Fn(&Part<'_, R>) -> Vec<Option<K>>,
    ) -> Self {
        let mut merged = self.with_labels();
        let mut heads = BinaryHeap::new();
        let starts = [0].iter().chain(ends);
        let mut runs: Vec<Run<'_, R, K>> =
            starts.zip(ends).map(|(&start, &end)| Run::new(self, start..end)).collect();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.head(key).map(|key| Reverse((key, number))));
        }
        while let Some(Reverse((_, number))) = heads.pop() {
            let run = &mut runs[number];
            let next = heads.peek().map(|head| head.0);
            let start = run.at;
            while let Some(Some(key)) = run.keys.get(run.at)
                && next.is_none_or(|next| (*key, number) < next)
            {
                run.at += 1;
            }
            if let Some(block) = &run.block {
                merged.append(block, start..run.at);
            }
            heads.extend(run.head(key).map(|key| Reverse((key, number))));
        }
        merged
    }
}

/// A sorted range of rows, of which one block is in memory.
struct Run<'a, R: Row, K> {
    table: &'a Table<R>,
    /// Rows not read yet.
    rest: Range<usize>,
    block: Option<Part<'a, R>>,
    keys: Vec<Option<K>>,
    /// The index of the next row in the block.
    at: usize,
}

impl<'a, R: Row, K: Ord + Copy> Run<'a, R, K> {
    fn new(table: &'a Table<R>, rest: Range<usize>) -> Self {
        Self { table, rest, block: None, keys: Vec::new(), at: 0 }
    }

    /// The key of the next row, if there is one.
    fn head(&mut self, key: &impl Fn(&Part<'_, R>) -> Vec<Option<K>>) -> Option<K> {
        if self.at == self.keys.len() && !self.rest.is_empty() {
            let block = self.table.block(self.rest.start, BLOCK.min(self.rest.len()));
            self.rest.start += block.len();
            (self.keys, self.at) = (key(&block), 0);
            self.block = Some(block);
        }
        self.keys.get(self.at).copied().flatten()
    }
}
