//! The grid of a data set's chunks, and the chunks that are found in it.

use crate::hdf5::bytes::{Fault, Parsed, damaged};
use crate::hdf5::dataset::{Chunked, DataSet};
use crate::hdf5::file::Hdf;

/// A chunk that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Its number in the grid of the data set's chunks, in row-major order.
    pub number: u64,
    pub at: u64,
    /// Bytes as it is stored.
    pub bytes: u64,
    /// A bit for each filter that it did not go through.
    pub skipped: u32,
}

/// The grid of chunks of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkGrid {
    /// Chunks along each dimension.
    pub counts: Vec<u64>,
    /// Chunks that there can be along each dimension; `u64::MAX` without a limit.
    pub most: Vec<u64>,
    pub chunk: Vec<u64>,
    /// Bytes of a chunk, unpacked.
    pub bytes: u64,
}

impl ChunkGrid {
    /// The grid of a data set.
    ///
    /// # Errors
    /// If it has more chunks than can be counted.
    pub fn of(set: &DataSet, chunked: &Chunked) -> Parsed<ChunkGrid> {
        let shape = set.space.shape.as_deref().unwrap_or(&[]);
        let lengths = shape.iter().zip(&chunked.chunk);
        let counts: Vec<u64> = lengths.map(|(of, by)| of.div_ceil(*by)).collect();
        let most = set.space.most.iter().zip(&chunked.chunk);
        let most = most.map(|(&of, by)| if of == u64::MAX { of } else { of.div_ceil(*by) });
        let cells: u64 = chunked.chunk.iter().product();
        let bytes = cells.checked_mul(set.datatype.width as u64);
        if product(&counts).is_none() {
            return damaged("has more chunks than can be counted");
        }
        Ok(ChunkGrid {
            counts,
            most: most.collect(),
            chunk: chunked.chunk.clone(),
            bytes: bytes.ok_or_else(|| Fault::Damaged("its chunks are too long".to_owned()))?,
        })
    }

    /// The number of a chunk; `None` if it lies outside of the data set, as after it was made shorter.
    pub fn number(&self, at: &[u64]) -> Option<u64> {
        let mut number = 0;
        for (at, count) in at.iter().zip(&self.counts) {
            if at >= count {
                return None;
            }
            number = number * count + at;
        }
        Some(number)
    }

    /// The place of a chunk.
    pub fn place(&self, mut number: u64) -> Vec<u64> {
        let mut place = vec![0; self.counts.len()];
        for (at, count) in place.iter_mut().zip(&self.counts).rev() {
            *at = number % count.max(&1);
            number /= count.max(&1);
        }
        place
    }
}

/// A product; `None` if it is too large.
pub(super) fn product(of: &[u64]) -> Option<u64> {
    of.iter().try_fold(1u64, |all, &of| all.checked_mul(of))
}

/// The chunks of a data set that were found.
#[derive(Debug)]
pub(super) struct Chunks<'a> {
    pub hdf: &'a Hdf,
    pub grid: &'a ChunkGrid,
    /// Bytes of the length of a chunk in the index; `None` if they are not packed and all have one length.
    pub length_bytes: Option<usize>,
    pub found: Vec<Chunk>,
    /// The most that are kept.
    pub most: usize,
}

impl Chunks<'_> {
    /// Adds the chunk at a place of the grid, if it lies in the data set.
    pub fn add(&mut self, place: &[u64], at: u64, bytes: u64, skipped: u32) -> Parsed<()> {
        let Some(number) = self.grid.number(place) else {
            return Ok(());
        };
        if self.found.len() >= self.most {
            let most = self.most;
            return Err(Fault::Unread(format!(
                "has more than {most} chunks, more than there is memory for; raise --memory-limit"
            )));
        }
        self.found.push(Chunk {
            number,
            at,
            bytes,
            skipped,
        });
        Ok(())
    }

    /// Bytes of an element of an index that is an array.
    pub fn element_bytes(&self) -> usize {
        let packed = self.length_bytes.map_or(0, |length| length + 4);
        self.hdf.sizes.offset + packed
    }

    /// Adds the chunks of elements of an index that is an array, the first of which has this place in it. `turned` is the
    /// dimension that comes first in its order.
    pub fn elements(&mut self, bytes: &[u8], first: u64, turned: usize) -> Parsed<()> {
        let mut cursor = self.hdf.cursor(bytes);
        let mut at = first;
        while cursor.rest().len() >= self.element_bytes() {
            let address = cursor.address()?;
            let (bytes, skipped) = match self.length_bytes {
                Some(length) => (cursor.number(length)?, cursor.u32()?),
                None => (self.grid.bytes, 0),
            };
            if let Some(address) = address {
                let place = self.place(at, turned)?;
                self.add(&place, address, bytes, skipped)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// The place in the grid of an element of an index that is an array: it counts all chunks that there can be.
    pub fn place(&self, mut at: u64, turned: usize) -> Parsed<Vec<u64>> {
        let rank = self.grid.counts.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if turned > 0 && turned < rank {
            order.remove(turned);
            order.insert(0, turned);
        }
        let mut place = vec![0; rank];
        for &dimension in order.iter().skip(1).rev() {
            let count = self.grid.most[dimension].max(1);
            place[dimension] = at % count;
            at /= count;
        }
        match order.first() {
            Some(&first) => place[first] = at,
            None => return damaged("has chunks and no dimensions"),
        }
        Ok(place)
    }
}
