//! Sparse chunks: the positions of the cells that exist, in rising order, and their values in the same order.

use std::sync::atomic::Ordering;

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::Result;
use crate::model::schema::Schema;
use crate::storage::cells::Cells;
use crate::storage::keys::{POSITIONS, damaged};

/// The cells of a chunk that exist.
pub(crate) struct SparseChunk {
    /// Row-major numbers in the whole chunk, as the schema has it, however long the array is.
    pub positions: Vec<u32>,
    /// A column for each attribute that was asked for.
    pub columns: Vec<Option<Column>>,
}

/// The whole box of a chunk, also where it goes beyond the end of the array: by it positions are numbered.
pub(crate) fn nominal(schema: &Schema, chunk: &[u64]) -> Region {
    let dimensions = schema.dimensions().iter().zip(chunk);
    Region::new(dimensions.map(|(of, &at)| {
        (
            at * of.chunk,
            at.saturating_mul(of.chunk).saturating_add(of.chunk),
        )
    }))
}

/// Reads the cells of a chunk; `None` if there are none.
///
/// # Errors
/// [`Error::Buffer`](crate::Error::Buffer), [`Error::Damaged`](crate::Error::Damaged).
pub(crate) async fn read_chunk(
    cells: &Cells<'_>,
    chunk: &[u64],
    wanted: &[bool],
) -> Result<Option<SparseChunk>> {
    let Some(record) = cells.record(chunk, POSITIONS.into())? else {
        return Ok(None);
    };
    let wrong = || damaged(cells.name, &format!("the positions of chunk {chunk:?}"));
    let bytes = cells.reader().all(&record.values).await?;
    let positions: Vec<u32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&of| u32::from_le_bytes(of))
        .collect();
    let most: u64 = nominal(cells.schema, chunk).shape().iter().product();
    let rising = positions.windows(2).all(|two| two[0] < two[1]);
    if !rising
        || positions
            .last()
            .is_some_and(|&last| u64::from(last) >= most)
    {
        return Err(wrong());
    }
    let mut columns = Vec::with_capacity(wanted.len());
    for (number, attribute) in cells.schema.attributes().iter().enumerate() {
        if wanted.get(number) != Some(&true) {
            columns.push(None);
            continue;
        }
        let record = cells.record(chunk, number)?.ok_or_else(wrong)?;
        let mut values = Buffer::zeros(attribute.data_type(), positions.len());
        let bytes = cells.reader().all(&record.values).await?;
        if bytes.len() != values.bytes().len() {
            return Err(wrong());
        }
        values.bytes_mut().copy_from_slice(&bytes);
        columns.push(Some(match &record.valid {
            None => Column::new(values),
            Some(plane) => Column::nullable(values, cells.reader().all(plane).await?),
        }));
    }
    Ok(Some(SparseChunk { positions, columns }))
}

/// Reads a region: a block in which only the cells exist that were written.
///
/// # Errors
/// [`Error::Buffer`](crate::Error::Buffer), [`Error::Damaged`](crate::Error::Damaged),
/// [`Error::TooLarge`](crate::Error::TooLarge).
pub(crate) async fn read(cells: &Cells<'_>, region: &Region, wanted: &[bool]) -> Result<Block> {
    let count = region.cells(&format!("a part of array '{}'", cells.name))?;
    let attributes = cells.schema.attributes();
    let mut present = vec![0u8; count];
    let mut columns: Vec<Option<(Buffer, Option<Vec<u8>>)>> = attributes
        .iter()
        .enumerate()
        .map(|(number, of)| {
            (wanted.get(number) == Some(&true))
                .then(|| (Buffer::zeros(of.data_type(), count), None))
        })
        .collect();
    for chunk in Grid::of(cells.schema).overlapping(region) {
        let Some(found) = read_chunk(cells, &chunk, wanted).await? else {
            continue;
        };
        cells.counters.chunks.fetch_add(1, Ordering::Relaxed);
        let whole = nominal(cells.schema, &chunk);
        let places = Places::new(&whole, region);
        for (from, &position) in found.positions.iter().enumerate() {
            let Some(to) = places.find(position.into()) else {
                continue;
            };
            present[to] = 1;
            for (target, source) in columns.iter_mut().zip(&found.columns) {
                if let (Some((values, valid)), Some(source)) = (target, source) {
                    copy_value(source.values(), from, values, to);
                    if source.valid().is_some_and(|valid| valid[from] == 0) {
                        valid.get_or_insert_with(|| vec![1; count])[to] = 0;
                    }
                }
            }
        }
    }
    let column = |(values, valid): (Buffer, Option<Vec<u8>>)| match valid {
        None => Column::new(values),
        Some(valid) => Column::nullable(values, valid),
    };
    let columns = columns.into_iter().map(|of| of.map(column)).collect();
    Ok(Block::new(region.clone(), columns)?.with_present(present))
}

/// Copies one value.
pub(crate) fn copy_value(source: &Buffer, from: usize, target: &mut Buffer, to: usize) {
    let width = source.data_type().width();
    let bytes = &source.bytes()[from * width..][..width];
    target.bytes_mut()[to * width..][..width].copy_from_slice(bytes);
}

/// Where the cells of one box are in another, by their row-major numbers.
pub(crate) struct Places<'a> {
    from: &'a Region,
    to: &'a Region,
}

impl<'a> Places<'a> {
    /// From numbers of cells in the box `from` to those in the box `to`.
    pub fn new(from: &'a Region, to: &'a Region) -> Places<'a> {
        Places { from, to }
    }

    /// The number in the other box of the cell with this number; `None` if it has none there.
    pub fn find(&self, number: u64) -> Option<usize> {
        let (mut rest, mut step, mut place) = (number, 1, 0);
        for at in (0..self.from.rank()).rev() {
            let length = self.from.length(at);
            let position = self.from.start(at) + rest % length;
            rest /= length;
            let (start, end) = self.to.ranges()[at];
            if !(start..end).contains(&position) {
                return None;
            }
            place += (position - start) * step;
            step *= end - start;
        }
        Some(place as usize)
    }
}
