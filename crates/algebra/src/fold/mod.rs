//! Fold: sums, counts and extremes per group.
//!
//! States are slices indexed by group number, and as long as there are groups. With AVX-512 up to
//! [`FEW`] states are folded by masks in registers; elsewhere, and above, rows are scattered.
//! Without group numbers (`None`) all rows go to the first state. Rows that are not valid are left
//! out; a group that had no valid row keeps its state, which is why extremes have `seen`, and sums
//! a count beside them. A selection may be given as validity instead of being applied first.
//!
//! Sums of integers are exact: into 128 bits, or into 64 where bounds proved that no sum
//! overflows. Sums of floats depend on the order of rows, within rounding.

mod extremes;
#[cfg(target_arch = "x86_64")]
mod few;
mod scatter;
mod sums;

pub use extremes::{max_f64, max_i64, max_i128, min_f64, min_i64, min_i128};
pub use sums::{count, sum_f64, sum_i64, sum_i64_small, sum_i128};

/// The most states that are folded by masks.
pub const FEW: usize = 8;

/// Rows that are folded at once.
const ROWS: usize = crate::VECTOR_ROWS;

/// At most [`ROWS`] rows.
#[derive(Clone, Copy)]
struct Piece<'a, T> {
    values: &'a [T],
    groups: Option<&'a [u32]>,
    valid: Option<&'a [bool]>,
}

/// Cuts a vector into pieces, whose group numbers all have one of `states` states.
#[inline(always)]
fn pieces<'a, T>(
    groups: Option<&'a [u32]>,
    values: &'a [T],
    valid: Option<&'a [bool]>,
    states: usize,
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
        let groups = groups.map(|g| &g[rows.clone()]);
        let greatest = groups
            .unwrap_or_default()
            .iter()
            .fold(0, |most, g| most.max(*g));
        assert!((greatest as usize) < states, "a group without a state");
        Piece {
            values,
            groups,
            valid: valid.map(|v| &v[rows]),
        }
    })
}
