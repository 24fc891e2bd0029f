//! 64-bit arithmetic that notices overflow, without a branch per value.

use super::overflow::Overflow;
use crate::fill;
use crate::level::dispatched;

/// Fails if the sign of `wrong`, an "or" of words whose sign says that they overflowed, is set.
#[inline(always)]
fn unless(wrong: i64) -> Result<(), Overflow> {
    if wrong < 0 { Err(Overflow) } else { Ok(()) }
}

/// How many bits, without the sign, the widest of `values` has.
#[inline(always)]
fn bits(values: &[i64]) -> u32 {
    64 - values
        .iter()
        .fold(0, |all, v| all | v ^ (v >> 63))
        .leading_zeros()
}

/// Sign set where `a + b = sum` overflowed: both signs differ from the sum's.
#[inline(always)]
fn added(a: i64, b: i64, sum: i64) -> i64 {
    (a ^ sum) & (b ^ sum)
}

/// Sign set where `a - b = rest` overflowed.
#[inline(always)]
fn subtracted(a: i64, b: i64, rest: i64) -> i64 {
    (a ^ b) & (a ^ rest)
}

/// `out[i] = a[i] * b[i]`, where at least one product needs care.
#[inline(always)]
fn careful(a: impl Iterator<Item = (i64, i64)>, out: &mut Vec<i64>) -> Result<(), Overflow> {
    out.clear();
    let mut wrong = 0;
    out.extend(a.map(|(a, b)| {
        let product = i128::from(a) * i128::from(b);
        let low = product as i64;
        // The high half must repeat the sign of the low one.
        wrong |= (product >> 64) as i64 ^ (low >> 63);
        low
    }));
    if wrong == 0 { Ok(()) } else { Err(Overflow) }
}

dispatched! {
    /// `out[i] = a[i] + b[i]`.
    pub fn try_add_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) -> Result<(), Overflow> {
        fill::zip(a, b, out, i64::wrapping_add);
        let inputs = a.iter().zip(b);
        unless(inputs.zip(&*out).fold(0, |wrong, ((a, b), sum)| wrong | added(*a, *b, *sum)))
    }

    /// `out[i] = a[i] + b`.
    pub fn try_add_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) -> Result<(), Overflow> {
        fill::map(a, out, |a| a.wrapping_add(b));
        unless(a.iter().zip(&*out).fold(0, |wrong, (a, sum)| wrong | added(*a, b, *sum)))
    }

    /// `out[i] = a[i] - b[i]`.
    pub fn try_sub_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) -> Result<(), Overflow> {
        fill::zip(a, b, out, i64::wrapping_sub);
        let inputs = a.iter().zip(b);
        unless(inputs.zip(&*out).fold(0, |wrong, ((a, b), rest)| wrong | subtracted(*a, *b, *rest)))
    }

    /// `out[i] = a[i] - b`.
    pub fn try_sub_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) -> Result<(), Overflow> {
        fill::map(a, out, |a| a.wrapping_sub(b));
        unless(a.iter().zip(&*out).fold(0, |wrong, (a, rest)| wrong | subtracted(*a, b, *rest)))
    }

    /// `out[i] = a[i] * b[i]`.
    pub fn try_mul_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) -> Result<(), Overflow> {
        // A product has at most as many bits as both together; -2^n has n by this count.
        if bits(a) + bits(b) <= 62 {
            fill::zip(a, b, out, i64::wrapping_mul);
            return Ok(());
        }
        assert_eq!(a.len(), b.len(), "two inputs of different lengths");
        careful(a.iter().copied().zip(b.iter().copied()), out)
    }

    /// `out[i] = a[i] * b`.
    pub fn try_mul_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) -> Result<(), Overflow> {
        if bits(a) + bits(&[b]) <= 62 {
            fill::map(a, out, |a| a.wrapping_mul(b));
            return Ok(());
        }
        careful(a.iter().map(|a| (*a, b)), out)
    }

    /// `out[i] = -a[i]`.
    pub fn try_negate_i64(a: &[i64], out: &mut Vec<i64>) -> Result<(), Overflow> {
        fill::map(a, out, i64::wrapping_neg);
        if a.iter().fold(false, |wrong, a| wrong | (*a == i64::MIN)) { Err(Overflow) } else { Ok(()) }
    }
}
