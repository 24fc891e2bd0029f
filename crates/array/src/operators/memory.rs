//! An array in memory: the result of a plan, and the input of the next operator where each makes a whole array.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use crate::data::assembly::Assembly;
use crate::data::block::Block;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::Result;
use crate::model::schema::Schema;
use crate::operators::source::Source;

/// An array in memory, a block for each of its chunks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ArrayData {
    schema: Arc<Schema>,
    grid: Grid,
    blocks: Arc<Vec<Block>>,
}

impl ArrayData {
    /// The array of these blocks: one for each chunk of the grid, in row-major order.
    pub(crate) fn new(schema: Schema, grid: Grid, blocks: Vec<Block>) -> ArrayData {
        debug_assert_eq!(grid.chunks(), blocks.len() as u64);
        ArrayData {
            schema: Arc::new(schema),
            grid,
            blocks: Arc::new(blocks),
        }
    }

    /// The array that one block holds, in one chunk.
    pub(crate) fn of_block(schema: Schema, block: Block) -> ArrayData {
        let whole = crate::data::grid::Axis::Uneven;
        let axes = block.region().shape().into_iter().map(|length| {
            whole(if length == 0 {
                vec![0]
            } else {
                vec![0, length]
            })
        });
        let grid = Grid::of_axes(axes.collect());
        let blocks = if block.region().is_empty() {
            Vec::new()
        } else {
            vec![block]
        };
        ArrayData::new(schema, grid, blocks)
    }

    /// Its dimensions and attributes.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Its chunks, which may be of many sizes.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// A block for each chunk that has cells, in row-major order of the chunks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// All cells as one block.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn to_block(&self) -> Result<Block> {
        let wanted = vec![true; self.schema.attributes().len()];
        self.part(&Region::of_shape(&self.schema.shape()), &wanted)
    }

    /// How many cells exist.
    pub fn existing(&self) -> u64 {
        self.blocks.iter().map(Block::existing).sum()
    }

    fn part(&self, region: &Region, wanted: &[bool]) -> Result<Block> {
        let counts = self.grid.counts();
        let number = |chunk: &[u64]| {
            let at = chunk
                .iter()
                .zip(&counts)
                .fold(0, |sum, (&at, &count)| sum * count + at);
            at as usize
        };
        let mut chunks = self.grid.overlapping(region).peekable();
        if let Some(first) = chunks.peek() {
            let block = &self.blocks[number(first)];
            if block.region() == region {
                let columns = block.columns().iter().zip(wanted);
                let columns = columns
                    .map(|(of, &wanted)| of.clone().filter(|_| wanted))
                    .collect();
                return Ok(block.clone().with_columns(columns));
            }
        }
        let mut assembly = Assembly::new(&self.schema, region, wanted)?;
        chunks.for_each(|chunk| assembly.put(&self.blocks[number(&chunk)]));
        assembly.finish()
    }
}

impl Source for ArrayData {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.grid.clone()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move { self.part(region, wanted) }.boxed()
    }
}
