//! Rows of a table as they are: all of them, or those with some row ids.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::UInt64Type;
use memory::Traffic;

use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::scan::open::Scan;
use crate::scan::rows::BATCH_ROWS;

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
            at.map(|at| at as u32).map_err(|_| Error::Mismatch {
                table: self.definition().name.clone(),
                what: format!("it has no row of number {row}"),
            })
        });
        let places = UInt32Array::from(places.collect::<Result<Vec<u32>>>()?);
        Ok(take_record_batch(&found.project(&wanted)?, &places)?)
    }
}
