//! The lesser and the greater of two values. What is no number is greater than all numbers, and 0.0 greater than -0.0.

use crate::fill;
use crate::level::dispatched;
use crate::total::Total;

/// What compares in the order of these kernels.
#[inline(always)]
fn place(value: f64) -> i64 {
    if value.is_nan() {
        i64::MAX
    } else {
        value.key()
    }
}

#[inline(always)]
fn least(a: f64, b: f64) -> f64 {
    if place(b) < place(a) { b } else { a }
}

#[inline(always)]
fn greatest(a: f64, b: f64) -> f64 {
    if place(b) > place(a) { b } else { a }
}

dispatched! {
    /// `out[i]` is the lesser of `a[i]` and `b[i]`.
    pub fn least_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) {
        fill::zip(a, b, out, i64::min);
    }

    /// `out[i]` is the lesser of `a[i]` and `b`.
    pub fn least_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) {
        fill::map(a, out, |a| a.min(b));
    }

    /// `out[i]` is the greater of `a[i]` and `b[i]`.
    pub fn greatest_i64(a: &[i64], b: &[i64], out: &mut Vec<i64>) {
        fill::zip(a, b, out, i64::max);
    }

    /// `out[i]` is the greater of `a[i]` and `b`.
    pub fn greatest_i64_const(a: &[i64], b: i64, out: &mut Vec<i64>) {
        fill::map(a, out, |a| a.max(b));
    }

    /// `out[i]` is the lesser of `a[i]` and `b[i]`.
    pub fn least_f64(a: &[f64], b: &[f64], out: &mut Vec<f64>) {
        fill::zip(a, b, out, least);
    }

    /// `out[i]` is the lesser of `a[i]` and `b`.
    pub fn least_f64_const(a: &[f64], b: f64, out: &mut Vec<f64>) {
        fill::map(a, out, |a| least(a, b));
    }

    /// `out[i]` is the greater of `a[i]` and `b[i]`.
    pub fn greatest_f64(a: &[f64], b: &[f64], out: &mut Vec<f64>) {
        fill::zip(a, b, out, greatest);
    }

    /// `out[i]` is the greater of `a[i]` and `b`.
    pub fn greatest_f64_const(a: &[f64], b: f64, out: &mut Vec<f64>) {
        fill::map(a, out, |a| greatest(a, b));
    }
}
