//! Comparisons of arrays, of their items, and of structs.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DynComparator, Float32Array, Float64Array, ListArray, StructArray,
    make_comparator,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef, Fields, Float32Type, Float64Type};
use datafusion_common::{Result, plan_err};
use table::{JsonKind, json_kind};

use crate::intervals::lengths;
use crate::json::order::keys;
use crate::lists::types::{has, lists};

/// How values are compared: NULL is the greatest, and equal to NULL.
const ORDER: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// Whether DataFusion compares arrays and structs of this type for equality as PostgreSQL does: floats it takes by their
/// bits, and JSON by its text.
pub fn is_plain(ty: &DataType) -> bool {
    !has(ty, is_odd)
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

/// Whether values of this type are compared by others: floats, of which two zeros and all NaN are equal, intervals, whose
/// lengths are compared, and `jsonb`, which has an order of its own.
fn is_odd(ty: &DataType) -> bool {
    ty.is_floating() || matches!(ty, DataType::Interval(_)) || json_kind(ty).is_some()
}

/// The values by which these are compared: floats with one zero and one NaN, the lengths of intervals, and the keys of `jsonb`.
///
/// # Errors
/// For `json`, which is not compared; those of Arrow.
pub(crate) fn normal(values: &ArrayRef) -> Result<ArrayRef> {
    match json_kind(values.data_type()) {
        Some(JsonKind::Normal) => return keys(values),
        Some(JsonKind::Text) => {
            return plan_err!("could not identify an equality operator for type json");
        }
        None => {}
    }
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
        DataType::Interval(_) => lengths(values)?,
        DataType::Struct(fields) if has(values.data_type(), is_odd) => {
            let own = values.as_struct();
            let columns: Vec<ArrayRef> = own.columns().iter().map(normal).collect::<Result<_>>()?;
            let both = fields.iter().zip(&columns);
            let fields: Fields = both.map(|(field, column)| of_type(field, column)).collect();
            let nulls = own.nulls().cloned();
            Arc::new(StructArray::try_new(fields, columns, nulls)?)
        }
        DataType::List(field) if has(values.data_type(), is_odd) => {
            let own = lists(values);
            let items = normal(own.values())?;
            Arc::new(ListArray::try_new(
                of_type(field, &items),
                own.offsets().clone(),
                items,
                own.nulls().cloned(),
            )?)
        }
        _ => values.clone(),
    })
}

/// A field with the type of these values.
fn of_type(field: &FieldRef, values: &ArrayRef) -> FieldRef {
    if field.data_type() == values.data_type() {
        return Arc::clone(field);
    }
    let field = field.as_ref().clone();
    Arc::new(field.with_data_type(values.data_type().clone()))
}
