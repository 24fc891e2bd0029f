//! Reading a region, whatever the layout.

use crate::data::block::Block;
use crate::data::region::Region;
use crate::error::Result;
use crate::model::schema::Layout;
use crate::storage::cells::Cells;
use crate::storage::{dense, sparse};

/// The cells of `region`, which lies within the array, with the attributes that are wanted. Chunks that overlap are found
/// from the grid, and no other is touched.
///
/// # Errors
/// [`Error::Buffer`](crate::Error::Buffer), [`Error::Damaged`](crate::Error::Damaged),
/// [`Error::TooLarge`](crate::Error::TooLarge).
pub(crate) async fn read(cells: &Cells<'_>, region: &Region, wanted: &[bool]) -> Result<Block> {
    match cells.schema.layout() {
        Layout::Dense => dense::read(cells, region, wanted).await,
        Layout::Sparse => sparse::read(cells, region, wanted).await,
    }
}
