//! Filling a vector that the caller reuses: each value is written once, nothing is zeroed first.

use std::mem::MaybeUninit;

/// Room for exactly `rows` values in `out`, whose old values are forgotten.
#[inline(always)]
pub(crate) fn room<T: Copy>(out: &mut Vec<T>, rows: usize) -> &mut [MaybeUninit<T>] {
    out.clear();
    out.reserve(rows);
    &mut out.spare_capacity_mut()[..rows]
}

/// `out[i] = f(a[i])`.
#[inline(always)]
pub(crate) fn map<A: Copy, O: Copy>(a: &[A], out: &mut Vec<O>, f: impl Fn(A) -> O) {
    for (slot, a) in room(out, a.len()).iter_mut().zip(a) {
        slot.write(f(*a));
    }
    // SAFETY: the loop wrote the first `a.len()` values.
    unsafe { out.set_len(a.len()) };
}

/// `out[i] = f(a[i], b[i])`.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub(crate) fn zip<A: Copy, B: Copy, O: Copy>(
    a: &[A],
    b: &[B],
    out: &mut Vec<O>,
    f: impl Fn(A, B) -> O,
) {
    assert_eq!(a.len(), b.len(), "two inputs of different lengths");
    for (slot, (a, b)) in room(out, a.len()).iter_mut().zip(a.iter().zip(b)) {
        slot.write(f(*a, *b));
    }
    // SAFETY: the loop wrote the first `a.len()` values, and `b` is as long.
    unsafe { out.set_len(a.len()) };
}

/// `out[i] = f(a[i], b[i], c[i])`.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub(crate) fn zip3<A: Copy, B: Copy, C: Copy, O: Copy>(
    a: &[A],
    b: &[B],
    c: &[C],
    out: &mut Vec<O>,
    f: impl Fn(A, B, C) -> O,
) {
    assert!(
        a.len() == b.len() && b.len() == c.len(),
        "three inputs of different lengths"
    );
    for (slot, ((a, b), c)) in room(out, a.len()).iter_mut().zip(a.iter().zip(b).zip(c)) {
        slot.write(f(*a, *b, *c));
    }
    // SAFETY: the loop wrote the first `a.len()` values, and `b` and `c` are as long.
    unsafe { out.set_len(a.len()) };
}

/// `out[i] = f(a[i], b[i], c[i], d[i])`.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub(crate) fn zip4<A: Copy, B: Copy, C: Copy, D: Copy, O: Copy>(
    a: &[A],
    b: &[B],
    c: &[C],
    d: &[D],
    out: &mut Vec<O>,
    f: impl Fn(A, B, C, D) -> O,
) {
    let rows = a.len();
    assert!(
        rows == b.len() && rows == c.len() && rows == d.len(),
        "four inputs of different lengths"
    );
    let pairs = a.iter().zip(b).zip(c.iter().zip(d));
    for (slot, ((a, b), (c, d))) in room(out, rows).iter_mut().zip(pairs) {
        slot.write(f(*a, *b, *c, *d));
    }
    // SAFETY: the loop wrote the first `rows` values, and the inputs are as long.
    unsafe { out.set_len(rows) };
}
