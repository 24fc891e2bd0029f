//! The frames of rows.

use std::ops::Range;

use crate::error::{Result, missing};
use crate::logical::window::{Distance, FrameBounds, FrameEdge, FrameExclusion, FrameUnits};
use crate::operators::window::distances::{Side, SortedKey, reach};
use crate::operators::window::shape::Shape;

/// The frame of each row. Within a partition neither the starts nor the ends ever go back.
pub(super) struct Frames {
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// What is left out of the frame of each row; without, nothing is.
    holes: Option<Holes>,
}

struct Holes {
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Whether the row itself stays.
    ties: bool,
}

/// The parts of a frame, in their order; some may be empty.
pub(super) type Pieces = [Range<usize>; 3];

impl Frames {
    /// The frames with these bounds. The rows are sorted by `key` in each partition, if the bounds have distances.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled); an internal error for a key without distances.
    pub fn of(frame: &FrameBounds, shape: &Shape, key: Option<&SortedKey<'_>>) -> Result<Frames> {
        let starts = edges(frame.units, frame.start, Side::Start, shape, key)?;
        let mut ends = edges(frame.units, frame.end, Side::End, shape, key)?;
        let pairs = ends.iter_mut().zip(&starts);
        pairs.for_each(|(end, start)| *end = (*end).max(*start));
        let own = |units| -> Result<(Vec<u32>, Vec<u32>)> {
            let edge = |side| edges(units, FrameEdge::Current, side, shape, None);
            Ok((edge(Side::Start)?, edge(Side::End)?))
        };
        let ((from, to), ties) = match frame.exclude {
            FrameExclusion::None => {
                return Ok(Frames {
                    starts,
                    ends,
                    holes: None,
                });
            }
            FrameExclusion::Current => (own(FrameUnits::Rows)?, false),
            FrameExclusion::Group => (own(FrameUnits::Range)?, false),
            FrameExclusion::Ties => (own(FrameUnits::Range)?, true),
        };
        Ok(Frames {
            starts,
            ends,
            holes: Some(Holes {
                starts: from,
                ends: to,
                ties,
            }),
        })
    }

    /// Whether rows are left out of frames.
    pub fn have_holes(&self) -> bool {
        self.holes.is_some()
    }

    /// The frame of a row, with what is left out of it.
    #[inline]
    pub fn hull(&self, row: usize) -> Range<usize> {
        self.starts[row] as usize..self.ends[row] as usize
    }

    /// The parts of the frame of a row.
    #[inline]
    pub fn pieces(&self, row: usize) -> Pieces {
        let Range { start, end } = self.hull(row);
        let Some(holes) = &self.holes else {
            return [start..end, 0..0, 0..0];
        };
        let hole = holes.starts[row] as usize..holes.ends[row] as usize;
        let own = if holes.ties {
            between(row.max(start), (row + 1).min(end))
        } else {
            0..0
        };
        [
            between(start, hole.start.min(end)),
            own,
            between(hole.end.max(start), end),
        ]
    }
}

/// The rows from `start` to `end`; none if that is not behind it.
fn between(start: usize, end: usize) -> Range<usize> {
    start..end.max(start)
}

/// Where the frame of each row begins, or ends.
fn edges(
    units: FrameUnits,
    edge: FrameEdge,
    side: Side,
    shape: &Shape,
    key: Option<&SortedKey<'_>>,
) -> Result<Vec<u32>> {
    let mut out: Vec<u32> = Vec::with_capacity(shape.rows);
    match (edge, units) {
        (FrameEdge::First, _) => {
            let each = shape.partitions();
            each.for_each(|part| out.resize(part.rows.end, part.rows.start as u32));
        }
        (FrameEdge::Last, _) => {
            let each = shape.partitions();
            each.for_each(|part| out.resize(part.rows.end, part.rows.end as u32));
        }
        (FrameEdge::Current, FrameUnits::Rows) => {
            let from = u32::from(side == Side::End);
            out.extend(from..from + shape.rows as u32);
        }
        (FrameEdge::Current, _) => {
            for part in shape.partitions() {
                for group in part.groups() {
                    let at = match side {
                        Side::Start => group.start,
                        Side::End => group.end,
                    };
                    out.resize(group.end, at as u32);
                }
            }
        }
        (FrameEdge::Preceding(count), FrameUnits::Groups) => {
            groups(shape, side, -whole(count), &mut out)
        }
        (FrameEdge::Following(count), FrameUnits::Groups) => {
            groups(shape, side, whole(count), &mut out)
        }
        (FrameEdge::Preceding(count), _) => rows(shape, side, -whole(count), &mut out),
        (FrameEdge::Following(count), _) => rows(shape, side, whole(count), &mut out),
        (FrameEdge::PrecedingBy(distance), _) => {
            reached(shape, key, side, (distance, false), &mut out)?
        }
        (FrameEdge::FollowingBy(distance), _) => {
            reached(shape, key, side, (distance, true), &mut out)?
        }
    }
    shape.stop.check()?;
    Ok(out)
}

