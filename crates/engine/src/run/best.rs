//! Limits with an order: each worker keeps the best rows it has seen, and lets those pass that can be among them.

use arrow::array::{Array, ArrayRef, Scalar};
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};

use super::answer::order;
use super::away::Gathered;
use super::missing;
use super::sink::Shape;
use crate::batch::Batch;
use crate::error::Result;
use crate::expr::Var;
use crate::plan::Sink;
use crate::rel::Key;
use crate::source::Stored;

/// More rows than this are not kept so: to find the best again and again would cost more than to sort once.
const FEW: usize = 4_096;
/// Rows that come before the best of them are found.
const MANY: usize = 16_384;

impl Shape {
    /// The order of the rows that are asked for, and how many, if these are few.
    fn best(&self) -> Option<(&[Key], usize)> {
        match &self.sink {
            Sink::Rows {
                order, skip, fetch, ..
            } if !order.is_empty() => {
                let end = skip.saturating_add((*fetch)?);
                (end > 0 && end <= FEW).then_some((order, end))
            }
            _ => None,
        }
    }

    /// Adds the rows of `batch` that can be among those asked for.
    pub(super) fn add_rows(&self, gathered: &mut Gathered, batch: &Batch) -> Result<()> {
        let Some((keys, end)) = self.best() else {
            return gathered.rows.add(batch);
        };
        match &gathered.worst {
            None => gathered.rows.add(batch)?,
            Some(worst) => {
                let picks = self.hopeful(batch, &keys[0], worst)?;
                if picks.len() == batch.rows {
                    gathered.rows.add(batch)?;
                } else if !picks.is_empty() {
                    let live: Vec<Var> = self.vars.iter().map(|(var, _)| *var).collect();
                    gathered.rows.add(&batch.gathered(&picks, &live)?)?;
                }
            }
        }
        if gathered.rows.rows < MANY.max(4 * end) {
            return Ok(());
        }
        let (columns, rows) = gathered.rows.taken()?;
        let stored = Stored { columns, rows };
        let mut picks = order(&stored, &self.types, keys, Some(end))?;
        if let Some(last) = picks.last() {
            let key = keys[0].var;
            let vector = stored.columns.get(&key).ok_or_else(missing)?;
            gathered.worst = Some(vector.at(&[*last])?.to_arrow(&self.types[key])?);
        }
        picks.sort_unstable();
        gathered.rows.left(stored.columns, &picks)
    }

    /// The rows whose first key is not behind `worst`; NULL may stand anywhere.
    fn hopeful(&self, batch: &Batch, key: &Key, worst: &ArrayRef) -> Result<Vec<u32>> {
        let all = 0..batch.rows as u32;
        if worst.is_null(0) {
            return Ok(all.collect());
        }
        let own = batch.get(key.var)?.to_arrow(&self.types[key.var])?;
        let worst = Scalar::new(worst.clone());
        let not_behind = match key.descending {
            true => gt_eq(&own, &worst)?,
            false => lt_eq(&own, &worst)?,
        };
        let kept = |row: &u32| not_behind.is_null(*row as usize) || not_behind.value(*row as usize);
        Ok(all.filter(kept).collect())
    }
}
