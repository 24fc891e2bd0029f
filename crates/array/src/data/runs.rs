//! Copying a box out of one array in memory into another: the runs of neighbouring cells that both share.

use algebra::copy::Target;

use crate::data::region::Region;
use crate::model::schema::MAX_DIMENSIONS;

/// How a box of cells lies in a source and in a target, both in row-major order: runs of bytes that are contiguous in
/// both, and the steps from each to the next. Dimensions along which both go on without a gap are merged.
///
/// It is consumed while it copies: [`copy`](Runs::copy) takes the source piece by piece, in rising order, and
/// [`next`](Runs::next) tells which byte of the source is wanted next.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    /// Bytes of a run.
    run: usize,
    /// How many runs, and the bytes from each to the next in source and target, from the innermost outwards.
    steps: [Step; MAX_DIMENSIONS],
    rank: usize,
    /// How many runs of each step are done.
    done: [usize; MAX_DIMENSIONS],
    /// Where the current run is in source and target, and how many of its bytes are done.
    source: usize,
    target: usize,
    within: usize,
    finished: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Step {
    count: usize,
    source: usize,
    target: usize,
}

/// How a run's bytes get to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stores {
    /// Through the caches.
    Cached,
    /// Past them, where a run is long enough.
    Streaming,
}

impl Runs {
    /// The runs of `common`, in cells of `width` bytes, from an array that holds `source` to one that holds `target`.
    ///
    /// # Panics
    /// If one of them does not contain `common`, or they have more than the most dimensions.
    pub fn new(width: usize, common: &Region, source: &Region, target: &Region) -> Runs {
        assert!(
            source.contains(common) && target.contains(common),
            "within both"
        );
        assert!(
            common.rank() <= MAX_DIMENSIONS,
            "at most {MAX_DIMENSIONS} dimensions"
        );
        let mut runs = Runs {
            run: width,
            steps: [Step::default(); MAX_DIMENSIONS],
            rank: 0,
            done: [0; MAX_DIMENSIONS],
            source: 0,
            target: 0,
            within: 0,
            finished: common.is_empty(),
        };
        if runs.finished {
            return runs;
        }
        let (mut in_source, mut in_target) = (width, width);
        for at in (0..common.rank()).rev() {
            let count = common.length(at) as usize;
            runs.source += (common.start(at) - source.start(at)) as usize * in_source;
            runs.target += (common.start(at) - target.start(at)) as usize * in_target;
            runs.add(Step {
                count,
                source: in_source,
                target: in_target,
            });
            in_source *= source.length(at) as usize;
            in_target *= target.length(at) as usize;
        }
        runs
    }

    /// Adds a step outside of those there are.
    fn add(&mut self, step: Step) {
        if step.count == 1 {
            return;
        }
        let (source, target) = match self.rank.checked_sub(1) {
            None => (self.run, self.run),
            Some(inner) => {
                let inner = self.steps[inner];
                (inner.source * inner.count, inner.target * inner.count)
            }
        };
        if (step.source, step.target) != (source, target) {
            self.steps[self.rank] = step;
            self.rank += 1;
        } else if self.rank == 0 {
            self.run *= step.count;
        } else {
            self.steps[self.rank - 1].count *= step.count;
        }
    }

    /// Bytes of a run.
    #[cfg(test)]
    pub fn run(&self) -> usize {
        self.run
    }

    /// Bytes of the source from a run to the next; the length of a run where there is only one.
    pub fn stride(&self) -> usize {
        if self.rank == 0 {
            self.run
        } else {
            self.steps[0].source
        }
    }

    /// The byte of the source that is copied next; `None` once all are.
    pub fn next(&self) -> Option<usize> {
        (!self.finished).then_some(self.source + self.within)
    }

