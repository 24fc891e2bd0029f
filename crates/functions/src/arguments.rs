//! Types that functions take and return, and checks of arguments.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::{Result, plan_err};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ScalarUDF, TypeSignature};
use messages::types::type_name;

/// The time zone in which timestamps with a time zone are stored.
pub const UTC: &str = "+00:00";

/// The type of SQL's `timestamp`.
pub const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The type in which functions return strings.
pub const TEXT: DataType = DataType::Utf8View;

/// Whether values of this type are strings, or NULL without a type.
pub fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
    )
}

/// Whether values of this type are of SQL's `bytea`. A uuid, which is stored as bytes, is not.
pub fn is_bytea(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

/// The types to which a function of DataFusion casts arguments of these types.
///
/// # Errors
/// If it does not take them.
pub(crate) fn accepted(function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
    if function.signature().type_signature == TypeSignature::UserDefined {
        return function.coerce_types(types);
    }
    let field = |ty: &DataType| Arc::new(Field::new("value", ty.clone(), true));
    let fields: Vec<FieldRef> = types.iter().map(field).collect();
    let fields = fields_with_udf(&fields, function)?;
    Ok(fields
        .iter()
        .map(|field| field.data_type().clone())
        .collect())
}

/// Checks that the arguments are `count` strings, each to be cast to `Utf8`.
pub(crate) fn texts(
    name: &str,
    types: &[DataType],
    count: std::ops::RangeInclusive<usize>,
) -> Result<Vec<DataType>> {
    if !count.contains(&types.len()) {
        return plan_err!(
            "{name} takes {} arguments, found {}",
            counted(&count),
            types.len()
        );
    }
    match types.iter().position(|ty| !is_text(ty)) {
        Some(at) => plan_err!(
            "{name} takes texts, but its argument {} is {}; cast it",
            at + 1,
            type_name(&types[at])
        ),
        None => Ok(vec![DataType::Utf8; types.len()]),
    }
}

/// "2" or "2 to 3".
fn counted(count: &std::ops::RangeInclusive<usize>) -> String {
    match (count.start(), count.end()) {
        (a, b) if a == b => a.to_string(),
        (a, b) => format!("{a} to {b}"),
    }
}

/// The strings of an argument.
pub fn strings(array: &ArrayRef) -> Result<StringArray> {
    let array = cast(array, &DataType::Utf8)?;
    Ok(StringArray::from(array.to_data()))
}

/// How many nanoseconds a unit of time has.
pub fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
