//! Many rows whose keys are looked for at once.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::UInt64Type;
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
    /// Whether so many keys are looked for that it takes less to read the columns of the key through. Of a table of chosen rows
    /// others would not be found.
    pub(super) fn is_read_whole(&self, keys: usize) -> bool {
        self.chosen.is_none() && keys as u64 * READ_WHOLE >= self.rows()
    }

    /// The rows of `columns` whose values no row of the table has in the columns of `key`, one of
    /// [`Definition::keys`](crate::Definition::keys), ascending; those with a NULL are among them. What
    /// [`find`](Table::find) finds, for many rows.
    ///
    /// `columns` have the types of the key's columns, and stand in its order.
    ///
    /// # Errors
    /// As [`find`](Table::find).
    pub async fn lacking(self: &Arc<Self>, key: &Key, columns: &[ArrayRef]) -> Result<Vec<u32>> {
        let rows = columns.first().map_or(0, |column| column.len());
        if !self.is_read_whole(rows) {
            let found = self.find(key, columns).await?;
            let lost = (0..).zip(&found).filter(|(_, found)| found.is_none());
            return Ok(lost.map(|(row, _)| row).collect());
        }
        let mut wanted = Numbered::default();
        let numbers = wanted.put(columns)?;
        let mut found = vec![false; wanted.len()];
        self.read_keys(key, &wanted, false, |number, _| found[number] = true)
            .await?;
        let lost = (0..).zip(numbers);
        let lost = lost.filter(|(_, number)| number.is_none_or(|number| !found[number]));
        Ok(lost.map(|(row, _)| row).collect())
    }

    /// What [`find`](Table::find) finds, by reading the columns of the key through.
    pub(super) async fn find_whole(
        self: &Arc<Self>,
        key: &Key,
        columns: &[ArrayRef],
    ) -> Result<Vec<Option<u64>>> {
        let mut wanted = Numbered::default();
        let numbers = wanted.put(columns)?;
        let mut found = vec![None; wanted.len()];
        self.read_keys(key, &wanted, true, |number, row| found[number] = row)
            .await?;
        let found = numbers.into_iter().map(|number| found[number?]);
        Ok(found.collect())
    }

    /// Reads the columns of a key until each of the keys that are `wanted` has been seen, and tells of each its number and,
    /// if they are asked for, the id of its row.
    async fn read_keys(
        self: &Arc<Self>,
        key: &Key,
        wanted: &Numbered,
        row_ids: bool,
        mut tell: impl FnMut(usize, Option<u64>),
    ) -> Result<()> {
        let mut left = wanted.len();
        let mut seen = vec![false; left];
        let scan = Scan::new(Arc::clone(self), key.columns.clone(), row_ids);
        let pool = self.snapshot().pool().clone();
        let traffic = Traffic::new(pool.nodes());
        for (_, morsel) in scan.morsels() {
            if left == 0 {
                break;
            }
            let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
            let Some(mut cursor) = opened else { continue };
            while let Some(batch) = cursor.next(BATCH_ROWS)? {
                let (own, ids) = batch.columns().split_at(key.columns.len());
                let ids = ids.first();
                let ids = ids.map(|ids| ids.as_primitive::<UInt64Type>().values());
                for (row, number) in wanted.get(own)?.into_iter().enumerate() {
                    let Some(number) = number else { continue };
                    left -= usize::from(!seen[number]);
                    seen[number] = true;
                    tell(number, ids.map(|ids| ids[row]));
                }
            }
        }
        Ok(())
    }
}
