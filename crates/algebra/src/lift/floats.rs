//! Functions of one float, and whole numbers from floats.

use crate::fill;
use crate::level::dispatched;

/// What is nearer to zero than this is rounded by a sum with [`SHIFT`].
const NEAR: f64 = (1u64 << 51) as f64;

/// Floats from 2^52 to 2^53, of which this is the middle, are one apart: sums with it are whole numbers, half goes to the even one,
/// and their bits count them.
const SHIFT: f64 = (3u64 << 51) as f64;

dispatched! {
    /// `out[i]` is the greatest whole number that is not greater than `a[i]`.
    pub fn floor_f64(a: &[f64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| a.floor());
    }

    /// `out[i]` is the least whole number that is not less than `a[i]`.
    pub fn ceil_f64(a: &[f64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| a.ceil());
    }

    /// `out[i]` is `a[i]` without what is behind its point.
    pub fn trunc_f64(a: &[f64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| a.trunc());
    }

    /// `out[i]` is the whole number next to `a[i]`, and of two the even one.
    pub fn round_f64(a: &[f64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| a.round_ties_even());
    }

    /// `out[i]` is `a[i]` without its sign.
    pub fn abs_f64(a: &[f64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| a.abs());
    }

    /// `out[i]` is the square root of `a[i]`; of what is less than zero, no number.
    pub fn sqrt_f64(a: &[f64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| a.sqrt());
    }

    /// `out[i]` is the whole number next to `a[i]`, and of two the even one; the nearest that there is if that does not fit, and 0
    /// of what is no number.
    pub fn round_to_i64(a: &[f64], out: &mut Vec<i64>) {
        if a.iter().fold(true, |near, a| near & (a.abs() < NEAR)) {
            // One sum: few processors convert floats to 64 bits by the vector.
            let zero = SHIFT.to_bits() as i64;
            fill::map(a, out, |a| ((a + SHIFT).to_bits() as i64).wrapping_sub(zero));
        } else {
            fill::map(a, out, |a| a.round_ties_even() as i64);
        }
    }
}
