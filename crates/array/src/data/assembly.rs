//! Putting a block together from blocks of its parts.

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::data::runs::{copy_box, fill_box};
use crate::error::Result;
use crate::model::schema::Schema;

/// A block that is being put together. Cells that no part has do not exist.
#[derive(Debug)]
pub(crate) struct Assembly {
    region: Region,
    columns: Vec<Option<(Buffer, Option<Vec<u8>>)>>,
    present: Vec<u8>,
}

impl Assembly {
    /// A block of `region` without cells, with columns for the attributes that are wanted.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn new(schema: &Schema, region: &Region, wanted: &[bool]) -> Result<Assembly> {
        let cells = region.cells("a result")?;
        let attributes = schema.attributes().iter().zip(wanted);
        let column = |of: crate::model::types::DataType| (Buffer::zeros(of, cells), None);
        Ok(Assembly {
            region: region.clone(),
            columns: attributes
                .map(|(of, &wanted)| wanted.then(|| column(of.data_type())))
                .collect(),
            present: vec![0; cells],
        })
    }

    /// Adds what a block has of the region, which no part before had.
    pub fn put(&mut self, block: &Block) {
        let common = self.region.intersection(block.region());
        let from = block.region();
        let cells = self.present.len();
        for (target, source) in self.columns.iter_mut().zip(block.columns()) {
            let (Some((values, valid)), Some(source)) = (target, source) else {
                continue;
            };
            let width = values.data_type().width();
            let bytes = (from, source.values().bytes());
            copy_box(width, &common, bytes, (&self.region, values.bytes_mut()));
            if let Some(of_source) = source.valid() {
                let valid = valid.get_or_insert_with(|| vec![1; cells]);
                copy_box(1, &common, (from, of_source), (&self.region, valid));
            }
        }
        match block.present() {
            None => fill_box(&common, (&self.region, &mut self.present), 1),
            Some(present) => {
                copy_box(
                    1,
                    &common,
                    (from, present),
                    (&self.region, &mut self.present),
                );
            }
        }
    }

    /// The block.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn finish(self) -> Result<Block> {
        let column = |(values, valid)| match valid {
            None => Column::new(values),
            Some(valid) => Column::nullable(values, valid),
        };
        let columns = self.columns.into_iter().map(|of| of.map(column)).collect();
        Ok(Block::new(self.region, columns)?.with_present(self.present))
    }
}
