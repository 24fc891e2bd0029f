//! The build side of a Grace hash join: a join table whose rows are spilled by partition.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::memory::spill::Lists;
use crate::vector::radix::{LoadedPartitions, PARTITIONS};
use crate::vector::value::{Kind, Var};

/// A join table whose rows were spilled, or one partition of such a table that did not fit in memory by itself.
#[derive(Debug)]
pub(crate) struct PartitionedTable {
    /// Extents by partition.
    pub lists: Lists,
    /// The level of the partitions.
    pub level: u32,
    /// The partitions of earlier levels that it is.
    pub within: LoadedPartitions,
    /// The partitions that did not fit in memory by themselves.
    divided: Mutex<Vec<Option<Arc<PartitionedTable>>>>,
    pub vars: Vec<(Var, Kind)>,
    pub keys: Vec<Var>,
    pub marks: bool,
    /// For each partition, the rows that were marked while it was in memory.
    marked: Mutex<Vec<Vec<u32>>>,
}

impl PartitionedTable {
    /// The table of these rows, none of which is marked. Missing partitions are empty.
    pub fn new(mut lists: Lists, vars: Vec<(Var, Kind)>, keys: Vec<Var>, marks: bool) -> Self {
        lists.resize_with(PARTITIONS, Vec::new);
        PartitionedTable {
            lists,
            level: 0,
            within: LoadedPartitions::ALL,
            divided: Mutex::new(vec![None; PARTITIONS]),
            vars,
            keys,
            marks,
            marked: Mutex::new(vec![vec![]; PARTITIONS]),
        }
    }

    /// The rows of partition `part`, divided at the next level, of which those in `marked` are marked, by partition.
    pub fn below(&self, part: usize, lists: Lists, marked: Vec<Vec<u32>>) -> Self {
        let (vars, keys) = (self.vars.clone(), self.keys.clone());
        PartitionedTable {
            level: self.level + 1,
            within: self.within.at(self.level, 1 << part),
            marked: Mutex::new(marked),
            ..PartitionedTable::new(lists, vars, keys, self.marks)
        }
    }

    /// Partition `part`, if it was divided.
    pub fn divided(&self, part: usize) -> Option<Arc<PartitionedTable>> {
        self.divided.lock()[part].clone()
    }

    /// Keeps how partition `part` was divided.
    pub fn divide(&self, part: usize, parts: Arc<PartitionedTable>) {
        self.divided.lock()[part] = Some(parts);
    }

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
