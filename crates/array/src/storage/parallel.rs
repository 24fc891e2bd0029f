//! Reading a region by several tasks that share its chunks.

use std::sync::Arc;

use workers::Workers;

use crate::data::block::{Block, Column};
use crate::data::buffer::Room;
use crate::data::region::Region;
use crate::data::slabs::{Slab, Slabs};
use crate::error::{Error, Result};
use crate::model::schema::Layout;
use crate::storage::array::Array;

/// Bytes of a region's widest attribute from which on it is worth a task of its own.
const TASK: usize = 64 << 10;

/// The cells of a region with these attributes, in this order, read by up to `tasks` tasks on the workers. Each has a
/// contiguous part of the result.
///
/// # Errors
/// As [`Array::read`].
pub(crate) async fn read(
    array: &Arc<Array>,
    region: &Region,
    attributes: &[usize],
    workers: &Workers,
    tasks: usize,
) -> Result<Block> {
    let schema = array.schema();
    let cells = region.cells("a part of an array")?;
    let widest = attributes
        .iter()
        .map(|&at| schema.attributes()[at].data_type().width())
        .max();
    let tasks = tasks
        .min((cells * widest.unwrap_or(1)).div_ceil(TASK))
        .max(1);
    let nullable = attributes
        .iter()
        .any(|&at| schema.attributes()[at].is_nullable());
    if tasks == 1 || nullable || schema.layout() == Layout::Sparse {
        let mut wanted = vec![false; schema.attributes().len()];
        attributes.iter().for_each(|&at| wanted[at] = true);
        let block = array.read(region, &wanted).await?;
        let columns = attributes
            .iter()
            .map(|&at| block.column(at).cloned())
            .collect();
        return Ok(block.with_columns(columns));
    }
    let parts = region.slabs(tasks);
    let mut columns = Vec::with_capacity(attributes.len());
    for &number in attributes {
        let of = schema.attributes()[number].data_type();
        let mut ends = Vec::with_capacity(parts.len());
        for part in &parts {
            let before = ends.last().copied().unwrap_or(0);
            ends.push(before + part.cells("a part of an array")? * of.width());
        }
        let slabs = Slabs::new(Room::new(of, cells), ends);
        let mut others = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let slab = slabs.lend(at).ok_or(Error::Interrupted)?;
            let task = fill(array.clone(), part.clone(), number, slab);
            others.push(workers.spawn(task).abort_on_drop());
        }
        for other in others {
            other.await.map_err(Error::from)??;
        }
        let room = Slabs::finish(slabs).ok_or(Error::Interrupted)?;
        // SAFETY: each part was lent once, all of them to a task that was awaited and wrote every byte of its part.
        let buffer = unsafe { room.written() };
        columns.push(Some(Column::new(buffer)));
    }
    Block::new(region.clone(), columns)
}

async fn fill(array: Arc<Array>, part: Region, attribute: usize, mut slab: Slab) -> Result<()> {
    array.read_to(&part, attribute, slab.bytes().into()).await
}
