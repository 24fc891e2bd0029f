//! Functions of numbers, and of how many arguments there are.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal256Array, Float64Array, Int32Array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Float64Type, Int32Type,
    Int64Type, i256,
};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use table::{NotFinite, infinity_at};

use crate::arguments::is_text;
use crate::decimals;
use crate::decimals::arithmetic::{Given, Operation};
use crate::lists::names::SHARE;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new("div", two_numbers, quotient_type, div),
        Own::new(
            "factorial",
            one_integer,
            |_| Ok(DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0)),
            factorial,
        ),
        Own::new(
            "scale",
            |types| one_decimal("scale", types),
            |_| Ok(DataType::Int32),
            scale,
        ),
        Own::new(
            "min_scale",
            |types| one_decimal("min_scale", types),
            |_| Ok(DataType::Int32),
            min_scale,
        ),
        Own::new(
            "width_bucket",
            bucket_types,
            |_| Ok(DataType::Int32),
            bucket,
        ),
        Own::new(
            "num_nulls",
            any,
            |_| Ok(DataType::Int32),
            |args, rows| Ok(counted(args, rows, true)),
        ),
        Own::new(
            "num_nonnulls",
            any,
            |_| Ok(DataType::Int32),
            |args, rows| Ok(counted(args, rows, false)),
        ),
        Own::new("isfinite", moment, |_| Ok(DataType::Boolean), finite),
        Own::new(SHARE, percentage, |_| Ok(DataType::Float64), share),
    ]
}

fn percentage(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] if number.is_numeric() || number.is_null() => Ok(vec![DataType::Float64]),
        _ => plan_err!("`tablesample` takes a number, the percentage"),
    }
}

/// Which share of the rows a percentage is.
fn share(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let refused = |message: &str| Err(Error::coded("2202H", message).into());
    let shares = args[0].as_primitive::<Float64Type>().iter();
    let shares = shares.map(|percentage| match percentage {
        None => refused("TABLESAMPLE parameter cannot be null"),
        Some(percentage) if (0.0..=100.0).contains(&percentage) => Ok(percentage / 100.0),
        Some(_) => refused("sample percentage must be between 0 and 100"),
    });
    Ok(Arc::new(shares.collect::<Result<Float64Array>>()?))
}

/// The type of whole numbers of any length.
const WHOLE: DataType = DataType::Decimal128(38, 0);

/// The type of decimals that are compared with each other: of these places.
fn decimal(places: i8) -> DataType {
    DataType::Decimal128(38, places)
}

/// The places of a number behind the point; `None` of types that are not exact.
fn places(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal128(_, places) | DataType::Decimal256(_, places) => Some(*places),
        DataType::Null => Some(0),
        whole if whole.is_integer() => Some(0),
        _ => None,
    }
}

/// Numbers as decimals with the places of the one that has most.
fn alike(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let all: Option<Vec<i8>> = types.iter().map(places).collect();
    let is_wide = types.iter().any(is_wide);
    match all.and_then(|all| all.into_iter().max()) {
        Some(most) if is_wide => {
            let wide = DataType::Decimal256(DECIMAL256_MAX_PRECISION, most);
            Ok(vec![wide; types.len()])
        }
        Some(most) => Ok(vec![decimal(most); types.len()]),
        None => plan_err!("{name} takes whole numbers and decimals"),
    }
}

fn two_numbers(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [left, right] => alike("div", &[beside(left, right), beside(right, left)]),
        _ => plan_err!("div takes two numbers"),
    }
}

/// The type as which a number is taken that stands beside others: a text is read as a decimal.
fn beside(own: &DataType, other: &DataType) -> DataType {
    match other {
        DataType::Decimal256(..) if is_quoted(own) => {
            let (precision, scale) = decimals::DIGITS;
            DataType::Decimal256(precision, scale)
        }
        other if is_quoted(own) && places(other).is_some() => decimal(10),
        _ => own.clone(),
    }
}

fn is_quoted(data_type: &DataType) -> bool {
    is_text(data_type) && !data_type.is_null()
}

/// Whether numbers of this type may have more than 38 digits.
fn is_wide(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal256(..))
}

/// Decimals with the most digits that there are.
fn widest(numbers: &ArrayRef) -> Result<Decimal256Array> {
    let places = places(numbers.data_type()).unwrap_or(0);
    let wide = cast(
        numbers,
        &DataType::Decimal256(DECIMAL256_MAX_PRECISION, places),
    )?;
    Ok(wide.as_primitive::<Decimal256Type>().clone())
}

