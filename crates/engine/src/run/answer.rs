//! Answers: rows in order, and as Arrow.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};

use super::missing;
use crate::error::Result;
use crate::rel::{Key, Output};
use crate::source::Stored;
use crate::text::compacted;
use crate::value::{Type, Values};

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

/// The rows `run` of an answer as Arrow. Other rows of it need not stay in memory for them.
pub(super) fn batch(
    answer: &Stored,
    run: Range<usize>,
    types: &[Type],
    output: &Output,
) -> Result<RecordBatch> {
    let all = run == (0..answer.rows);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(output.vars.len());
    for (var, field) in output.vars.iter().zip(output.schema.fields()) {
        let vector = answer.columns.get(var).ok_or_else(missing)?;
        let ty = Type {
            data: field.data_type().clone(),
            ..types[*var].clone()
        };
        let text = matches!(vector.values, Values::Text(_));
        columns.push(match (all, text) {
            (true, _) => vector.to_arrow(&ty)?,
            (false, false) => vector.run(run.clone()).to_arrow(&ty)?,
            (false, true) => compacted(vector.run(run.clone()).to_arrow(&ty)?),
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(run.len()));
    let batch = RecordBatch::try_new_with_options(output.schema.clone(), columns, &options)?;
    Ok(batch)
}

/// The rows of an answer in pieces of [`BATCH_ROWS`].
pub(super) fn cuts(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..rows).step_by(BATCH_ROWS);
    starts.map(move |start| start..rows.min(start + BATCH_ROWS))
}
