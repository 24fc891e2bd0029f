//! Answers: rows in order, and as Arrow.

use std::collections::BTreeMap;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};

use super::missing;
use crate::error::Result;
use crate::rel::{Key, Output};
use crate::source::Stored;
use crate::value::Type;

/// Rows of an answer's batches.
pub(super) const BATCH_ROWS: usize = 8_192;

/// The rows of `stored` in the order of `keys`, at most `end`.
pub(super) fn order(
    stored: &Stored,
    types: &[Type],
    keys: &[Key],
    end: Option<usize>,
) -> Result<Vec<u32>> {
    if stored.rows == 0 {
        return Ok(vec![]);
    }
    let mut columns = Vec::with_capacity(keys.len());
    for key in keys {
        let vector = stored.columns.get(&key.var).ok_or_else(missing)?;
        columns.push(SortColumn {
            values: vector.to_arrow(&types[key.var])?,
            options: Some(options(key)),
        });
    }
    Ok(lexsort_to_indices(&columns, end)?.values().to_vec())
}

/// As Arrow says it.
pub(super) fn options(key: &Key) -> SortOptions {
    SortOptions {
        descending: key.descending,
        nulls_first: key.nulls_first,
    }
}

/// The rows of `stored` in the order of `keys`, without the first `skip`, at most `fetch`.
pub(super) fn sorted(
    stored: Stored,
    types: &[Type],
    keys: &[Key],
    skip: usize,
    fetch: Option<usize>,
) -> Result<Stored> {
    let end = fetch.map_or(stored.rows, |n| stored.rows.min(skip.saturating_add(n)));
    let start = skip.min(end);
    if keys.is_empty() && start == 0 && end == stored.rows {
        return Ok(stored);
    }
    let picks: Vec<u32> = match keys.is_empty() {
        true => (start as u32..end as u32).collect(),
        false => {
            let sorted = order(&stored, types, keys, Some(end))?;
            sorted[start.min(sorted.len())..].to_vec()
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