fn quotient_type(types: &[DataType]) -> Result<DataType> {
    Ok(if types.iter().any(is_wide) {
        DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0)
    } else {
        WHOLE
    })
}

/// The quotient without what is behind the point.
fn div(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (left, right) = (widest(&args[0])?, widest(&args[1])?);
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(match (left.is_null(row), right.is_null(row)) {
            (false, false) => Some(quotient(left.value(row), right.value(row))?),
            _ => None,
        });
    }
    let found = Decimal256Array::from(found);
    Ok(Arc::new(
        found.with_precision_and_scale(DECIMAL256_MAX_PRECISION, 0)?,
    ))
}

fn quotient(left: i256, right: i256) -> Result<i256> {
    if [left, right].map(NotFinite::of) != [None, None] {
        return Ok(match Operation::By.of(left, right)? {
            Given::NotFinite(own) => own.value(),
            // It is no whole one that is left here: only a rest is.
            Given::Zero | Given::Left => i256::ZERO,
        });
    }
    match left.checked_div(right) {
        Some(found) => Ok(found),
        None => exec_err!("division by zero"),
    }
}

fn one_integer(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if ty.is_integer() || ty.is_null() || is_text(ty) => Ok(vec![DataType::Int64]),
        _ => plan_err!("factorial takes one whole number"),
    }
}

/// The product of the whole numbers up to one.
fn factorial(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let numbers = args[0].as_primitive::<Int64Type>();
    let mut all = vec![i256::ONE];
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let number = match numbers.is_valid(row).then(|| numbers.value(row)) {
            None => {
                found.push(None);
                continue;
            }
            Some(number) if number < 0 => {
                let message = "factorial of a negative number is undefined";
                return Err(Error::coded("22003", message).into());
            }
            Some(number) => number,
        };
        // 57! has 77 digits.
        if number > 56 {
            return Err(Error::coded("22003", "value overflows numeric format").into());
        }
        while let (Some(last), true) = (all.last().copied(), all.len() <= number as usize) {
            all.push(last.wrapping_mul(i256::from_i128(all.len() as i128)));
        }
        found.push(Some(all[number as usize]));
    }
    let found = Decimal256Array::from(found);
    Ok(Arc::new(
        found.with_precision_and_scale(DECIMAL256_MAX_PRECISION, 0)?,
    ))
}

fn one_decimal(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_] => alike(name, types),
        _ => plan_err!("{name} takes one number"),
    }
}

/// The places behind the point that numbers of the type have.
fn scale(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let declared = places(args[0].data_type()).map_or(0, |places| i32::from(places.max(0)));
    let is_number = |row: usize| match args[0].as_primitive_opt::<Decimal256Type>() {
        Some(own) => NotFinite::of(own.value(row)).is_none(),
        None => true,
    };
    let of = |row: usize| (args[0].is_valid(row) && is_number(row)).then_some(declared);
    Ok(Arc::new((0..rows).map(of).collect::<Int32Array>()))
}

/// The places behind the point that a number needs.
fn min_scale(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let numbers = widest(&args[0])?;
    let declared = i32::from(numbers.scale().max(0));
    let ten = i256::from_i128(10);
    let needed = |mut number: i256| {
        let mut places = declared;
        while places > 0 && number.wrapping_rem(ten) == i256::ZERO {
            number = number.wrapping_div(ten);
            places -= 1;
        }
        places
    };
    let numbers = numbers.iter();
    let numbers = numbers.map(|value| value.filter(|value| NotFinite::of(*value).is_none()));
    let found: Int32Array = numbers.map(|number| number.map(needed)).collect();
    Ok(Arc::new(found))
}

