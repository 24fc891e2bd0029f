//! The types that numbers of different kinds have together, as in PostgreSQL: an exact number beside one that floats becomes one
//! that floats, so that no digit of the latter is lost. The planner would make decimals with 15 digits behind the point of both.

use arrow::datatypes::DataType;

/// The type in which two numbers are compared, or computed with, of which one floats and the other does not: double precision,
/// also beside a `real`. `None` of others, which the planner knows.
pub fn beside(left: &DataType, right: &DataType) -> Option<DataType> {
    let mixed = is_exact(left) && right.is_floating() || left.is_floating() && is_exact(right);
    mixed.then_some(DataType::Float64)
}

/// The type of values that stand together in a column, a `case`, an array or as arguments, of which some float and others are
/// exact: that of the widest of those that float. `None` of others.
pub fn united<'t>(types: impl IntoIterator<Item = &'t DataType>) -> Option<DataType> {
    let (mut floats, mut exact) = (None, false);
    for ty in types {
        match ty {
            DataType::Null => {}
            DataType::Float64 => floats = Some(DataType::Float64),
            ty if ty.is_floating() => floats = floats.or(Some(DataType::Float32)),
            ty if is_exact(ty) => exact = true,
            _ => return None,
        }
    }
    floats.filter(|_| exact)
}

/// Whether numbers of this type are exact.
pub(crate) fn is_exact(ty: &DataType) -> bool {
    ty.is_integer() || ty.is_decimal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_beside_one_that_floats_float() {
        use DataType::{Decimal128, Decimal256, Float32, Float64, Int32, Null, Utf8};
        for (left, right, together, wanted) in [
            (Float64, Decimal128(3, 1), Some(Float64), Some(Float64)),
            (Decimal256(50, 2), Float32, Some(Float64), Some(Float32)),
            (Float32, Int32, Some(Float64), Some(Float32)),
            (Float32, Float64, None, None),
            (Int32, Decimal128(3, 1), None, None),
            (Float64, Null, None, None),
            (Float64, Utf8, None, None),
        ] {
            assert_eq!(beside(&left, &right), together, "{left} {right}");
            assert_eq!(united([&left, &right]), wanted, "{left} {right}");
        }
        let all = [Null, Float32, Decimal128(3, 1), Float64];
        assert_eq!(united(&all), Some(Float64));
    }
}
