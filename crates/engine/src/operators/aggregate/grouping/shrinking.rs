//! How far grouping shrinks rows.

use algebra::krao::Groups;

/// Groups from which on it is looked at how far grouping shrinks the rows.
pub(super) const FIRST_LOOK: usize = 1 << 16;

/// Groups of a partition that tells how many of loose groups are different, about.
const SAMPLE: usize = 1 << 14;

/// How far grouping shrinks rows.
#[derive(Debug)]
pub(super) struct Shrinking {
    /// Rows that were added since the last look.
    pub rows: usize,
    /// The number of groups at the last look, and that at which it is looked again.
    pub groups: usize,
    pub next: usize,
}

impl Default for Shrinking {
    fn default() -> Shrinking {
        Shrinking {
            rows: 0,
            groups: 0,
            next: FIRST_LOOK,
        }
    }
}

/// How many different keys some of the groups have, by their hashes; and how many groups these are.
pub(super) fn different(groups: &Groups) -> (usize, usize) {
    let bits = (groups.len() / SAMPLE).max(1).ilog2();
    let of_first = |hash: &&u64| hash.checked_shr(64 - bits).unwrap_or(0) == 0;
    let mut hashes: Vec<u64> = groups.hashes().iter().filter(of_first).copied().collect();
    let all = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    (hashes.len(), all)
}
