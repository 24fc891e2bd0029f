//! Reading regions of a stored array: the chunks that overlap are found from the grid, and no other is touched.

use std::sync::atomic::Ordering;

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::data::runs::{Runs, Stores, fill_box};
use crate::error::Result;
use crate::model::schema::{Attribute, Layout, Schema};
use crate::model::types::Scalar;
use crate::storage::keys::{Catalog, chunk_key, damaged, unpack};
use crate::storage::plane::{Counters, Reader};
use crate::storage::record::Record;
use crate::storage::sparse;

/// Bytes of a target from which on it is written past the caches: more than a second-level cache, and it is the target of
/// a query, which reads it later if at all.
const STREAMED: usize = 4 << 20;

/// The cells of an array, as a catalog has them.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    pub name: &'a str,
    pub space: u32,
    pub schema: &'a Schema,
    pub catalog: Catalog<'a>,
    pub counters: &'a Counters,
}

impl Cells<'_> {
    /// The record of an attribute of a chunk, if it was written.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged).
    pub fn record(&self, chunk: &[u64], attribute: usize) -> Result<Option<Record>> {
        let Some(bytes) = self
            .catalog
            .get(self.space, &chunk_key(chunk, attribute as u16))
        else {
            return Ok(None);
        };
        let record = unpack::<Record>(&bytes);
        let record = record.filter(|record| self.is_sound(record, attribute));
        let what = || damaged(self.name, &format!("the record of chunk {chunk:?}"));
        record.map(Some).ok_or_else(what)
    }

    /// Whether a record that was read fits the schema.
    fn is_sound(&self, record: &Record, attribute: usize) -> bool {
        let shape = &record.shape;
        let fits = match self.schema.layout() {
            Layout::Sparse => shape.len() == 1,
            Layout::Dense => {
                let dimensions = self.schema.dimensions();
                let within = shape.iter().zip(dimensions);
                shape.len() == dimensions.len()
                    && within
                        .into_iter()
                        .all(|(&length, of)| u64::from(length) <= of.chunk)
            }
        };
        let cells = shape
            .iter()
            .map(|&length| u64::from(length))
            .product::<u64>();
        let width = match self.schema.attributes().get(attribute) {
            Some(attribute) => attribute.data_type().width() as u64,
            // The positions of a sparse chunk.
            None => 4,
        };
        let valid = record
            .valid
            .as_ref()
            .is_none_or(|valid| valid.bytes == cells && valid.width == 1);
        fits && valid
            && record.values.bytes == cells * width
            && u64::from(record.values.width) == width
    }

    pub fn reader(&self) -> Reader<'_> {
        Reader {
            array: self.name,
            pool: self.catalog.pool(),
            counters: self.counters,
        }
    }

    /// The cells of `region`, which lies within the array, with the attributes that are wanted.
    ///
    /// # Errors
    /// [`Error::Buffer`](crate::Error::Buffer), [`Error::Damaged`](crate::Error::Damaged),
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    pub async fn read(&self, region: &Region, wanted: &[bool]) -> Result<Block> {
        if self.schema.layout() == Layout::Sparse {
            return sparse::read(self, region, wanted).await;
        }
        let cells = region.cells(&format!("a part of array '{}'", self.name))?;
        let mut columns = Vec::with_capacity(wanted.len());
        for (number, attribute) in self.schema.attributes().iter().enumerate() {
            columns.push(match wanted.get(number) {
                Some(true) => Some(self.read_column(region, cells, number, attribute).await?),
                _ => None,
            });
        }
        self.count_chunks(region, &columns)?;
        Block::new(region.clone(), columns)
    }

    async fn read_column(
        &self,
        region: &Region,
        cells: usize,
        number: usize,
        attribute: &Attribute,
    ) -> Result<Column> {
        // Zeros cost nothing until they are touched.
        let mut values = Buffer::filled(attribute.data_type(), cells, attribute.fill_value());
        let mut valid = attribute.fill_value().is_null().then(|| vec![0; cells]);
        self.read_values(region, number, values.bytes_mut(), &mut valid)
            .await?;
        Ok(match valid {
            None => Column::new(values),
            Some(valid) => Column::nullable(values, valid),
        })
    }

    /// Copies the values of an attribute in `region` to `values`, which has the fill value everywhere, and says in `valid`
    /// which are null: all of them so far if it is there, none if not.
    pub async fn read_values(
        &self,
        region: &Region,
        number: usize,
        values: &mut [u8],
        valid: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        let width = self.schema.attributes()[number].data_type().width();
        let grid = Grid::of(self.schema);
        let stores = if values.len() >= STREAMED {
            Stores::Streaming
        } else {
            Stores::Cached
        };
        for chunk in grid.overlapping(region) {
            let Some(record) = self.record(&chunk, number)? else {
                continue;
            };
            let stored = stored_region(&grid.region(&chunk), &record);
            let common = stored.intersection(region);
            let mut runs = Runs::new(width, &common, &stored, region);
            self.reader()
                .copy(&record.values, &mut runs, values, stores)
                .await?;
            match (&record.valid, valid.as_mut()) {
                (None, None) => {}
                (None, Some(valid)) => fill_box(&common, (region, valid), 1),
                (Some(plane), _) => {
                    let valid = valid.get_or_insert_with(|| vec![1; values.len() / width]);
                    let mut runs = Runs::new(1, &common, &stored, region);
                    self.reader().copy(plane, &mut runs, valid, stores).await?;
                }
            }
        }
        Ok(())
    }

    fn count_chunks(&self, region: &Region, columns: &[Option<Column>]) -> Result<()> {
        if columns.iter().any(Option::is_some) {
            let count = Grid::of(self.schema).overlapping(region).count();
            // Relaxed: a figure, which guards nothing.
            self.counters
                .chunks
                .fetch_add(count as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What is known of an attribute in the chunks that overlap `region`, as far as it can be told without reading them.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged).
    pub fn statistics(
        &self,
        region: &Region,
        number: usize,
    ) -> Result<Option<crate::storage::record::Statistics>> {
        let grid = Grid::of(self.schema);
        let attribute = &self.schema.attributes()[number];
        let sparse = self.schema.layout() == Layout::Sparse;
        let fill =
            |cells| crate::storage::record::Statistics::constant(attribute.fill_value(), cells);
        let mut all = None;
        for chunk in grid.overlapping(region) {
            let of_chunk = grid.region(&chunk);
            let cells = of_chunk.cells("a chunk")? as u64;
            let here = match self.record(&chunk, number)? {
                Some(record) if sparse => record.statistics,
                Some(record) => match cells.saturating_sub(record.statistics.cells) {
                    0 => record.statistics,
                    // The array has grown since.
                    more => record.statistics.merged(fill(more)),
                },
                None if sparse => crate::storage::record::Statistics::constant(Scalar::Null, 0),
                None => fill(cells),
            };
            all = Some(match all {
                None => here,
                Some(all) => here.merged(all),
            });
        }
        Ok(all)
    }
}

/// The positions that a record of a dense chunk has.
pub(crate) fn stored_region(chunk: &Region, record: &Record) -> Region {
    let lengths = chunk.ranges().iter().zip(&record.shape);
    Region::new(lengths.map(|(&(start, _), &length)| (start, start + u64::from(length))))
}
