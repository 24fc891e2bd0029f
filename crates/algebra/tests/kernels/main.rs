//! Every kernel against the naive loop, at every level that this machine has; and the laws of the
//! algebra against dense matrices.

mod cases;
mod dot;
mod encoded;
mod filter;
mod fold;
mod hash;
mod krao;
mod laws;
mod lift;
mod order;
mod ranges;

use std::fmt::Debug;

use algebra::{VECTOR_ROWS, levels, with_level};
use cases::properties;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// Runs `check` at each level.
fn at_each_level<E>(mut check: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let check: &mut dyn FnMut() -> Result<(), E> = &mut check;
    levels().try_for_each(|level| with_level(level, &mut *check))
}

/// Numbers of rows: around the widths of registers and words, and a whole vector.
fn rows() -> BoxedStrategy<usize> {
    prop_oneof![
        8 => prop::sample::select(vec![0usize, 1, 7, 8, 15, 16, 63, 64, 65]),
        8 => 0usize..200,
        1 => Just(VECTOR_ROWS),
    ]
    .boxed()
}

/// `rows` values, and whether they are valid: all, or some.
fn column<T: Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<(Vec<T>, Option<Vec<bool>>)> {
    fn boxed<T: Debug + Clone + 'static>(
        value: BoxedStrategy<T>,
    ) -> BoxedStrategy<(Vec<T>, Option<Vec<bool>>)> {
        rows()
            .prop_flat_map(move |rows| {
                let valid = prop::option::of(vec(any::<bool>(), rows));
                (vec(value.clone(), rows), valid)
            })
            .boxed()
    }
    boxed(value.boxed())
}

/// Two columns of one length.
fn pair<T: Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<(Vec<T>, Vec<T>)> {
    let value = value.boxed();
    rows()
        .prop_flat_map(move |rows| (vec(value.clone(), rows), vec(value.clone(), rows)))
        .boxed()
}

/// Integers: small ones, which repeat, and extreme ones.
fn integer() -> BoxedStrategy<i64> {
    prop_oneof![
        4 => -9i64..9,
        2 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX]),
    ]
    .boxed()
}

/// 128-bit integers: small ones, of 64 bits, and extreme ones.
fn wide() -> BoxedStrategy<i128> {
    prop_oneof![
        4 => -9i128..9,
        2 => integer().prop_map(i128::from),
        1 => any::<i128>(),
        1 => prop::sample::select(vec![i128::MIN, i128::MIN + 1, i128::MAX - 1, i128::MAX]),
    ]
    .boxed()
}

/// Floats with both zeros, infinities and NaNs of several kinds.
fn float() -> BoxedStrategy<f64> {
    prop_oneof![
        4 => (-9i64..9).prop_map(|v| v as f64 / 2.0),
        2 => any::<u64>().prop_map(f64::from_bits),
        1 => prop::sample::select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN]),
    ]
    .boxed()
}

/// Whether row `row` is valid.
fn is(valid: &Option<Vec<bool>>, row: usize) -> bool {
    valid.as_ref().is_none_or(|v| v[row])
}
