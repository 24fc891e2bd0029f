//! Chunks of loose groups: as many groups as the caches hold are collected, and are then divided by partition.

use std::collections::VecDeque;
use std::ops::Range;

use algebra::dot::HashPartitions;
use algebra::filter::gather;
use algebra::krao::Groups;

use crate::error::Result;
use crate::operators::aggregate::accumulator::Accumulator;

/// Most partitions that groups are merged in, as bits of a hash. Chunks are always divided into so many.
pub(crate) const MOST_BITS: u32 = 8;

/// Groups of a chunk, about: of a key of two words and a sum they are 2 MiB, and each partition has a run of 256 of them.
const CHUNK_GROUPS: usize = 1 << 16;

/// The closed chunks of a worker's loose groups, in the order in which they were filled. The open one is the worker's hash index, which
/// appends, and its accumulators.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Groups of which the open chunk has at most as many, unless more of them came at once.
    pub size: usize,
    closed: VecDeque<Chunk>,
    /// What all closed chunks have: groups, and bytes allocated.
    groups: usize,
    memory: usize,
}

/// Groups that are divided by partition. Nothing is added to them.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Where the groups of each partition begin, and behind the last.
    starts: Vec<usize>,
    /// The hash of each group, partition by partition, in a partition as they were added.
    pub hashes: Vec<u64>,
    /// Their keys, as columns.
    pub keys: Vec<Vec<u64>>,
    /// What was accumulated of them.
    pub states: Vec<Box<dyn Accumulator>>,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks::of(CHUNK_GROUPS)
    }
}

impl Chunks {
    /// None yet, of this [size](Self::size), which is not 0.
    pub fn of(size: usize) -> Chunks {
        Chunks {
            size,
            closed: VecDeque::new(),
            groups: 0,
            memory: 0,
        }
    }

    /// Whether no chunk was closed.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }

    /// The number of groups of all closed chunks.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Bytes that the closed chunks have allocated.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The closed chunks.
    pub fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.closed.iter()
    }

    /// Closes the open chunk: its groups, which are found by `groups` and have `states`, are divided by partition, and it is empty
    /// then. It keeps its memory for the groups to come, unless it is larger than chunks are.
    ///
    /// # Errors
    /// Those of [`Accumulator::hand_over`].
    pub fn close(
        &mut self,
        groups: &mut Groups,
        states: &mut [Box<dyn Accumulator>],
    ) -> Result<()> {
        let all = groups.len();
        // A large one becomes several: the groups of a partition are near each other then, when they are gathered.
        let chunks = (all / self.size).max(1);
        for some in runs(0..all, all.div_ceil(chunks).max(1)) {
            let chunk = Chunk::of(groups, states, some)?;
            self.groups += chunk.hashes.len();
            self.memory += chunk.memory();
            self.closed.push_back(chunk);
        }
        if all < 2 * self.size {
            groups.clear();
            states.iter_mut().for_each(|state| state.resize(0));
        } else {
            *groups = Groups::new(groups.words());
            for state in states.iter_mut() {
                *state = state.fresh()?;
            }
        }
        groups.loosen();
        Ok(())
    }

    /// The first closed chunk, which is removed.
    pub fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.closed.pop_front()?;
        self.groups -= chunk.hashes.len();
        self.memory -= chunk.memory();
        Some(chunk)
    }
}

impl Chunk {
    /// Of some of the groups of an open chunk, whose states are handed over.
    fn of(
        groups: &Groups,
        states: &mut [Box<dyn Accumulator>],
        some: Range<usize>,
    ) -> Result<Chunk> {
        let first = some.start as u32;
        let partitions = HashPartitions::new(MOST_BITS);
        let (starts, mut order) = partitions.order(&groups.hashes()[some], None);
        order.iter_mut().for_each(|group| *group += first);
        let mut hashes = Vec::new();
        gather(groups.hashes(), &order, &mut hashes);
        let column = |word: usize| {
            let mut column = Vec::new();
            groups.column(word, &order, &mut column);
            column
        };
        let states = states.iter_mut().map(|state| state.hand_over(&order));
        Ok(Chunk {
            starts,
            hashes,
            keys: (0..groups.words()).map(column).collect(),
            states: states.collect::<Result<_>>()?,
        })
    }

    /// The places of the groups of a partition, one of `2^bits`, of which there are at most `2^MOST_BITS`.
    pub fn places(&self, part: usize, bits: u32) -> Range<usize> {
        let finer = MOST_BITS - bits;
        self.starts[part << finer]..self.starts[(part + 1) << finer]
    }

    /// The hashes of the groups of the first of `2^bits` partitions; if these are more than `2^MOST_BITS`, others are among them.
    pub fn first_hashes(&self, bits: u32) -> &[u64] {
        &self.hashes[self.places(0, bits.min(MOST_BITS))]
    }

    /// Its keys, as slices.
    pub fn columns(&self) -> Vec<&[u64]> {
        self.keys.iter().map(Vec::as_slice).collect()
    }

    fn memory(&self) -> usize {
        let keys = self.keys.iter().map(Vec::capacity).sum::<usize>();
        let words = self.starts.capacity() + self.hashes.capacity() + keys;
        let states = self.states.iter().map(|state| state.memory());
        8 * words + states.sum::<usize>()
    }
}

/// Places, at most `size` at once.
pub(super) fn runs(all: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let firsts = all.clone().step_by(size);
    firsts.map(move |first| first..all.end.min(first + size))
}
