//! How far grouping shrinks rows.

use algebra::krao::Groups;

use crate::operators::aggregate::grouping::chunks::Chunks;

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

/// How many different keys some of the groups have, those of closed chunks and those of the open one, by their hashes; and how many
/// groups these are.
pub(super) fn different(open: &Groups, closed: &Chunks) -> (usize, usize) {
    let groups = closed.groups() + open.len();
    let bits = (groups / SAMPLE).max(1).ilog2();
    let of_first = |hash: &&u64| hash.checked_shr(64 - bits).unwrap_or(0) == 0;
    let closed = closed.iter().flat_map(|chunk| chunk.first_hashes(bits));
    let hashes = closed.chain(open.hashes()).filter(of_first);
    let mut hashes: Vec<u64> = hashes.copied().collect();
    let all = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    (hashes.len(), all)
}
