//! How many digits quotients of decimals have.
//!
//! In PostgreSQL each quotient has digits of its own: at least 16 that say something. Here all of a column have the same, and so
//! many that nearly none of PostgreSQL's is left out. The last digit is rounded, half away from zero.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, Datum, Decimal128Array, Decimal256Array, PrimitiveArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, i256,
};
use arrow::error::ArrowError;
use datafusion_common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion_physical_expr_common::datum::apply;
use table::NotFinite;

use crate::decimals::arithmetic::{Operation, computed};

/// The name of the function that divides decimals, as plans show it.
pub const QUOTIENT: &str = "/";

/// The digits behind the point that a quotient has at least: as many as PostgreSQL's from 0.0001 on.
const PLACES: i8 = 20;

/// Most digits behind the point of a result.
const MOST_PLACES: i8 = 60;

static BY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(Quotient {
        signature: Signature::any(2, Volatility::Immutable),
    }))
});

/// The digits of a type of exact numbers, all and behind the point; whether it is a decimal.
pub(super) fn digits(ty: &DataType) -> Option<(u8, i8, bool)> {
    Some(match ty {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => (*precision, *scale, true),
        DataType::Int8 | DataType::UInt8 => (3, 0, false),
        DataType::Int16 | DataType::UInt16 => (5, 0, false),
        DataType::Int32 | DataType::UInt32 => (10, 0, false),
        DataType::Int64 => (19, 0, false),
        DataType::UInt64 => (20, 0, false),
        _ => return None,
    })
}

/// The type of decimals that numbers of an exact type are.
fn as_decimal(ty: &DataType) -> Option<DataType> {
    let (precision, scale, _) = digits(ty)?;
    Some(match ty {
        DataType::Decimal128(..) | DataType::Decimal256(..) => ty.clone(),
        _ => DataType::Decimal128(precision, scale),
    })
}

/// The quotient of two exact numbers of which one is a decimal; `None` of others.
///
/// # Errors
/// If a constant cannot be computed.
pub(crate) fn quotient(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(None);
    };
    let (Some((_, _, first)), Some((_, _, second))) = (digits(&l), digits(&r)) else {
        return Ok(None);
    };
    if !first && !second {
        return Ok(None);
    }
    if let (Some(left), Some(right)) = (Number::of(left)?, Number::of(right)?)
        && let Some(found) = left.by(&right)
    {
        return Ok(Some(found.literal()));
    }
    let decimal = |side: &Expr, own: &DataType| match as_decimal(own) {
        Some(to) if to != *own => Expr::Cast(Cast::new(Box::new(side.clone()), to)),
        _ => side.clone(),
    };
    Ok(Some(BY.call(vec![decimal(left, &l), decimal(right, &r)])))
}

/// The type of quotients of decimals.
fn type_of(left: &DataType, right: &DataType) -> Option<DataType> {
    let (_, own, _) = digits(left)?;
    let (_, other, _) = digits(right)?;
    let scale = PLACES.max(own).max(other);
    Some(match (left, right) {
        (DataType::Decimal128(..), DataType::Decimal128(..)) if scale == PLACES => {
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale)
        }
        _ => DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale.min(MOST_PLACES)),
    })
}

/// The function of quotients, of two decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &str {
        QUOTIENT
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let found = match types {
            [left, right] => type_of(left, right),
            _ => None,
        };
        match found {
            Some(found) => Ok(found),
            None => internal_err!("a quotient is one of two decimals"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type();
        let [left, right] = args.args.as_slice() else {
            return internal_err!("a quotient is one of two decimals");
        };
        apply(left, right, |left, right| match to {
            DataType::Decimal256(..) => {
                let [left, right] = [wide(left)?, wide(right)?];
                computed(Operation::By, &left, &right, |left, right| {
                    divided(left, right, to)
                })
            }
            _ => divided(left, right, to),
        })
    }
}

/// A side as decimals of up to 76 digits.
struct Wide {
    values: ArrayRef,
    is_one: bool,
}

impl Datum for Wide {
    fn get(&self) -> (&dyn Array, bool) {
        (self.values.as_ref(), self.is_one)
    }
}

