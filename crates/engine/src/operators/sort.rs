//! Sorting and limiting rows in memory.

use std::collections::BTreeMap;

use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};

use crate::error::{Result, missing};
use crate::logical::relation::Key;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Var, Vector};

/// The rows of `stored` in the order of `keys`, at most `end` of them.
pub(crate) fn order(
    stored: &Materialized,
    types: &[Type],
    keys: &[Key],
    end: Option<usize>,
) -> Result<Vec<u32>> {
    order_of(&stored.columns, stored.rows, types, keys, end)
}

/// The numbers of `rows` rows with these vectors in the order of `keys`, at most `end` of them.
pub(crate) fn order_of(
    vectors: &BTreeMap<Var, Vector>,
    rows: usize,
    types: &[Type],
    keys: &[Key],
    end: Option<usize>,
) -> Result<Vec<u32>> {
    if rows == 0 {
        return Ok(vec![]);
    }
    let mut columns = Vec::with_capacity(keys.len());
    for key in keys {
        let vector = vectors.get(&key.var).ok_or_else(missing)?;
        columns.push(SortColumn {
            values: vector.to_arrow(&types[key.var])?,
            options: Some(options(key)),
        });
    }
    Ok(lexsort_to_indices(&columns, end)?.values().to_vec())
}

/// The sort key's options for Arrow.
pub(crate) fn options(key: &Key) -> SortOptions {
    SortOptions {
        descending: key.descending,
        nulls_first: key.nulls_first,
    }
}

/// Sorts `stored` by `keys`, skips `skip` rows and keeps at most `fetch`.
pub(crate) fn sorted(
    stored: Materialized,
    types: &[Type],
    keys: &[Key],
    skip: usize,
    fetch: Option<usize>,
) -> Result<Materialized> {
    let end = fetch.map_or(stored.rows, |n| stored.rows.min(skip.saturating_add(n)));
    let start = skip.min(end);
    if keys.is_empty() && start == 0 && end == stored.rows {
        return Ok(stored);
    }
    let picks: Vec<u32> = if keys.is_empty() {
        (start as u32..end as u32).collect()
    } else {
        let sorted = order(&stored, types, keys, Some(end))?;
        sorted[start.min(sorted.len())..].to_vec()
    };
    let mut columns = BTreeMap::new();
    for (var, vector) in &stored.columns {
        columns.insert(*var, vector.at(&picks)?);
    }
    Ok(Materialized {
        columns,
        rows: picks.len(),
    })
}
