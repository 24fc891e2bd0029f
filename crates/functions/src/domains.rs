//! Functions of numbers that fail outside of their domain, as PostgreSQL's do: DataFusion's give NaN or an infinity.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, PrimitiveArray};
use arrow::array::{
    ArrayRef, AsArray, Decimal128Array, Decimal256Array, Float64Array, Int32Array, Int64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, DecimalType, Float64Type,
    Int32Type, Int64Type, i256,
};
use datafusion_common::DataFusionError;
use datafusion_common::{Result, plan_err};
use datafusion_expr::ScalarUDF;
use messages::Error;
use table::NotFinite;

use crate::arguments::is_text;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    let mut all = vec![
        one("acos", |args, _| {
            each(args, |x| within(x, x.abs() <= 1.0, x.acos()))
        }),
        one("acosh", |args, _| {
            each(args, |x| within(x, x >= 1.0, x.acosh()))
        }),
        one("asin", |args, _| {
            each(args, |x| within(x, x.abs() <= 1.0, x.asin()))
        }),
        one("atanh", |args, _| {
            each(args, |x| within(x, x.abs() <= 1.0, x.atanh()))
        }),
        one("cos", |args, _| {
            each(args, |x| within(x, x.is_finite(), x.cos()))
        }),
        one("cot", |args, _| {
            each(args, |x| within(x, x.is_finite(), 1.0 / x.tan()))
        }),
        one("exp", |args, _| each(args, exp)),
        one("ln", |args, _| each(args, |x| logarithm(x).map(f64::ln))),
        one("log10", |args, _| {
            each(args, |x| logarithm(x).map(f64::log10))
        }),
        one("sin", |args, _| {
            each(args, |x| within(x, x.is_finite(), x.sin()))
        }),
        one("sqrt", |args, _| each(args, root)),
        one("tan", |args, _| {
            each(args, |x| within(x, x.is_finite(), x.tan()))
        }),
    ];
    all.push(own_power());
    all.push(Own::new("log", one_or_two, |_| Ok(DataType::Float64), log));
    all.push(Own::new(
        "gcd",
        whole,
        |types| Ok(types[0].clone()),
        |args, rows| multiples("gcd", args, rows),
    ));
    all.push(Own::new(
        "lcm",
        whole,
        |types| Ok(types[0].clone()),
        |args, rows| multiples("lcm", args, rows),
    ));
    all
}

/// A function of one double.
fn one(name: &'static str, run: fn(&[ArrayRef], usize) -> Result<ArrayRef>) -> Own {
    Own::new(name, one_number, |_| Ok(DataType::Float64), run)
}

fn is_number(ty: &DataType) -> bool {
    ty.is_numeric() || is_text(ty)
}

fn one_number(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_number(ty) => Ok(vec![DataType::Float64]),
        _ => plan_err!("the function takes one number"),
    }
}

fn one_or_two(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_] | [_, _] if types.iter().all(is_number) => Ok(vec![DataType::Float64; types.len()]),
        _ => plan_err!("log takes a number, or a base and a number"),
    }
}

fn refused(code: &'static str, message: &str) -> DataFusionError {
    Error::Arithmetic {
        code,
        message: message.into(),
    }
    .into()
}

fn each(args: &[ArrayRef], of: impl Fn(f64) -> Result<f64>) -> Result<ArrayRef> {
    let numbers = args[0].as_primitive::<Float64Type>();
    let found = numbers.iter().map(|number| number.map(&of).transpose());
    Ok(Arc::new(found.collect::<Result<Float64Array>>()?))
}

/// `value` if the argument is within the domain, or is not a number.
fn within(argument: f64, is_within: bool, value: f64) -> Result<f64> {
    if is_within || argument.is_nan() {
        Ok(value)
    } else {
        Err(refused("22003", "input is out of range"))
    }
}

fn exp(x: f64) -> Result<f64> {
    let value = x.exp();
    if x.is_finite() && value.is_infinite() {
        return Err(refused("22003", "value out of range: overflow"));
    }
    if x.is_finite() && value == 0.0 {
        return Err(refused("22003", "value out of range: underflow"));
    }
    Ok(value)
}

/// The argument of a logarithm, if it has one.
fn logarithm(x: f64) -> Result<f64> {
    if x == 0.0 {
        Err(refused("2201E", "cannot take logarithm of zero"))
    } else if x < 0.0 {
        Err(refused(
            "2201E",
            "cannot take logarithm of a negative number",
        ))
    } else {
        Ok(x)
    }
}

fn root(x: f64) -> Result<f64> {
    if x < 0.0 {
        Err(refused(
            "2201F",
            "cannot take square root of a negative number",
        ))
    } else {
        Ok(x.sqrt())
    }
}