fn wide(side: &dyn Datum) -> Result<Wide, ArrowError> {
    let (values, is_one) = side.get();
    let to = match values.data_type() {
        DataType::Decimal128(_, scale) => DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale),
        own => own.clone(),
    };
    Ok(Wide {
        values: cast(values, &to)?,
        is_one,
    })
}

/// A side of a quotient, whose value of a row is that of its only one if it has one.
struct Side {
    values: Decimal256Array,
    narrow: Option<Decimal128Array>,
    is_one: bool,
    scale: i32,
}

impl Side {
    fn of(side: &dyn Datum) -> Result<Side, ArrowError> {
        let (values, is_one) = side.get();
        let scale = match values.data_type() {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => i32::from(*scale),
            other => {
                return Err(ArrowError::ComputeError(format!(
                    "a quotient is one of decimals, not of {other}"
                )));
            }
        };
        let narrow = values.as_primitive_opt().cloned();
        let values = match &narrow {
            Some(_) => PrimitiveArray::<Decimal256Type>::from(Vec::<i256>::new()),
            None => values.as_primitive::<Decimal256Type>().clone(),
        };
        Ok(Side {
            values,
            narrow,
            is_one,
            scale,
        })
    }

    fn len(&self) -> usize {
        let narrow = self.narrow.as_ref().map(Array::len);
        narrow.unwrap_or(self.values.len())
    }

    fn value(&self, row: usize) -> Option<Unscaled> {
        let at = if self.is_one { 0 } else { row };
        match &self.narrow {
            Some(own) => own.is_valid(at).then(|| Unscaled::Narrow(own.value(at))),
            None => (self.values.is_valid(at)).then(|| Unscaled::Wide(self.values.value(at))),
        }
    }
}

/// The digits of a decimal as a whole number.
#[derive(Clone, Copy)]
enum Unscaled {
    Narrow(i128),
    Wide(i256),
}

impl Unscaled {
    fn wide(self) -> i256 {
        match self {
            Unscaled::Narrow(value) => i256::from_i128(value),
            Unscaled::Wide(value) => value,
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Unscaled::Narrow(value) => value == 0,
            Unscaled::Wide(value) => value == i256::ZERO,
        }
    }
}

fn divided(left: &dyn Datum, right: &dyn Datum, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let (left, right) = (Side::of(left)?, Side::of(right)?);
    let rows = if left.is_one { right.len() } else { left.len() };
    let (precision, scale) = match to {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            (*precision, i32::from(*scale))
        }
        other => {
            return Err(ArrowError::ComputeError(format!(
                "a quotient is a decimal, not {other}"
            )));
        }
    };
    // The digits by which the left side is moved before it is divided.
    let shift = scale + right.scale - left.scale;
    let one = |row: usize| -> Result<Option<i256>, ArrowError> {
        let (Some(left), Some(right)) = (left.value(row), right.value(row)) else {
            return Ok(None);
        };
        if right.is_zero() {
            return Err(ArrowError::DivideByZero);
        }
        let found = match (left, right) {
            (Unscaled::Narrow(left), Unscaled::Narrow(right)) => {
                quick(left, right, shift).map(i256::from_i128)
            }
            _ => None,
        };
        let found = found.or_else(|| by_digits(left.wide(), right.wide(), shift));
        match found.filter(|value| has_digits(*value, precision)) {
            Some(value) => Ok(Some(value)),
            None => Err(ArrowError::ArithmeticOverflow(format!(
                "the result of / has more than {precision} digits"
            ))),
        }
    };
    let found = (0..rows).map(one);
    Ok(match to {
        DataType::Decimal128(..) => {
            let narrow = found.map(|value| Ok(value?.and_then(i256::to_i128)));
            let narrow = narrow.collect::<Result<Decimal128Array, ArrowError>>()?;
            Arc::new(narrow.with_data_type(to.clone()))
        }
        _ => {
            let wide = found.collect::<Result<Decimal256Array, ArrowError>>()?;
            Arc::new(wide.with_data_type(to.clone()))
        }
    })
}

