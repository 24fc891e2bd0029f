//! Folding the cells of a part of an array into groups: sums, least and greatest values.
//!
//! What a group comes to depends on its cells and on the whole part of the array that is folded, and on nothing else: not on
//! the pieces that it is seen in, nor on which other groups are asked for. So both models have the same bits.

use crate::operators::geometry::{Cursor, Geometry};

/// Values of a row that are joined side by side before what they come to is joined.
const LANES: usize = 16;

/// What the values of each group come to.
#[derive(Clone)]
pub(crate) struct Fold<A> {
    groups: Vec<A>,
    /// Of rows that are joined with each other first, what the cells at each place come to.
    upright: Vec<A>,
    /// What the values of a row that was not seen to its end come to, by their places.
    lanes: [A; LANES],
    pub identity: A,
    cursor: Cursor,
}

impl<A: Copy> Fold<A> {
    /// Begins with `identity`, the result over no cell, for each group.
    pub fn new(of: &Geometry, identity: A) -> Fold<A> {
        let rows = if of.upright {
            of.groups() / of.abreast * of.row.length()
        } else {
            0
        };
        Fold {
            groups: vec![identity; of.groups()],
            upright: vec![identity; rows],
            lanes: [identity; LANES],
            identity,
            cursor: Cursor::new(of),
        }
    }

    /// Sees the values that come next, in row-major order.
    pub fn see<T: Copy>(
        &mut self,
        of: &Geometry,
        values: &[T],
        lift: impl Fn(T) -> A + Copy,
        join: impl Fn(A, A) -> A + Copy,
    ) {
        let fold = self;
        algebra::vectorised(Seeing {
            fold,
            of,
            values,
            lift,
            join,
        });
    }

    /// What each group has come to.
    pub fn finish(mut self, of: &Geometry, join: impl Fn(A, A) -> A + Copy) -> Vec<A> {
        let rows = self.upright.chunks_exact(of.row.length().max(1));
        for (row, groups) in rows.zip(self.groups.chunks_exact_mut(of.abreast.max(1))) {
            segments(
                groups,
                row,
                (of.row.start, of.row.cells),
                |value| value,
                join,
            );
        }
        self.groups
    }
}

/// A fold that sees values.
struct Seeing<'a, T, A, L, J> {
    fold: &'a mut Fold<A>,
    of: &'a Geometry,
    values: &'a [T],
    lift: L,
    join: J,
}

impl<T: Copy, A: Copy, L: Fn(T) -> A + Copy, J: Fn(A, A) -> A + Copy> algebra::Loop
    for Seeing<'_, T, A, L, J>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Seeing {
            fold,
            of,
            mut values,
            lift,
            join,
        } = self;
        let length = of.row.length();
        while !values.is_empty() && length > 0 {
            let Cursor { group, offset, .. } = fold.cursor;
            let (piece, rest) = values.split_at((length - offset).min(values.len()));
            values = rest;
            match (of.row.step, of.row.cells) {
                (0, _) if piece.len() == length => {
                    let mut lanes = [fold.identity; LANES];
                    abreast(&mut lanes, 0, piece, lift, join);
                    let group = &mut fold.groups[group];
                    *group = join(*group, joined_lanes(lanes, join));
                }
                (0, _) => {
                    let mut lanes = fold.lanes;
                    abreast(&mut lanes, offset, piece, lift, join);
                    if offset + piece.len() == length {
                        let group = &mut fold.groups[group];
                        *group = join(*group, joined_lanes(lanes, join));
                        lanes = [fold.identity; LANES];
                    }
                    fold.lanes = lanes;
                }
                (1, 1) => {
                    let groups = &mut fold.groups[group + offset..][..piece.len()];
                    beside(groups, piece, lift, join);
                }
                (step, 1) => {
                    for (at, &value) in piece.iter().enumerate() {
                        let of_group = &mut fold.groups[group + (offset + at) * step];
                        *of_group = join(*of_group, lift(value));
                    }
                }
                _ if of.upright => {
                    let start = group / of.abreast * length + offset;
                    beside(&mut fold.upright[start..][..piece.len()], piece, lift, join);
                }
                (_, cells) => {
                    let start = of.row.start + offset as u64;
                    let first = (start / cells - of.row.start / cells) as usize;
                    let groups = &mut fold.groups[group + first..];
                    segments(groups, piece, (start, cells), lift, join);
                }
            }
            fold.cursor.advance(of, piece.len());
        }
    }
}

/// Joins each value with what is at its place.
#[inline(always)]
fn beside<T: Copy, A: Copy>(
    all: &mut [A],
    row: &[T],
    lift: impl Fn(T) -> A,
    join: impl Fn(A, A) -> A,
) {
    for (all, &value) in all.iter_mut().zip(row) {
        *all = join(*all, lift(value));
    }
}

