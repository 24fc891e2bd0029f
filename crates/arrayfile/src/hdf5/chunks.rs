//! Where the chunks of a data set lie: the six kinds of indexes.

use crate::hdf5::arrays::{extensible, fixed};
use crate::hdf5::bytes::{Parsed, damaged};
use crate::hdf5::dataset::{Chunked, Index};
use crate::hdf5::file::Hdf;
use crate::hdf5::grid::{Chunk, ChunkGrid, Chunks, product};
use crate::hdf5::tree2;

/// The most levels of a B-tree.
const MOST_LEVELS: u8 = 32;

/// The chunks of a data set that were written, by their numbers.
///
/// # Errors
/// If the index is damaged, or has more than `most` chunks.
pub(super) fn chunks(
    hdf: &Hdf,
    (chunked, grid): (&Chunked, &ChunkGrid),
    packed: bool,
    most: usize,
) -> Parsed<Vec<Chunk>> {
    let mut chunks = Chunks {
        hdf,
        grid,
        length_bytes: packed.then_some(chunked.length_bytes),
        found: Vec::new(),
        most,
    };
    let Some(at) = chunked.at else {
        return Ok(Vec::new());
    };
    match chunked.index {
        Index::Tree => tree(&mut chunks, at)?,
        Index::Single(stored) => {
            let (bytes, skipped) = stored.unwrap_or((grid.bytes, 0));
            let first = vec![0; grid.counts.len()];
            chunks.add(&first, at, bytes, skipped)?;
        }
        Index::Implicit => implicit(&mut chunks, at)?,
        Index::FixedArray => fixed(&mut chunks, at)?,
        Index::ExtensibleArray => extensible(&mut chunks, at)?,
        Index::Tree2 => tree2(&mut chunks, at)?,
    }
    let mut found = chunks.found;
    found.sort_unstable_by_key(|of| of.number);
    if found.windows(2).any(|two| two[0].number == two[1].number) {
        return damaged("has a chunk twice");
    }
    Ok(found)
}

/// Chunks that lie one after the other.
fn implicit(chunks: &mut Chunks<'_>, at: u64) -> Parsed<()> {
    let grid = chunks.grid;
    let count = product(&grid.most);
    let fits = |count: &u64| {
        let bytes = count.checked_mul(grid.bytes);
        bytes.is_some_and(|bytes| bytes <= chunks.hdf.end())
    };
    let Some(count) = count.filter(fits) else {
        return damaged("has chunks behind its end; it was not written to its end");
    };
    for number in 0..count {
        let place = chunks.place(number, 0)?;
        chunks.add(
            &place,
            at.saturating_add(number * grid.bytes),
            grid.bytes,
            0,
        )?;
    }
    Ok(())
}

/// A B-tree of version 1.
fn tree(chunks: &mut Chunks<'_>, root: u64) -> Parsed<()> {
    let hdf = chunks.hdf;
    let rank = chunks.grid.counts.len();
    let key = 8 + 8 * (rank + 1);
    let front = 8 + 2 * hdf.sizes.offset;
    let mut next = vec![(root, MOST_LEVELS)];
    while let Some((at, below)) = next.pop() {
        let start = hdf.block(at, 8)?;
        let mut cursor = hdf.cursor(&start);
        cursor.signature("TREE")?;
        let (form, level, count) = (cursor.u8()?, cursor.u8()?, usize::from(cursor.u16()?));
        if form != 1 || level >= below {
            return damaged("a B-tree of chunks has another's nodes");
        }
        let length = count * (key + hdf.sizes.offset);
        let bytes = hdf.block(at, (front + length) as u64)?;
        let mut cursor = hdf.cursor(&bytes);
        cursor.skip(front)?;
        for _ in 0..count {
            let (stored, skipped) = (u64::from(cursor.u32()?), cursor.u32()?);
            let mut place = Vec::with_capacity(rank);
            for &by in &chunks.grid.chunk {
                let offset = cursor.number(8)?;
                if offset % by != 0 {
                    return damaged("a chunk does not lie in the grid of chunks");
                }
                place.push(offset / by);
            }
            cursor.skip(8)?;
            let Some(child) = cursor.address()? else {
                return damaged("a node of a B-tree lies nowhere");
            };
            match level {
                0 => chunks.add(&place, child, stored, skipped)?,
                _ => next.push((child, level)),
            }
        }
    }
    Ok(())
}

/// A B-tree of version 2.
fn tree2(chunks: &mut Chunks<'_>, root: u64) -> Parsed<()> {
    /// Chunks that are packed.
    const PACKED: u8 = 11;
    let rank = chunks.grid.counts.len();
    let hdf = chunks.hdf;
    tree2::records(hdf, root, &[10, PACKED], &mut |kind, mut record| {
        let address = record.address()?;
        let length = chunks.length_bytes.unwrap_or(8);
        let (bytes, skipped) = match kind {
            PACKED => (record.number(length)?, record.u32()?),
            _ => (chunks.grid.bytes, 0),
        };
        let place = (0..rank).map(|_| record.number(8));
        let place = place.collect::<Parsed<Vec<u64>>>()?;
        match address {
            Some(at) => chunks.add(&place, at, bytes, skipped),
            None => Ok(()),
        }
    })
}