/// Whether a number has at most so many digits.
pub(crate) fn has_digits(value: i256, precision: u8) -> bool {
    let most = i256::from_i128(10).checked_pow(u32::from(precision));
    let own = value.checked_abs();
    matches!((own, most), (Some(own), Some(most)) if own < most)
}

/// The quotient of numbers for which 128 bits are enough, of which the left one is moved by so many digits.
pub(crate) fn quick(left: i128, right: i128, shift: i32) -> Option<i128> {
    let factor = 10i128.checked_pow(u32::try_from(shift).ok()?)?;
    let left = left.checked_mul(factor)?;
    let (whole, rest) = (left.checked_div(right)?, left.checked_rem(right)?);
    let is_up = rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs();
    match (is_up, (left < 0) == (right < 0)) {
        (false, _) => Some(whole),
        (true, true) => whole.checked_add(1),
        (true, false) => whole.checked_sub(1),
    }
}

/// The same of any numbers, digit by digit; `None` if it has too many.
pub(crate) fn by_digits(left: i256, right: i256, shift: i32) -> Option<i256> {
    let ten = i256::from_i128(10);
    let is_negative = left.is_negative() != right.is_negative();
    let (left, mut right) = (left.checked_abs()?, right.checked_abs()?);
    if shift < 0 {
        right = right.checked_mul(ten.checked_pow(shift.unsigned_abs())?)?;
    }
    let (mut whole, mut rest) = (left.checked_div(right)?, left.checked_rem(right)?);
    for _ in 0..shift.max(0) {
        let more = rest.checked_mul(ten)?;
        whole = whole
            .checked_mul(ten)?
            .checked_add(more.checked_div(right)?)?;
        rest = more.checked_rem(right)?;
    }
    if rest >= right.checked_sub(rest)? {
        whole = whole.checked_add(i256::ONE)?;
    }
    if is_negative {
        whole.checked_neg()
    } else {
        Some(whole)
    }
}

/// A constant number that is exact.
struct Number {
    value: i256,
    scale: i8,
}

impl Number {
    /// The number that an expression is, if it is a constant.
    fn of(expr: &Expr) -> Result<Option<Number>> {
        match constant(expr)? {
            Some(ScalarValue::Decimal128(Some(value), _, scale)) => Ok(Some(Number {
                value: i256::from_i128(value),
                scale,
            })),
            Some(ScalarValue::Decimal256(Some(value), _, scale)) => {
                let is_number = NotFinite::of(value).is_none();
                Ok(is_number.then_some(Number { value, scale }))
            }
            Some(value) if value.data_type().is_integer() && !value.is_null() => {
                let value = i256::from_string(&value.to_string());
                Ok(value.map(|value| Number { value, scale: 0 }))
            }
            _ => Ok(None),
        }
    }

    /// How PostgreSQL counts a number in steps of four digits: the place of its first step, and that.
    fn first(&self) -> (i32, u32) {
        let digits = self.value.checked_abs().unwrap_or(i256::MAX).to_string();
        if self.value == i256::ZERO {
            return (0, 0);
        }
        let highest = digits.len() as i32 - i32::from(self.scale) - 1;
        let place = highest.div_euclid(4);
        let length = (highest.rem_euclid(4) + 1) as usize;
        let step: String = digits.chars().chain("000".chars()).take(length).collect();
        (place, step.parse().unwrap_or(0))
    }

    /// The quotient with the digits that PostgreSQL gives it; `None` if it has too many, or none.
    fn by(&self, other: &Number) -> Option<Number> {
        if other.value == i256::ZERO || self.scale < 0 || other.scale < 0 {
            return None;
        }
        let ((place, step), (others, of_other)) = (self.first(), other.first());
        let weight = place - others - i32::from(step <= of_other);
        let wanted = (16 - weight * 4).max(0);
        let scale = wanted
            .max(self.scale.into())
            .max(other.scale.into())
            .min(MOST_PLACES.into());
        let shift = scale + i32::from(other.scale) - i32::from(self.scale);
        let value = by_digits(self.value, other.value, shift)?;
        let scale = i8::try_from(scale).ok()?;
        has_digits(value, DECIMAL256_MAX_PRECISION).then_some(Number { value, scale })
    }

