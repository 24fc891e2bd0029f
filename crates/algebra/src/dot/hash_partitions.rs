//! Building a hash join table partition by partition of the hashes.
//!
//! A large hash table misses the caches with each key. Here rows are first divided by the high bits of their hashes, and the table of
//! a partition stays in the L2 cache until it is done. Chunks of rows, and then partitions, can be worked on by several threads:
//!
//! 1. [`HashPartitions::divide`] each chunk of rows,
//! 2. [`HashPartitions::fill`] each partition,
//! 3. [`HashedParts::join`](super::HashedParts::join) each of them to the table, for which [`HashedParts::of`](super::HashedParts::of)
//!    makes room.

use std::ops::Range;

use super::found::NONE;
use super::hashed::{Filled, Part};
use crate::filter::gather;

/// At least how many rows a partition has, unless all are fewer: the hash table of twice as many, their keys and their lists are
/// about 1 MiB. The table is not so small that [`Groups`](crate::krao::Groups) would not prefetch it, as there are many of them.
const PARTITION_ROWS: usize = 1 << 14;
/// Most partitions, as bits of a hash: rows are written to as many places by turns.
const MOST_BITS: u32 = 8;

/// How keys are divided by the high bits of their hashes.
#[derive(Clone, Copy, Debug)]
pub struct HashPartitions {
    bits: u32,
}

/// Some rows, divided by the hashes of their keys.
#[derive(Clone, Debug)]
pub struct DividedHashes {
    /// Where the rows of each partition begin, and behind the last.
    starts: Vec<usize>,
    /// The rows, partition by partition, ascending within each.
    rows: Vec<u32>,
    /// The hash of each.
    hashes: Vec<u64>,
    /// The words of their keys, as columns.
    keys: Vec<Vec<u64>>,
}

impl DividedHashes {
    /// The places of a partition's rows.
    fn of(&self, part: usize) -> Range<usize> {
        self.starts[part]..self.starts[part + 1]
    }
}

impl HashPartitions {
    /// As many partitions as suit a table of so many rows.
    pub fn of_rows(rows: usize) -> HashPartitions {
        let parts = (rows / PARTITION_ROWS).max(1);
        HashPartitions::new(parts.ilog2().min(MOST_BITS))
    }

    /// `2^bits` partitions.
    ///
    /// # Panics
    /// When `bits` is above 16.
    pub fn new(bits: u32) -> HashPartitions {
        assert!(bits <= 16, "at most 2^16 partitions");
        HashPartitions { bits }
    }

    /// The number of partitions.
    pub fn count(self) -> usize {
        1 << self.bits
    }

    #[inline(always)]
    fn part(self, hash: u64) -> usize {
        hash.checked_shr(64 - self.bits).unwrap_or(0) as usize
    }

    /// Where the rows of each partition begin, and behind the last; and the rows in the order of their partitions, ascending within
    /// each: those whose keys are valid.
    ///
    /// # Panics
    /// When lengths differ, or at 2^32 rows.
    pub fn order(self, hashes: &[u64], valid: Option<&[bool]>) -> (Vec<usize>, Vec<u32>) {
        assert!(
            valid.is_none_or(|valid| valid.len() == hashes.len()),
            "columns of different lengths"
        );
        assert!(hashes.len() <= u32::MAX as usize, "too many rows");
        let there = |row: usize| valid.is_none_or(|valid| valid[row]);
        let mut starts = vec![0; self.count() + 1];
        for (row, hash) in hashes.iter().enumerate() {
            starts[self.part(*hash) + 1] += usize::from(there(row));
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        let mut next = starts.clone();
        let mut rows = vec![0u32; starts[self.count()]];
        for (row, hash) in hashes.iter().enumerate().filter(|(row, _)| there(*row)) {
            let place = &mut next[self.part(*hash)];
            rows[*place] = row as u32;
            *place += 1;
        }
        (starts, rows)
    }

    /// Divides the rows whose keys are valid, of which the first has the number `first`. `keys` are columns.
    ///
    /// # Panics
    /// When lengths differ, or numbers of rows would reach 2^32 - 1.
    pub fn divide(
        self,
        hashes: &[u64],
        keys: &[&[u64]],
        valid: Option<&[bool]>,
        first: usize,
    ) -> DividedHashes {
        assert!(first + hashes.len() < NONE as usize, "too many rows");
        assert!(
            keys.iter().all(|key| key.len() == hashes.len()),
            "columns of different lengths"
        );
        let (starts, mut rows) = self.order(hashes, valid);
        let divided = |values: &[u64]| {
            let mut divided = Vec::new();
            gather(values, &rows, &mut divided);
            divided
        };
        let (own, words) = (divided(hashes), keys.iter().map(|key| divided(key)));
        let words = words.collect();
        rows.iter_mut().for_each(|row| *row += first as u32);
        DividedHashes {
            starts,
            rows,
            hashes: own,
            keys: words,
        }
    }

    /// The keys and rows of a partition. `chunks` are the same partitions of all rows, in the order of these.
    ///
    /// # Panics
    /// When there is no such partition or no chunk, or chunks have been divided into others.
    pub fn fill(self, part: usize, chunks: &[DividedHashes]) -> Filled {
        let rows = chunks.iter().map(|chunk| chunk.of(part).len()).sum();
        let mut filling = Part::with_capacity(chunks[0].keys.len(), rows);
        for chunk in chunks {
            let own = chunk.of(part);
            let keys = chunk.keys.iter().map(|key| &key[own.clone()]);
            let keys: Vec<&[u64]> = keys.collect();
            filling.add(&chunk.hashes[own.clone()], &keys, &chunk.rows[own]);
        }
        filling.finish()
    }
}
