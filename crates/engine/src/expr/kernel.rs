//! Kernels of functions of one number.

use std::fmt;

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
                if !proven && !all_numbers(values, valid) {
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
            Kernel::Float(FloatFunction::Floor) => f.write_str("floor(_)"),
            Kernel::Float(FloatFunction::Ceil) => f.write_str("ceil(_)"),
            Kernel::Float(FloatFunction::Bucket { low, high, count }) => {
                write!(f, "bucket(_, {low:?}, {high:?}, {count})")
            }
            Kernel::Whole(whole) => write!(f, "{}", whole.function()),
        }
    }
}

/// Whether all of them that are not NULL are numbers.
fn all_numbers(values: &[f64], valid: Option<&[bool]>) -> bool {
    // All are looked at, which takes no branches.
    if !values.iter().fold(false, |any, value| any | value.is_nan()) {
        return true;
    }
    let mut rows = values.iter().zip(valid.unwrap_or_default());
    valid.is_some() && !rows.any(|(value, valid)| *valid && value.is_nan())
}

impl FloatFunction {
    fn apply(self, values: &[f64]) -> Values {
        let of = values.iter();
        match self {
            FloatFunction::Floor => Values::Float(of.map(|value| value.floor()).collect()),
            FloatFunction::Ceil => Values::Float(of.map(|value| value.ceil()).collect()),
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
                Values::Int(of.map(bucket).collect())
            }
        }
    }
}
