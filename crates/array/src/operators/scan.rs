//! A stored array as the leaf of a plan.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::data::block::Block;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::Result;
use crate::model::schema::Schema;
use crate::operators::source::{Part, Source};
use crate::storage::array::Array;
use crate::storage::record::Statistics;

/// A stored array.
pub(crate) struct Scan {
    pub array: Arc<Array>,
}

impl Source for Scan {
    fn schema(&self) -> &Schema {
        self.array.schema()
    }

    fn grid(&self) -> Grid {
        self.array.grid().clone()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        Box::pin(self.array.read(region, wanted))
    }

    fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        self.array.statistics(region, attribute)
    }

    fn home(&self, region: &Region) -> usize {
        let chunk = self.array.grid().overlapping(region).next();
        // Where it cannot be told, reading it will say why.
        chunk.map_or(0, |chunk| self.array.home(&chunk).unwrap_or(0))
    }

    fn stored(&self, region: &Region) -> Option<Part> {
        Some(Part {
            array: self.array.clone(),
            region: region.clone(),
            attributes: (0..self.schema().attributes().len()).collect(),
        })
    }
}