fn own_power() -> Own {
    let two = |types: &[DataType]| match types {
        [_, _] if types.iter().all(is_number) => Ok(vec![DataType::Float64; 2]),
        _ => plan_err!("power takes two numbers"),
    };
    Own::new("power", two, |_| Ok(DataType::Float64), powers).or("pow")
}

/// The function `power`, which `^` becomes.
pub fn power() -> Arc<ScalarUDF> {
    static POWER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(own_power().into()));
    Arc::clone(&POWER)
}

fn powers(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let [bases, exponents] = [&args[0], &args[1]].map(|arg| arg.as_primitive::<Float64Type>());
    let of = |row: usize| {
        let valid = bases.is_valid(row) && exponents.is_valid(row);
        let values = valid.then(|| (bases.value(row), exponents.value(row)));
        values
            .map(|(base, exponent)| raised(base, exponent))
            .transpose()
    };
    let found = (0..rows).map(of).collect::<Result<Float64Array>>()?;
    Ok(Arc::new(found))
}

/// `base` to the power of `exponent`.
fn raised(base: f64, exponent: f64) -> Result<f64> {
    if base == 0.0 && exponent < 0.0 {
        let message = "zero raised to a negative power is undefined";
        return Err(refused("2201F", message));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(refused("2201F", message));
    }
    let value = base.powf(exponent);
    if base.is_finite() && exponent.is_finite() {
        if value.is_infinite() {
            return Err(refused("22003", "value out of range: overflow"));
        }
        if value == 0.0 && base != 0.0 {
            return Err(refused("22003", "value out of range: underflow"));
        }
    }
    Ok(value)
}

/// The logarithm to the base ten, or to a base.
fn log(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let [bases, numbers] = args else {
        return each(args, |x| logarithm(x).map(f64::log10));
    };
    let (bases, numbers) = (
        bases.as_primitive::<Float64Type>(),
        numbers.as_primitive::<Float64Type>(),
    );
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if bases.is_null(row) || numbers.is_null(row) {
            found.push(None);
            continue;
        }
        let (base, number) = (logarithm(bases.value(row))?, logarithm(numbers.value(row))?);
        if base == 1.0 {
            return Err(refused("22012", "division by zero"));
        }
        // Two and ten have logarithms of their own, which are exact.
        found.push(Some(if base == 10.0 {
            number.log10()
        } else if base == 2.0 {
            number.log2()
        } else {
            number.ln() / base.ln()
        }));
    }
    Ok(Arc::new(Float64Array::from(found)))
}

/// Two whole numbers of one type, or two decimals with the same places.
fn whole(types: &[DataType]) -> Result<Vec<DataType>> {
    use DataType::{Decimal128, Decimal256, Int8, Int16, Int32, Int64, Null, Utf8, Utf8View};
    let [left, right] = types else {
        return plan_err!("gcd and lcm take two numbers");
    };
    let places = |ty: &DataType| match ty {
        Decimal128(_, places) | Decimal256(_, places) => Some(*places),
        ty if ty.is_integer() => Some(0),
        _ => None,
    };
    let own = match (left, right) {
        (Int8 | Int16 | Int32, Int8 | Int16 | Int32 | Null | Utf8 | Utf8View)
        | (Null | Utf8 | Utf8View, Int8 | Int16 | Int32)
        | (Null, Null) => Int32,
        (left, right) if is_text(left) || is_text(right) => {
            let known = if is_text(left) { right } else { left };
            match known {
                Decimal128(..) => known.clone(),
                Decimal256(_, places) => Decimal256(DECIMAL256_MAX_PRECISION, *places),
                known if known.is_integer() => Int64,
                _ => return plan_err!("gcd and lcm take whole numbers and decimals"),
            }
        }
        (left, right) if left.is_integer() && right.is_integer() => Int64,
        (left, right) => match (places(left), places(right)) {
            (Some(l), Some(r)) if [left, right].iter().any(|ty| matches!(ty, Decimal256(..))) => {
                Decimal256(DECIMAL256_MAX_PRECISION, l.max(r))
            }
            (Some(left), Some(right)) => Decimal128(38, left.max(right)),
            _ => return plan_err!("gcd and lcm take whole numbers and decimals"),
        },
    };
    Ok(vec![own; 2])
}

