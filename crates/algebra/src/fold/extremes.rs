//! The least and the greatest value of each group.

use super::{FEW, ROWS, few, pieces};
use crate::level::dispatched;
use crate::total::Total;

/// Lowers each state to the least of its valid rows, or what `before` calls least.
///
/// `worst` comes after all values; states of groups that were not seen are not read.
#[inline(always)]
fn extreme<T: Total>(
    groups: Option<&[u32]>,
    values: &[T],
    valid: Option<&[bool]>,
    state: &mut [T],
    seen: &mut [bool],
    worst: T,
    before: impl Fn(T, T) -> bool + Copy,
) {
    assert_eq!(state.len(), seen.len(), "one state and one flag per group");
    let best = |a: T, b: T| if before(b, a) { b } else { a };
    for piece in pieces(groups, values, valid) {
        let scratch = &mut [0; ROWS];
        let numbers = piece.numbers(scratch);
        if state.len() <= FEW {
            let (mut found, mut any) = ([worst; FEW], [false; FEW]);
            let (found, any) = (&mut found[..state.len()], &mut any[..state.len()]);
            let step = |a: T, v: T, here: bool| best(a, if here { v } else { worst });
            few::fold(numbers, piece.values, found, worst, step, best);
            few::fold(
                numbers,
                numbers,
                any,
                false,
                |any, _, here| any | here,
                |a, b| a | b,
            );
            for group in 0..state.len() {
                if any[group] {
                    let old = if seen[group] {
                        state[group]
                    } else {
                        found[group]
                    };
                    state[group] = best(old, found[group]);
                    seen[group] = true;
                }
            }
        } else {
            for (v, group) in piece.values.iter().zip(numbers) {
                if *group != super::NONE {
                    let (state, seen) = (&mut state[*group as usize], &mut seen[*group as usize]);
                    *state = if *seen { best(*state, *v) } else { *v };
                    *seen = true;
                }
            }
        }
    }
}

macro_rules! extremes {
    ($($min:ident $max:ident $t:ident $least:expr, $greatest:expr;)*) => {
        dispatched! {$(
            /// Each state, where `seen`, becomes the least of itself and of its valid rows, and
            /// elsewhere the least of these; in the order of the comparisons of `filter`.
            ///
            /// # Panics
            /// When lengths differ, or a group number has no state.
            pub fn $min(groups: Option<&[u32]>, values: &[$t], valid: Option<&[bool]>, state: &mut [$t], seen: &mut [bool]) {
                extreme(groups, values, valid, state, seen, $greatest, |a: $t, b: $t| a.key() < b.key());
            }

            /// Each state, where `seen`, becomes the greatest of itself and of its valid rows, and
            /// elsewhere the greatest of these; in the order of the comparisons of `filter`.
            ///
            /// # Panics
            /// When lengths differ, or a group number has no state.
            pub fn $max(groups: Option<&[u32]>, values: &[$t], valid: Option<&[bool]>, state: &mut [$t], seen: &mut [bool]) {
                extreme(groups, values, valid, state, seen, $least, |a: $t, b: $t| a.key() > b.key());
            }
        )*}
    };
}

extremes! {
    min_i64 max_i64 i64 i64::MIN, i64::MAX;
    min_i128 max_i128 i128 i128::MIN, i128::MAX;
    min_f64 max_f64 f64 f64::from_bits(u64::MAX), f64::from_bits(u64::MAX >> 1);
}