/// A distance in rows: there are never as many as it can say.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Edges so many rows behind each row.
fn rows(shape: &Shape, side: Side, by: i64, out: &mut Vec<u32>) {
    let by = by.saturating_add(i64::from(side == Side::End));
    for part in shape.partitions() {
        let (first, last) = (part.rows.start as i64, part.rows.end as i64);
        let places = part.rows.map(|row| (row as i64).saturating_add(by));
        out.extend(places.map(|place| place.clamp(first, last) as u32));
    }
}

/// Edges so many groups of peers behind that of each row.
fn groups(shape: &Shape, side: Side, by: i64, out: &mut Vec<u32>) {
    for part in shape.partitions() {
        let count = part.peers.len().saturating_sub(1);
        for (number, group) in part.groups().enumerate() {
            // Of the group at that distance the place where it begins, or where it ends.
            let place = (number as i64).saturating_add(by);
            let place = place.saturating_add(i64::from(side == Side::End));
            let place = usize::try_from(place).unwrap_or(0).min(count);
            out.resize(group.end, part.peers[place] as u32);
        }
    }
}

/// Edges at a distance from the key of each row, which is behind it if `after`.
fn reached(
    shape: &Shape,
    key: Option<&SortedKey<'_>>,
    side: Side,
    way: (Distance, bool),
    out: &mut Vec<u32>,
) -> Result<()> {
    let key = key.ok_or_else(missing)?;
    for part in shape.partitions() {
        reach(key, part.rows, side, way, &shape.stop, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Stop;
    use crate::vector::value::{Values, Vector};

    fn hulls(frame: FrameBounds) -> Vec<Range<usize>> {
        let of = |values: Vec<i64>| Vector::new(Values::Int(values));
        let partition = of(vec![1, 1, 1, 1, 2, 2]);
        let order = of(vec![1, 1, 2, 3, 3, 3]);
        let order: [&Vector; 1] = [&order];
        let shape = Shape::of(6, &[&partition], Some(&order), &Stop::default()).unwrap();
        let frames = Frames::of(&frame, &shape, None).unwrap();
        (0..6).map(|row| frames.hull(row)).collect()
    }

    #[test]
    fn rows_far_away_are_those_at_the_end_of_the_partition() {
        let far = FrameBounds::new(
            FrameUnits::Rows,
            FrameEdge::Preceding(u64::MAX),
            FrameEdge::Following(u64::MAX),
        );
        assert_eq!(hulls(far), [0..4, 0..4, 0..4, 0..4, 4..6, 4..6]);
        let none = FrameBounds::new(
            FrameUnits::Rows,
            FrameEdge::Following(1),
            FrameEdge::Following(1),
        );
        assert_eq!(hulls(none), [1..2, 2..3, 3..4, 4..4, 5..6, 6..6]);
    }

    #[test]
    fn groups_are_counted_within_partitions() {
        let near = FrameBounds::new(
            FrameUnits::Groups,
            FrameEdge::Preceding(1),
            FrameEdge::Preceding(1),
        );
        assert_eq!(hulls(near), [0..0, 0..0, 0..2, 2..3, 4..4, 4..4]);
        let next = FrameBounds::new(
            FrameUnits::Groups,
            FrameEdge::Current,
            FrameEdge::Following(1),
        );
        assert_eq!(hulls(next), [0..3, 0..3, 2..4, 3..4, 4..6, 4..6]);
    }
}