/// The greatest common divisor, or the least common multiple.
fn multiples(name: &str, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = args[0].data_type().clone();
    if matches!(own, DataType::Decimal256(..)) {
        return wide_multiples(name, args, rows);
    }
    let (scale, most, out_of_range) = match own {
        DataType::Int32 => (0, i128::from(i32::MAX), "integer out of range"),
        DataType::Int64 => (0, i128::from(i64::MAX), "bigint out of range"),
        DataType::Decimal128(_, scale) => {
            (scale, 10i128.pow(38) - 1, "value overflows numeric format")
        }
        _ => return plan_err!("gcd and lcm take whole numbers and decimals"),
    };
    let numbers = |arg: &ArrayRef| -> Result<PrimitiveArray<Decimal128Type>> {
        let wide = cast(arg, &DataType::Decimal128(38, scale))?;
        Ok(wide.as_primitive::<Decimal128Type>().clone())
    };
    let (left, right) = (numbers(&args[0])?, numbers(&args[1])?);
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if left.is_null(row) || right.is_null(row) {
            found.push(None);
            continue;
        }
        let (a, b) = (left.value(row).abs(), right.value(row).abs());
        let divisor = divisor(a, b);
        let value = match (name, divisor) {
            ("gcd", divisor) => Some(divisor),
            (_, 0) => Some(0),
            (_, divisor) => (a / divisor).checked_mul(b),
        };
        match value.filter(|value| *value <= most) {
            Some(value) => found.push(Some(value)),
            None => return Err(refused("22003", out_of_range)),
        }
    }
    let found = Decimal128Array::from(found).with_precision_and_scale(38, scale)?;
    Ok(match own {
        DataType::Int32 => Arc::new(narrowed::<Int32Type>(&found).collect::<Int32Array>()),
        DataType::Int64 => Arc::new(narrowed::<Int64Type>(&found).collect::<Int64Array>()),
        _ => Arc::new(found),
    })
}

/// The same of decimals of more than 38 digits, which may be no numbers: then there is no divisor.
fn wide_multiples(name: &str, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let [left, right] = [&args[0], &args[1]].map(|arg| arg.as_primitive::<Decimal256Type>());
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if left.is_null(row) || right.is_null(row) {
            found.push(None);
            continue;
        }
        let both = [left.value(row), right.value(row)];
        if both.map(NotFinite::of) != [None, None] {
            found.push(Some(NotFinite::NaN.value()));
            continue;
        }
        let [a, b] = both.map(i256::wrapping_abs);
        let (mut divisor, mut rest) = (a, b);
        while rest != i256::ZERO {
            (divisor, rest) = (rest, divisor.wrapping_rem(rest));
        }
        found.push(Some(match name {
            "gcd" => divisor,
            _ if divisor == i256::ZERO => i256::ZERO,
            _ => {
                let product = a.wrapping_div(divisor).checked_mul(b);
                match product.filter(|value| {
                    Decimal256Type::is_valid_decimal_precision(*value, DECIMAL256_MAX_PRECISION)
                }) {
                    Some(product) => product,
                    None => return Err(refused("22003", "value overflows numeric format")),
                }
            }
        }));
    }
    let found = Decimal256Array::from(found).with_data_type(left.data_type().clone());
    Ok(Arc::new(found))
}

/// Values that are known to fit.
fn narrowed<T: arrow::datatypes::ArrowPrimitiveType>(
    wide: &Decimal128Array,
) -> impl Iterator<Item = Option<T::Native>>
where
    T::Native: TryFrom<i128>,
{
    wide.iter()
        .map(|value| value.and_then(|value| T::Native::try_from(value).ok()))
}

fn divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_of_the_domain_is_an_error() {
        assert!(logarithm(0.0).is_err() && logarithm(-1.0).is_err() && root(-1.0).is_err());
        assert!(logarithm(f64::NAN).unwrap().is_nan());
        assert!(exp(1000.0).is_err() && exp(-1000.0).is_err());
        assert_eq!(exp(f64::NEG_INFINITY).unwrap(), 0.0);
        assert!(within(2.0, false, 0.0).is_err());
        assert_eq!(divisor(12, 18), 6);
        assert_eq!(divisor(0, 0), 0);
    }

    #[test]
    fn multiples_stay_within_their_type() {
        let of = |a: i32, b: i32, name: &str| {
            let args: Vec<ArrayRef> = vec![
                Arc::new(Int32Array::from(vec![a])),
                Arc::new(Int32Array::from(vec![b])),
            ];
            let found = multiples(name, &args, 1).ok()?;
            Some(found.as_primitive::<Int32Type>().value(0))
        };
        assert_eq!(of(330, 462, "gcd"), Some(66));
        assert_eq!(of(330, -462, "lcm"), Some(2310));
        assert_eq!(of(i32::MIN, 0, "gcd"), None);
        assert_eq!(of(i32::MIN, 6, "gcd"), Some(2));
        assert_eq!(of(i32::MAX, i32::MAX - 1, "lcm"), None);
    }
}
