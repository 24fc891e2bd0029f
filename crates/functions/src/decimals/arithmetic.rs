//! How what is no number is computed with, as in PostgreSQL.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal256Array, UInt32Array};
use arrow::compute::{CastOptions, take};
use arrow::datatypes::{DataType, Decimal256Type, i256};
use arrow::error::ArrowError;
use datafusion_common::{Result, plan_err};
use datafusion_expr::{Expr, ScalarUDF};
use table::{NotFinite, not_finite, only_numbers, rescaled};

use crate::own::Own;

/// An operation on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `*`.
    Times,
    /// `/`, and `div`, which leaves out what is behind the point.
    By,
    /// `%`.
    Rest,
}

/// What an operation gives of which an operand is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    NotFinite(NotFinite),
    Zero,
    /// The left operand.
    Left,
}

impl Operation {
    /// What the operation gives for values of which at least one is no number.
    ///
    /// # Errors
    /// For an infinity that is divided by zero.
    pub(crate) fn of(self, left: i256, right: i256) -> Result<Given, ArrowError> {
        let (l, r) = (float(left), float(right));
        if l.is_nan() || r.is_nan() {
            return Ok(Given::NotFinite(NotFinite::NaN));
        }
        let found = match self {
            Operation::Plus => l + r,
            Operation::Minus => l - r,
            Operation::Times => l * r,
            Operation::By | Operation::Rest if r == 0.0 => return Err(ArrowError::DivideByZero),
            Operation::By => l / r,
            // Whatever the sign of the infinity is.
            Operation::Rest if r.is_infinite() && l.is_finite() => return Ok(Given::Left),
            Operation::Rest => f64::NAN,
        };
        Ok(match NotFinite::of_float(found) {
            Some(own) => Given::NotFinite(own),
            None => Given::Zero,
        })
    }
}

/// A number of the same sign, or what is none: enough for the rules.
fn float(value: i256) -> f64 {
    match NotFinite::of(value) {
        Some(own) => own.float(),
        None if value.is_negative() => -1.0,
        None if value == i256::ZERO => 0.0,
        None => 1.0,
    }
}

fn has_some(side: &dyn Datum) -> bool {
    not_finite(side.get().0).is_some()
}

/// The decimals of one side, each as often as there are rows.
fn spread(side: &dyn Datum, rows: usize) -> Result<Decimal256Array, ArrowError> {
    let (values, is_one) = side.get();
    if is_one {
        let values = take(values, &UInt32Array::from(vec![0; rows]), None)?;
        return Ok(values.as_primitive::<Decimal256Type>().clone());
    }
    Ok(values.as_primitive::<Decimal256Type>().clone())
}

/// What `compute` gives for two sides, of which it gets the numbers; of others what the operation gives for these.
///
/// # Errors
/// Those of computing.
pub fn computed(
    operation: Operation,
    left: &dyn Datum,
    right: &dyn Datum,
    compute: impl Fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    if !has_some(left) && !has_some(right) {
        return compute(left, right);
    }
    let rows = match (left.get(), right.get()) {
        ((_, true), (right, _)) => right.len(),
        ((left, false), _) => left.len(),
    };
    let (left, right) = (spread(left, rows)?, spread(right, rows)?);
    let (l, r) = (only_numbers(&left), only_numbers(&right));
    let numbers = compute(&l, &r)?;
    let to = numbers.data_type().clone();
    let numbers = numbers.as_primitive::<Decimal256Type>();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let both = left.is_valid(row) && right.is_valid(row);
        let odd = both && (l.is_null(row) || r.is_null(row));
        found.push(if !odd {
            numbers.is_valid(row).then(|| numbers.value(row))
        } else {
            match operation.of(left.value(row), right.value(row))? {
                Given::NotFinite(own) => Some(own.value()),
                Given::Zero => Some(i256::ZERO),
                Given::Left => {
                    let exact = CastOptions {
                        safe: false,
                        ..CastOptions::default()
                    };
                    let one = rescaled(&left.slice(row, 1), &to, &exact)?;
                    Some(one.as_primitive::<Decimal256Type>().value(0))
                }
            }
        });
    }
    Ok(Arc::new(Decimal256Array::from(found).with_data_type(to)))
}

/// The name of the function that changes the sign of a decimal. Statements cannot write it.
pub const NEGATIVE: &str = "numeric minus";

static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        NEGATIVE,
        |types| Ok(types.to_vec()),
        |types| match types {
            [own @ DataType::Decimal256(..)] => Ok(own.clone()),
            _ => plan_err!("a decimal of more than 38 digits has this sign"),
        },
        negative,
    );
    Arc::new(own.into())
});

/// `value`, a decimal of more than 38 digits, with the other sign.
pub fn negated(value: Expr) -> Expr {
    MINUS.call(vec![value])
}

fn negative(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let values = args[0].as_primitive::<Decimal256Type>();
    let turned = |value: i256| match NotFinite::of(value) {
        None => value.wrapping_neg(),
        Some(NotFinite::NaN) => value,
        Some(NotFinite::Infinity) => NotFinite::NegativeInfinity.value(),
        Some(NotFinite::NegativeInfinity) => NotFinite::Infinity.value(),
    };
    let found: Decimal256Array = values.unary(turned);
    Ok(Arc::new(found.with_data_type(values.data_type().clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: i256 = NotFinite::NaN.value();
    const ABOVE: i256 = NotFinite::Infinity.value();
    const BELOW: i256 = NotFinite::NegativeInfinity.value();

    fn given(operation: Operation, left: i256, right: i256) -> Option<Given> {
        operation.of(left, right).ok()
    }

    #[test]
    fn the_rules_are_those_of_postgresql() {
        use Operation::{By, Minus, Plus, Rest, Times};
        let (zero, one, less) = (i256::ZERO, i256::ONE, i256::MINUS_ONE);
        let not = |own| Some(Given::NotFinite(own));
        let nan = not(NotFinite::NaN);
        let (above, below) = (not(NotFinite::Infinity), not(NotFinite::NegativeInfinity));
        for (operation, left, right, wanted) in [
            (Plus, ABOVE, BELOW, nan),
            (Plus, ABOVE, less, above),
            (Minus, ABOVE, ABOVE, nan),
            (Minus, one, ABOVE, below),
            (Times, ABOVE, zero, nan),
            (Times, ABOVE, less, below),
            (Times, BELOW, BELOW, above),
            (By, NAN, zero, nan),
            (By, ABOVE, zero, None),
            (By, one, BELOW, Some(Given::Zero)),
            (By, BELOW, less, above),
            (By, ABOVE, BELOW, nan),
            (Rest, ABOVE, zero, None),
            (Rest, NAN, zero, nan),
            (Rest, ABOVE, one, nan),
            (Rest, BELOW, ABOVE, nan),
            (Rest, less, ABOVE, Some(Given::Left)),
        ] {
            assert_eq!(given(operation, left, right), wanted, "{operation:?}");
        }
        for operation in [Plus, Minus, Times, By, Rest] {
            assert_eq!(given(operation, one, NAN), nan);
        }
    }

    #[test]
    fn signs_are_turned() {
        let values = Decimal256Array::from_iter_values([NAN, ABOVE, BELOW, i256::ONE]);
        let found = negative(&[Arc::new(values)], 4).unwrap();
        let found = found.as_primitive::<Decimal256Type>().values().to_vec();
        assert_eq!(found, [NAN, BELOW, ABOVE, i256::MINUS_ONE]);
    }
}
