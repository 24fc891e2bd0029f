//! `round`, `trunc`, `ceil` and `floor` of decimals. Their results have as many digits behind the point as are asked for, and
//! none without, as in PostgreSQL; where the number of digits is no constant, they have those of the argument.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowNativeType, ArrowNativeTypeOp, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION,
    DataType, Decimal128Type, Decimal256Type, DecimalType, Int64Type,
};
use datafusion_common::{Result, internal_err};
use messages::Error;

/// Which way digits go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Ceil,
    Floor,
    /// Half away from zero.
    Round,
    Trunc,
}

impl Way {
    /// That of the function of this name.
    pub(crate) fn of(function: &str) -> Option<Way> {
        Some(match function {
            "ceil" => Way::Ceil,
            "floor" => Way::Floor,
            "round" => Way::Round,
            "trunc" => Way::Trunc,
            _ => return None,
        })
    }
}

/// The type of a decimal of type `own` with so many digits behind the point, which no constant says if there is none; `None` of
/// other types.
pub(crate) fn result(own: &DataType, places: Option<i64>) -> Option<DataType> {
    Some(match own {
        DataType::Decimal128(precision, scale) => {
            let (precision, scale) = digits(*precision, *scale, places, DECIMAL128_MAX_PRECISION);
            DataType::Decimal128(precision, scale)
        }
        DataType::Decimal256(precision, scale) => {
            let (precision, scale) = digits(*precision, *scale, places, DECIMAL256_MAX_PRECISION);
            DataType::Decimal256(precision, scale)
        }
        _ => return None,
    })
}

fn digits(precision: u8, scale: i8, places: Option<i64>, most: u8) -> (u8, i8) {
    let (own, most) = (i64::from(scale), i64::from(most));
    let wanted = places.map_or(own, |places| places.clamp(0, most));
    // What is rounded up may have a digit more.
    let carried = places.is_none_or(|places| places < own);
    let whole = (i64::from(precision) - own + i64::from(carried)).max(1);
    // More zeros than fit are left out.
    let wanted = wanted.min((most - whole).max(own)).min(most);
    let precision = (whole + wanted).min(most);
    let narrow = |number: i64| i8::try_from(number).unwrap_or(i8::MAX);
    (
        u8::try_from(precision).unwrap_or(DECIMAL256_MAX_PRECISION),
        narrow(wanted),
    )
}

/// The decimals of an array as ones of type `to`, with the digits that `places` says for each row.
///
/// # Errors
/// If one does not fit the type.
pub(crate) fn rounded(
    values: &ArrayRef,
    places: Option<&ArrayRef>,
    way: Way,
    to: &DataType,
) -> Result<ArrayRef> {
    let places = places
        .map(|places| cast(places, &DataType::Int64))
        .transpose()?;
    let places = places.as_ref().map(|all| all.as_primitive::<Int64Type>());
    let of = |row: usize| match places {
        None => Some(0),
        Some(all) => all.is_valid(row).then(|| all.value(row)),
    };
    match (values.data_type(), to) {
        (DataType::Decimal128(_, from), DataType::Decimal128(precision, scale)) => {
            let values = values.as_primitive::<Decimal128Type>();
            all(values, *from, (*precision, *scale), of, way)
        }
        (DataType::Decimal256(_, from), DataType::Decimal256(precision, scale)) => {
            let values = values.as_primitive::<Decimal256Type>();
            all(values, *from, (*precision, *scale), of, way)
        }
        (from, to) => internal_err!("{from} rounded to {to}"),
    }
}

fn all<T: DecimalType>(
    values: &PrimitiveArray<T>,
    from: i8,
    (precision, scale): (u8, i8),
    places: impl Fn(usize) -> Option<i64>,
    way: Way,
) -> Result<ArrayRef> {
    let one = |row: usize| -> Result<Option<T::Native>> {
        let (true, Some(places)) = (values.is_valid(row), places(row)) else {
            return Ok(None);
        };
        let found = one(values.value(row), from.into(), scale.into(), places, way);
        let fits = |value: &T::Native| T::is_valid_decimal_precision(*value, precision);
        match found.filter(fits) {
            Some(found) => Ok(Some(found)),
            None => Err(Error::coded("22003", "value overflows numeric format").into()),
        }
    };
    let found = (0..values.len()).map(one);
    let found: PrimitiveArray<T> = found.collect::<Result<_>>()?;
    Ok(Arc::new(found.with_precision_and_scale(precision, scale)?))
}

