//! Dimensions: their coordinates, and which position each has.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::decimal::Decimal;

/// A named dimension: cells along it have positions from 0, and each position a coordinate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    pub(crate) name: String,
    pub(crate) length: u64,
    pub(crate) growing: bool,
    pub(crate) chunk: u64,
    pub(crate) coordinates: Coordinates,
}

/// The coordinates of the positions of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coordinates {
    /// Whole numbers, one after the other.
    Integer {
        /// The first.
        start: i64,
    },
    /// A regular step, which may be negative and is not zero.
    Regular {
        /// The first.
        start: Decimal,
        /// From each to the next.
        step: Decimal,
    },
    /// A list, rising or falling.
    Listed(Vec<Decimal>),
}

/// An end of a range of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bound {
    /// The edge of the dimension.
    #[default]
    Edge,
    /// A coordinate.
    At(Decimal),
}

impl From<i64> for Bound {
    fn from(whole: i64) -> Bound {
        Bound::At(whole.into())
    }
}

impl From<i32> for Bound {
    fn from(whole: i32) -> Bound {
        Bound::At(i64::from(whole).into())
    }
}

impl From<Decimal> for Bound {
    fn from(decimal: Decimal) -> Bound {
        Bound::At(decimal)
    }
}

impl Dimension {
    /// A dimension of whole numbers from `start`, `length` of them.
    pub fn integer(name: &str, start: i64, length: u64) -> Dimension {
        Dimension::of(name, length, Coordinates::Integer { start })
    }

    /// A dimension of `length` coordinates: `start`, `start + step` and so on.
    pub fn regular(name: &str, start: Decimal, step: Decimal, length: u64) -> Dimension {
        Dimension::of(name, length, Coordinates::Regular { start, step })
    }

    /// A dimension with these coordinates, all rising or all falling.
    pub fn listed(name: &str, coordinates: Vec<Decimal>) -> Dimension {
        let length = coordinates.len() as u64;
        Dimension::of(name, length, Coordinates::Listed(coordinates))
    }

    fn of(name: &str, length: u64, coordinates: Coordinates) -> Dimension {
        Dimension {
            name: name.to_owned(),
            length,
            growing: false,
            chunk: 0,
            coordinates,
        }
    }

    /// The same, with chunks of `cells` cells along it; with 0, and at first, the schema chooses.
    pub fn chunk(mut self, cells: u64) -> Dimension {
        self.chunk = cells;
        self
    }

    /// The same, to which can be appended.
    pub fn growing(mut self) -> Dimension {
        self.growing = true;
        self
    }

    /// The same with another name.
    pub(crate) fn named(mut self, name: &str) -> Dimension {
        self.name = name.to_owned();
        self
    }

