//! Parts of chunks cut into pieces of a bounded number of cells.

use std::sync::Arc;

use array::Region;

use crate::scan::arrays::prune::Wanted;

/// The most cells of a piece.
pub(super) const CELLS: u64 = 1 << 16;

/// The pieces of a scan, in the order of the chunks and within each in the order of its cells.
#[derive(Debug)]
pub(super) struct Pieces {
    wanted: Arc<Wanted>,
    /// The next chunk.
    next: usize,
    /// What is left of the last one, backwards.
    left: Vec<Region>,
}

impl Pieces {
    pub(super) fn new(wanted: Arc<Wanted>) -> Pieces {
        Pieces {
            wanted,
            next: 0,
            left: Vec::new(),
        }
    }
}

impl Iterator for Pieces {
    type Item = Region;

    fn next(&mut self) -> Option<Region> {
        while self.left.is_empty() {
            let chunk = self.wanted.chunks.get(self.next)?;
            self.next += 1;
            self.left = cut(chunk, CELLS);
            self.left.reverse();
        }
        self.left.pop()
    }
}

/// Cuts a region into parts of at most `most` cells, which follow each other in row-major order: single positions along the
/// outer dimensions, ranges along one, all of the inner ones.
fn cut(region: &Region, most: u64) -> Vec<Region> {
    let lengths = region.shape();
    let mut inner = 1u64;
    let mut at = lengths.len();
    while at > 0 && inner.saturating_mul(lengths[at - 1]) <= most {
        inner *= lengths[at - 1];
        at -= 1;
    }
    let Some(ranged) = at.checked_sub(1) else {
        return vec![region.clone()];
    };
    let step = (most / inner).max(1);
    let mut parts = vec![region.ranges().to_vec()];
    for dimension in 0..=ranged {
        let step = if dimension == ranged { step } else { 1 };
        let (start, end) = region.ranges()[dimension];
        parts = parts
            .iter()
            .flat_map(|part| {
                let starts = (0..(end - start).div_ceil(step)).map(move |of| start + of * step);
                starts.map(move |from| {
                    let mut part = part.clone();
                    part[dimension] = (from, end.min(from + step));
                    part
                })
            })
            .collect();
    }
    parts.into_iter().map(Region::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_are_small_enough() {
        let region = Region::new([(2, 4), (0, 5), (1, 4)]);
        for most in 1..40 {
            let parts = cut(&region, most);
            let cells: Vec<u64> = parts
                .iter()
                .map(|part| part.shape().iter().product())
                .collect();
            assert_eq!(cells.iter().sum::<u64>(), 30, "{most}");
            assert!(cells.iter().all(|&cells| cells > 0 && cells <= most.max(1)));
            let starts: Vec<Vec<u64>> = parts
                .iter()
                .map(|part| part.ranges().iter().map(|range| range.0).collect())
                .collect();
            assert!(starts.is_sorted());
        }
        assert_eq!(cut(&region, 30), [region.clone()]);
        assert_eq!(cut(&region, 6).len(), 6);
    }

    #[test]
    fn chunks_come_one_after_the_other() {
        let chunks = vec![Region::new([(0, 2)]), Region::new([(4, 6)])];
        let pieces = Pieces::new(Arc::new(Wanted { chunks, of: 9 }));
        let found: Vec<_> = pieces.collect();
        assert_eq!(found, [Region::new([(0, 2)]), Region::new([(4, 6)])]);
    }
}
