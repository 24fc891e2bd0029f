//! The build side of a partitioned (Grace) hash join: a table whose rows lie in the spill file, by part.

use std::ops::Range;

use parking_lot::Mutex;

use crate::memory::spill::Lists;
use crate::vector::value::{Kind, Var};

/// A table whose rows were put away.
#[derive(Debug)]
pub(crate) struct PartitionedTable {
    /// By part.
    pub lists: Lists,
    pub vars: Vec<(Var, Kind)>,
    pub keys: Vec<Var>,
    pub marks: bool,
    /// For each part, the rows that were marked while it was in memory.
    pub marked: Mutex<Vec<Vec<u32>>>,
}

impl PartitionedTable {
    pub fn rows(&self, part: usize) -> usize {
        self.lists[part].iter().map(|extent| extent.rows).sum()
    }

    /// The rows of `parts`, one part after the other, that were marked.
    pub fn marked(&self, parts: Range<usize>) -> Vec<u32> {
        let (mut all, mut first) = (vec![], 0);
        let marked = self.marked.lock();
        for part in parts {
            all.extend(marked[part].iter().map(|row| first + row));
            first += self.rows(part) as u32;
        }
        all
    }

    /// Of the rows of `parts`, these ones are marked; they ascend.
    pub fn mark(&self, parts: Range<usize>, mut rows: &[u32]) {
        let mut marked = self.marked.lock();
        let mut first = 0;
        for part in parts {
            let end = first + self.rows(part) as u32;
            let (own, rest) = rows.split_at(rows.partition_point(|row| *row < end));
            marked[part] = own.iter().map(|row| row - first).collect();
            (rows, first) = (rest, end);
        }
    }

    /// Bytes of the rows of one part.
    pub fn memory(&self, part: usize) -> usize {
        self.lists[part].iter().map(|extent| extent.memory).sum()
    }
}
