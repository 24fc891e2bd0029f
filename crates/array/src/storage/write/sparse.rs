//! Writing into sparse chunks: the cells that are there and those that come, merged by position; and taking some out.

use super::Writer;
use super::encode::{Put, bucket};
use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::grid::Grid;
use crate::data::runs::each_run;
use crate::error::Result;
use crate::model::schema::{Attribute, Compression};
use crate::model::types::DataType;
use crate::storage::keys::{POSITIONS, Target};
use crate::storage::sparse::{Places, SparseChunk, copy_value, nominal, read_chunk};

/// Where a cell comes from: its number among those of the chunk before, and in the block.
#[derive(Debug, Clone, Copy)]
struct Origin {
    position: u32,
    old: Option<usize>,
    new: Option<usize>,
}

impl Writer {
    /// Writes what a block has of a sparse chunk.
    pub(super) async fn write_sparse(
        &mut self,
        name: &str,
        target: &Target,
        chunk: &[u64],
        block: &Block,
    ) -> Result<()> {
        let entry = &target.entry;
        let schema = &entry.schema;
        let wanted = vec![true; schema.attributes().len()];
        let old = read_chunk(&self.cells(name, entry), chunk, &wanted).await?;
        let region = nominal(schema, chunk);
        let common = region.intersection(block.region());
        let mut new = Vec::new();
        each_run(&common, block.region(), &region, |from, to, cells| {
            let there = (0..cells).filter(|cell| block.exists(from + cell));
            new.extend(there.map(|cell| (to + cell, from + cell)));
        });
        let origins = merge(old.as_ref(), &new);
        if origins.is_empty() {
            return Ok(());
        }
        self.put_sparse(name, target, chunk, &origins, old.as_ref(), block)
    }

    /// Makes cells absent of which a block says that they exist; how many were there.
    pub(super) async fn erase_sparse(
        &mut self,
        name: &str,
        target: &Target,
        chunk: &[u64],
        block: &Block,
    ) -> Result<u64> {
        let schema = &target.entry.schema;
        let wanted = vec![true; schema.attributes().len()];
        let old = read_chunk(&self.cells(name, &target.entry), chunk, &wanted).await?;
        let Some(old) = old else {
            return Ok(0);
        };
        let region = nominal(schema, chunk);
        let places = Places::new(&region, block.region());
        let stays = |position: u32| {
            let at = places.find(position.into());
            at.is_none_or(|at| !block.exists(at))
        };
        let left = old.positions.iter().copied().enumerate();
        let left: Vec<Origin> = left
            .filter(|&(_, position)| stays(position))
            .map(|(at, position)| Origin {
                position,
                old: Some(at),
                new: None,
            })
            .collect();
        let gone = (old.positions.len() - left.len()) as u64;
        if gone > 0 {
            self.put_sparse(name, target, chunk, &left, Some(&old), block)?;
        }
        Ok(gone)
    }

    /// Puts cells in the place of what a chunk has; without cells there is no chunk.
    fn put_sparse(
        &mut self,
        name: &str,
        target: &Target,
        chunk: &[u64],
        origins: &[Origin],
        old: Option<&SparseChunk>,
        block: &Block,
    ) -> Result<()> {
        let schema = &target.entry.schema;
        let threads = self.threads;
        let put = |number| Put {
            name,
            space: target.entry.space,
            versions: &target.versions,
            chunk,
            number,
            bucket: bucket(chunk, &Grid::of(schema).counts()),
            threads,
        };
        if origins.is_empty() {
            let numbers = 0..schema.attributes().len() as u16;
            numbers
                .chain([POSITIONS])
                .for_each(|number| put(number).remove(&mut self.transaction));
            return Ok(());
        }
        let shape = vec![origins.len() as u32];
        let positions: Vec<u32> = origins.iter().map(|of| of.position).collect();
        let positions = Column::new(Buffer::of(DataType::U32, &positions));
        put(POSITIONS).column(
            &mut self.transaction,
            &positions,
            shape.clone(),
            Compression::None,
        )?;
        for (number, attribute) in schema.attributes().iter().enumerate() {
            let before = old.and_then(|old| old.columns[number].as_ref());
            let column = gather(attribute, origins, before, block.column(number));
            let compression = attribute.compression();
            put(number as u16).column(
                &mut self.transaction,
                &column,
                shape.clone(),
                compression,
            )?;
        }
        Ok(())
    }
}

/// Old and new cells by rising position; one that is both has both origins.
fn merge(old: Option<&SparseChunk>, new: &[(usize, usize)]) -> Vec<Origin> {
    let positions = old.map_or(&[][..], |old| &old.positions);
    let mut old = positions.iter().copied().enumerate().peekable();
    let mut new = new
        .iter()
        .map(|&(position, from)| (position as u32, from))
        .peekable();
    let mut all = Vec::with_capacity(positions.len() + new.len());
    loop {
        let next = match (old.peek(), new.peek()) {
            (None, None) => return all,
            (Some(&(_, position)), None) | (None, Some(&(position, _))) => position,
            (Some(&(_, a)), Some(&(b, _))) => a.min(b),
        };
        all.push(Origin {
            position: next,
            old: old
                .next_if(|&(_, position)| position == next)
                .map(|(at, _)| at),
            new: new
                .next_if(|&(position, _)| position == next)
                .map(|(_, from)| from),
        });
    }
}

/// The values of an attribute: the new one, or the old one, or the fill value.
fn gather(
    attribute: &Attribute,
    origins: &[Origin],
    old: Option<&Column>,
    new: Option<&Column>,
) -> Column {
    let fill = attribute.fill_value();
    let mut values = Buffer::filled(attribute.data_type(), origins.len(), fill);
    let mut valid = vec![u8::from(!fill.is_null()); origins.len()];
    for (to, origin) in origins.iter().enumerate() {
        let of_new = new.zip(origin.new);
        if let Some((column, from)) = of_new.or_else(|| old.zip(origin.old)) {
            copy_value(column.values(), from, &mut values, to);
            valid[to] = column.valid().map_or(1, |valid| valid[from]);
        }
    }
    Column::nullable(values, valid)
}
