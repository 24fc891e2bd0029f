//! The build side of a Grace hash join: a join table whose rows are spilled by partition.

use std::ops::Range;

use parking_lot::Mutex;

use crate::memory::spill::Lists;
use crate::vector::value::{Kind, Var};

/// A join table whose rows were spilled.
#[derive(Debug)]
pub(crate) struct PartitionedTable {
    /// Extents by partition.
    pub lists: Lists,
    pub vars: Vec<(Var, Kind)>,
    pub keys: Vec<Var>,
    pub marks: bool,
    /// For each partition, the rows that were marked while it was in memory.
    pub marked: Mutex<Vec<Vec<u32>>>,
}

impl PartitionedTable {
    pub fn rows(&self, part: usize) -> usize {
        self.lists[part].iter().map(|extent| extent.rows).sum()
    }

    /// The marked rows of `parts`, numbered as if these partitions were concatenated.
    pub fn marked(&self, parts: Range<usize>) -> Vec<u32> {
        let (mut all, mut first) = (vec![], 0);
        let marked = self.marked.lock();
        for part in parts {
            all.extend(marked[part].iter().map(|row| first + row));
            first += self.rows(part) as u32;
        }
        all
    }

    /// Records that `rows` of the concatenated partitions `parts` are marked. `rows` ascend.
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

    /// Bytes of one partition's rows.
    pub fn memory(&self, part: usize) -> usize {
        self.lists[part].iter().map(|extent| extent.memory).sum()
    }
}
