//! Writing into dense chunks: those that are not written as a whole are read first.

use super::Writer;
use super::encode::{Put, bucket, is_fill};
use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::data::runs::{copy_box, each_run, fill_box};
use crate::error::Result;
use crate::storage::dense::read;
use crate::storage::keys::Target;

impl Writer {
    /// Writes what a block has of a dense chunk.
    pub(super) async fn write_dense(
        &mut self,
        name: &str,
        target: &Target,
        chunk: &[u64],
        block: &Block,
    ) -> Result<()> {
        let entry = &target.entry;
        let grid = Grid::of(&entry.schema);
        let region = grid.region(chunk);
        let common = region.intersection(block.region());
        let whole = common == region && block.present().is_none();
        let shape: Vec<u32> = region.shape().iter().map(|&length| length as u32).collect();
        for (number, attribute) in entry.schema.attributes().iter().enumerate() {
            let Some(column) = block.column(number) else {
                continue;
            };
            let before = if whole {
                let cells = region.cells("a chunk")?;
                Column::new(Buffer::zeros(attribute.data_type(), cells))
            } else {
                let wanted: Vec<bool> = (0..=number).map(|at| at == number).collect();
                let old = read(&self.cells(name, entry), &region, &wanted).await?;
                old.columns()[number]
                    .clone()
                    .unwrap_or_else(|| column.clone())
            };
            let after = overlay(before, &region, column, block, &common);
            let put = Put {
                name,
                space: entry.space,
                versions: &target.versions,
                chunk,
                number: number as u16,
                bucket: bucket(chunk, &grid.counts()),
                threads: self.threads,
            };
            if is_fill(attribute, &after) {
                put.remove(&mut self.transaction);
            } else {
                let compression = attribute.compression();
                put.column(&mut self.transaction, &after, shape.clone(), compression)?;
            }
        }
        Ok(())
    }
}

/// A column of `region` with what a block has of it put over.
fn overlay(
    below: Column,
    region: &Region,
    column: &Column,
    block: &Block,
    common: &Region,
) -> Column {
    let (mut values, mut valid) = below.into_parts();
    let width = values.data_type().width();
    let from = block.region();
    if column.valid().is_some() && valid.is_none() {
        valid = Some(vec![1; values.len()]);
    }
    let Some(present) = block.present() else {
        copy_box(
            width,
            common,
            (from, column.values().bytes()),
            (region, values.bytes_mut()),
        );
        match (column.valid(), &mut valid) {
            (Some(of), Some(valid)) => copy_box(1, common, (from, of), (region, valid)),
            (None, Some(valid)) => fill_box(common, (region, valid), 1),
            (_, None) => {}
        }
        return column_of(values, valid);
    };
    let (source, target) = (column.values().bytes(), values.bytes_mut());
    each_run(common, from, region, |source_at, target_at, cells| {
        for cell in (0..cells).filter(|cell| present[source_at + cell] != 0) {
            let value = &source[(source_at + cell) * width..][..width];
            target[(target_at + cell) * width..][..width].copy_from_slice(value);
            if let Some(valid) = &mut valid {
                valid[target_at + cell] = column.valid().map_or(1, |of| of[source_at + cell]);
            }
        }
    });
    column_of(values, valid)
}

fn column_of(values: Buffer, valid: Option<Vec<u8>>) -> Column {
    match valid {
        None => Column::new(values),
        Some(valid) => Column::nullable(values, valid),
    }
}
