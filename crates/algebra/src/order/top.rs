//! The first rows of an order, without sorting the others.

use super::Sorter;

/// The least buffer, in rows: selecting among few at once costs more per row.
const LEAST: usize = 2048;

/// Top-k: the first `limit` rows of an order, from rows that come vector by vector. Its buffer holds
/// at most twice `limit` rows, or 4,096 if that is more.
///
/// Invariant: `columns` and `rows` are equally long, and hold, among others, the first `limit` of
/// all rows that came.
#[derive(Clone, Debug)]
pub struct Top {
    limit: usize,
    columns: Vec<Vec<u64>>,
    rows: Vec<u64>,
    /// Once `limit` rows came: the greatest first word that still may be among them.
    bar: Option<u64>,
    sorter: Sorter,
    order: Vec<u32>,
    scratch: Vec<u64>,
}

impl Top {
    /// No rows yet, of which the first `limit` by keys of `words` words will be kept.
    ///
    /// # Panics
    /// When `words` is zero, or `limit` above 2^30.
    pub fn new(words: usize, limit: usize) -> Top {
        assert!(words > 0, "an order without keys");
        assert!(limit <= 1 << 30, "a limit above 2^30: sort instead");
        Top {
            limit,
            columns: vec![Vec::new(); words],
            rows: Vec::new(),
            bar: None,
            sorter: Sorter::new(),
            order: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The top-k threshold: a row whose first word is greater cannot be among the first, and need
    /// not be given to [`Top::push`]. `None` before it is known.
    pub fn bar(&self) -> Option<u64> {
        self.bar
    }

    /// Adds rows: `keys` are columns of words whose order is the wanted one, `rows` the names of the
    /// rows. Of rows with equal keys the one with the lower name comes first.
    ///
    /// # Panics
    /// When the number of columns or their lengths differ.
    pub fn push(&mut self, keys: &[&[u64]], rows: &[u64]) {
        assert_eq!(keys.len(), self.columns.len(), "one column per word");
        assert!(
            keys.iter().all(|k| k.len() == rows.len()),
            "columns of different lengths"
        );
        if self.limit == 0 {
            return;
        }
        let room = (2 * self.limit).max(2 * LEAST);
        for (row, name) in rows.iter().enumerate() {
            if self.bar.is_some_and(|bar| keys[0][row] > bar) {
                continue;
            }
            for (column, key) in self.columns.iter_mut().zip(keys) {
                column.push(key[row]);
            }
            self.rows.push(*name);
            if self.rows.len() == room {
                self.shrink();
            }
        }
    }

    /// The names of the first rows, in order. What was pushed is forgotten.
    pub fn finish(&mut self) -> Vec<u64> {
        self.shrink();
        self.bar = None;
        self.columns.iter_mut().for_each(Vec::clear);
        std::mem::take(&mut self.rows)
    }

    /// Keeps the first `limit` rows, sorted.
    fn shrink(&mut self) {
        self.order.clear();
        self.order.extend(0..self.rows.len() as u32);
        let mut keys: Vec<&[u64]> = self.columns.iter().map(Vec::as_slice).collect();
        keys.push(&self.rows);
        self.sorter.sort(&keys, &mut self.order);
        self.order.truncate(self.limit);
        for column in self.columns.iter_mut().chain([&mut self.rows]) {
            self.scratch.clear();
            self.scratch
                .extend(self.order.iter().map(|row| column[*row as usize]));
            std::mem::swap(column, &mut self.scratch);
        }
        if self.limit > 0 && self.rows.len() == self.limit {
            self.bar = self.columns[0].last().copied();
        }
    }
}
