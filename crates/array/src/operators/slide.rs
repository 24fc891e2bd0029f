//! Sliding windows: what the values around each cell come to, one dimension after the other.
//!
//! Along a dimension, the joined values of windows of 1, 2, 4, 8 cells and so on are made from each other, and those whose
//! lengths add up to the window are joined: so a window of any length takes a number of steps that grows with the
//! logarithm of its length, no value is ever taken away again (an infinity or a NaN that has left the window has left no
//! trace), and what comes out depends on the values in the window alone, wherever it begins. Beyond the ends of the
//! array are values that change nothing.

use std::ops::Range;

use crate::data::region::Region;

/// Values that are worked on at a time: three such pieces fit in a second-level cache.
const TILE: usize = 8192;

/// Values of a strip that is cut out of long rows, at least.
const STRIP: usize = 64;

/// A window along one dimension.
#[derive(Debug, Clone, Copy)]
struct Along {
    /// Values along it that are there, that are added before and behind them, and that come out.
    length: usize,
    before: usize,
    behind: usize,
    out: usize,
}

impl Along {
    /// Values that are joined.
    fn window(&self) -> usize {
        self.before + self.length + self.behind + 1 - self.out
    }
}

/// Windows around the cells of a region.
#[derive(Debug, Clone)]
pub(crate) struct Sliding {
    along: Vec<Along>,
}

impl Sliding {
    /// So many cells before and after each cell of `region` along each dimension, of those that `wide` has.
    pub fn new(region: &Region, wide: &Region, around: &[(u64, u64)]) -> Sliding {
        let ranges = region.ranges().iter().zip(wide.ranges()).zip(around);
        let along = ranges.map(
            |((&(start, end), &(first, last)), &(before, after))| Along {
                length: (last - first) as usize,
                before: (before - (start - first)) as usize,
                behind: (after - (last - end)) as usize,
                out: (end - start) as usize,
            },
        );
        Sliding {
            along: along.collect(),
        }
    }

    /// How many cells each window has within the array, in row-major order.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![1u64];
        for of in &self.along {
            let window = of.window();
            let inside = |at: usize| {
                let (start, end) = (at.max(of.before), (at + window).min(of.before + of.length));
                (end - start) as u64
            };
            let lengths: Vec<u64> = (0..of.out).map(inside).collect();
            let of_each = counts
                .iter()
                .flat_map(|&count| lengths.iter().map(move |&length| count * length));
            counts = of_each.collect();
        }
        counts
    }

    /// What the values of each window come to, in row-major order. `values` are those of the wide region; `identity`
    /// changes nothing that it is joined with.
    #[inline(always)]
    pub fn join<A: Copy>(
        &self,
        mut values: Vec<A>,
        identity: A,
        join: impl Fn(A, A) -> A + Copy,
    ) -> Vec<A> {
        if self.along.iter().any(|of| of.out == 0) {
            return Vec::new();
        }
        for at in (0..self.along.len()).rev() {
            if self.along[at].window() > 1 {
                let outer = self.along[..at].iter().map(|of| of.length).product();
                let inner = self.along[at + 1..].iter().map(|of| of.out).product();
                let pass = Pass {
                    along: self.along[at],
                    outer,
                    inner,
                };
                values = pass.join(&values, identity, join);
            }
        }
        values
    }
}

/// A window along one dimension: how often there is such a dimension, and how many values lie at each place of it.
struct Pass {
    along: Along,
    outer: usize,
    inner: usize,
}

/// Values that are worked on, and room for others.
struct Tile<A> {
    values: Vec<A>,
    next: Vec<A>,
    joined: Vec<A>,
}

impl Pass {
    #[inline(always)]
    fn join<A: Copy>(&self, values: &[A], identity: A, join: impl Fn(A, A) -> A + Copy) -> Vec<A> {
        let Along {
            length,
            before,
            behind,
            out,
        } = self.along;
        let (rows, inner) = (before + length + behind, self.inner);
        let window = self.along.window();
        let mut tile = Tile {
            values: Vec::with_capacity(TILE),
            next: Vec::with_capacity(TILE),
            joined: Vec::with_capacity(TILE),
        };
        if rows * inner <= TILE {
            // Several at a time; what a window has of two of them is not looked at.
            let together = (TILE / (rows * inner).max(1)).max(1);
            let mut result = Vec::with_capacity(self.outer * out * inner);
            for several in values.chunks((length * inner).max(1) * together) {
                tile.values.clear();
                for one in several.chunks(length * inner) {
                    tile.add(identity, before * inner);
                    tile.values.extend_from_slice(one);
                    tile.add(identity, behind * inner);
                }
                let count = tile.values.len() / (rows * inner);
                tile.slide(window, inner, join);
                for one in 0..count {
                    let from = &tile.joined[one * rows * inner..];
                    result.extend_from_slice(&from[..out * inner]);
                }
            }
            return result;
        }
        // Strips of each, which are as wide as fits, but no narrower than some lines of the caches; and pieces of those.
        let mut result = vec![identity; self.outer * out * inner];
        let width = (TILE / rows).max(STRIP).min(inner);
        let piece = (TILE / width).saturating_sub(window).max(window).min(out);
        let all = values
            .chunks(length * inner)
            .zip(result.chunks_mut(out * inner));
        for (from, to) in all {
            for start in (0..inner).step_by(width) {
                let strip = start..inner.min(start + width);
                for first in (0..out).step_by(piece) {
                    let count = piece.min(out - first);
                    self.fill(
                        &mut tile,
                        from,
                        &strip,
                        first..first + count + window - 1,
                        identity,
                    );
                    tile.slide(window, strip.len(), join);
                    let rows = to[first * inner..].chunks_mut(inner).take(count);
                    for (row, joined) in rows.zip(tile.joined.chunks(strip.len())) {
                        row[strip.clone()].copy_from_slice(joined);
                    }
                }
            }
        }
        result
    }

