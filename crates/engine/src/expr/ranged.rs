//! Functions of one number by kernels that are right for the numbers within a range, which nearly all are. What is beside it is left to
//! the function itself, which knows what errors and odd values there are.

use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::expr::expression::{Expr, Node, Ranged};
use crate::expr::kernel::{FloatFunction, Kernel};
use crate::expr::whole::{NARROW, Whole, WholeFunction};
use crate::vector::value::{Kind, Type};

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

/// `function` of `e` as type `data`; `otherwise` computes all values of the vectors in which there is one that the function is not
/// of.
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
        FloatFunction::Whole { low, high } => {
            Some((i128::from(low), i128::from(high))).filter(|_| low <= high)
        }
        _ => None,
    };
    let is_whole = matches!(
        function,
        FloatFunction::Bucket { .. } | FloatFunction::Whole { .. }
    );
    let ty = Type::of(data, e.ty.nullable).ok_or_else(unfit)?;
    let (wanted, ty) = match bounds {
        Some(bounds) => (Kind::Int, ty.within(bounds)),
        None if is_whole => return Err(unfit()),
        None => (Kind::Float, ty),
    };
    if e.ty.kind != Kind::Float || ty.kind != wanted {
        return Err(unfit());
    }
    node(
        e,
        Kernel::Float(function),
        ty,
        function.is_total(),
        otherwise,
    )
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
