//! Folding by going to the state of each row's group.

use super::piece::Piece;

/// Up to this many states have copies: neighbouring rows of one group then do not wait for each
/// other's stores.
const SMALL: usize = 128;

/// Copies of small states.
const COPIES: usize = 4;

/// Takes the piece into `state`: each row by `step`, from `start` on, and what was folded apart by
/// `meet`. A row that is not valid makes a step that changes nothing.
///
/// The group numbers were checked by `pieces`.
#[inline(always)]
pub(super) fn fold<V: Copy, S: Copy>(
    piece: Piece<'_, V>,
    state: &mut [S],
    start: S,
    step: impl Fn(S, V, bool) -> S + Copy,
    meet: impl Fn(S, S) -> S,
) {
    let Some(groups) = piece.groups else {
        let state = &mut state[0];
        *state = meet(*state, one(piece, start, step));
        return;
    };
    if state.len() > SMALL {
        match piece.valid {
            None => {
                for (v, group) in piece.values.iter().zip(groups) {
                    let state = &mut state[*group as usize];
                    *state = step(*state, *v, true);
                }
            }
            Some(valid) => {
                for ((v, group), valid) in piece.values.iter().zip(groups).zip(valid) {
                    let state = &mut state[*group as usize];
                    *state = step(*state, *v, *valid);
                }
            }
        }
        return;
    }
    let mut copies = [[start; SMALL]; COPIES];
    let (whole, rest) = piece.values.as_chunks::<COPIES>();
    let (whole_groups, rest_groups) = groups.as_chunks::<COPIES>();
    let mut take = |copy: usize, v: V, group: u32, valid: bool| {
        let state = &mut copies[copy][group as usize];
        *state = step(*state, v, valid);
    };
    match piece.valid {
        None => {
            for (values, groups) in whole.iter().zip(whole_groups) {
                (0..COPIES).for_each(|c| take(c, values[c], groups[c], true));
            }
            rest.iter()
                .zip(rest_groups)
                .for_each(|(v, group)| take(0, *v, *group, true));
        }
        Some(valid) => {
            let (whole_valid, rest_valid) = valid.as_chunks::<COPIES>();
            for ((values, groups), valid) in whole.iter().zip(whole_groups).zip(whole_valid) {
                (0..COPIES).for_each(|c| take(c, values[c], groups[c], valid[c]));
            }
            for ((v, group), valid) in rest.iter().zip(rest_groups).zip(rest_valid) {
                take(0, *v, *group, *valid);
            }
        }
    }
    for (group, state) in state.iter_mut().enumerate() {
        *state = copies
            .iter()
            .fold(*state, |state, copy| meet(state, copy[group]));
    }
}

/// Folds all rows into one state.
#[inline(always)]
fn one<V: Copy, S: Copy>(piece: Piece<'_, V>, start: S, step: impl Fn(S, V, bool) -> S) -> S {
    match piece.valid {
        None => piece
            .values
            .iter()
            .fold(start, |state, v| step(state, *v, true)),
        Some(valid) => piece
            .values
            .iter()
            .zip(valid)
            .fold(start, |state, (v, valid)| step(state, *v, *valid)),
    }
}
