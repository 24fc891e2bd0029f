//! Top-k filters: under ORDER BY with LIMIT k, each worker keeps the first k rows it has seen, and all workers
//! share a threshold that rows must reach. Other columns than the first sort key are read only for rows that reach
//! it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Scalar};
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::error::ArrowError;
use parking_lot::RwLock;
use table::{Filter, Form, Test};

use crate::error::{Result, missing};
use crate::logical::relation::Key;
use crate::operators::sort::order_of;
use crate::physical::program::Sink;
use crate::vector::batch::Batch;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Values, Var};

/// Largest k for which a top-k filter is used: above it, selecting the first k again and again costs more than one
/// sort.
const MAX_K: usize = 4_096;
/// Rows that a worker collects before it selects the first k of them: one vector, because all their columns are
/// read.
pub(crate) const MIN_ROWS: usize = algebra::VECTOR_ROWS;

/// The top-k threshold: the first sort key of the k-th row seen by one worker.
#[derive(Clone, Debug)]
struct Threshold {
    /// The key, as an array of one value that is not NULL.
    value: ArrayRef,
    descending: bool,
    /// The key as tables store it, for a filter in scans. Absent if NULLs come first, because that filter drops
    /// NULLs.
    stored: Option<i128>,
}

impl Threshold {
    /// Which of `values` reach the threshold.
    fn admits(&self, values: &ArrayRef) -> std::result::Result<BooleanArray, ArrowError> {
        let threshold = Scalar::new(self.value.clone());
        if self.descending {
            gt_eq(values, &threshold)
        } else {
            lt_eq(values, &threshold)
        }
    }
}

impl Test for Threshold {
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        _rows: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.admits(&columns[0])?)
    }
}

/// The threshold of a top-k, raised by all workers of a pipeline.
#[derive(Debug)]
pub(crate) struct TopKFilter {
    /// The first sort key.
    key: Key,
    pub ty: Type,
    /// `None` until a worker has seen k rows.
    threshold: RwLock<Option<Threshold>>,
}

impl TopKFilter {
    /// The filter for rows of which the first few by `key` are asked for.
    pub fn by(key: Key, types: &[Type]) -> TopKFilter {
        TopKFilter {
            key,
            ty: types[key.var].clone(),
            threshold: RwLock::new(None),
        }
    }

    /// The filter for `sink`, if that is a top-k with a small k.
    pub fn of(sink: &Sink, types: &[Type]) -> Option<TopKFilter> {
        let (keys, _) = top_k(sink)?;
        Some(TopKFilter::by(keys[0], types))
    }

    /// The vector that is compared with the threshold.
    pub fn var(&self) -> Var {
        self.key.var
    }

    /// The rows of `batch` that reach the threshold; `None` if all do. NULLs always do.
    pub fn picks(&self, batch: &Batch) -> Result<Option<Vec<u32>>> {
        let Some(threshold) = self.threshold.read().clone() else {
            return Ok(None);
        };
        let own = batch.get(self.key.var)?.to_arrow(&self.ty)?;
        let admitted = threshold.admits(&own)?;
        let kept = |row: &u32| admitted.is_null(*row as usize) || admitted.value(*row as usize);
        let picks: Vec<u32> = (0..batch.rows as u32).filter(kept).collect();
        Ok((picks.len() < batch.rows).then_some(picks))
    }

    /// Raises the threshold to the sort key of row `last` of `stored`, the k-th row of some worker. A NULL is no
    /// threshold.
    pub fn raise(&self, stored: &Materialized, last: u32) -> Result<()> {
        let vector = stored.columns.get(&self.key.var).ok_or_else(missing)?;
        let one = vector.at(&[last])?;
        let value = one.to_arrow(&self.ty)?;
        if value.is_null(0) {
            return Ok(());
        }
        let whole = match &one.values {
            Values::Int(values) => Some(i128::from(values[0])),
            Values::Wide(values) => Some(values[0]),
            _ => None,
        };
        let threshold = Threshold {
            value,
            descending: self.key.descending,
            stored: whole.filter(|_| !(self.ty.nullable && self.key.nulls_first)),
        };
        let mut known = self.threshold.write();
        let higher = match &*known {
            None => true,
            Some(before) => before.admits(&threshold.value)?.value(0),
        };
        if higher {
            *known = Some(threshold);
        }
        Ok(())
    }

    /// Raises the threshold to the sort key of the row of `stored` that is number `first` in its order.
    pub fn raise_to(&self, stored: &Materialized, first: usize) -> Result<()> {
        let order = std::slice::from_ref(&self.key);
        let types = vec![self.ty.clone(); self.key.var + 1];
        let picks = order_of(&stored.columns, stored.rows, &types, order, Some(first))?;
        match picks.last() {
            Some(last) if picks.len() == first => self.raise(stored, *last),
            _ => Ok(()),
        }
    }

    /// The threshold as a filter of a table's column, if it can be tested on stored numbers.
    pub fn filter(&self, column: usize) -> Option<Filter> {
        let threshold = self.threshold.read().clone()?;
        let range = if threshold.descending {
            (threshold.stored?, i128::MAX)
        } else {
            (i128::MIN, threshold.stored?)
        };
        Some(Filter {
            columns: vec![column],
            form: Form::Ranges([range].into()),
            test: Arc::new(threshold),
            gauge: None,
        })
    }
}

/// The sort keys and k of a top-k, if k is small.
pub(crate) fn top_k(sink: &Sink) -> Option<(&[Key], usize)> {
    match sink {
        Sink::Rows {
            order, skip, fetch, ..
        } if !order.is_empty() => {
            let end = skip.saturating_add((*fetch)?);
            (end > 0 && end <= MAX_K).then_some((order, end))
        }
        _ => None,
    }
}
