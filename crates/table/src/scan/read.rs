//! Rows of a table as they are: all of them, or those with some row ids.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take, take_record_batch};
use arrow::datatypes::UInt64Type;
use memory::Traffic;

use crate::catalog::table::{Stored, Table};
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::row_id::RowId;
use crate::scan::chunk::PinnedChunk;
use crate::scan::decode::decode;
use crate::scan::open::Scan;
use crate::scan::rows::{BATCH_ROWS, Rows};

impl Table {
    /// Reads `columns` of every row: for tests and small tables. Order: blocks, then the tail.
    ///
    /// # Errors
    /// Those of [`Scan::open`].
    pub async fn read(self: &Arc<Self>, columns: &[usize]) -> Result<Vec<RecordBatch>> {
        let scan = Scan::new(self.clone(), columns.to_vec(), false);
        let pool = self.snapshot().pool().clone();
        let traffic = Traffic::new(pool.nodes());
        let mut batches = Vec::new();
        for (_, morsel) in scan.morsels() {
            let Some(mut cursor) = scan.open(&pool, morsel, &[], &traffic, || 0).await? else {
                continue;
            };
            while let Some(batch) = cursor.next(BATCH_ROWS)? {
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    /// Reads `columns` of the rows with these row ids, the values of [`ROW_COLUMN`](crate::ROW_COLUMN), in their order; one
    /// may occur several times.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if there is no such row, or it is deleted; those of [`Scan::open`].
    pub async fn fetch(&self, columns: &[usize], rows: &[u64]) -> Result<RecordBatch> {
        let chosen = Arc::new(self.choose("", rows));
        let scan = Scan::new(chosen, columns.to_vec(), true);
        let pool = self.snapshot().pool().clone();
        let traffic = Traffic::new(pool.nodes());
        let mut batches = Vec::new();
        for (_, morsel) in scan.morsels() {
            let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
            let Some(mut cursor) = opened else { continue };
            while let Some(batch) = cursor.next(BATCH_ROWS)? {
                batches.push(batch);
            }
        }
        let found = concat_batches(scan.schema(), &batches)?;
        let wanted: Vec<usize> = (0..columns.len()).collect();
        // Blocks and the tail come in the order of their ids.
        let ids = found
            .column(columns.len())
            .as_primitive::<UInt64Type>()
            .values();
        let places = rows.iter().map(|row| {
            let at = ids.binary_search(row);
            at.map(|at| at as u32).map_err(|_| self.no_row(*row))
        });
        let places = UInt32Array::from(places.collect::<Result<Vec<u32>>>()?);
        Ok(take_record_batch(&found.project(&wanted)?, &places)?)
    }
    /// Reads `columns` of the one row with this row id, each as an array of one value: what
    /// [`fetch`](Table::fetch) does of one row, without what several need. The bytes that are read are counted in
    /// `traffic` as those of a reader on node `here`.
    ///
    /// # Errors
    /// As [`fetch`](Table::fetch).
    pub async fn row(
        &self,
        columns: &[usize],
        row: u64,
        (traffic, here): (&Traffic, usize),
    ) -> Result<Vec<ArrayRef>> {
        let body = &self.body;
        match body.place(row).ok_or_else(|| self.no_row(row))? {
            RowId::Tail { key, row: at } => {
                let chunk = body.chunk(key).ok_or_else(|| self.no_row(row))?;
                let at = UInt32Array::from(vec![u32::from(at)]);
                let rows = &chunk.value.rows;
                let one = columns.iter().map(|c| take(rows.column(*c), &at, None));
                Ok(one.collect::<std::result::Result<Vec<_>, _>>()?)
            }
            RowId::Block { key, row: at } => {
                let block = body.blocks.binary_search_by_key(&key, |block| block.key);
                let block = block.ok().map(|block| &body.blocks[block]);
                let is_there = |block: &&Stored<Block>| {
                    let marks = body.deleted.get(&key);
                    u32::from(at) < block.value.rows
                        && !marks.is_some_and(|marks| marks.value.contains(at.into()))
                };
                let block = block.filter(is_there).ok_or_else(|| self.no_row(row))?;
                self.row_of(&block.value, columns, at.into(), (traffic, here))
                    .await
            }
        }
    }

    /// Reads `columns` of one row of a block.
    async fn row_of(
        &self,
        block: &Block,
        columns: &[usize],
        row: u32,
        (traffic, here): (&Traffic, usize),
    ) -> Result<Vec<ArrayRef>> {
        let pool = self.snapshot().pool();
        let name = &self.definition().name;
        let mut chunks: Vec<PinnedChunk<'_>> = columns
            .iter()
            .map(|column| PinnedChunk::new(name, pool, &block.columns[*column], block.rows))
            .collect();
        let pages = chunks.iter().flat_map(|chunk| chunk.pages_of(row));
        let missing: Vec<_> = pages.filter(|page| !pool.is_resident(*page)).collect();
        if missing.len() > 1 {
            pool.prefetch(&missing);
        }
        let schema = self.schema();
        let rows = Rows::Run(row as usize..row as usize + 1);
        let mut values = Vec::with_capacity(columns.len());
        for (column, chunk) in columns.iter().zip(&mut chunks) {
            chunk.hold_row(row).await?;
            let dictionary = self.dictionary(*column).await?;
            let data_type = schema.field(*column).data_type();
            let mut tally = |node, bytes| traffic.add(here, node, bytes);
            values.push(decode(
                chunk,
                &rows,
                data_type,
                dictionary.as_deref(),
                &mut tally,
            )?);
        }
        Ok(values)
    }

    fn no_row(&self, row: u64) -> Error {
        Error::Mismatch {
            table: self.definition().name.clone(),
            what: format!("it has no row of number {row}"),
        }
    }
}