    /// The part from one position to before another, with its coordinates, or with whole numbers from 0.
    pub(crate) fn part(&self, (start, end): (u64, u64), rebased: bool) -> Dimension {
        let coordinates = match &self.coordinates {
            _ if rebased => Coordinates::Integer { start: 0 },
            Coordinates::Integer { start: first } => Coordinates::Integer {
                start: first.saturating_add_unsigned(start),
            },
            Coordinates::Regular { start: first, step } => Coordinates::Regular {
                start: first.plus(*step, start).unwrap_or(*first),
                step: *step,
            },
            Coordinates::Listed(list) => {
                Coordinates::Listed(list[start as usize..end as usize].to_vec())
            }
        };
        Dimension {
            name: self.name.clone(),
            length: end - start,
            growing: false,
            chunk: self.chunk.min((end - start).max(1)),
            coordinates,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many cells it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// How many cells a chunk has along it; the last one may have fewer.
    pub fn chunk_length(&self) -> u64 {
        self.chunk
    }

    /// Whether it can be appended to.
    pub fn is_growing(&self) -> bool {
        self.growing
    }

    /// Its coordinates.
    pub fn coordinates(&self) -> &Coordinates {
        &self.coordinates
    }

    /// Whether its coordinates are whole numbers.
    pub fn is_integer(&self) -> bool {
        matches!(self.coordinates, Coordinates::Integer { .. })
    }

    /// The coordinate of a position, if there is one.
    pub fn coordinate(&self, position: u64) -> Option<Decimal> {
        match &self.coordinates {
            Coordinates::Integer { start } => {
                let whole = i128::from(*start) + i128::from(position);
                i64::try_from(whole).ok().map(Decimal::from)
            }
            Coordinates::Regular { start, step } => start.plus(*step, position),
            Coordinates::Listed(list) => list.get(usize::try_from(position).ok()?).copied(),
        }
    }

    /// The position of a coordinate.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if it is not one of the dimension's; `what` says who asked.
    pub fn position(&self, coordinate: Decimal, what: &str) -> Result<u64> {
        let at = self.first_not_before(coordinate);
        if at < self.length && self.coordinate(at) == Some(coordinate) {
            return Ok(at);
        }
        Err(self.out_of_range(coordinate, what))
    }

    /// The position that a coordinate has, or would have if the dimension went on to it: none if it comes before the
    /// first, or between two, or if coordinates are a list that has it not.
    pub fn position_beyond(&self, coordinate: Decimal) -> Option<u64> {
        let (steps, rest) = match &self.coordinates {
            Coordinates::Integer { start } => coordinate.steps_from((*start).into(), 1.into()),
            Coordinates::Regular { start, step } => coordinate.steps_from(*start, *step),
            Coordinates::Listed(_) => return self.position(coordinate, "").ok(),
        };
        u64::try_from(steps).ok().filter(|_| !rest)
    }

    /// The positions from one bound to the other, both included, whichever comes first: from the first to before the
    /// last. Coordinates between two of the dimension's are allowed, those before the first or after the last are not.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; `what` says who asked.
    pub fn range(&self, one: Bound, other: Bound, what: &str) -> Result<(u64, u64)> {
        if self.length == 0 {
            return match [one, other].into_iter().find(|bound| *bound != Bound::Edge) {
                Some(Bound::At(coordinate)) => Err(self.out_of_range(coordinate, what)),
                _ => Ok((0, 0)),
            };
        }
        let (mut low, mut high) = (one, other);
        if let (Bound::At(a), Bound::At(b)) = (one, other)
            && self.order(a, b) == Ordering::Greater
        {
            (low, high) = (other, one);
        }
        for bound in [low, high] {
            if let Bound::At(coordinate) = bound
                && !self.spans(coordinate)
            {
                return Err(self.out_of_range(coordinate, what));
            }
        }
        let start = match low {
            Bound::Edge => 0,
            Bound::At(coordinate) => self.first_not_before(coordinate),
        };
        let end = match high {
            Bound::Edge => self.length,
            Bound::At(coordinate) => {
                let at = self.first_not_before(coordinate);
                at + u64::from(at < self.length && self.coordinate(at) == Some(coordinate))
            }
        };
        Ok((start, end.max(start)))
    }

    /// The coordinates in words: those of the ends.
    pub fn span(&self) -> String {
        let end = |position| match self.coordinate(position) {
            Some(coordinate) => coordinate.to_string(),
            None => "?".to_owned(),
        };
        match self.length {
            0 => "no coordinates yet".to_owned(),
            1 => format!("only {}", end(0)),
            length => format!("{} to {}", end(0), end(length - 1)),
        }
    }

    fn out_of_range(&self, coordinate: Decimal, what: &str) -> Error {
        Error::OutOfRange {
            what: what.to_owned(),
            dimension: self.name.clone(),
            coordinate: coordinate.to_string(),
            range: self.span(),
        }
    }

    /// Which of two coordinates comes first along the dimension.
    fn order(&self, a: Decimal, b: Decimal) -> Ordering {
        if self.falls() { b.cmp(&a) } else { a.cmp(&b) }
    }

    /// Whether coordinates fall from position to position.
    fn falls(&self) -> bool {
        match &self.coordinates {
            Coordinates::Integer { .. } => false,
            Coordinates::Regular { step, .. } => step.sign() == Ordering::Less,
            Coordinates::Listed(list) => list.first() > list.last(),
        }
    }

    /// Whether a coordinate lies between the first and the last, or is one of them.
    fn spans(&self, coordinate: Decimal) -> bool {
        let ends = (self.coordinate(0), self.coordinate(self.length - 1));
        let (Some(first), Some(last)) = ends else {
            return false;
        };
        self.order(first, coordinate) != Ordering::Greater
            && self.order(coordinate, last) != Ordering::Greater
    }

    /// The first position whose coordinate does not come before this one; the length if all do.
    fn first_not_before(&self, coordinate: Decimal) -> u64 {
        let (steps, rest) = match &self.coordinates {
            Coordinates::Integer { start } => coordinate.steps_from((*start).into(), 1.into()),
            Coordinates::Regular { start, step } => coordinate.steps_from(*start, *step),
            Coordinates::Listed(list) => {
                let before = |&of: &Decimal| self.order(of, coordinate) == Ordering::Less;
                return list.partition_point(before) as u64;
            }
        };
        let steps = steps + i128::from(rest);
        u64::try_from(steps.max(0)).map_or(self.length, |steps| steps.min(self.length))
    }

    /// Checks what the constructors were given.
    ///
    /// # Errors
    /// [`Error::Schema`].
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: &str| {
            Err(Error::Schema {
                what: format!("dimension '{}': {what}", self.name),
            })
        };
        match &self.coordinates {
            Coordinates::Regular { start, step } => {
                if !(start.is_sound() && step.is_sound()) || step.sign() == Ordering::Equal {
                    return wrong("the step must not be zero");
                }
            }
            Coordinates::Listed(list) => {
                let ordered = list
                    .windows(2)
                    .all(|two| self.order(two[0], two[1]) == Ordering::Less);
                if !list.iter().all(|of| of.is_sound()) || !ordered {
                    return wrong("the coordinates must all rise, or all fall, and not repeat");
                }
                if list.len() as u64 != self.length {
                    return wrong("there are not as many coordinates as cells");
                }
            }
            Coordinates::Integer { .. } => {}
        }
        if self.length > 0 && self.coordinate(self.length - 1).is_none() {
            return wrong("its last coordinate has more than 18 digits; take fewer cells");
        }
        if self.chunk == 0 {
            return wrong("a chunk needs at least one cell along it");
        }
        if self.length.div_ceil(self.chunk) > u64::from(u32::MAX) {
            return wrong("it has more than 2^32 chunks; take longer ones");
        }
        Ok(())
    }

    /// Makes it longer by `more` cells, with these coordinates where they are listed.
    ///
    /// # Errors
    /// [`Error::Schema`] if it does not grow, or its coordinates do not go on in order.
    pub(crate) fn grow(&mut self, more: u64, coordinates: &[Decimal]) -> Result<()> {
        let wrong = |what: &str| Error::Schema {
            what: format!("dimension '{}': {what}", self.name),
        };
        if !self.growing {
            return Err(wrong(
                "it does not grow; declare it growing when the array is created",
            ));
        }
        match &mut self.coordinates {
            Coordinates::Listed(list) if coordinates.len() as u64 == more => {
                list.extend_from_slice(coordinates);
            }
            Coordinates::Listed(_) => {
                return Err(wrong("give a coordinate for each cell that is appended"));
            }
            _ if coordinates.is_empty() => {}
            _ => return Err(wrong("its coordinates follow from its step; give none")),
        }
        let length = self.length.checked_add(more);
        self.length = length.ok_or_else(|| Error::Schema {
            what: format!("dimension '{}' would have more than 2^64 cells", self.name),
        })?;
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    fn at(text: &str) -> Bound {
        Bound::At(decimal(text))
    }

    #[test]
    fn ranges_include_both_bounds_in_either_order() {
        let years = Dimension::integer("year", 1990, 40).chunk(10);
        assert_eq!(years.range(at("2000"), at("2020"), "t").unwrap(), (10, 31));
        assert_eq!(years.range(at("2020"), at("2000"), "t").unwrap(), (10, 31));
        assert_eq!(years.range(Bound::Edge, at("1990"), "t").unwrap(), (0, 1));
        assert_eq!(
            years.range(at("2000.5"), at("2001.5"), "t").unwrap(),
            (11, 12)
        );
        let error = years
            .range(at("2000"), at("2030"), "subarray(t)")
            .unwrap_err();
        let text = "subarray(t): 2030 is not in dimension 'year', which has 1990 to 2029";
        assert_eq!(error.to_string(), text);

        let falling = Dimension::regular("lat", decimal("-25.420"), decimal("-0.001"), 10).chunk(3);
        for (a, b) in [("-25.423", "-25.426"), ("-25.426", "-25.423")] {
            assert_eq!(falling.range(at(a), at(b), "t").unwrap(), (3, 7));
        }
        assert!(falling.range(at("-25.4"), at("-25.426"), "t").is_err());

        let list = ["1.5", "2", "7.25", "100"].map(decimal).to_vec();
        let listed = Dimension::listed("depth", list).chunk(2);
        assert_eq!(listed.range(at("1.50"), at("7"), "t").unwrap(), (0, 2));
        assert_eq!(
            listed.range(at("3"), at("4"), "t").unwrap(),
            (2, 2),
            "between two of them"
        );
        assert_eq!(listed.position(decimal("7.250"), "t").unwrap(), 2);
        assert!(listed.position(decimal("7"), "t").is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let zero = Dimension::regular("x", decimal("1"), decimal("0.0"), 2).chunk(1);
        assert!(zero.check().unwrap_err().to_string().contains("step"));
        let twice = Dimension::listed("x", vec![decimal("1"), decimal("1.0")]).chunk(1);
        assert!(twice.check().unwrap_err().to_string().contains("repeat"));
        assert!(
            Dimension::integer("x", i64::MAX, 2)
                .chunk(1)
                .check()
                .is_err()
        );
        assert!(
            Dimension::integer("x", 0, u64::MAX)
                .chunk(1)
                .check()
                .is_err()
        );
        let mut fixed = Dimension::integer("x", 0, 5).chunk(5);
        assert!(
            fixed
                .grow(1, &[])
                .unwrap_err()
                .to_string()
                .contains("does not grow")
        );
    }
}
