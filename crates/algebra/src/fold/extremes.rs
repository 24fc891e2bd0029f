//! The least and the greatest value of each group.

#[cfg(target_arch = "x86_64")]
use super::few;
use super::piece::{Piece, pieces};
use super::scatter;
use crate::level::dispatched;
use crate::total::{Key, Total};

/// Takes what was found, where anything was, into the states of a whole piece.
#[inline(always)]
fn merge<T: Total>(
    state: &mut [T],
    seen: &mut [bool],
    found: impl Iterator<Item = (T::Key, bool)>,
    flip: impl Fn(T::Key) -> T::Key,
) {
    for ((state, seen), (key, any)) in state.iter_mut().zip(seen).zip(found) {
        if any {
            let old = if *seen {
                flip(state.key())
            } else {
                T::Key::GREATEST
            };
            *state = T::of(flip(old.min(key)));
            *seen = true;
        }
    }
}

/// Up to this many states are folded apart from the caller's.
const LOCAL: usize = 128;

/// The least of flipped keys. Flipping is `!` for the greatest value, and nothing for the least.
#[inline(always)]
fn piece_by_scattering<T: Total>(
    piece: Piece<'_, T>,
    state: &mut [T],
    seen: &mut [bool],
    flip: impl Fn(T::Key) -> T::Key + Copy,
) {
    let states = if piece.groups.is_some() {
        state.len()
    } else {
        1
    };
    if states <= LOCAL {
        let (mut keys, mut any) = ([T::Key::GREATEST; LOCAL], [false; LOCAL]);
        let worst = T::Key::GREATEST;
        let step =
            |least: T::Key, v: T, valid| least.min(if valid { flip(v.key()) } else { worst });
        scatter::fold(piece, &mut keys[..states], worst, step, |a, b| a.min(b));
        let step = |any, _, valid| any | valid;
        scatter::fold(piece, &mut any[..states], false, step, |a, b| a | b);
        merge(state, seen, keys.into_iter().zip(any).take(states), flip);
    } else {
        let groups = piece.groups.unwrap_or_default();
        for (row, (v, group)) in piece.values.iter().zip(groups).enumerate() {
            let valid = piece.valid.is_none_or(|valid| valid[row]);
            let (state, seen) = (&mut state[*group as usize], &mut seen[*group as usize]);
            let old = if *seen {
                flip(state.key())
            } else {
                T::Key::GREATEST
            };
            let new = if valid {
                flip(v.key())
            } else {
                T::Key::GREATEST
            };
            *state = T::of(flip(old.min(new)));
            *seen |= valid;
        }
    }
}

macro_rules! extremes {
    ($($name:ident $what:literal $t:ty, $flip:expr, $kind:expr;)*) => {
        dispatched! {$(
            #[doc = concat!("Each state, where `seen`, becomes the ", $what, " of itself and of its valid rows, and")]
            #[doc = concat!("elsewhere the ", $what, " of these; in the order of the comparisons of `filter`.")]
            /// The states of groups that were not seen, now or before, are of no use.
            ///
            /// # Panics
            /// When lengths differ, or a group number has no state.
            pub fn $name(
                groups: Option<&[u32]>, values: &[$t], valid: Option<&[bool]>,
                state: &mut [$t], seen: &mut [bool],
            ) {
                assert_eq!(state.len(), seen.len(), "one state and one flag per group");
                for piece in pieces(groups, values, valid, state.len()) {
                    let by_masks: Option<(_, _)> = $kind(piece, state.len());
                    match by_masks {
                        Some((found, any)) => merge(state, seen, found.into_iter().enumerate().map(
                            |(group, word): (usize, u64)| ($flip(word as i64 as _), any >> group & 1u8 == 1),
                        ), $flip),
                        None => piece_by_scattering(piece, state, seen, $flip),
                    }
                }
            }
        )*}
    };
}

/// Nothing is folded by masks.
fn no_masks<T>(_: Piece<'_, T>, _: usize) -> Option<([u64; super::piece::FEW], u8)> {
    None
}

#[cfg(target_arch = "x86_64")]
extremes! {
    min_i64 "least" i64, |key: i64| key, few::fold::<{ few::MIN }, i64>;
    max_i64 "greatest" i64, |key: i64| !key, few::fold::<{ few::MAX }, i64>;
    min_f64 "least" f64, |key: i64| key, few::fold::<{ few::MIN_F64 }, f64>;
    max_f64 "greatest" f64, |key: i64| !key, few::fold::<{ few::MAX_F64 }, f64>;
}
#[cfg(not(target_arch = "x86_64"))]
extremes! {
    min_i64 "least" i64, |key: i64| key, no_masks;
    max_i64 "greatest" i64, |key: i64| !key, no_masks;
    min_f64 "least" f64, |key: i64| key, no_masks;
    max_f64 "greatest" f64, |key: i64| !key, no_masks;
}
extremes! {
    min_i128 "least" i128, |key: i128| key, no_masks;
    max_i128 "greatest" i128, |key: i128| !key, no_masks;
}
