//! Boxes of positions.

use crate::error::{Error, Result};

/// A box of positions of an array: along each dimension from a first to before a last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Region {
    ranges: Vec<(u64, u64)>,
}

impl Region {
    /// The box of these ranges, each from its first to before its last position. A last below the first is taken for
    /// the first.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Region {
        let ranges = ranges
            .into_iter()
            .map(|(start, end)| (start, end.max(start)));
        Region {
            ranges: ranges.collect(),
        }
    }

    /// The box from position 0 of this shape.
    pub fn of_shape(shape: &[u64]) -> Region {
        Region::new(shape.iter().map(|&length| (0, length)))
    }

    /// The ranges.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// How many dimensions it has.
    pub fn rank(&self) -> usize {
        self.ranges.len()
    }

    /// The first position along a dimension.
    pub fn start(&self, dimension: usize) -> u64 {
        self.ranges[dimension].0
    }

    /// The cells along a dimension.
    pub fn length(&self, dimension: usize) -> u64 {
        let (start, end) = self.ranges[dimension];
        end - start
    }

    /// The cells along each dimension.
    pub fn shape(&self) -> Vec<u64> {
        self.ranges.iter().map(|(start, end)| end - start).collect()
    }

    /// Whether it has no cells.
    pub fn is_empty(&self) -> bool {
        self.ranges.iter().any(|(start, end)| start == end)
    }

    /// How many cells it has.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if memory cannot hold as many; `what` says what it is.
    pub fn cells(&self, what: &str) -> Result<usize> {
        let lengths = self.ranges.iter().map(|(start, end)| end - start);
        if self.is_empty() {
            return Ok(0);
        }
        let product = lengths.clone().try_fold(1u64, u64::checked_mul);
        // Eight bytes each, in a vector.
        let fits = product.filter(|&cells| cells <= isize::MAX as u64 / 16);
        let fits = fits.and_then(|cells| usize::try_from(cells).ok());
        fits.ok_or_else(|| Error::TooLarge {
            what: what.to_owned(),
            cells: lengths
                .map(|length| length.to_string())
                .collect::<Vec<_>>()
                .join(" x "),
        })
    }

    /// What both have.
    pub fn intersection(&self, other: &Region) -> Region {
        let both = self.ranges.iter().zip(&other.ranges);
        Region::new(both.map(|(a, b)| (a.0.max(b.0), a.1.min(b.1))))
    }

    /// Whether all of `other` lies within.
    pub fn contains(&self, other: &Region) -> bool {
        let mut both = self.ranges.iter().zip(&other.ranges);
        other.is_empty() || both.all(|(a, b)| a.0 <= b.0 && b.1 <= a.1)
    }

    /// The box moved towards higher positions by `by`.
    pub(crate) fn moved(&self, by: &[u64]) -> Region {
        let moved = self.ranges.iter().zip(by);
        Region::new(moved.map(|(&(start, end), &by)| (start + by, end + by)))
    }

    /// The box moved so that `origin` becomes 0; it must not begin before.
    pub(crate) fn relative_to(&self, origin: &[u64]) -> Region {
        let moved = self.ranges.iter().zip(origin);
        Region::new(moved.map(|(&(start, end), &origin)| (start - origin, end - origin)))
    }

    /// The first position along each dimension.
    pub(crate) fn origin(&self) -> Vec<u64> {
        self.ranges.iter().map(|range| range.0).collect()
    }

    /// About equal pieces, at most `most`, cut across the first dimension that has more than one cell; so each is a
    /// contiguous part of the box in row-major order.
    pub(crate) fn slabs(&self, most: usize) -> Vec<Region> {
        let at = (0..self.rank())
            .find(|&at| self.length(at) > 1)
            .unwrap_or(0);
        let (start, end) = self.ranges[at];
        let pieces = (most.max(1) as u64).min((end - start).max(1));
        let cut = |piece: u64| {
            start + (u128::from(end - start) * u128::from(piece) / u128::from(pieces)) as u64
        };
        let piece = |piece| {
            let mut ranges = self.ranges.clone();
            ranges[at] = (cut(piece), cut(piece + 1));
            Region { ranges }
        };
        (0..pieces).map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_cover_the_box_once() {
        let whole = Region::new([(5, 6), (2, 12), (0, 3)]);
        for most in 0..13 {
            let slabs = whole.slabs(most);
            assert_eq!(slabs.len(), most.clamp(1, 10));
            assert_eq!(slabs[0].start(1), 2);
            assert_eq!(slabs.last().unwrap().ranges()[1].1, 12);
            assert!(
                slabs
                    .windows(2)
                    .all(|two| two[0].ranges()[1].1 == two[1].start(1))
            );
        }
        assert_eq!(Region::new([(3, 3)]).slabs(4), [Region::new([(3, 3)])]);
    }

    #[test]
    fn more_cells_than_memory_are_an_error() {
        let huge = Region::new([(0, u64::MAX), (0, 3)]);
        let error = huge.cells("array 'a'").unwrap_err().to_string();
        assert!(error.contains("18446744073709551615 x 3"), "{error}");
        assert_eq!(Region::new([(0, u64::MAX), (4, 3)]).cells("a").unwrap(), 0);
    }
}
