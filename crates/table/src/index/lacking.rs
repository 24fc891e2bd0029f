//! Many rows whose keys are looked for at once.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use memory::Traffic;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::index::numbered::Numbered;
use crate::scan::{BATCH_ROWS, Scan};
use crate::schema::Key;

/// Rows of the table for each key that is looked for, up to which the table is read as a whole: to find a row by its key takes
/// about as long as to read so many.
const READ_WHOLE: u64 = 32;

impl Table {
    /// The rows of `columns` whose values no row of the table has in the columns of `key`, one of
    /// [`Definition::keys`](crate::Definition::keys), ascending; those with a NULL are among them. What
    /// [`find`](Table::find) finds, for many rows: the columns of the key are read through where that takes less.
    ///
    /// `columns` have the types of the key's columns, and stand in its order.
    ///
    /// # Errors
    /// As [`find`](Table::find).
    pub async fn lacking(self: &Arc<Self>, key: &Key, columns: &[ArrayRef]) -> Result<Vec<u32>> {
        let rows = columns.first().map_or(0, |column| column.len());
        if rows as u64 * READ_WHOLE < self.rows() {
            let found = self.find(key, columns).await?;
            let lost = (0..).zip(&found).filter(|(_, found)| found.is_none());
            return Ok(lost.map(|(row, _)| row).collect());
        }
        let mut wanted = Numbered::default();
        let numbers = wanted.put(columns)?;
        let mut found = vec![false; wanted.len()];
        let mut left = wanted.len();
        let scan = Scan::new(Arc::clone(self), key.columns.clone(), false);
        let pool = self.snapshot().pool().clone();
        let traffic = Traffic::new(pool.nodes());
        'all: for (_, morsel) in scan.morsels() {
            let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
            let Some(mut cursor) = opened else { continue };
            while let Some(batch) = cursor.next(BATCH_ROWS)? {
                for number in wanted.get(batch.columns())?.into_iter().flatten() {
                    left -= usize::from(!found[number]);
                    found[number] = true;
                }
                if left == 0 {
                    break 'all;
                }
            }
        }
        let lost = (0..).zip(numbers);
        let lost = lost.filter(|(_, number)| number.is_none_or(|number| !found[number]));
        Ok(lost.map(|(row, _)| row).collect())
    }
}
