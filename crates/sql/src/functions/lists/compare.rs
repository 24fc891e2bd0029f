//! Comparisons of arrays, of their items, and of structs.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DynComparator, Float32Array, Float64Array, ListArray, StructArray,
    make_comparator,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::Result;
use table::json_kind;

use crate::functions::lists::types::{has, lists};

/// How values are compared: NULL is the greatest, and equal to NULL.
const ORDER: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// Whether DataFusion compares arrays and structs of this type for equality as PostgreSQL does: floats it takes by their
/// bits.
pub(crate) fn is_plain(ty: &DataType) -> bool {
    let odd = |ty: &DataType| {
        ty.is_floating() || matches!(ty, DataType::Interval(_)) || json_kind(ty).is_some()
    };
    !has(ty, odd)
}

/// What compares values of two arrays of one type by their places.
///
/// # Errors
/// For types that have no order.
pub(crate) fn comparator(left: &ArrayRef, right: &ArrayRef) -> Result<DynComparator> {
    let (left, right) = (normal(left)?, normal(right)?);
    Ok(make_comparator(&left, &right, ORDER)?)
}

/// The order of the values of two columns, row by row; `None` where one is NULL.
///
/// # Errors
/// For types that have no order.
pub(crate) fn compared(left: &ArrayRef, right: &ArrayRef) -> Result<Vec<Option<Ordering>>> {
    let compare = comparator(left, right)?;
    let rows = 0..left.len();
    let valid = |row: usize| left.is_valid(row) && right.is_valid(row);
    Ok(rows
        .map(|row| valid(row).then(|| compare(row, row)))
        .collect())
}

/// The values with one zero and one NaN.
pub(crate) fn normal(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Float32 => {
            let one = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
            let values: Float32Array = values.as_primitive::<Float32Type>().unary(one);
            Arc::new(values)
        }
        DataType::Float64 => {
            let one = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            let values: Float64Array = values.as_primitive::<Float64Type>().unary(one);
            Arc::new(values)
        }
        DataType::Struct(fields) if has(values.data_type(), DataType::is_floating) => {
            let own = values.as_struct();
            let columns = own.columns().iter().map(normal);
            Arc::new(StructArray::try_new(
                fields.clone(),
                columns.collect::<Result<_>>()?,
                own.nulls().cloned(),
            )?)
        }
        DataType::List(field) if has(values.data_type(), DataType::is_floating) => {
            let own = lists(values);
            Arc::new(ListArray::try_new(
                field.clone(),
                own.offsets().clone(),
                normal(own.values())?,
                own.nulls().cloned(),
            )?)
        }
        _ => values.clone(),
    })
}
