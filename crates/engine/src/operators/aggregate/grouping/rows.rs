//! Groups that keep rows: their first few in an order.

use crate::error::{Error, Result};
use crate::operators::aggregate::grouping::{Grouping, KeyIndex};
use crate::vector::batch::Batch;
use crate::vector::value::Var;

impl Grouping {
    /// For groups of nothing but first rows: the first part of [`add`](Self::add), which tells the rows that are kept as
    /// accumulators do. They go to [`settle_rows`](Self::settle_rows).
    pub fn choose_rows(
        &mut self,
        batch: &Batch,
        keys: &[Var],
        row: Option<Var>,
    ) -> Result<Option<Vec<u32>>> {
        self.number_batch(batch, keys, row)?;
        let groups = match self.key_index {
            KeyIndex::One => None,
            _ => Some(&self.numbers[..]),
        };
        match &mut self.states[..] {
            [state] => state.choose_rows(groups, batch),
            _ => Err(Error::internal("rows for several accumulators")),
        }
    }

    /// The second part of [`add`](Self::add).
    pub fn settle_rows(&mut self, batch: &Batch) -> Result<()> {
        let mut states = self.states.iter_mut();
        states.try_for_each(|state| state.settle_rows(batch))
    }

    /// The rows of the result: the group of each, and its place in the accumulators. These are the same, unless a group
    /// may have several rows.
    pub fn entries(&self) -> (Vec<u32>, Vec<u32>) {
        let groups = self.numbers();
        let rows = self.states.iter().find_map(|state| state.entries(&groups));
        rows.unwrap_or_else(|| (groups.clone(), groups))
    }
}
