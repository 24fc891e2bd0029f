//! How an array is cut into chunks.

use crate::data::region::Region;
use crate::model::schema::Schema;

/// The chunks of an array: each dimension is cut in regular steps, or at given positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    axes: Vec<Axis>,
}

/// How a dimension is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Every so many cells.
    Regular { length: u64, chunk: u64 },
    /// At these positions, of which the first is 0 and the last the length.
    Uneven(Vec<u64>),
}

impl Axis {
    /// How many chunks there are along it.
    pub fn count(&self) -> u64 {
        match self {
            Axis::Regular { length, chunk } => length.div_ceil(*chunk),
            Axis::Uneven(cuts) => cuts.len().saturating_sub(1) as u64,
        }
    }

    /// The number of the chunk that has a position.
    fn find(&self, position: u64) -> u64 {
        match self {
            Axis::Regular { chunk, .. } => position / chunk,
            Axis::Uneven(cuts) => cuts.partition_point(|&cut| cut <= position) as u64 - 1,
        }
    }

    /// The positions of a chunk.
    fn range(&self, number: u64) -> (u64, u64) {
        match self {
            Axis::Regular { length, chunk } => {
                let start = number * chunk;
                (start, (*length).min(start.saturating_add(*chunk)))
            }
            Axis::Uneven(cuts) => (cuts[number as usize], cuts[number as usize + 1]),
        }
    }

    /// The chunks from one position to before another, as an axis of its own that begins at 0.
    pub fn part(&self, start: u64, end: u64) -> Axis {
        let mut cuts = vec![0];
        if start < end {
            let inner =
                (self.find(start)..self.find(end - 1)).map(|number| self.range(number).1 - start);
            cuts.extend(inner);
            cuts.push(end - start);
        }
        Axis::Uneven(cuts)
    }
}

impl Grid {
    /// The regular chunks of a schema.
    pub fn of(schema: &Schema) -> Grid {
        let axis = |of: &crate::model::dimension::Dimension| Axis::Regular {
            length: of.length,
            chunk: of.chunk,
        };
        Grid {
            axes: schema.dimensions().iter().map(axis).collect(),
        }
    }

    pub(crate) fn of_axes(axes: Vec<Axis>) -> Grid {
        Grid { axes }
    }

    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// How many chunks there are along each dimension.
    pub fn counts(&self) -> Vec<u64> {
        self.axes.iter().map(Axis::count).collect()
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> u64 {
        self.axes.iter().map(Axis::count).product()
    }

    /// The positions of the chunk with these coordinates.
    pub fn region(&self, chunk: &[u64]) -> Region {
        Region::new(
            self.axes
                .iter()
                .zip(chunk)
                .map(|(axis, &at)| axis.range(at)),
        )
    }

    /// The coordinates of all chunks that have cells of `region`, in row-major order; none for an empty one. Only the
    /// ends of the region are looked at.
    pub fn overlapping(&self, region: &Region) -> Boxes {
        if region.is_empty() {
            return Boxes::new(vec![(0, 0); self.axes.len()]);
        }
        let ranges = self.axes.iter().zip(region.ranges());
        Boxes::new(
            ranges
                .map(|(axis, &(start, end))| (axis.find(start), axis.find(end - 1) + 1))
                .collect(),
        )
    }

    /// The coordinates of all chunks, in row-major order.
    pub fn all(&self) -> Boxes {
        Boxes::new(self.axes.iter().map(|axis| (0, axis.count())).collect())
    }
}

/// The coordinates of a box, in row-major order.
#[derive(Debug, Clone)]
pub struct Boxes {
    ranges: Vec<(u64, u64)>,
    next: Option<Vec<u64>>,
}

impl Boxes {
    fn new(ranges: Vec<(u64, u64)>) -> Boxes {
        let empty = ranges.iter().any(|(start, end)| start >= end);
        let next = (!empty).then(|| ranges.iter().map(|range| range.0).collect());
        Boxes { ranges, next }
    }
}

impl Iterator for Boxes {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let now = self.next.take()?;
        let mut after = now.clone();
        for at in (0..after.len()).rev() {
            after[at] += 1;
            if after[at] < self.ranges[at].1 {
                self.next = Some(after);
                break;
            }
            after[at] = self.ranges[at].0;
        }
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regular(length: u64, chunk: u64) -> Axis {
        Axis::Regular { length, chunk }
    }

    #[test]
    fn only_chunks_that_overlap_are_found() {
        let grid = Grid::of_axes(vec![regular(10, 4), regular(7, 3)]);
        assert_eq!(grid.counts(), [3, 3]);
        let found: Vec<_> = grid.overlapping(&Region::new([(3, 5), (6, 7)])).collect();
        assert_eq!(found, [[0, 2], [1, 2]]);
        assert_eq!(grid.region(&[2, 2]), Region::new([(8, 10), (6, 7)]));
        assert_eq!(grid.overlapping(&Region::new([(3, 3), (0, 7)])).count(), 0);
        assert_eq!(grid.all().count(), 9);
    }

    #[test]
    fn a_part_keeps_the_borders() {
        let part = regular(10, 4).part(3, 9);
        assert_eq!(part, Axis::Uneven(vec![0, 1, 5, 6]));
        assert_eq!(part.part(1, 6), Axis::Uneven(vec![0, 4, 5]));
        assert_eq!(part.find(4), 1);
        assert_eq!(regular(10, 4).part(5, 5).count(), 0);
    }
}