/// A number of `from` digits behind the point, rounded to `places` digits, as one of `to` digits; `None` if it does not fit.
fn one<N: ArrowNativeTypeOp + ArrowNativeType>(
    value: N,
    from: i64,
    to: i64,
    places: i64,
    way: Way,
) -> Option<N> {
    let (whole, at) = if places >= from {
        (value, from)
    } else {
        let whole = match power::<N>(from.checked_sub(places)?) {
            Some(unit) => {
                let rest = value.mod_checked(unit).ok()?;
                value
                    .div_checked(unit)
                    .ok()?
                    .add_checked(carried(rest, unit, way)?)
                    .ok()?
            }
            // It has not so many digits.
            None => N::ZERO,
        };
        (whole, places)
    };
    if whole.is_zero() {
        return Some(N::ZERO);
    }
    whole.mul_checked(power::<N>(to.checked_sub(at)?)?).ok()
}

/// What is added to a quotient for its rest.
fn carried<N: ArrowNativeTypeOp>(rest: N, unit: N, way: Way) -> Option<N> {
    let up = match way {
        Way::Trunc => false,
        Way::Ceil => rest.is_gt(N::ZERO),
        Way::Floor => rest.is_lt(N::ZERO),
        Way::Round => {
            let size = if rest.is_lt(N::ZERO) {
                rest.neg_checked().ok()?
            } else {
                rest
            };
            size.is_ge(unit.sub_checked(size).ok()?)
        }
    };
    if !up {
        return Some(N::ZERO);
    }
    if rest.is_lt(N::ZERO) {
        N::ONE.neg_checked().ok()
    } else {
        Some(N::ONE)
    }
}

/// So many zeros behind a 1; `None` if that does not fit.
fn power<N: ArrowNativeTypeOp + ArrowNativeType>(zeros: i64) -> Option<N> {
    N::usize_as(10).pow_checked(u32::try_from(zeros).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_places() {
        for (value, from, places, ceil, floor, round, trunc) in [
            (1567_i128, 3, 1, 16, 15, 16, 15),
            (-1567, 3, 1, -15, -16, -16, -15),
            (5, 1, 0, 1, 0, 1, 0),
            (-5, 1, 0, 0, -1, -1, 0),
            (4, 1, 0, 1, 0, 0, 0),
            (155, 1, -1, 20, 10, 20, 10),
            (15, 1, 3, 1500, 1500, 1500, 1500),
            (20, 1, 0, 2, 2, 2, 2),
        ] {
            let to = places.max(0);
            for (way, wanted) in [
                (Way::Ceil, ceil),
                (Way::Floor, floor),
                (Way::Round, round),
                (Way::Trunc, trunc),
            ] {
                let found = one(value, from, to, places, way);
                assert_eq!(found, Some(wanted), "{value} {from} {places} {way:?}");
            }
        }
        assert_eq!(one(15_i128, 1, 0, -1_000, Way::Round), Some(0));
        assert_eq!(one(15_i128, 1, 0, i64::MIN, Way::Trunc), None);
    }

    #[test]
    fn results_have_the_digits_asked_for() {
        use DataType::{Decimal128, Decimal256, Int64};
        for (own, places, wanted) in [
            (Decimal128(5, 3), Some(0), Some(Decimal128(3, 0))),
            (Decimal128(5, 3), Some(1), Some(Decimal128(4, 1))),
            (Decimal128(5, 3), Some(-4), Some(Decimal128(3, 0))),
            (Decimal128(5, 3), Some(5), Some(Decimal128(7, 5))),
            (Decimal128(5, 3), None, Some(Decimal128(6, 3))),
            (Decimal128(1, 1), Some(0), Some(Decimal128(1, 0))),
            (Decimal128(38, 10), Some(30), Some(Decimal128(38, 10))),
            (Decimal128(38, 0), Some(0), Some(Decimal128(38, 0))),
            (Decimal256(76, 10), Some(2), Some(Decimal256(69, 2))),
            (Int64, Some(0), None),
        ] {
            assert_eq!(result(&own, places), wanted, "{own} {places:?}");
        }
    }
}
