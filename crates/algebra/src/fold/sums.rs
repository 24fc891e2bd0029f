//! Counts and sums.

use super::{FEW, Piece, ROWS, few, pieces};
use crate::level::dispatched;
use crate::lift::Overflow;

/// Sums of [`ROWS`] values below this do not overflow 64 bits.
const SHORT: u32 = 63 - ROWS.ilog2();

dispatched! {
    /// Adds to each state the number of its valid rows, of `rows`.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn count(groups: Option<&[u32]>, rows: usize, valid: Option<&[bool]>, state: &mut [i64]) {
        assert!(groups.is_none_or(|g| g.len() == rows), "one group number per row");
        assert!(valid.is_none_or(|v| v.len() == rows), "one validity per row");
        match (groups, valid) {
            (None, None) => state[0] += rows as i64,
            (None, Some(valid)) => state[0] += crate::filter::count(valid) as i64,
            (Some(groups), _) => {
                for piece in pieces(None, groups, valid) {
                    let piece = Piece { values: piece.values, groups: Some(piece.values), valid: piece.valid };
                    count_piece(piece, state);
                }
            }
        }
    }

    /// Adds to each state the sum of its valid rows.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_i64(groups: Option<&[u32]>, values: &[i64], valid: Option<&[bool]>, state: &mut [i128]) {
        for piece in pieces(groups, values, valid) {
            let widest = piece.values.iter().fold(0, |all, v| all | v ^ (v >> 63));
            if state.len() <= FEW && 64 - widest.leading_zeros() <= SHORT {
                let mut sums = [0; FEW];
                let sums = &mut sums[..state.len()];
                sum_few(piece, sums);
                state.iter_mut().zip(sums).for_each(|(state, sum)| *state += i128::from(*sum));
            } else {
                scatter(piece, state, |state, v, valid| *state += if valid { i128::from(v) } else { 0 });
            }
        }
    }

    /// As [`sum_i64`], where bounds prove that no sum overflows; wraps if one does.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_i64_small(groups: Option<&[u32]>, values: &[i64], valid: Option<&[bool]>, state: &mut [i64]) {
        for piece in pieces(groups, values, valid) {
            if state.len() <= FEW {
                sum_few(piece, state);
            } else {
                scatter(piece, state, |state, v, valid| {
                    *state = state.wrapping_add(if valid { v } else { 0 });
                });
            }
        }
    }

    /// As [`sum_i64`], of 128-bit integers. After an error the states are of no use.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_i128(groups: Option<&[u32]>, values: &[i128], valid: Option<&[bool]>, state: &mut [i128]) -> Result<(), Overflow> {
        let mut wrong = false;
        for piece in pieces(groups, values, valid) {
            scatter(piece, state, |state, v, valid| {
                let (sum, over) = state.overflowing_add(if valid { v } else { 0 });
                *state = sum;
                wrong |= over;
            });
        }
        if wrong { Err(Overflow) } else { Ok(()) }
    }

    /// Adds to each state the sum of its valid rows, in an order of the kernel's choice.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_f64(groups: Option<&[u32]>, values: &[f64], valid: Option<&[bool]>, state: &mut [f64]) {
        for piece in pieces(groups, values, valid) {
            if state.len() <= FEW {
                let numbers = &mut [0; ROWS];
                let numbers = piece.numbers(numbers);
                let step = |sum: f64, v: f64, here: bool| sum + if here { v } else { 0.0 };
                few::fold(numbers, piece.values, state, 0.0, step, |a, b| a + b);
            } else {
                scatter(piece, state, |state, v, valid| *state += if valid { v } else { 0.0 });
            }
        }
    }
}

#[inline(always)]
fn count_piece(piece: Piece<'_, u32>, state: &mut [i64]) {
    if state.len() <= FEW {
        let numbers = &mut [0; ROWS];
        let numbers = piece.numbers(numbers);
        let mut counts = [0u32; FEW];
        let counts = &mut counts[..state.len()];
        let step = |count: u32, _, here: bool| count + u32::from(here);
        few::fold(numbers, piece.values, counts, 0, step, |a, b| a + b);
        state
            .iter_mut()
            .zip(counts)
            .for_each(|(state, count)| *state += i64::from(*count));
    } else {
        scatter(piece, state, |state, _, valid| *state += i64::from(valid));
    }
}

#[inline(always)]
fn sum_few(piece: Piece<'_, i64>, state: &mut [i64]) {
    let numbers = &mut [0; ROWS];
    let numbers = piece.numbers(numbers);
    let step = |sum: i64, v: i64, here: bool| sum.wrapping_add(if here { v } else { 0 });
    few::fold(numbers, piece.values, state, 0, step, i64::wrapping_add);
}

/// Takes each row to the state of its group.
#[inline(always)]
fn scatter<V: Copy, S>(
    piece: Piece<'_, V>,
    state: &mut [S],
    mut take: impl FnMut(&mut S, V, bool),
) {
    match (piece.groups, piece.valid) {
        (None, None) => {
            let state = &mut state[0];
            piece.values.iter().for_each(|v| take(state, *v, true));
        }
        (None, Some(valid)) => {
            let state = &mut state[0];
            piece
                .values
                .iter()
                .zip(valid)
                .for_each(|(v, valid)| take(state, *v, *valid));
        }
        (Some(groups), None) => {
            for (v, group) in piece.values.iter().zip(groups) {
                take(&mut state[*group as usize], *v, true);
            }
        }
        (Some(groups), Some(valid)) => {
            for ((v, group), valid) in piece.values.iter().zip(groups).zip(valid) {
                take(&mut state[*group as usize], *v, *valid);
            }
        }
    }
}
