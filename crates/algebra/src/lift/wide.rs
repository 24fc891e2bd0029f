//! 128-bit integers, for decimals beyond 18 digits. All arithmetic notices overflow.

use super::overflow::Overflow;
use crate::fill;
use crate::level::dispatched;

/// Runs an operation per value; fails if one of them overflowed.
#[inline(always)]
fn each(
    values: impl ExactSizeIterator<Item = (i128, i128)>,
    out: &mut Vec<i128>,
    f: impl Fn(i128, i128) -> (i128, bool),
) -> Result<(), Overflow> {
    let mut wrong = false;
    out.clear();
    out.extend(values.map(|(a, b)| {
        let (result, over) = f(a, b);
        wrong |= over;
        result
    }));
    if wrong { Err(Overflow) } else { Ok(()) }
}

/// Both, element by element.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
fn pairs<'a>(a: &'a [i128], b: &'a [i128]) -> impl ExactSizeIterator<Item = (i128, i128)> + 'a {
    assert_eq!(a.len(), b.len(), "two inputs of different lengths");
    a.iter().copied().zip(b.iter().copied())
}

/// Whether all have 64 bits, so that their products have 128.
#[inline(always)]
fn short(values: &[i128]) -> bool {
    values
        .iter()
        .fold(true, |short, v| short & (i128::from(*v as i64) == *v))
}

#[inline(always)]
fn multiplied(a: i128, b: i128) -> (i128, bool) {
    (i128::from(a as i64) * i128::from(b as i64), false)
}

dispatched! {
    /// `out[i] = a[i]`.
    pub fn widen(a: &[i64], out: &mut Vec<i128>) {
        fill::map(a, out, i128::from);
    }

    /// `out[i] = a[i]`.
    pub fn narrow(a: &[i128], out: &mut Vec<i64>) -> Result<(), Overflow> {
        fill::map(a, out, |a| a as i64);
        if short(a) { Ok(()) } else { Err(Overflow) }
    }

    /// `out[i] = a[i] + b[i]`.
    pub fn try_add_i128(a: &[i128], b: &[i128], out: &mut Vec<i128>) -> Result<(), Overflow> {
        each(pairs(a, b), out, i128::overflowing_add)
    }

    /// `out[i] = a[i] + b`.
    pub fn try_add_i128_const(a: &[i128], b: i128, out: &mut Vec<i128>) -> Result<(), Overflow> {
        each(a.iter().map(|a| (*a, b)), out, i128::overflowing_add)
    }

    /// `out[i] = a[i] - b[i]`.
    pub fn try_sub_i128(a: &[i128], b: &[i128], out: &mut Vec<i128>) -> Result<(), Overflow> {
        each(pairs(a, b), out, i128::overflowing_sub)
    }

    /// `out[i] = a[i] - b`.
    pub fn try_sub_i128_const(a: &[i128], b: i128, out: &mut Vec<i128>) -> Result<(), Overflow> {
        each(a.iter().map(|a| (*a, b)), out, i128::overflowing_sub)
    }

    /// `out[i] = a[i] * b[i]`.
    pub fn try_mul_i128(a: &[i128], b: &[i128], out: &mut Vec<i128>) -> Result<(), Overflow> {
        if short(a) && short(b) {
            each(pairs(a, b), out, multiplied)
        } else {
            each(pairs(a, b), out, i128::overflowing_mul)
        }
    }

    /// `out[i] = a[i] * b`.
    pub fn try_mul_i128_const(a: &[i128], b: i128, out: &mut Vec<i128>) -> Result<(), Overflow> {
        if short(a) && short(&[b]) {
            each(a.iter().map(|a| (*a, b)), out, multiplied)
        } else {
            each(a.iter().map(|a| (*a, b)), out, i128::overflowing_mul)
        }
    }

    /// `out[i] = -a[i]`.
    pub fn try_negate_i128(a: &[i128], out: &mut Vec<i128>) -> Result<(), Overflow> {
        each(a.iter().map(|a| (*a, 0)), out, |a, _| a.overflowing_neg())
    }
}