    /// Puts a strip of some rows, of those before and behind too, into the tile.
    fn fill<A: Copy>(
        &self,
        tile: &mut Tile<A>,
        from: &[A],
        strip: &Range<usize>,
        rows: Range<usize>,
        identity: A,
    ) {
        let Along { length, before, .. } = self.along;
        let there = |row: usize| row.clamp(before, before + length);
        let (start, end) = (there(rows.start), there(rows.end));
        tile.values.clear();
        tile.add(identity, (start - rows.start) * strip.len());
        let source = &from[(start - before) * self.inner..(end - before) * self.inner];
        if strip.len() == self.inner {
            tile.values.extend_from_slice(source);
        } else {
            for row in source.chunks(self.inner) {
                tile.values.extend_from_slice(&row[strip.clone()]);
            }
        }
        tile.add(identity, (rows.end - end) * strip.len());
    }
}

/// The windows of a tile.
struct Slide<'a, A, J> {
    tile: &'a mut Tile<A>,
    window: usize,
    step: usize,
    join: J,
}

impl<A: Copy, J: Fn(A, A) -> A + Copy> algebra::Loop for Slide<'_, A, J> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.tile.slide_by(self.window, self.step, self.join);
    }
}

impl<A: Copy> Tile<A> {
    fn add(&mut self, value: A, count: usize) {
        self.values.resize(self.values.len() + count, value);
    }

    /// Joins `window` values, each `step` behind the last, from every value on that has as many.
    fn slide(&mut self, window: usize, step: usize, join: impl Fn(A, A) -> A + Copy) {
        let tile = self;
        algebra::vectorised(Slide {
            tile,
            window,
            step,
            join,
        });
    }

    #[inline(always)]
    fn slide_by(&mut self, window: usize, step: usize, join: impl Fn(A, A) -> A + Copy) {
        // `values` has the windows of `size`, `joined` those of `done` values.
        let (mut size, mut done) = (1, 0);
        loop {
            if window == size {
                std::mem::swap(&mut self.values, &mut self.joined);
                return;
            }
            if window & size != 0 {
                if done == 0 {
                    self.joined.clear();
                    self.joined.extend_from_slice(&self.values);
                } else {
                    let count = self.joined.len().saturating_sub(size * step);
                    self.joined.truncate(count);
                    let more = self.values.get(done * step..).unwrap_or_default();
                    for (all, &more) in self.joined.iter_mut().zip(more) {
                        *all = join(*all, more);
                    }
                }
                done += size;
            }
            if done == window {
                return;
            }
            let more = self.values.get(size * step..).unwrap_or_default();
            let both = self.values.iter().zip(more);
            self.next.clear();
            self.next.extend(both.map(|(&a, &b)| join(a, b)));
            std::mem::swap(&mut self.values, &mut self.next);
            size *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_have_the_cells_around(
            dimensions in prop::collection::vec((1..12u64, (0..14u64, 0..14u64), (0..12u64, 0..12u64)), 1..4),
            large in any::<bool>(),
        ) {
            // A long last dimension makes strips.
            let mut lengths: Vec<u64> = dimensions.iter().map(|of| of.0).collect();
            if large && lengths.len() == 2 {
                lengths[1] *= 400;
            }
            let around: Vec<(u64, u64)> = dimensions
                .iter()
                .zip(&lengths)
                .map(|(of, &length)| (of.1.0.min(length), of.1.1.min(length)))
                .collect();
            let region = Region::new(dimensions.iter().zip(&lengths).map(|(of, &length)| {
                let (a, b) = (of.2.0 % length, of.2.1 % length);
                (a.min(b), a.max(b) + 1)
            }));
            let all = region.ranges().iter().zip(&around).zip(&lengths);
            let wide = Region::new(all.map(|((&(start, end), &(before, after)), &length)| {
                (start.saturating_sub(before), (end + after).min(length))
            }));
            let cells = |of: &Region| -> Vec<Vec<u64>> {
                let axes = of.ranges().iter().map(|&(start, end)| (start..end).collect::<Vec<_>>());
                axes.fold(vec![Vec::new()], |all, axis| {
                    let each = |of: &Vec<u64>| axis.iter().map(|&at| [of.as_slice(), &[at]].concat()).collect::<Vec<_>>();
                    all.iter().flat_map(each).collect()
                })
            };
            let value = |at: &[u64]| at.iter().fold(1u64, |all, at| all.wrapping_mul(31).wrapping_add(*at));
            let values = cells(&wide).iter().map(|at| value(at)).collect();
            let sliding = Sliding::new(&region, &wide, &around);
            let sums = sliding.join(values, 0u64, u64::wrapping_add);
            let counts = sliding.counts();
            let centres = cells(&region);
            prop_assert_eq!(sums.len(), centres.len());
            for (number, at) in centres.iter().enumerate().step_by(1 + centres.len() / 50) {
                let around = at.iter().zip(&around).zip(&lengths);
                let window = Region::new(around.map(|((&at, &(before, after)), &length)| {
                    (at.saturating_sub(before), (at + after + 1).min(length))
                }));
                let window = cells(&window);
                let expected = window.iter().fold(0, |sum: u64, at| sum.wrapping_add(value(at)));
                prop_assert_eq!((sums[number], counts[number]), (expected, window.len() as u64));
            }
        }
    }
}
