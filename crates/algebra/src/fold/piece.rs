//! Vectors cut into pieces of at most [`ROWS`] rows.

use crate::vector::VECTOR_ROWS;

/// The most accumulators that are kept in registers (see the module).
pub const FEW: usize = 8;

/// Rows that are folded at once.
pub(super) const ROWS: usize = VECTOR_ROWS;

/// At most [`ROWS`] rows.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a, T> {
    pub(super) values: &'a [T],
    pub(super) groups: Option<&'a [u32]>,
    pub(super) valid: Option<&'a [bool]>,
}

/// Cuts a vector into pieces and checks that each group number is below `states`.
///
/// # Panics
/// When the lengths differ, and while iterating at a group number without a state.
#[inline(always)]
pub(super) fn pieces<'a, T>(
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