    fn literal(&self) -> Expr {
        let digits = self.value.checked_abs().unwrap_or(i256::MAX).to_string();
        let precision = digits.len().max(self.scale.unsigned_abs().into());
        let precision = u8::try_from(precision).unwrap_or(DECIMAL256_MAX_PRECISION);
        let value = match self.value.to_i128() {
            Some(value) if precision <= DECIMAL128_MAX_PRECISION => {
                ScalarValue::Decimal128(Some(value), precision, self.scale)
            }
            _ => ScalarValue::Decimal256(
                Some(self.value),
                precision.min(DECIMAL256_MAX_PRECISION),
                self.scale,
            ),
        };
        Expr::Literal(value, None)
    }
}

/// The value of a constant: a literal, its sign, and casts of exact numbers to decimals.
fn constant(expr: &Expr) -> Result<Option<ScalarValue>> {
    match expr {
        Expr::Literal(value, _) => Ok(Some(value.clone())),
        Expr::Alias(alias) => constant(&alias.expr),
        Expr::Negative(inner) => match constant(inner)? {
            Some(value) if digits(&value.data_type()).is_some() => {
                Ok(value.arithmetic_negate().ok())
            }
            _ => Ok(None),
        },
        Expr::Cast(cast) if cast.field.data_type().is_decimal() => match constant(&cast.expr)? {
            Some(value) if digits(&value.data_type()).is_some() => {
                Ok(value.cast_to(cast.field.data_type()).ok())
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        let scale = text.split_once('.').map_or(0, |(_, behind)| behind.len());
        Number {
            value: i256::from_string(&text.replace('.', "")).unwrap(),
            scale: scale as i8,
        }
    }

    fn text(number: &Number) -> String {
        table::decimal_text(number.value, DECIMAL256_MAX_PRECISION, number.scale)
    }

    #[test]
    fn constants_have_the_digits_of_postgresql() {
        for (left, right, wanted) in [
            ("2", "3.0", "0.66666666666666666667"),
            ("10", "3.0", "3.3333333333333333"),
            ("1.00", "10000000", "0.000000100000000000000000"),
            ("7.0", "2", "3.5000000000000000"),
            ("100000.00", "0.03", "3333333.333333333333"),
            ("12345678901234567890", "7.0", "1763668414462081127.1"),
            ("-1.0", "3", "-0.33333333333333333333"),
            ("0.0", "3", "0.00000000000000000000"),
            ("0.000001", "3", "0.000000333333333333333333"),
            ("123456.78", "9", "13717.420000000000"),
        ] {
            let found = number(left).by(&number(right)).unwrap();
            assert_eq!(text(&found), wanted, "{left} / {right}");
        }
        assert!(number("1.0").by(&number("0")).is_none());
    }

    #[test]
    fn both_ways_to_divide_round_half_away_from_zero() {
        for (left, right, shift, wanted) in [
            (1i128, 3i128, 2, 33),
            (2, 3, 2, 67),
            (-2, 3, 2, -67),
            (1, 8, 2, 13),
            (-1, 8, 2, -13),
            (1, -8, 2, -13),
            (0, 7, 5, 0),
            (6, 3, 0, 2),
        ] {
            assert_eq!(quick(left, right, shift), Some(wanted));
            let (left, right) = (i256::from_i128(left), i256::from_i128(right));
            let found = by_digits(left, right, shift);
            assert_eq!(found, Some(i256::from_i128(wanted)));
        }
        let left = i256::from_i128(155);
        assert_eq!(by_digits(left, i256::ONE, -1), Some(i256::from_i128(16)));
        assert_eq!(quick(i128::MAX, 3, 1), None);
    }

    #[test]
    fn types_of_quotients_hold_their_digits() {
        let of = DataType::Decimal128;
        assert_eq!(type_of(&of(12, 2), &of(12, 2)), Some(of(38, 20)));
        assert_eq!(
            type_of(&of(38, 30), &of(12, 2)),
            Some(DataType::Decimal256(76, 30))
        );
        assert_eq!(
            type_of(&DataType::Decimal256(76, 10), &of(12, 2)),
            Some(DataType::Decimal256(76, 20))
        );
        assert_eq!(type_of(&DataType::Utf8, &of(12, 2)), None);
    }
}
