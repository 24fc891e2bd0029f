//! Arrays as values of columns: their items, and the lengths of their dimensions.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat;
use arrow::datatypes::DataType;

/// The items of a row of a column of lists.
pub(super) fn items(column: &ArrayRef, at: usize) -> Option<ArrayRef> {
    match column.data_type() {
        DataType::List(_) => Some(column.as_list::<i32>().value(at)),
        DataType::LargeList(_) => Some(column.as_list::<i64>().value(at)),
        DataType::FixedSizeList(_, _) => Some(column.as_fixed_size_list().value(at)),
        _ => None,
    }
}

/// Whether values are arrays.
pub(super) fn is_list(column: &ArrayRef) -> bool {
    matches!(
        column.data_type(),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _)
    )
}

/// The lengths of an array's dimensions, and its items in one row; no lengths of an array without items.
pub(super) fn flat(column: &ArrayRef, at: usize) -> Option<(Vec<i32>, ArrayRef)> {
    let items = items(column, at)?;
    if !is_list(&items) {
        let length = i32::try_from(items.len()).ok().filter(|length| *length > 0);
        return Some((length.into_iter().collect(), items));
    }
    let parts = (0..items.len()).map(|part| flat(&items, part));
    let parts = parts.collect::<Option<Vec<_>>>()?;
    let lengths = match parts.first() {
        Some((below, _)) if !below.is_empty() => {
            let mut all = vec![i32::try_from(items.len()).ok()?];
            all.extend(below);
            all
        }
        _ => vec![],
    };
    let all: Vec<&dyn Array> = parts.iter().map(|(_, items)| items.as_ref()).collect();
    if all.is_empty() {
        return Some((vec![], items.slice(0, 0)));
    }
    Some((lengths, concat(&all).ok()?))
}