/// Joins the values of a row from its place `offset` on with those at the same place of each so many.
#[inline(always)]
fn abreast<T: Copy, A: Copy>(
    lanes: &mut [A; LANES],
    offset: usize,
    row: &[T],
    lift: impl Fn(T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) {
    let first = offset % LANES;
    let (head, row) = row.split_at(((LANES - first) % LANES).min(row.len()));
    beside(&mut lanes[first..][..head.len()], head, lift, join);
    let (whole, rest) = row.as_chunks::<LANES>();
    for values in whole {
        for (lane, &value) in lanes.iter_mut().zip(values) {
            *lane = join(*lane, lift(value));
        }
    }
    // Four at a time: a row of a chunk is often shorter than a hundred values.
    let (fours, rest) = rest.as_chunks::<4>();
    let (quarters, last) = lanes.as_chunks_mut::<4>();
    for (lanes, values) in quarters.iter_mut().zip(fours) {
        for (lane, &value) in lanes.iter_mut().zip(values) {
            *lane = join(*lane, lift(value));
        }
    }
    debug_assert!(last.is_empty());
    if let Some(lanes) = quarters.get_mut(fours.len()) {
        beside(lanes, rest, lift, join);
    }
}

/// What the lanes of a row come to.
#[inline(always)]
fn joined_lanes<A: Copy>(lanes: [A; LANES], join: impl Fn(A, A) -> A) -> A {
    let [a, b]: [A; 2] = halved::<2, 4, A>(
        &halved::<4, 8, A>(&halved::<8, LANES, A>(&lanes, &join), &join),
        &join,
    );
    join(a, b)
}

/// Joins each lane of the first half with that of the second.
#[inline(always)]
fn halved<const HALF: usize, const ALL: usize, A: Copy>(
    lanes: &[A; ALL],
    join: impl Fn(A, A) -> A,
) -> [A; HALF] {
    std::array::from_fn(|at| join(lanes[at], lanes[at + HALF]))
}

/// Joins the cells of a row that become one, in order, for each: so many cells of those from position `start` on.
#[inline(always)]
fn segments<T: Copy, A: Copy>(
    groups: &mut [A],
    row: &[T],
    (start, cells): (u64, u64),
    lift: impl Fn(T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) {
    // The first may begin before the row.
    let first = ((cells - start % cells) as usize).min(row.len());
    let whole = start.is_multiple_of(cells);
    let (head, rest) = row.split_at(if whole { 0 } else { first });
    let (before, groups) = groups.split_at_mut(usize::from(!whole));
    if let Some(group) = before.first_mut() {
        one(group, head, lift, join);
    }
    match cells {
        2 => equal::<2, _, _>(groups, rest, lift, join),
        4 => equal::<4, _, _>(groups, rest, lift, join),
        8 => equal::<8, _, _>(groups, rest, lift, join),
        cells => {
            for (group, values) in groups.iter_mut().zip(rest.chunks(cells as usize)) {
                one(group, values, lift, join);
            }
        }
    }
}

#[inline(always)]
fn one<T: Copy, A: Copy>(
    group: &mut A,
    values: &[T],
    lift: impl Fn(T) -> A,
    join: impl Fn(A, A) -> A,
) {
    *group = values
        .iter()
        .fold(*group, |all, &value| join(all, lift(value)));
}

/// Segments of `N` cells; the last may be shorter.
#[inline(always)]
fn equal<const N: usize, T: Copy, A: Copy>(
    groups: &mut [A],
    row: &[T],
    lift: impl Fn(T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) {
    let (whole, rest) = row.as_chunks::<N>();
    for (group, values) in groups.iter_mut().zip(whole) {
        one(group, values, lift, join);
    }
    if let (Some(group), false) = (groups.get_mut(whole.len()), rest.is_empty()) {
        one(group, rest, lift, join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::region::Region;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cells_come_to_their_groups_whatever_the_pieces(
            dimensions in prop::collection::vec((0..9u64, 1..7u64, prop::option::of(1..5u64)), 1..5),
            cut in 1..90usize,
        ) {
            let part = Region::new(dimensions.iter().map(|&(start, length, _)| (start, start + length)));
            // All dimensions by boxes of cells, or some of them by each position, in turned order.
            let boxes = dimensions.iter().all(|of| of.2.is_some());
            let kept: Vec<(usize, u64)> = if boxes {
                dimensions.iter().map(|of| of.2.unwrap()).enumerate().collect()
            } else {
                let some = dimensions.iter().enumerate().filter(|(_, of)| of.2.is_some());
                some.map(|(at, _)| (at, 1)).rev().collect()
            };
            let of = Geometry::new(&part, &kept);
            let shape = part.shape();
            let cells = shape.iter().product::<u64>() as usize;
            // Each cell adds a bit of its own, as far as there are any.
            let values: Vec<u64> = (0..cells).map(|at| 1 << (at % 57)).collect();
            let mut expected = vec![0; of.groups()];
            let mut counts = vec![0; of.groups()];
            for (cell, value) in values.iter().enumerate() {
                let mut rest = cell as u64;
                let mut position = vec![0; shape.len()];
                for at in (0..shape.len()).rev() {
                    position[at] = part.start(at) + rest % shape[at];
                    rest /= shape[at];
                }
                let mut group = 0;
                for &(at, cells) in &kept {
                    let (start, end) = part.ranges()[at];
                    let (first, last) = (start / cells, end.div_ceil(cells));
                    group = group * (last - first) + position[at] / cells - first;
                }
                expected[group as usize] += value;
                counts[group as usize] += 1;
            }
            prop_assert_eq!(&of.counts, &counts);
            let mut fold = Fold::new(&of, 0u64);
            for piece in values.chunks(cut) {
                fold.see(&of, piece, |value| value, |a, b| a + b);
            }
            prop_assert_eq!(fold.finish(&of, |a, b| a + b), expected);
        }
    }
}
