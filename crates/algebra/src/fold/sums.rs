//! Counts and sums.

#[cfg(target_arch = "x86_64")]
use super::few;
use super::piece::{Piece, ROWS, pieces};
use super::scatter;
use crate::level::dispatched;
use crate::lift::Overflow;

/// Sums of [`ROWS`] values of so many bits do not overflow 64.
const SHORT: u32 = 63 - ROWS.ilog2();

/// States that are summed in 64 bits before they go to 128.
const LOCAL: usize = 128;

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
                for piece in pieces(Some(groups), groups, valid, state.len()) {
                    #[cfg(target_arch = "x86_64")]
                    if few::count(piece.values, piece.valid, state) {
                        continue;
                    }
                    let step = |count: i64, _, valid: bool| count + i64::from(valid);
                    scatter::fold(piece, state, 0, step, |a, b| a + b);
                }
            }
        }
    }

    /// Adds to each state the sum of its valid rows.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_i64(
        groups: Option<&[u32]>, values: &[i64], valid: Option<&[bool]>, state: &mut [i128],
    ) {
        for piece in pieces(groups, values, valid, state.len()) {
            let widest = piece.values.iter().fold(0, |all, v| all | v ^ (v >> 63));
            let states = if groups.is_some() { state.len() } else { 1 };
            if states <= LOCAL && 64 - widest.leading_zeros() <= SHORT {
                let mut sums = [0; LOCAL];
                let sums = &mut sums[..states];
                sum_piece(piece, sums);
                state.iter_mut().zip(sums).for_each(|(state, sum)| *state += i128::from(*sum));
            } else {
                let step = |sum, v, valid| sum + if valid { i128::from(v) } else { 0 };
                scatter::fold(piece, state, 0, step, |a, b| a + b);
            }
        }
    }

    /// As [`sum_i64`], where bounds prove that no sum overflows; wraps if one does.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_i64_small(
        groups: Option<&[u32]>, values: &[i64], valid: Option<&[bool]>, state: &mut [i64],
    ) {
        for piece in pieces(groups, values, valid, state.len()) {
            sum_piece(piece, state);
        }
    }

    /// As [`sum_i64`], of 128-bit integers. After an error the states are of no use.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_i128(
        groups: Option<&[u32]>, values: &[i128], valid: Option<&[bool]>, state: &mut [i128],
    ) -> Result<(), Overflow> {
        let mut wrong = false;
        for piece in pieces(groups, values, valid, state.len()) {
            for (row, v) in piece.values.iter().enumerate() {
                let v = if piece.valid.is_none_or(|valid| valid[row]) { *v } else { 0 };
                let state = &mut state[piece.groups.map_or(0, |g| g[row] as usize)];
                let (sum, over) = state.overflowing_add(v);
                *state = sum;
                wrong |= over;
            }
        }
        if wrong { Err(Overflow) } else { Ok(()) }
    }

    /// Adds to each state the sum of its valid rows, in an order of the kernel's choice. A state of -0 without valid rows stays so,
    /// and so does one with rows of -0 alone.
    ///
    /// # Panics
    /// When lengths differ, or a group number has no state.
    pub fn sum_f64(
        groups: Option<&[u32]>, values: &[f64], valid: Option<&[bool]>, state: &mut [f64],
    ) {
        for piece in pieces(groups, values, valid, state.len()) {
            #[cfg(target_arch = "x86_64")]
            if let Some((sums, _)) = few::fold::<{ few::SUM_F64 }, f64>(piece, state.len()) {
                for (state, sum) in state.iter_mut().zip(sums) {
                    *state += f64::from_bits(sum);
                }
                continue;
            }
            if piece.groups.is_none() {
                state[0] += sum_lanes(piece);
                continue;
            }
            let step = |sum, v, valid| sum + if valid { v } else { NOTHING };
            scatter::fold(piece, state, NOTHING, step, |a, b| a + b);
        }
    }
}

/// Sums in 64 bits, wrapping.
#[inline(always)]
fn sum_piece(piece: Piece<'_, i64>, state: &mut [i64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some((sums, _)) = few::fold::<{ few::SUM }, i64>(piece, state.len()) {
        for (state, sum) in state.iter_mut().zip(sums) {
            *state = state.wrapping_add(sum as i64);
        }
        return;
    }
    let step = |sum: i64, v, valid| sum.wrapping_add(if valid { v } else { 0 });
    scatter::fold(piece, state, 0, step, i64::wrapping_add);
}

/// What changes no float that is added to it: 0 would change -0.
const NOTHING: f64 = -0.0;

/// Floats that are added side by side.
const LANES: usize = 32;

/// The sum of all rows. The compiler may not change the order of additions, so lanes are written.
#[inline(always)]
fn sum_lanes(piece: Piece<'_, f64>) -> f64 {
    let mut sums = [NOTHING; LANES];
    match piece.valid {
        None => {
            let (whole, rest) = piece.values.as_chunks::<LANES>();
            for values in whole {
                sums.iter_mut().zip(values).for_each(|(sum, v)| *sum += v);
            }
            sums.iter_mut().zip(rest).for_each(|(sum, v)| *sum += v);
        }
        Some(valid) => {
            let (whole, rest) = piece.values.as_chunks::<LANES>();
            let (whole_valid, rest_valid) = valid.as_chunks::<LANES>();
            let take = |(sum, (v, valid)): (&mut f64, (&f64, &bool))| {
                *sum += if *valid { *v } else { NOTHING };
            };
            for (values, valid) in whole.iter().zip(whole_valid) {
                sums.iter_mut().zip(values.iter().zip(valid)).for_each(take);
            }
            sums.iter_mut()
                .zip(rest.iter().zip(rest_valid))
                .for_each(take);
        }
    }
    sums.iter().fold(NOTHING, |sum, lane| sum + lane)
}
