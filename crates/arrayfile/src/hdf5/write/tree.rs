//! The index of a data set's chunks: a B-tree of version 1, which every version of HDF5 reads, written from the left.

use io::{Device, File};

use crate::error::Result;
use crate::hdf5::write::message::{Bytes, NOWHERE};

/// Children of a full node: what the format has where a file says nothing else.
const FULL: usize = 64;

/// A file that becomes longer.
#[derive(Debug)]
pub(super) struct Growing {
    pub file: File,
    pub end: u64,
}

impl Growing {
    /// Writes bytes behind the others; where they lie.
    ///
    /// # Errors
    /// A full disk, for one.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let at = self.end;
        self.file.write_at(at, bytes)?;
        self.end += bytes.len() as u64;
        Ok(at)
    }
}

/// What the index says of a chunk: its bytes in the file, and its first cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub bytes: u32,
    pub first: Vec<u64>,
}

/// An index that grows by chunks in row-major order. A node of each level is in memory.
#[derive(Debug)]
pub(super) struct ChunkTree {
    /// The lengths of a chunk, and behind them the bytes of a value, as the format has it.
    steps: Vec<u64>,
    levels: Vec<Level>,
}

#[derive(Debug, Default)]
struct Level {
    /// The children of the node that is not full yet.
    children: Vec<(Key, u64)>,
    /// Where the node before it lies.
    before: Option<u64>,
}

impl ChunkTree {
    /// Of chunks of these lengths, of values of `width` bytes.
    pub fn new(chunk: &[u64], width: usize) -> ChunkTree {
        let steps = chunk.iter().copied().chain([width as u64]);
        ChunkTree {
            steps: steps.collect(),
            levels: Vec::new(),
        }
    }

    /// Adds a chunk behind those that there are.
    ///
    /// # Errors
    /// A full disk, for one.
    pub fn push(&mut self, key: Key, at: u64, to: &mut Growing) -> Result<()> {
        self.add(0, key, at, to)
    }

    fn add(&mut self, level: usize, key: Key, at: u64, to: &mut Growing) -> Result<()> {
        if self.levels.len() == level {
            self.levels.push(Level::default());
        }
        if self.levels[level].children.len() == FULL {
            let (first, node) = self.write(level, &key.first, to)?;
            self.add(level + 1, first, node, to)?;
        }
        self.levels[level].children.push((key, at));
        Ok(())
    }

    /// Writes what is left; where the root lies, or `None` if there is no chunk.
    ///
    /// # Errors
    /// A full disk, for one.
    pub fn finish(mut self, to: &mut Growing) -> Result<Option<u64>> {
        let last = self.levels.first().and_then(|of| of.children.last());
        let Some((last, _)) = last else {
            return Ok(None);
        };
        let steps = last.first.iter().chain([&0]).zip(&self.steps);
        let end: Vec<u64> = steps.map(|(at, step)| at + step).collect();
        let mut level = 0;
        loop {
            let (first, node) = self.write(level, &end, to)?;
            level += 1;
            if level == self.levels.len() {
                return Ok(Some(node));
            }
            self.add(level, first, node, to)?;
        }
    }

    /// Writes the node of a level, before the cell `end`, and begins another; its first key, and where it lies.
    fn write(&mut self, level: usize, end: &[u64], to: &mut Growing) -> Result<(Key, u64)> {
        let rank = self.steps.len();
        let Level { children, before } = &mut self.levels[level];
        let key = |bytes: Bytes, length: u32, first: &[u64]| {
            let bytes = bytes.u32(length).u32(0);
            let all = first.iter().copied().chain([0]).take(rank);
            all.fold(bytes, Bytes::u64)
        };
        let mut node = Bytes(b"TREE\x01".to_vec())
            .u8(level as u8)
            .u16(children.len() as u16)
            .u64(before.unwrap_or(NOWHERE))
            .u64(NOWHERE);
        for (of, at) in children.iter() {
            node = key(node, of.bytes, &of.first).u64(*at);
        }
        let mut bytes = key(node, 0, end).0;
        // A node has room for all children that it could have.
        bytes.resize(24 + FULL * 8 + (FULL + 1) * (8 + 8 * rank), 0);
        let at = to.append(&bytes)?;
        if let Some(before) = before.replace(at) {
            // The one before has this one on its right.
            to.file.write_at(before + 16, &at.to_le_bytes())?;
        }
        let first = children[0].0.clone();
        children.clear();
        Ok((first, at))
    }
}