    /// Asks for the first runs that lie in `piece`, the bytes of the source from `start`, of which nothing is wanted yet: the
    /// piece after the one that is copied next. The processor does not see them coming by itself. A hint, which is left out
    /// where the innermost step ends before.
    pub fn expect(&self, start: usize, piece: &[u8]) {
        let step = self.steps[0];
        if self.rank == 0 || step.source < self.run {
            return;
        }
        let ahead = start.saturating_sub(self.source).div_ceil(step.source);
        if ahead < step.count - self.done[0] {
            let first = self.source + ahead * step.source - start;
            algebra::copy::expect(piece, first, step.source);
        }
    }

    /// Copies what lies in `piece`, the bytes of the source from `start`. Returns whether all is copied.
    ///
    /// # Panics
    /// If the piece begins behind [`next`](Runs::next), or `target` ends within a run.
    pub fn copy(
        &mut self,
        start: usize,
        piece: &[u8],
        mut target: Target<'_>,
        stores: Stores,
    ) -> bool {
        let end = start + piece.len();
        while !self.finished && self.source + self.within < end {
            if self.within == 0 && self.source + self.run <= end {
                self.copy_whole(start, piece, target.reborrow(), stores);
                continue;
            }
            // A run that begins or ends in another piece.
            let from = self.source + self.within;
            let length = (self.run - self.within).min(end - from);
            let bytes = &piece[from - start..][..length];
            let mut target = target.part(self.target + self.within, length);
            match stores {
                Stores::Cached => target.copy_from(bytes),
                Stores::Streaming => {
                    algebra::copy::strided_streaming(length, 1, bytes, length, target, length);
                }
            }
            self.within += length;
            if self.within == self.run {
                self.within = 0;
                self.advance(1);
            }
        }
        self.finished
    }

    /// Copies the current run, and those of the innermost step after it that end in the same piece.
    fn copy_whole(&mut self, start: usize, piece: &[u8], mut target: Target<'_>, stores: Stores) {
        let end = start + piece.len();
        let mut count = 1;
        let mut step = Step {
            count: 1,
            source: self.run,
            target: self.run,
        };
        if self.rank > 0 {
            step = self.steps[0];
            let left = step.count - self.done[0];
            count += ((end - self.source - self.run) / step.source).min(left - 1);
        }
        // Bounds are checked here, once for all of these runs.
        let source = &piece[self.source - start..][..(count - 1) * step.source + self.run];
        let target = target.part(self.target, (count - 1) * step.target + self.run);
        let steps = (step.source, step.target);
        match stores {
            Stores::Cached => {
                algebra::copy::strided(self.run, count, source, steps.0, target, steps.1)
            }
            Stores::Streaming => {
                algebra::copy::strided_streaming(self.run, count, source, steps.0, target, steps.1);
            }
        }
        self.advance(count);
    }

    /// Goes on by `count` runs of the innermost step, no more than are left of it.
    fn advance(&mut self, count: usize) {
        let mut count = count;
        for at in 0..self.rank {
            let step = self.steps[at];
            self.source += count * step.source;
            self.target += count * step.target;
            self.done[at] += count;
            if self.done[at] < step.count {
                return;
            }
            // Back to the first, and one further outside.
            self.source -= step.count * step.source;
            self.target -= step.count * step.target;
            self.done[at] = 0;
            count = 1;
        }
        self.finished = true;
    }
}

/// Copies `common` from bytes of `source` to bytes of `target`, both row-major, of cells of `width` bytes.
pub(crate) fn copy_box(
    width: usize,
    common: &Region,
    (source, from): (&Region, &[u8]),
    (target, to): (&Region, &mut [u8]),
) {
    Runs::new(width, common, source, target).copy(0, from, to.into(), Stores::Cached);
}

/// Sets the bytes of `common` in a mask over `target`, a byte for each cell.
pub(crate) fn fill_box(common: &Region, (target, mask): (&Region, &mut [u8]), value: u8) {
    each_run(common, target, target, |at, _, cells| {
        mask[at..at + cells].fill(value)
    });
}

