//! Kernels of functions of one number.

use std::fmt;

use algebra::lift;

use crate::error::{Error, Result};
use crate::expr::whole::{Whole, WholeFunction};
use crate::vector::value::{Values, Vector};

/// A function of floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FloatFunction {
    /// The greatest whole number that is not greater.
    Floor,
    /// The least whole number that is not less.
    Ceil,
    /// The number without what is behind its point.
    Trunc,
    /// The nearest whole number, and of two the even one.
    Round,
    /// The number without its sign.
    Abs,
    /// The square root, which there is of no number less than zero.
    Sqrt,
    /// The nearest whole number, and of two the even one, as one of a type. Only of what is next to one of that type.
    Whole {
        /// The least of the type.
        low: i64,
        /// The greatest of the type.
        high: i64,
    },
    /// The number of the stretch of one width between two finite bounds, from 1 on; 0 before the first of `count`, which is one at
    /// least, and `count + 1` behind the last. Numbers only.
    Bucket {
        /// The lower bound.
        low: f64,
        /// The upper bound, which is greater.
        high: f64,
        /// How many stretches there are.
        count: i32,
    },
}

/// A kernel of one of the functions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    Whole(Whole),
    Float(FloatFunction),
}

impl Kernel {
    /// The number of which it makes the sum with its argument, if it does that.
    pub fn plus(&self) -> Option<i64> {
        match self {
            Kernel::Whole(whole) => match whole.function() {
                WholeFunction::Plus(plus) => Some(*plus),
                _ => None,
            },
            Kernel::Float(_) => None,
        }
    }

    /// The values for those of `of`; `None` if it is not right for some of them, which it looks for unless it is `proven` that there are
    /// none.
    pub fn apply(&self, of: &Vector, proven: bool) -> Result<Option<Vector>> {
        let valid = of.valid.as_deref();
        let values = match (self, &of.values) {
            (Kernel::Whole(whole), Values::Int(values)) => {
                if !proven && !whole.holds_all(values, valid) {
                    return Ok(None);
                }
                whole.apply(values)
            }
            (Kernel::Float(function), Values::Float(values)) => {
                if !proven && !function.holds_all(values, valid) {
                    return Ok(None);
                }
                function.apply(values)
            }
            _ => return Err(Error::internal("a kernel for other values")),
        };
        Ok(Some(Vector {
            values,
            valid: of.valid.clone(),
        }))
    }
}

impl fmt::Display for Kernel {
    /// Writes `_` for the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kernel::Float(function) => write!(f, "{function}"),
            Kernel::Whole(whole) => write!(f, "{}", whole.function()),
        }
    }
}

/// Whether all of them that are not NULL are such.
#[inline(always)]
fn all(values: &[f64], valid: Option<&[bool]>, is_such: impl Fn(f64) -> bool) -> bool {
    // All are looked at, which takes no branches.
    if values.iter().fold(true, |all, value| all & is_such(*value)) {
        return true;
    }
    let mut rows = values.iter().zip(valid.unwrap_or_default());
    valid.is_some() && rows.all(|(value, valid)| !*valid || is_such(*value))
}

impl FloatFunction {
    /// Whether the kernel is right for all values.
    pub(super) fn is_total(self) -> bool {
        use FloatFunction as F;
        matches!(self, F::Floor | F::Ceil | F::Trunc | F::Round | F::Abs)
    }

    /// Whether the kernel is right for all of them that are not NULL.
    fn holds_all(self, values: &[f64], valid: Option<&[bool]>) -> bool {
        match self {
            FloatFunction::Sqrt => all(values, valid, |value| (value >= 0.0) | value.is_nan()),
            FloatFunction::Whole { low, high } => {
                // The least number of a type is even, and the greatest is odd: halves beside both go to even ones. No float
                // lies between the ends of 64 bits and these.
                let (least, above) = (low as f64 - 0.5, high as f64 + 0.5);
                all(values, valid, |value| (value >= least) & (value < above))
            }
            FloatFunction::Bucket { .. } => all(values, valid, |value| !value.is_nan()),
            _ => self.is_total(),
        }
    }

