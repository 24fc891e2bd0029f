//! Functions of one number by kernels that are right for the numbers within a range, which nearly all are. What is beside it is left to
//! the function itself, which knows what errors and odd values there are.

use std::fmt;

use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::expression::Expr;
use crate::expr::whole::{NARROW, Whole, WholeFunction};
use crate::expr::{Node, is_fallible};
use crate::vector::value::{Kind, Type, Values, Var, Vector};

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

/// A function and what it is applied to.
#[derive(Clone, Debug)]
pub struct Ranged {
    pub(crate) of: Expr,
    kernel: Kernel,
    /// What gives the same for all numbers, if there may be some that the kernel is not right for.
    pub(crate) otherwise: Option<Expr>,
}

#[derive(Clone, Copy, Debug)]
enum Kernel {
    Whole(Whole),
    Float(FloatFunction),
}

/// `function` of `e` as type `data`. The kernel is right for numbers `within` a range; where there may be others, `otherwise`
/// computes all values of the vectors in which there are some.
///
/// # Errors
/// [`Error::Unsupported`] if `e` is no whole number of 64 bits, none of its numbers is in the range, or results would not fit;
/// those of `otherwise`.
pub fn ranged(
    function: WholeFunction,
    e: Expr,
    within: (i64, i64),
    data: &DataType,
    otherwise: impl FnOnce() -> Result<Expr>,
) -> Result<Expr> {
    let unfit = || Error::unsupported("numbers that a kernel is not right for");
    if e.ty.kind != Kind::Int {
        return Err(unfit());
    }
    let (low, high) = (
        e.ty.bounds.0.max(within.0.into()),
        e.ty.bounds.1.min(within.1.into()),
    );
    let is_proven = (low, high) == e.ty.bounds;
    if low > high {
        return Err(unfit());
    }
    let kernel = Whole::new(function, low as i64, high as i64).ok_or_else(unfit)?;
    let nullable = e.ty.nullable || !is_proven;
    let ty = Type::of(data, nullable).ok_or_else(unfit)?;
    let bounds = kernel.bounds();
    let is_float = matches!(function, WholeFunction::Float(_));
    if is_float != (ty.kind == Kind::Float) {
        return Err(unfit());
    }
    let is_too_wide = bounds.0 < ty.bounds.0 || bounds.1 > ty.bounds.1;
    let ty = match ty.kind {
        Kind::Float => ty,
        _ if is_too_wide => return Err(unfit()),
        _ if is_proven => ty.within(bounds),
        _ => ty.within(NARROW),
    };
    if !matches!(ty.kind, Kind::Int | Kind::Float) {
        return Err(unfit());
    }
    node(e, Kernel::Whole(kernel), ty, is_proven, otherwise)
}

/// `function` of `e` as type `data`; `otherwise` computes all values of the vectors in which there is one that is not a number, if
/// the function is of numbers only.
///
/// # Errors
/// [`Error::Unsupported`] if `e` is no float, or the type is not that of the results; those of `otherwise`.
pub fn of_float(
    function: FloatFunction,
    e: Expr,
    data: &DataType,
    otherwise: impl FnOnce() -> Result<Expr>,
) -> Result<Expr> {
    let unfit = || Error::unsupported("floats of such a function");
    let bounds = match function {
        FloatFunction::Bucket { low, high, count } => {
            let is_fit = low < high && low.is_finite() && high.is_finite() && count > 0;
            let most = i128::from(count) + 1;
            Some((0, most)).filter(|_| is_fit && most <= i32::MAX.into())
        }
        _ => None,
    };
    let is_bucket = matches!(function, FloatFunction::Bucket { .. });
    let ty = Type::of(data, e.ty.nullable).ok_or_else(unfit)?;
    let (wanted, ty) = match bounds {
        Some(bounds) => (Kind::Int, ty.within(bounds)),
        None if is_bucket => return Err(unfit()),
        None => (Kind::Float, ty),
    };
    if e.ty.kind != Kind::Float || ty.kind != wanted {
        return Err(unfit());
    }
    node(e, Kernel::Float(function), ty, !is_bucket, otherwise)
}

fn node(
    of: Expr,
    kernel: Kernel,
    ty: Type,
    is_proven: bool,
    otherwise: impl FnOnce() -> Result<Expr>,
) -> Result<Expr> {
    let otherwise = if is_proven {
        None
    } else {
        let mut otherwise = otherwise()?;
        // Its values are told by their type what they are to be held as.
        otherwise.ty = ty.clone();
        Some(otherwise)
    };
    let ranged = Ranged {
        of,
        kernel,
        otherwise,
    };
    Ok(Expr {
        node: Node::Ranged(Box::new(ranged)),
        ty,
    })
}

impl Ranged {
    /// The vector and the number of which it is the sum, if it is one that cannot overflow.
    pub(crate) fn sum(&self) -> Option<(Var, i64)> {
        match (&self.kernel, self.of.as_var(), &self.otherwise) {
            (Kernel::Whole(whole), Some(var), None) => match whole.function() {
                WholeFunction::Plus(plus) => Some((var, *plus)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether evaluation may fail for some row.
    pub(super) fn is_fallible(&self) -> bool {
        self.otherwise.is_some() || is_fallible(&self.of)
    }

    /// The values for those of `of`; `None` if there are some that the kernel is not right for.
    pub(super) fn apply(&self, of: &Vector) -> Result<Option<Vector>> {
        let values = match (&self.kernel, &of.values) {
            (Kernel::Whole(whole), Values::Int(values)) => {
                if self.otherwise.is_some() && !whole.holds_all(values, of.valid.as_deref()) {
                    return Ok(None);
                }
                whole.apply(values)
            }
            (Kernel::Float(function), Values::Float(values)) => {
                if self.otherwise.is_some() && !all_numbers(values, of.valid.as_deref()) {
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

impl fmt::Display for Ranged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.of;
        match &self.kernel {
            Kernel::Float(FloatFunction::Floor) => write!(f, "floor({of})"),
            Kernel::Float(FloatFunction::Ceil) => write!(f, "ceil({of})"),
            Kernel::Float(FloatFunction::Bucket { low, high, count }) => {
                write!(f, "width_bucket({of}, {low:?}, {high:?}, {count})")
            }
            Kernel::Whole(whole) => {
                let shown = whole.function().to_string();
                f.write_str(&shown.replacen('_', &of.to_string(), 1))
            }
        }
    }
}
