//! Answers: rows in order, and as Arrow.

use std::collections::BTreeMap;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};

use super::{Run, missing};
use crate::error::Result;
use crate::rel::{Key, Output};
use crate::source::Stored;
use crate::value::Type;

/// Rows of an answer's batches.
pub(super) const BATCH_ROWS: usize = 8_192;

impl Run {
    /// The rows of `stored` in `order`, without the first `skip`, at most `fetch`.
    pub(super) fn sorted(
        &self,
        stored: Stored,
        order: &[Key],
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Stored> {
        let end = fetch.map_or(stored.rows, |n| stored.rows.min(skip.saturating_add(n)));
        let start = skip.min(end);
        if order.is_empty() && start == 0 && end == stored.rows {
            return Ok(stored);
        }
        let picks: Vec<u32> = match order.is_empty() {
            true => (start as u32..end as u32).collect(),
            false => {
                let mut keys = Vec::with_capacity(order.len());
                for key in order {
                    let vector = stored.columns.get(&key.var).ok_or_else(missing)?;
                    keys.push(SortColumn {
                        values: vector.to_arrow(&self.types[key.var])?,
                        options: Some(SortOptions {
                            descending: key.descending,
                            nulls_first: key.nulls_first,
                        }),
                    });
                }
                let sorted = match stored.rows {
                    0 => UInt32Array::from(Vec::<u32>::new()),
                    _ => lexsort_to_indices(&keys, Some(end))?,
                };
                sorted.values()[start.min(sorted.len())..].to_vec()
            }
        };
        let mut columns = BTreeMap::new();
        for (var, vector) in &stored.columns {
            columns.insert(*var, vector.at(&picks)?);
        }
        Ok(Stored {
            columns,
            rows: picks.len(),
        })
    }
}

/// The rows of an answer as Arrow.
pub(super) fn batches(
    answer: &Stored,
    types: &[Type],
    output: &Output,
) -> Result<Vec<RecordBatch>> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(output.vars.len());
    for (var, field) in output.vars.iter().zip(output.schema.fields()) {
        let vector = answer.columns.get(var).ok_or_else(missing)?;
        let ty = Type {
            data: field.data_type().clone(),
            ..types[*var].clone()
        };
        columns.push(vector.to_arrow(&ty)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(answer.rows));
    let all = RecordBatch::try_new_with_options(output.schema.clone(), columns, &options)?;
    let starts = (0..answer.rows).step_by(BATCH_ROWS);
    Ok(starts
        .map(|start| all.slice(start, BATCH_ROWS.min(answer.rows - start)))
        .collect())
}