    fn apply(self, values: &[f64]) -> Values {
        let mut out = Vec::new();
        match self {
            FloatFunction::Floor => lift::floor_f64(values, &mut out),
            FloatFunction::Ceil => lift::ceil_f64(values, &mut out),
            FloatFunction::Trunc => lift::trunc_f64(values, &mut out),
            FloatFunction::Round => lift::round_f64(values, &mut out),
            FloatFunction::Abs => lift::abs_f64(values, &mut out),
            FloatFunction::Sqrt => lift::sqrt_f64(values, &mut out),
            FloatFunction::Whole { .. } => {
                let mut out = Vec::new();
                lift::round_to_i64(values, &mut out);
                return Values::Int(out);
            }
            FloatFunction::Bucket { low, high, count } => {
                let (width, times, last) = (high - low, f64::from(count), i64::from(count) - 1);
                let bucket = |value: &f64| {
                    // The quotient may have been rounded to 1.
                    let within = ((times * ((value - low) / width)) as i64).min(last) + 1;
                    match *value {
                        value if value < low => 0,
                        value if value >= high => last + 2,
                        _ => within,
                    }
                };
                return Values::Int(values.iter().map(bucket).collect());
            }
        }
        Values::Float(out)
    }
}

impl fmt::Display for FloatFunction {
    /// Writes `_` for the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FloatFunction::Floor => f.write_str("floor(_)"),
            FloatFunction::Ceil => f.write_str("ceil(_)"),
            FloatFunction::Trunc => f.write_str("trunc(_)"),
            FloatFunction::Round => f.write_str("round(_)"),
            FloatFunction::Abs => f.write_str("abs(_)"),
            FloatFunction::Sqrt => f.write_str("sqrt(_)"),
            FloatFunction::Whole { low, high } => write!(f, "whole(_, {low}, {high})"),
            FloatFunction::Bucket { low, high, count } => {
                write!(f, "bucket(_, {low:?}, {high:?}, {count})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_beside_the_ends_of_a_type() {
        let holds = |low: i64, high: i64, value: f64| {
            FloatFunction::Whole { low, high }.holds_all(&[value], None)
        };
        for (low, high) in [
            (i64::from(i8::MIN), i64::from(i8::MAX)),
            (i64::from(i16::MIN), i64::from(i16::MAX)),
            (i64::from(i32::MIN), i64::from(i32::MAX)),
        ] {
            let (least, most) = (low as f64, high as f64);
            assert!(holds(low, high, least - 0.5) && !holds(low, high, least - 0.500_1));
            assert!(holds(low, high, most + 0.499_9) && !holds(low, high, most + 0.5));
        }
        let (low, high) = (i64::MIN, i64::MAX);
        let most = 9_223_372_036_854_775_808.0;
        assert!(holds(low, high, -most) && !holds(low, high, most));
        assert!(holds(low, high, 9_223_372_036_854_774_784.0));
        assert!(!holds(low, high, -9_223_372_036_854_777_856.0));
        assert!(!holds(low, high, f64::NAN) && !holds(low, high, f64::NEG_INFINITY));
    }

    #[test]
    fn what_is_null_is_no_value_that_is_beside() {
        let whole = FloatFunction::Whole { low: -9, high: 9 };
        assert!(!whole.holds_all(&[1.0, f64::NAN], Some(&[false, true])));
        assert!(whole.holds_all(&[1.0, f64::NAN], Some(&[true, false])));
        assert!(!FloatFunction::Sqrt.holds_all(&[4.0, -1.0], None));
        assert!(FloatFunction::Sqrt.holds_all(&[-0.0, f64::NAN], None));
        assert!(FloatFunction::Floor.holds_all(&[f64::NAN], None));
    }
}
