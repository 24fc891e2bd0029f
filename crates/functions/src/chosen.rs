//! `nullif`, `greatest` and `least` of values that Arrow does not compare as PostgreSQL does: arrays, structs, `jsonb` and intervals;
//! and `nullif` of maps, which have no order.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::kernels::zip::zip;
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::ColumnarValue;
use table::{JsonKind, json_kind};

use crate::intervals::has_length;
use crate::lists::compare::comparator;
use crate::lists::types::{is_list, is_map, is_struct};
use crate::maps::equal;

/// Whether values of this type are compared here.
pub(super) fn is_one(ty: &DataType) -> bool {
    let is_whole = is_list(ty) || is_struct(ty) || is_map(ty);
    is_whole || has_length(ty) || json_kind(ty) == Some(JsonKind::Normal)
}

/// The arguments as arrays of one length, and whether all are constants.
fn arrays(args: &[ColumnarValue], rows: usize) -> Result<(Vec<ArrayRef>, bool)> {
    let is_constant = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
    let constant = args.iter().all(is_constant);
    let rows = if constant { 1 } else { rows };
    let arrays = args.iter().map(|arg| arg.to_array(rows));
    Ok((arrays.collect::<Result<_>>()?, constant))
}

fn returned(found: ArrayRef, constant: bool) -> Result<ColumnarValue> {
    Ok(if constant {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
    } else {
        ColumnarValue::Array(found)
    })
}

/// The value of each row that is [`Greater`](Ordering::Greater) than the others, or `Less`, as `wanted` says: of equal ones the
/// first, and NULL only where all are.
///
/// # Errors
/// Those of comparing them.
pub(super) fn extreme(
    args: &[ColumnarValue],
    rows: usize,
    wanted: Ordering,
) -> Result<ColumnarValue> {
    let (arrays, constant) = arrays(args, rows)?;
    let mut arrays = arrays.into_iter();
    let Some(mut found) = arrays.next() else {
        return plan_err!("the function takes at least one value");
    };
    for other in arrays {
        let compare = comparator(&other, &found)?;
        let is_better =
            |row: usize| other.is_valid(row) && (found.is_null(row) || compare(row, row) == wanted);
        let better: BooleanArray = (0..found.len()).map(|row| Some(is_better(row))).collect();
        found = zip(&better, &other, &found)?;
    }
    returned(found, constant)
}

/// The values of the left side, without those that are equal to the right one.
///
/// # Errors
/// Those of comparing them.
pub(super) fn nulled(sides: [&ColumnarValue; 2], rows: usize) -> Result<ColumnarValue> {
    let (sides, constant) = arrays(&sides.map(ColumnarValue::clone), rows)?;
    let [left, right] = &sides[..] else {
        return plan_err!("nullif takes two values");
    };
    if is_map(left.data_type()) {
        let equal = equal(&[Arc::clone(left), Arc::clone(right)], left.len())?;
        return returned(nullif(left, equal.as_boolean())?, constant);
    }
    let compare = comparator(left, right)?;
    let is_equal =
        |row: usize| left.is_valid(row) && right.is_valid(row) && compare(row, row).is_eq();
    let equal: BooleanArray = (0..left.len()).map(|row| Some(is_equal(row))).collect();
    returned(nullif(left, &equal)?, constant)
}

#[cfg(test)]
mod tests {
    use arrow::array::ListArray;
    use arrow::datatypes::Int64Type;

    use super::*;

    fn list(rows: &[Option<&[i64]>]) -> ColumnarValue {
        let rows = rows
            .iter()
            .map(|row| Some((*row)?.iter().copied().map(Some)));
        ColumnarValue::Array(Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
            rows,
        )))
    }

    #[test]
    fn of_equal_ones_the_first_is_chosen_and_of_none_nothing() {
        let left = list(&[Some(&[1]), None, None, Some(&[2, 3])]);
        let right = list(&[Some(&[0, 5]), Some(&[7]), None, Some(&[2, 3])]);
        let both = [left.clone(), right.clone()];
        for (wanted, first) in [(Ordering::Greater, 1), (Ordering::Less, 0)] {
            let found = extreme(&both, 4, wanted).unwrap().to_array(4).unwrap();
            let lists = found.as_list::<i32>();
            assert_eq!(lists.value(0).as_primitive::<Int64Type>().value(0), first);
            assert_eq!(lists.value(1).as_primitive::<Int64Type>().value(0), 7);
            assert!(lists.is_null(2));
        }
        let found = nulled([&left, &right], 4).unwrap().to_array(4).unwrap();
        let valid: Vec<bool> = (0..4).map(|row| found.is_valid(row)).collect();
        assert_eq!(valid, [true, false, false, false]);
    }
}
