//! Folding into few groups: each row is compared with each group number, and what is not the
//! group's is masked. Lanes are accumulated apart, so no addition waits for a store.

use super::FEW;

/// Rows that are folded side by side.
const LANES: usize = 8;

/// Folds `values` into `into`, at most [`FEW`] states: lanes begin at `start`, rows are taken by
/// `step`, lanes and the state meet in `meet`.
#[inline(always)]
pub(super) fn fold<V: Copy, S: Copy>(
    groups: &[u32],
    values: &[V],
    into: &mut [S],
    start: S,
    step: impl Fn(S, V, bool) -> S,
    meet: impl Fn(S, S) -> S,
) {
    match into.len() {
        0 => {}
        1 => lanes::<1, V, S>(groups, values, into, start, step, meet),
        2 => lanes::<2, V, S>(groups, values, into, start, step, meet),
        3..=4 => lanes::<4, V, S>(groups, values, into, start, step, meet),
        _ => lanes::<FEW, V, S>(groups, values, into, start, step, meet),
    }
}

#[inline(always)]
fn lanes<const G: usize, V: Copy, S: Copy>(
    groups: &[u32],
    values: &[V],
    into: &mut [S],
    start: S,
    step: impl Fn(S, V, bool) -> S,
    meet: impl Fn(S, S) -> S,
) {
    let mut sums = [[start; LANES]; G];
    let (whole, rest) = values.as_chunks::<LANES>();
    let (whole_groups, rest_groups) = groups.as_chunks::<LANES>();
    for (values, groups) in whole.iter().zip(whole_groups) {
        for (group, sums) in sums.iter_mut().enumerate() {
            for lane in 0..LANES {
                sums[lane] = step(sums[lane], values[lane], groups[lane] == group as u32);
            }
        }
    }
    for (value, number) in rest.iter().zip(rest_groups) {
        for (group, sums) in sums.iter_mut().enumerate() {
            sums[0] = step(sums[0], *value, *number == group as u32);
        }
    }
    for (state, sums) in into.iter_mut().zip(sums) {
        *state = sums.into_iter().fold(*state, &meet);
    }
}
