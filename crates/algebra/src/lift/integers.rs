//! Arithmetic that cannot fail: integers that wrap, floats, and choosing.

use crate::fill;
use crate::level::dispatched;

dispatched! {
    /// `out[i] = a[i] + b[i]`, wrapping.
    pub fn add_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) {
        fill::zip(a, b, out, i64::wrapping_add);
    }

    /// `out[i] = a[i] - b[i]`, wrapping.
    pub fn sub_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) {
        fill::zip(a, b, out, i64::wrapping_sub);
    }

    /// `out[i] = a[i] * b[i]`, wrapping.
    pub fn mul_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) {
        fill::zip(a, b, out, i64::wrapping_mul);
    }

    /// `out[i] = a[i] + b`, wrapping.
    pub fn add_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) {
        fill::map(a, out, |a| a.wrapping_add(b));
    }

    /// `out[i] = a[i] - b`, wrapping.
    pub fn sub_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) {
        fill::map(a, out, |a| a.wrapping_sub(b));
    }

    /// `out[i] = a - b[i]`, wrapping: `1 - discount`.
    pub fn rsub_i64_const(a: i64, b: &[i64], out: &mut Vec<i64>) {
        fill::map(b, out, |b| a.wrapping_sub(b));
    }

    /// `out[i] = a[i] * b`, wrapping.
    pub fn mul_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) {
        fill::map(a, out, |a| a.wrapping_mul(b));
    }

    /// `out[i] = a[i] * factor`, wrapping: the same decimal with more places.
    pub fn scale_i64(a: &[i64], factor: i64, out: &mut Vec<i64>) {
        fill::map(a, out, |a| a.wrapping_mul(factor));
    }

    /// `out[i] = -a[i]`, wrapping.
    pub fn negate_i64(a: &[i64], out: &mut Vec<i64>) {
        fill::map(a, out, i64::wrapping_neg);
    }

    /// `out[i] = a[i] + b[i]`.
    pub fn add_f64(a: &[f64], b: &[f64], out: &mut Vec<f64>) {
        fill::zip(a, b, out, |a, b| a + b);
    }

    /// `out[i] = a[i] - b[i]`.
    pub fn sub_f64(a: &[f64], b: &[f64], out: &mut Vec<f64>) {
        fill::zip(a, b, out, |a, b| a - b);
    }

    /// `out[i] = a[i] * b[i]`.
    pub fn mul_f64(a: &[f64], b: &[f64], out: &mut Vec<f64>) {
        fill::zip(a, b, out, |a, b| a * b);
    }

    /// `out[i] = a[i] / b[i]`; by zero as IEEE 754 says.
    pub fn div_f64(a: &[f64], b: &[f64], out: &mut Vec<f64>) {
        fill::zip(a, b, out, |a, b| a / b);
    }

    /// `out[i] = a[i] + b`.
    pub fn add_f64_const(a: &[f64], b: f64, out: &mut Vec<f64>) {
        fill::map(a, out, |a| a + b);
    }

    /// `out[i] = a[i] - b`.
    pub fn sub_f64_const(a: &[f64], b: f64, out: &mut Vec<f64>) {
        fill::map(a, out, |a| a - b);
    }

    /// `out[i] = a - b[i]`.
    pub fn rsub_f64_const(a: f64, b: &[f64], out: &mut Vec<f64>) {
        fill::map(b, out, |b| a - b);
    }

    /// `out[i] = a[i] * b`.
    pub fn mul_f64_const(a: &[f64], b: f64, out: &mut Vec<f64>) {
        fill::map(a, out, |a| a * b);
    }

    /// `out[i] = a[i] / b`.
    pub fn div_f64_const(a: &[f64], b: f64, out: &mut Vec<f64>) {
        fill::map(a, out, |a| a / b);
    }

    /// `out[i] = -a[i]`.
    pub fn negate_f64(a: &[f64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| -a);
    }

    /// `out[i] = a[i]`, rounded to the nearest float where it has more than 53 bits.
    pub fn to_f64(a: &[i64], out: &mut Vec<f64>) {
        fill::map(a, out, |a| a as f64);
    }

    /// `out[i] = if mask[i] { a[i] } else { b[i] }`: CASE.
    pub fn select<T: Copy>(mask: &[bool], a: &[T], b: &[T], out: &mut Vec<T>) {
        fill::zip3(mask, a, b, out, |mask, a, b| if mask { a } else { b });
    }

    /// `values[i] = value` wherever `valid[i]` is false.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn blank<T: Copy>(values: &mut [T], valid: &[bool], value: T) {
        assert_eq!(values.len(), valid.len(), "two inputs of different lengths");
        for (v, valid) in values.iter_mut().zip(valid) {
            *v = if *valid { *v } else { value };
        }
    }
}
