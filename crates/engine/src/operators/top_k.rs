//! Limits with an order: each worker keeps the best rows it has seen, and what no row behind can be among them any more
//! is known to all of them. Other columns than the first key are read of rows only that can.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Scalar};
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::error::ArrowError;
use parking_lot::RwLock;
use table::{Filter, Form, Test};

use crate::error::{Result, missing};
use crate::logical::relation::Key;
use crate::physical::program::Sink;
use crate::vector::batch::Batch;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Values, Var};

/// More rows than this are not kept so: to find the best again and again would cost more than to sort once.
const FEW: usize = 4_096;
/// Rows that come before the best of them are found: one vector, as all columns are read of these.
pub(crate) const MANY: usize = algebra::VECTOR_ROWS;

/// The first key of a row that so many are at least as good as as are asked for.
#[derive(Clone, Debug)]
struct Threshold {
    /// One value, not NULL.
    value: ArrayRef,
    descending: bool,
    /// As a table stores it, if it may be asked for rows that are not behind it: without NULLs, these are all there are.
    stored: Option<i128>,
}

impl Threshold {
    /// Whether each of `values` is not behind it.
    fn admits(&self, values: &ArrayRef) -> std::result::Result<BooleanArray, ArrowError> {
        let worst = Scalar::new(self.value.clone());
        match self.descending {
            true => gt_eq(values, &worst),
            false => lt_eq(values, &worst),
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

/// What rows must reach to be among the best; raised by all workers of a pipeline.
#[derive(Debug)]
pub(crate) struct TopKFilter {
    /// The first key of the order.
    key: Key,
    pub ty: Type,
    /// Empty until some worker has seen enough rows.
    worst: RwLock<Option<Threshold>>,
}

impl TopKFilter {
    /// The bar for what ends in `sink`, if that is few rows in an order.
    pub fn of(sink: &Sink, types: &[Type]) -> Option<TopKFilter> {
        let (keys, _) = best(sink)?;
        Some(TopKFilter {
            key: keys[0],
            ty: types[keys[0].var].clone(),
            worst: RwLock::new(None),
        })
    }

    /// The vector that is compared with it.
    pub fn var(&self) -> Var {
        self.key.var
    }

    /// The rows of `batch` that can be among the best; `None` if all can. A NULL may stand anywhere.
    pub fn picks(&self, batch: &Batch) -> Result<Option<Vec<u32>>> {
        let Some(worst) = self.worst.read().clone() else {
            return Ok(None);
        };
        let own = batch.get(self.key.var)?.to_arrow(&self.ty)?;
        let admitted = worst.admits(&own)?;
        let kept = |row: &u32| admitted.is_null(*row as usize) || admitted.value(*row as usize);
        let picks: Vec<u32> = (0..batch.rows as u32).filter(kept).collect();
        Ok((picks.len() < batch.rows).then_some(picks))
    }

    /// So many rows as are asked for are not behind row `last` of `stored`.
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
        let worst = Threshold {
            value,
            descending: self.key.descending,
            stored: whole.filter(|_| !(self.ty.nullable && self.key.nulls_first)),
        };
        let mut known = self.worst.write();
        let better = match &*known {
            None => true,
            Some(before) => before.admits(&worst.value)?.value(0),
        };
        if better {
            *known = Some(worst);
        }
        Ok(())
    }

    /// The same as a filter of a table's column, of numbers that are stored as they are.
    pub fn filter(&self, column: usize) -> Option<Filter> {
        let worst = self.worst.read().clone()?;
        let range = match worst.descending {
            true => (worst.stored?, i128::MAX),
            false => (i128::MIN, worst.stored?),
        };
        Some(Filter {
            columns: vec![column],
            form: Form::Ranges([range].into()),
            test: Arc::new(worst),
            gauge: None,
        })
    }
}

/// The order of the rows that are asked for, and how many, if these are few.
pub(crate) fn best(sink: &Sink) -> Option<(&[Key], usize)> {
    match sink {
        Sink::Rows {
            order, skip, fetch, ..
        } if !order.is_empty() => {
            let end = skip.saturating_add((*fetch)?);
            (end > 0 && end <= FEW).then_some((order, end))
        }
        _ => None,
    }
}