/// Decimals if one argument is a decimal, and all are exact; else doubles, as PostgreSQL chooses.
fn bucket_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [bounds @ .., count] = types else {
        return plan_err!("width_bucket takes a number, two bounds and a count");
    };
    let numbers = |ty: &DataType| ty.is_numeric() || is_text(ty);
    let known = bounds.iter().any(DataType::is_numeric) || !bounds.iter().any(is_quoted);
    if bounds.len() != 3
        || !bounds.iter().all(numbers)
        || !known
        || !(count.is_integer() || count.is_null())
    {
        return plan_err!("width_bucket takes a number, two bounds and a count");
    }
    let decimals = bounds.iter().find(|ty| ty.is_decimal());
    let exact = |ty: &DataType| is_text(ty) || places(ty).is_some();
    let mut taken = match decimals {
        Some(own) if bounds.iter().all(exact) => {
            // A text may say NaN, which only wide decimals have.
            let text = bounds.iter().any(is_quoted);
            let wide = DataType::Decimal256(DECIMAL256_MAX_PRECISION, decimals::DIGITS.1);
            let own = if text { &wide } else { own };
            let all: Vec<DataType> = bounds.iter().map(|ty| beside(ty, own)).collect();
            alike("width_bucket", &all)?
        }
        _ => vec![DataType::Float64; 3],
    };
    taken.push(DataType::Int32);
    Ok(taken)
}

/// In which of `count` stretches of one width between the bounds a number lies, from 1 on; 0 before the first,
/// `count + 1` behind the last.
fn bucket(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let counts = args[3].as_primitive::<Int32Type>();
    let exact = args[0].data_type() != &DataType::Float64;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args.iter().any(|arg| arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let count = counts.value(row);
        if count <= 0 {
            return exec_err!("count must be greater than zero");
        }
        let of = if is_wide(args[0].data_type()) {
            let value = |at: usize| args[at].as_primitive::<Decimal256Type>().value(row);
            wide_bucket([value(0), value(1), value(2)], count)?
        } else if exact {
            let value = |at: usize| args[at].as_primitive::<Decimal128Type>().value(row);
            exact_bucket([value(0), value(1), value(2)], count)?
        } else {
            let value = |at: usize| args[at].as_primitive::<Float64Type>().value(row);
            float_bucket([value(0), value(1), value(2)], count)?
        };
        match i32::try_from(of) {
            Ok(of) => found.push(Some(of)),
            Err(_) => return exec_err!("width_bucket: integer out of range"),
        }
    }
    Ok(Arc::new(Int32Array::from(found)))
}

fn exact_bucket([number, low, high]: [i128; 3], count: i32) -> Result<i64> {
    let outside = i64::from(count) + 1;
    // Turned around where the bounds descend.
    let (from, width) = match low.cmp(&high) {
        std::cmp::Ordering::Equal => return exec_err!("lower bound cannot equal upper bound"),
        std::cmp::Ordering::Less => (number.checked_sub(low), high.checked_sub(low)),
        std::cmp::Ordering::Greater => (low.checked_sub(number), low.checked_sub(high)),
    };
    let (Some(from), Some(width)) = (from, width) else {
        return exec_err!("width_bucket: a bound is out of range");
    };
    if from < 0 {
        return Ok(0);
    }
    if from >= width {
        return Ok(outside);
    }
    match from.checked_mul(i128::from(count)) {
        Some(product) => Ok((product / width) as i64 + 1),
        None => exec_err!("width_bucket: a number is out of range"),
    }
}

/// The same of decimals of more than 38 digits.
fn wide_bucket([number, low, high]: [i256; 3], count: i32) -> Result<i64> {
    let all = [number, low, high].map(NotFinite::of);
    if all.contains(&Some(NotFinite::NaN)) {
        return exec_err!("operand, lower bound, and upper bound cannot be NaN");
    }
    if all[1].is_some() || all[2].is_some() {
        return exec_err!("lower and upper bounds must be finite");
    }
    let outside = i64::from(count) + 1;
    // Turned around where the bounds descend. None of these has more than 77 digits.
    let (before, behind) = match low.cmp(&high) {
        std::cmp::Ordering::Equal => return exec_err!("lower bound cannot equal upper bound"),
        std::cmp::Ordering::Less => (number < low, number >= high),
        std::cmp::Ordering::Greater => (number > low, number <= high),
    };
    if before {
        return Ok(0);
    }
    if behind {
        return Ok(outside);
    }
    let (from, width) = (number.wrapping_sub(low), high.wrapping_sub(low));
    let product = from.checked_mul(i256::from_i128(count.into()));
    match product.and_then(|product| product.checked_div(width)) {
        Some(place) => Ok(place.to_i128().map_or(outside, |place| place as i64 + 1)),
        None => exec_err!("width_bucket: a number is out of range"),
    }
}

