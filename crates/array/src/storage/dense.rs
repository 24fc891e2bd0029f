//! Reading regions of dense arrays: runs out of pinned pages.

use std::sync::atomic::Ordering;

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
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
    // Zeros cost nothing until they are touched.
    let mut values = Buffer::filled(attribute.data_type(), count, attribute.fill_value());
    let mut valid = attribute.fill_value().is_null().then(|| vec![0; count]);
    read_values(cells, region, number, values.bytes_mut(), &mut valid).await?;
    Ok(match valid {
        None => Column::new(values),
        Some(valid) => Column::nullable(values, valid),
    })
}

/// Copies the values of an attribute in `region` to `values`, which has the fill value everywhere, and says in `valid`
/// which are null: all of them so far if it is there, none if not.
pub(crate) async fn read_values(
    cells: &Cells<'_>,
    region: &Region,
    number: usize,
    values: &mut [u8],
    valid: &mut Option<Vec<u8>>,
) -> Result<()> {
    let width = cells.schema.attributes()[number].data_type().width();
    let grid = Grid::of(cells.schema);
    let stores = if values.len() >= STREAMED {
        Stores::Streaming
    } else {
        Stores::Cached
    };
    for chunk in grid.overlapping(region) {
        let Some(record) = cells.record(&chunk, number)? else {
            continue;
        };
        let stored = stored_region(&grid.region(&chunk), &record);
        let common = stored.intersection(region);
        let mut runs = Runs::new(width, &common, &stored, region);
        cells
            .reader()
            .copy(&record.values, &mut runs, values, stores)
            .await?;
        match (&record.valid, valid.as_mut()) {
            (None, None) => {}
            (None, Some(valid)) => fill_box(&common, (region, valid), 1),
            (Some(plane), _) => {
                let valid = valid.get_or_insert_with(|| vec![1; values.len() / width]);
                let mut runs = Runs::new(1, &common, &stored, region);
                cells.reader().copy(plane, &mut runs, valid, stores).await?;
            }
        }
    }
    Ok(())
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