/// Calls `each` with every run of `common`: the number of its first cell in `source` and in `target`, both row-major, and
/// how many cells it has.
pub(crate) fn each_run(
    common: &Region,
    source: &Region,
    target: &Region,
    mut each: impl FnMut(usize, usize, usize),
) {
    let mut runs = Runs::new(1, common, source, target);
    while !runs.finished {
        each(runs.source, runs.target, runs.run);
        runs.advance(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A box within `shape`, as (start, length) parts of its lengths.
    fn inside(shape: &[u64], parts: &[(u64, u64)]) -> Region {
        Region::new(shape.iter().zip(parts).map(|(&length, &(a, b))| {
            let (a, b) = (a % (length + 1), b % (length + 1));
            (a.min(b), a.max(b))
        }))
    }

    proptest! {
        #[test]
        fn it_copies_what_a_loop_over_cells_copies(
            shape in prop::collection::vec(1..6u64, 1..5),
            parts in prop::collection::vec((0..7u64, 0..7u64), 5),
            width in prop::sample::select(vec![1usize, 2, 4, 8]),
            piece in 1..70usize,
            around in 0..3u64,
            streaming: bool,
        ) {
            let source = Region::of_shape(&shape);
            let common = inside(&shape, &parts);
            // The target is a little larger than what is copied, and begins before it.
            let target = Region::new(common.ranges().iter().map(|&(s, e)| (s.saturating_sub(around), e + around)));
            let count = |region: &Region| region.cells("").unwrap() * width;
            let from: Vec<u8> = (0..count(&source)).map(|at| at as u8 ^ (at >> 8) as u8).collect();
            let mut to = vec![255; count(&target)];
            let mut runs = Runs::new(width, &common, &source, &target);
            let stores = if streaming { Stores::Streaming } else { Stores::Cached };
            // Pieces of the source in rising order, those only that are wanted.
            let mut wanted = Vec::new();
            while let Some(next) = runs.next() {
                let number = next / piece;
                prop_assert!(wanted.last().is_none_or(|&last| last < number), "rising");
                wanted.push(number);
                let start = number * piece;
                let end = (start + piece).min(from.len());
                runs.expect(end, &from[end..]);
                runs.copy(start, &from[start..end], to.as_mut_slice().into(), stores);
            }
            let mut expected = vec![255; count(&target)];
            let offset = |region: &Region, cell: &[u64]| {
                (0..region.rank()).fold(0, |sum, at| {
                    sum * region.length(at) as usize + (cell[at] - region.start(at)) as usize
                }) * width
            };
            let grid = crate::data::grid::Grid::of_axes(
                shape.iter().map(|&length| crate::data::grid::Axis::Regular { length, chunk: 1 }).collect(),
            );
            for cell in grid.overlapping(&common) {
                let (a, b) = (offset(&source, &cell), offset(&target, &cell));
                expected[b..b + width].copy_from_slice(&from[a..a + width]);
            }
            prop_assert_eq!(to, expected);
        }
    }

    #[test]
    fn dimensions_without_gaps_are_merged() {
        let whole = Region::of_shape(&[4, 5, 6]);
        let runs = Runs::new(8, &whole, &whole, &whole);
        assert_eq!((runs.run(), runs.rank), (4 * 5 * 6 * 8, 0));
        let part = Region::new([(1, 3), (0, 5), (0, 6)]);
        assert_eq!(Runs::new(8, &part, &whole, &part).run(), 2 * 5 * 6 * 8);
        let part = Region::new([(0, 4), (1, 3), (0, 6)]);
        let runs = Runs::new(8, &part, &whole, &part);
        assert_eq!(
            (runs.run(), runs.rank, runs.stride()),
            (2 * 6 * 8, 1, 5 * 6 * 8)
        );
        let part = Region::new([(0, 4), (0, 5), (2, 3)]);
        let runs = Runs::new(8, &part, &whole, &part);
        assert_eq!((runs.run(), runs.rank), (8, 1), "20 runs, 48 bytes apart");
    }
}