fn float_bucket([number, low, high]: [f64; 3], count: i32) -> Result<i64> {
    if number.is_nan() || low.is_nan() || high.is_nan() {
        return exec_err!("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return exec_err!("lower and upper bounds must be finite");
    }
    let outside = i64::from(count) + 1;
    let share = if low < high {
        if number < low {
            return Ok(0);
        }
        if number >= high {
            return Ok(outside);
        }
        (number - low) / (high - low)
    } else if low > high {
        if number > low {
            return Ok(0);
        }
        if number <= high {
            return Ok(outside);
        }
        (low - number) / (low - high)
    } else {
        return exec_err!("lower bound cannot equal upper bound");
    };
    let place = (f64::from(count) * share) as i64;
    // The quotient may have been rounded to 1.
    Ok(place.min(i64::from(count) - 1) + 1)
}

fn any(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [] => plan_err!("the function takes at least one argument"),
        types => Ok(types.to_vec()),
    }
}

/// How many arguments are NULL, or are not.
fn counted(args: &[ArrayRef], rows: usize, nulls: bool) -> ArrayRef {
    let null = |array: &ArrayRef, row: usize| {
        array.data_type().is_null() || array.logical_nulls().is_some_and(|own| own.is_null(row))
    };
    let count = |row: usize| args.iter().filter(|arg| null(arg, row) == nulls).count() as i32;
    Arc::new((0..rows).map(count).collect::<Int32Array>())
}

fn moment(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Date32 | DataType::Timestamp(..) | DataType::Interval(_) | DataType::Null] => {
            Ok(types.to_vec())
        }
        _ => plan_err!("isfinite takes a date, a timestamp or an interval"),
    }
}

/// Of intervals none is infinite.
fn finite(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let nulls = args[0].logical_nulls();
    let found = (0..rows).map(|row| {
        let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (!null).then(|| infinity_at(&args[0], row).is_none())
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_buckets_are_those_of_others() {
        let of = |[number, low, high]: [i128; 3]| {
            let wide = [number, low, high].map(i256::from_i128);
            (
                wide_bucket(wide, 5).ok(),
                exact_bucket([number, low, high], 5).ok(),
            )
        };
        for all in [
            [5_350, 24, 10_060],
            [23, 24, 10_060],
            [10_060, 24, 10_060],
            [10_060, 10_060, 24],
            [24, 10_060, 24],
            [5_350, 10_060, 24],
            [1, 2, 2],
        ] {
            let (wide, narrow) = of(all);
            assert_eq!(wide, narrow, "{all:?}");
        }
        let (above, nan) = (NotFinite::Infinity.value(), NotFinite::NaN.value());
        assert_eq!(wide_bucket([above, i256::ONE, i256::ZERO], 5).unwrap(), 0);
        assert!(wide_bucket([i256::ONE, above, i256::ZERO], 5).is_err());
        assert!(wide_bucket([nan, i256::ONE, i256::ZERO], 5).is_err());
    }

    #[test]
    fn quotients_without_places_are_those_of_postgresql() {
        let (above, nan) = (NotFinite::Infinity.value(), NotFinite::NaN.value());
        assert_eq!(quotient(above, i256::MINUS_ONE).unwrap(), i256::MIN);
        assert_eq!(quotient(i256::ONE, above).unwrap(), i256::ZERO);
        assert_eq!(quotient(nan, i256::ZERO).unwrap(), nan);
        assert!(quotient(above, i256::ZERO).is_err());
        assert!(quotient(i256::ONE, i256::ZERO).is_err());
    }

    #[test]
    fn buckets_are_those_of_postgresql() {
        // Of 5.35 between 0.024 and 10.06, with three places.
        for (number, low, high, wanted) in [
            (5_350, 24, 10_060, 3),
            (23, 24, 10_060, 0),
            (24, 24, 10_060, 1),
            (10_060, 24, 10_060, 6),
            (10_060, 10_060, 24, 1),
            (24, 10_060, 24, 6),
            (5_350, 10_060, 24, 3),
        ] {
            assert_eq!(exact_bucket([number, low, high], 5).unwrap(), wanted);
            let float = [number, low, high].map(|of| of as f64);
            assert_eq!(float_bucket(float, 5).unwrap(), wanted);
        }
        assert!(exact_bucket([1, 2, 2], 5).is_err());
        assert!(float_bucket([1.0, f64::NAN, 2.0], 5).is_err());
    }
}
