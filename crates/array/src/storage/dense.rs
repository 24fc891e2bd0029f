//! Reading regions of dense arrays: runs out of pinned pages.

use std::sync::atomic::Ordering;

use algebra::copy::Target;

use crate::data::block::{Block, Column};
use crate::data::buffer::{Buffer, Room};
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::data::runs::{Runs, Stores, fill_box};
use crate::error::Result;
use crate::model::schema::Attribute;
use crate::storage::cells::Cells;
use crate::storage::record::Record;

/// Bytes of a target from which on it is written past the caches: more than a second-level cache, and it is the target of
/// a query, which reads it later if at all.
const STREAMED: usize = 4 << 20;

/// The cells of `region`, which lies within the array, with the attributes that are wanted.
///
/// # Errors
/// [`Error::Buffer`](crate::Error::Buffer), [`Error::Damaged`](crate::Error::Damaged),
/// [`Error::TooLarge`](crate::Error::TooLarge).
pub(crate) async fn read(cells: &Cells<'_>, region: &Region, wanted: &[bool]) -> Result<Block> {
    let count = region.cells(&format!("a part of array '{}'", cells.name))?;
    let mut columns = Vec::with_capacity(wanted.len());
    for (number, attribute) in cells.schema.attributes().iter().enumerate() {
        columns.push(match wanted.get(number) {
            Some(true) => Some(read_column(cells, region, count, number, attribute).await?),
            _ => None,
        });
    }
    count_chunks(cells, region, &columns);
    Block::new(region.clone(), columns)
}

async fn read_column(
    cells: &Cells<'_>,
    region: &Region,
    count: usize,
    number: usize,
    attribute: &Attribute,
) -> Result<Column> {
    let pieces = Pieces::of(cells, region, number)?;
    let (of, fill) = (attribute.data_type(), attribute.fill_value());
    if pieces.cover {
        let mut room = Room::new(of, count);
        let target = room.bytes_mut().into();
        let valid = pieces.read(cells, region, number, target, None).await?;
        // SAFETY: the pieces have every cell of the region, and all of theirs were read.
        let values = unsafe { room.written() };
        return Ok(column_of(values, valid));
    }
    // Zeros cost nothing until they are touched.
    let mut values = Buffer::filled(of, count, fill);
    let valid = fill.is_null().then(|| vec![0; count]);
    let target = values.bytes_mut().into();
    let valid = pieces.read(cells, region, number, target, valid).await?;
    Ok(column_of(values, valid))
}

fn column_of(values: Buffer, valid: Option<Vec<u8>>) -> Column {
    match valid {
        None => Column::new(values),
        Some(valid) => Column::nullable(values, valid),
    }
}

/// Writes the values of an attribute in `region`, all of them. Of a null the bytes are whatever is stored.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_into(
    cells: &Cells<'_>,
    region: &Region,
    number: usize,
    mut values: Target<'_>,
) -> Result<()> {
    let pieces = Pieces::of(cells, region, number)?;
    if !pieces.cover {
        let attribute = &cells.schema.attributes()[number];
        let (of, fill) = (attribute.data_type(), attribute.fill_value());
        let (width, fill) = (of.width(), fill.to_bytes(of).unwrap_or_default());
        for at in (0..values.len()).step_by(width) {
            values.part(at, width).copy_from(&fill[..width]);
        }
    }
    pieces.read(cells, region, number, values, None).await?;
    Ok(())
}

/// Hands the bytes of an attribute's values to `each`, as they lie, if `region` is all that is stored of one chunk, without nulls.
/// If not, it returns false and has handed out nothing.
///
/// # Errors
/// As [`read`].
pub(crate) async fn visit(
    cells: &Cells<'_>,
    region: &Region,
    number: usize,
    each: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<bool> {
    let pieces = Pieces::of(cells, region, number)?;
    let [(stored, record)] = pieces.all.as_slice() else {
        return Ok(false);
    };
    if stored != region || record.valid.is_some() {
        return Ok(false);
    }
    cells.reader().each(&record.values, each).await?;
    Ok(true)
}

/// The chunks that have written cells of a region: what each stores, and its record.
struct Pieces {
    all: Vec<(Region, Record)>,
    /// Whether they have every cell of the region.
    cover: bool,
}

impl Pieces {
    fn of(cells: &Cells<'_>, region: &Region, number: usize) -> Result<Pieces> {
        let grid = Grid::of(cells.schema);
        let mut pieces = Pieces {
            all: Vec::new(),
            cover: true,
        };
        for chunk in grid.overlapping(region) {
            let Some(record) = cells.record(&chunk, number)? else {
                pieces.cover = false;
                continue;
            };
            let of_chunk = grid.region(&chunk);
            let stored = stored_region(&of_chunk, &record);
            pieces.cover &= stored.contains(&of_chunk.intersection(region));
            pieces.all.push((stored, record));
        }
        Ok(pieces)
    }

    /// Copies what they have of `region` to `values`; all of it, when it returns. `valid` says which are null: all so far
    /// if it is there, none if not.
    async fn read(
        &self,
        cells: &Cells<'_>,
        region: &Region,
        number: usize,
        mut values: Target<'_>,
        mut valid: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let width = cells.schema.attributes()[number].data_type().width();
        let stores = if values.len() >= STREAMED {
            Stores::Streaming
        } else {
            Stores::Cached
        };
        let reader = cells.reader();
        for (stored, record) in &self.all {
            let common = stored.intersection(region);
            let mut runs = Runs::new(width, &common, stored, region);
            let target = values.reborrow();
            reader
                .copy(&record.values, &mut runs, target, stores)
                .await?;
            match (&record.valid, valid.as_mut()) {
                (None, None) => {}
                (None, Some(valid)) => fill_box(&common, (region, valid), 1),
                (Some(plane), _) => {
                    let valid = valid.get_or_insert_with(|| vec![1; values.len() / width]);
                    let mut runs = Runs::new(1, &common, stored, region);
                    let target = valid.as_mut_slice().into();
                    reader.copy(plane, &mut runs, target, stores).await?;
                }
            }
        }
        Ok(valid)
    }
}

fn count_chunks(cells: &Cells<'_>, region: &Region, columns: &[Option<Column>]) {
    if columns.iter().any(Option::is_some) {
        let count = Grid::of(cells.schema).overlapping(region).count();
        // Relaxed: a figure, which guards nothing.
        cells
            .counters
            .chunks
            .fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// The positions that a record of a dense chunk has.
pub(crate) fn stored_region(chunk: &Region, record: &Record) -> Region {
    let lengths = chunk.ranges().iter().zip(&record.shape);
    Region::new(lengths.map(|(&(start, _), &length)| (start, start + u64::from(length))))
}
