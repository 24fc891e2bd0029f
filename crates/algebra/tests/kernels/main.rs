//! Every kernel against the naive loop, at every level that this machine has; and the laws of the
//! algebra against dense matrices.

mod dot;
mod encoded;
mod filter;
mod fold;
mod hash;
mod krao;
mod laws;
mod lift;
mod order;

use algebra::{VECTOR_ROWS, levels, with_level};
use proptest::collection::vec;
use proptest::prelude::*;

/// Runs `check` at each level.
fn at_each_level<E>(mut check: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    levels().try_for_each(|level| with_level(level, &mut check))
}

/// Numbers of rows: around the widths of registers and words, and a whole vector.
fn rows() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => prop::sample::select(vec![0usize, 1, 7, 8, 15, 16, 63, 64, 65]),
        8 => 0usize..200,
        1 => Just(VECTOR_ROWS),
    ]
}

/// `rows` values, and whether they are valid: all, or some.
fn column<T: std::fmt::Debug + Clone>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = (Vec<T>, Option<Vec<bool>>)> {
    rows().prop_flat_map(move |rows| {
        (
            vec(value.clone(), rows),
            prop::option::of(vec(any::<bool>(), rows)),
        )
    })
}

/// Two columns of one length.
fn pair<T: std::fmt::Debug + Clone>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = (Vec<T>, Vec<T>)> {
    rows().prop_flat_map(move |rows| (vec(value.clone(), rows), vec(value.clone(), rows)))
}

/// Integers: small ones, which repeat, and extreme ones.
fn integer() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![
        4 => -9i64..9,
        2 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX]),
    ]
}

/// 128-bit integers: small ones, of 64 bits, and extreme ones.
fn wide() -> impl Strategy<Value = i128> + Clone {
    prop_oneof![
        4 => -9i128..9,
        2 => integer().prop_map(i128::from),
        1 => any::<i128>(),
        1 => prop::sample::select(vec![i128::MIN, i128::MIN + 1, i128::MAX - 1, i128::MAX]),
    ]
}

/// Floats with both zeros, infinities and NaNs of several kinds.
fn float() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        4 => (-9i64..9).prop_map(|v| v as f64 / 2.0),
        2 => any::<u64>().prop_map(f64::from_bits),
        1 => prop::sample::select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN]),
    ]
}

/// Whether row `row` is valid.
fn is(valid: &Option<Vec<bool>>, row: usize) -> bool {
    valid.as_ref().is_none_or(|v| v[row])
}
