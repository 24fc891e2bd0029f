//! The records of a stored array's chunks.

use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::Result;
use crate::model::schema::{Layout, Schema, product};
use crate::model::types::Scalar;
use crate::storage::keys::{Catalog, chunk_key, damaged, unpack};
use crate::storage::plane::{Counters, Reader};
use crate::storage::record::{Record, Statistics};

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
            Layout::Sparse => {
                let chunk = self.schema.dimensions().iter().map(|of| of.chunk);
                let most = chunk.fold(1u64, u64::saturating_mul);
                shape.len() == 1 && u64::from(shape[0]) <= most
            }
            Layout::Dense => {
                let dimensions = self.schema.dimensions();
                let within = shape.iter().zip(dimensions);
                shape.len() == dimensions.len()
                    && within
                        .into_iter()
                        .all(|(&length, of)| u64::from(length) <= of.chunk)
            }
        };
        let Some(cells) = product(shape.iter().map(|&length| u64::from(length))) else {
            return false;
        };
        let width = match self.schema.attributes().get(attribute) {
            Some(attribute) => attribute.data_type().width() as u64,
            // The positions of a sparse chunk.
            None => 4,
        };
        let valid = record
            .valid
            .as_ref()
            .is_none_or(|valid| valid.bytes == cells && valid.width == 1);
        let page_size = self.catalog.pool().page_size();
        let mut planes = record.planes();
        fits && valid
            && planes.all(|plane| plane.has_its_pages(page_size))
            && record.values.bytes == cells * width
            && u64::from(record.values.width) == width
    }

    /// What reads the records of its chunks.
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            array: self.name,
            pool: self.catalog.pool(),
            counters: self.counters,
        }
    }

    /// What is known of an attribute in the chunks that overlap `region`, as far as it can be told without reading them.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged).
    pub fn statistics(&self, region: &Region, number: usize) -> Result<Option<Statistics>> {
        let grid = Grid::of(self.schema);
        let attribute = &self.schema.attributes()[number];
        let sparse = self.schema.layout() == Layout::Sparse;
        let fill = |cells| Statistics::constant(attribute.fill_value(), cells);
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
                None if sparse => Statistics::constant(Scalar::Null, 0),
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
