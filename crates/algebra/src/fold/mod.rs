//! Fold: sums, counts and extremes per group.
//!
//! States are slices indexed by group number, and as long as there are groups: for up to
//! [`FEW`] states each vector is folded by masks in registers, and above by scattering. Without
//! group numbers (`None`) there is one group. Rows that are not valid are left out; a group that
//! had no valid row keeps its state, which is why extremes have `seen`, and sums a count beside
//! them.
//!
//! Sums of integers are exact: into 128 bits, or into 64 where bounds proved that no sum
//! overflows. Sums of floats depend on the order of rows, within rounding.

mod extremes;
mod few;
mod sums;

pub use extremes::{max_f64, max_i64, max_i128, min_f64, min_i64, min_i128};
pub use sums::{count, sum_f64, sum_i64, sum_i64_small, sum_i128};

/// The most states that are folded by masks.
pub const FEW: usize = 8;

/// Rows that are folded at once.
const ROWS: usize = crate::VECTOR_ROWS;

/// A group that is none: of rows that are not valid.
const NONE: u32 = u32::MAX;

/// Cuts a vector into pieces of at most [`ROWS`] rows and gives each with its group numbers.
#[inline(always)]
fn pieces<'a, T>(
    groups: Option<&'a [u32]>,
    values: &'a [T],
    valid: Option<&'a [bool]>,
) -> impl Iterator<Item = Piece<'a, T>> {
    assert!(
        groups.is_none_or(|g| g.len() == values.len()),
        "one group number per value"
    );
    assert!(
        valid.is_none_or(|v| v.len() == values.len()),
        "one validity per value"
    );
    values.chunks(ROWS).enumerate().map(move |(piece, values)| {
        let rows = piece * ROWS..piece * ROWS + values.len();
        Piece {
            values,
            groups: groups.map(|g| &g[rows.clone()]),
            valid: valid.map(|v| &v[rows.clone()]),
        }
    })
}

/// At most [`ROWS`] rows.
#[derive(Clone, Copy)]
struct Piece<'a, T> {
    values: &'a [T],
    groups: Option<&'a [u32]>,
    valid: Option<&'a [bool]>,
}

impl<'a, T> Piece<'a, T> {
    /// The group of each row, [`NONE`] where it is not valid.
    #[inline(always)]
    fn numbers(self, scratch: &'a mut [u32; ROWS]) -> &'a [u32] {
        let scratch = &mut scratch[..self.values.len()];
        match (self.groups, self.valid) {
            (Some(groups), None) => return groups,
            (Some(groups), Some(valid)) => {
                for (number, (group, valid)) in scratch.iter_mut().zip(groups.iter().zip(valid)) {
                    *number = if *valid { *group } else { NONE };
                }
            }
            (None, Some(valid)) => {
                for (number, valid) in scratch.iter_mut().zip(valid) {
                    *number = if *valid { 0 } else { NONE };
                }
            }
            (None, None) => scratch.fill(0),
        }
        scratch
    }
}
