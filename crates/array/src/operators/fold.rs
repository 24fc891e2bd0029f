//! Folding the cells of a block into groups: sums, least and greatest values.
//!
//! What a group comes to depends on its cells and on the whole part of the array that is folded, and on nothing else: not on
//! how many slabs the part is seen in, nor on which other groups are asked for. So both models have the same bits.

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::model::types::{DataType, Element, with_type};
use crate::operators::functions::{Bound, Call, Function};
use crate::operators::states::{Known, Moments, State, States, extreme, ordered};

/// Values of a row that are joined side by side before what they come to is joined.
const LANES: usize = 16;

/// How the positions along a dimension are divided into groups.
#[derive(Debug, Clone, Copy)]
struct Along {
    start: u64,
    end: u64,
    /// So many cells become one, counted from position 0.
    cells: u64,
    /// The groups from one to the next; 0 where all positions are of one.
    step: usize,
}

impl Along {
    fn length(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// How much a position adds to the number of a group.
    fn group(&self, position: u64) -> usize {
        let number = match self.cells {
            _ if self.step == 0 => 0,
            1 => position - self.start,
            cells => position / cells - self.start / cells,
        };
        number as usize * self.step
    }

    /// The cells of each group, in order.
    fn counts(&self) -> impl Iterator<Item = u64> + use<> {
        let (start, end, cells) = (self.start, self.end, self.cells);
        (start / cells..end.div_ceil(cells))
            .map(move |at| end.min((at + 1) * cells) - start.max(at * cells))
    }
}

/// Which cells of a part of an array belong to which group.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    /// The dimensions outside of the rows, outermost first.
    outer: Vec<Along>,
    /// The row.
    row: Along,
    counts: Vec<u64>,
    /// Whether rows are joined with each other before the cells within them are.
    upright: bool,
}

impl Geometry {
    /// Of a part of an array, whose dimensions `kept` give the groups, the last of them those side by side: the number
    /// of each, and how many of its cells become one.
    pub fn new(part: &Region, kept: &[(usize, u64)]) -> Geometry {
        let along = |&(start, end): &(u64, u64)| Along {
            start,
            end,
            cells: 1,
            step: 0,
        };
        let mut all: Vec<Along> = part.ranges().iter().map(along).collect();
        let mut groups = 1;
        for &(at, cells) in kept.iter().rev() {
            all[at].cells = cells;
            all[at].step = groups;
            groups *= all[at].counts().count();
        }
        let lost = (0..part.rank()).filter(|&at| all[at].step == 0);
        let mut counts = vec![lost.map(|at| part.length(at)).product::<u64>()];
        for &(at, _) in kept {
            let of_each = counts
                .iter()
                .flat_map(|&count| all[at].counts().map(move |n| count * n));
            counts = of_each.collect();
        }
        let Some(mut row) = all.pop() else {
            return Geometry::nothing();
        };
        // The outermost dimension stays, so that it may be cut.
        while let Some(&next) = all.get(1).and_then(|_| all.last()) {
            let merged = match (next.step, row.step) {
                (0, 0) => true,
                (outer, inner) => {
                    inner > 0 && next.cells == 1 && row.cells == 1 && outer == row.length() * inner
                }
            };
            if !merged {
                break;
            }
            row = Along {
                start: 0,
                end: (next.length() * row.length()) as u64,
                ..row
            };
            all.pop();
        }
        Geometry {
            upright: row.cells > 1 && all.iter().any(|of| of.cells > 1),
            outer: all,
            row,
            counts,
        }
    }

    fn nothing() -> Geometry {
        let row = Along {
            start: 0,
            end: 0,
            cells: 1,
            step: 0,
        };
        Geometry {
            outer: Vec::new(),
            row,
            counts: vec![0],
            upright: false,
        }
    }

    fn groups(&self) -> usize {
        self.counts.len()
    }

    /// How many groups lie along a row.
    fn abreast(&self) -> usize {
        self.row.counts().count()
    }

    /// Calls `each` with the group of the first cell of every row, from row `first` on, for so many.
    fn rows(&self, first: usize, count: usize, mut each: impl FnMut(usize, usize)) {
        let mut position: Vec<u64> = self.outer.iter().map(|of| of.start).collect();
        let mut rest = first as u64;
        for (at, of) in self.outer.iter().enumerate().rev() {
            let length = of.length() as u64;
            // The outermost has all that is left.
            let here = if at == 0 { rest } else { rest % length };
            position[at] += here;
            rest /= length.max(1);
        }
        let groups = self.outer.iter().zip(&position);
        let mut groups: Vec<usize> = groups.map(|(of, &at)| of.group(at)).collect();
        let mut group = groups.iter().sum();
        for row in 0..count {
            each(row, group);
            for (at, of) in self.outer.iter().enumerate().rev() {
                position[at] += 1;
                let around = position[at] == of.end;
                if around {
                    position[at] = of.start;
                }
                let before = std::mem::replace(&mut groups[at], of.group(position[at]));
                group = group + groups[at] - before;
                if !around {
                    break;
                }
            }
        }
    }
}

/// What the values of each group come to.
struct Fold<A> {
    groups: Vec<A>,
    /// Of rows that are joined with each other first, what the cells at each place come to.
    upright: Vec<A>,
    identity: A,
}

impl<A: Copy> Fold<A> {
    fn new(of: &Geometry, identity: A) -> Fold<A> {
        let rows = if of.upright {
            of.groups() / of.abreast() * of.row.length()
        } else {
            0
        };
        Fold {
            groups: vec![identity; of.groups()],
            upright: vec![identity; rows],
            identity,
        }
    }

    /// Sees values, from row `first` on.
    #[inline(always)]
    fn add<T: Copy>(
        &mut self,
        of: &Geometry,
        first: usize,
        values: &[T],
        lift: impl Fn(T) -> A + Copy,
        join: impl Fn(A, A) -> A + Copy,
    ) {
        let length = of.row.length();
        if length == 0 {
            return;
        }
        let abreast = of.abreast();
        of.rows(first, values.len() / length, |number, group| {
            let row = &values[number * length..][..length];
            match (of.row.step, of.row.cells) {
                (0, _) => {
                    let value = reduce(row, self.identity, lift, join);
                    self.groups[group] = join(self.groups[group], value);
                }
                (1, 1) => beside(&mut self.groups[group..][..length], row, lift, join),
                (step, 1) => {
                    for (at, &value) in row.iter().enumerate() {
                        let of_group = &mut self.groups[group + at * step];
                        *of_group = join(*of_group, lift(value));
                    }
                }
                _ if of.upright => {
                    let start = group / abreast * length;
                    beside(&mut self.upright[start..][..length], row, lift, join);
                }
                _ => {
                    let groups = &mut self.groups[group..][..abreast];
                    segments(groups, row, &of.row, lift, join);
                }
            }
        });
    }

    /// What each group has come to.
    #[inline(always)]
    fn finish(mut self, of: &Geometry, join: impl Fn(A, A) -> A + Copy) -> Vec<A> {
        let rows = self.upright.chunks_exact(of.row.length().max(1));
        for (row, groups) in rows.zip(self.groups.chunks_exact_mut(of.abreast().max(1))) {
            segments(groups, row, &of.row, |value| value, join);
        }
        self.groups
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

/// What a row comes to: values at the same place of each so many first, then those.
#[inline(always)]
fn reduce<T: Copy, A: Copy>(
    row: &[T],
    identity: A,
    lift: impl Fn(T) -> A,
    join: impl Fn(A, A) -> A,
) -> A {
    let mut lanes = [identity; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for values in whole {
        for (lane, &value) in lanes.iter_mut().zip(values) {
            *lane = join(*lane, lift(value));
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = join(*lane, lift(value));
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for at in 0..width {
            lanes[at] = join(lanes[at], lanes[at + width]);
        }
    }
    lanes[0]
}

/// Joins the cells of a row that become one, in order, for each.
#[inline(always)]
fn segments<T: Copy, A: Copy>(
    groups: &mut [A],
    row: &[T],
    of: &Along,
    lift: impl Fn(T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) {
    // The first may begin before the row.
    let first = ((of.cells - of.start % of.cells) as usize).min(row.len());
    let whole = of.start.is_multiple_of(of.cells);
    let (head, rest) = row.split_at(if whole { 0 } else { first });
    let (before, groups) = groups.split_at_mut(usize::from(!whole));
    if let Some(group) = before.first_mut() {
        one(group, head, lift, join);
    }
    match of.cells {
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

/// What is kept of a column for one aggregate.
enum Kept {
    /// How many values there are is all.
    Count,
    /// The sum of whole numbers of at most 32 bits.
    Sum(Fold<i64>),
    /// The sums of the high and low halves of whole numbers of 64 bits, [`ordered`] and taken without a sign.
    Halves(Fold<u64>, Fold<u64>),
    Float(Fold<f64>),
    EndWhole(Fold<i64>),
    EndFloat(Fold<f64>),
    Moments(Vec<Moments>),
    /// What another aggregate has.
    Same(usize),
}

/// Aggregates of the groups of a part of an array, whose cells are seen slab by slab.
pub(crate) struct Folder<'a> {
    bound: &'a Bound,
    geometry: Geometry,
    kept: Vec<Kept>,
    /// Values of each aggregate that are not left out, where some are; cells that exist.
    counts: Vec<Option<Fold<u64>>>,
    cells: Option<Fold<u64>>,
}

impl<'a> Folder<'a> {
    /// For a part of an array, whose dimensions `kept` give the groups.
    pub fn new(bound: &'a Bound, part: &Region, kept: &[(usize, u64)]) -> Folder<'a> {
        let geometry = Geometry::new(part, kept);
        let all = bound.calls.iter().enumerate();
        let kept = all.map(|(at, call)| {
            let same = bound.calls[..at]
                .iter()
                .position(|before| kind(before) == kind(call));
            same.map_or_else(|| Kept::of(call, &geometry), Kept::Same)
        });
        Folder {
            kept: kept.collect(),
            counts: bound.calls.iter().map(|_| None).collect(),
            cells: None,
            geometry,
            bound,
        }
    }

    /// Whether it can see its part in more than one slab.
    pub fn in_slabs(&self) -> bool {
        let whole = |of: &Kept| matches!(of, Kept::Moments(_));
        !self.geometry.outer.is_empty() && !self.kept.iter().any(whole)
    }

    /// Sees cells that all exist and are no nulls: the values of each attribute that is needed, from position `first` of
    /// the part's outermost dimension on.
    pub fn slab(&mut self, first: usize, values: &[Option<Buffer>]) {
        let rows = self.geometry.outer.iter().skip(1).map(Along::length);
        let first = first * rows.product::<usize>();
        for number in 0..self.kept.len() {
            let call = self.bound.calls[number];
            if let Some(values) = call.of.and_then(|of| values[of.0].as_ref()) {
                self.see(number, first, values, None);
            }
        }
    }

    /// Sees all cells of the part.
    pub fn block(&mut self, block: &Block) {
        let count = |of: &Geometry, mask: &[u8]| {
            let mut fold = Fold::new(of, 0u64);
            fold.add(of, 0, mask, u64::from, |a, b| a + b);
            fold
        };
        self.cells = block.present().map(|of| count(&self.geometry, of));
        for number in 0..self.kept.len() {
            let column = self.bound.calls[number]
                .of
                .and_then(|of| block.column(of.0));
            let mask = mask_of(block, column);
            self.counts[number] = mask.as_deref().map(|of| count(&self.geometry, of));
            if let Some(column) = column {
                self.see(number, 0, column.values(), mask.as_deref());
            }
        }
    }

    fn see(&mut self, number: usize, first: usize, values: &Buffer, mask: Option<&[u8]>) {
        let of = &self.geometry;
        let least = self.bound.calls[number].function == Function::Min;
        let counts = self.counts[number].as_ref();
        let kept = &mut self.kept[number];
        with_type!(values.data_type(), T => {
            let values = values.values::<T>();
            kept.see(of, first, (values, mask), (least, counts));
        });
    }

    /// What was seen.
    pub fn finish(self) -> States {
        let of = &self.geometry;
        let counts = |fold: Option<Fold<u64>>| match fold {
            None => of.counts.clone(),
            Some(fold) => fold.finish(of, |a, b| a + b),
        };
        let cells = counts(self.cells);
        let mut states: Vec<State> = Vec::with_capacity(self.kept.len());
        let all = self.kept.into_iter().zip(self.counts);
        for ((kept, seen), call) in all.zip(&self.bound.calls) {
            let counts = counts(seen);
            let known = kept.finish(of, call, &counts);
            let known = known.unwrap_or_else(|at| states[at].known.clone());
            states.push(State { counts, known });
        }
        States::of(self.bound, cells, states)
    }
}

/// What two aggregates of one attribute share.
pub(crate) fn kind(call: &Call) -> (u8, Option<(usize, DataType)>) {
    let number = match call.function {
        Function::Count => 0,
        Function::Sum | Function::Avg => 1,
        Function::Min => 2,
        Function::Max => 3,
        Function::Var | Function::Stdev => 4,
    };
    (number, call.of)
}

/// A byte for each cell that says whether its value counts; `None` where all do.
pub(crate) fn mask_of<'a>(
    block: &'a Block,
    column: Option<&'a Column>,
) -> Option<std::borrow::Cow<'a, [u8]>> {
    match (block.present(), column.and_then(Column::valid)) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.into()),
        (Some(present), Some(valid)) => {
            let both = present.iter().zip(valid);
            Some(both.map(|(&a, &b)| u8::from(a != 0 && b != 0)).collect())
        }
    }
}

impl Kept {
    fn of(call: &Call, geometry: &Geometry) -> Kept {
        let Some((_, of)) = call.of else {
            return Kept::Count;
        };
        let least = call.function == Function::Min;
        match (call.function, of.is_float()) {
            (Function::Count, _) => Kept::Count,
            (Function::Sum | Function::Avg, true) => Kept::Float(Fold::new(geometry, 0.0)),
            (Function::Sum | Function::Avg, false) if of.width() == 8 => {
                Kept::Halves(Fold::new(geometry, 0), Fold::new(geometry, 0))
            }
            (Function::Sum | Function::Avg, false) => Kept::Sum(Fold::new(geometry, 0)),
            (Function::Min | Function::Max, true) => {
                Kept::EndFloat(Fold::new(geometry, furthest_float(least)))
            }
            (Function::Min | Function::Max, false) => {
                Kept::EndWhole(Fold::new(geometry, furthest(least)))
            }
            _ => Kept::Moments(Vec::new()),
        }
    }

    fn see<T: Element>(
        &mut self,
        of: &Geometry,
        first: usize,
        seen: (&[T], Option<&[u8]>),
        (least, counts): (bool, Option<&Fold<u64>>),
    ) {
        match self {
            Kept::Count | Kept::Same(_) => {}
            Kept::Sum(fold) => each(
                fold,
                of,
                first,
                seen,
                |of| of.to_i128() as i64,
                |a, b| a + b,
            ),
            Kept::Halves(high, low) => {
                let (top, bottom) = (|of: T| halves(of).0, |of: T| halves(of).1);
                each(high, of, first, seen, top, |a, b| a + b);
                each(low, of, first, seen, bottom, |a, b| a + b);
            }
            Kept::Float(fold) => each(fold, of, first, seen, T::to_f64, |a, b| a + b),
            Kept::EndWhole(fold) if least => {
                each(fold, of, first, seen, ordered, |a, b| extreme(a, b, true));
            }
            Kept::EndWhole(fold) => {
                each(fold, of, first, seen, ordered, |a, b| extreme(a, b, false));
            }
            Kept::EndFloat(fold) if least => {
                each(fold, of, first, seen, T::to_f64, |a, b| extreme(a, b, true));
            }
            Kept::EndFloat(fold) => {
                each(fold, of, first, seen, T::to_f64, |a, b| {
                    extreme(a, b, false)
                });
            }
            Kept::Moments(all) => *all = moments(of, seen, counts),
        }
    }

    /// What is known of each group, or the number of the aggregate that knows the same.
    fn finish(self, of: &Geometry, call: &Call, counts: &[u64]) -> Result<Known, usize> {
        let least = call.function == Function::Min;
        let signed = call.of.is_some_and(|of| of.1.is_signed());
        Ok(match self {
            Kept::Count => Known::Count,
            Kept::Sum(fold) => {
                let sums = fold.finish(of, |a, b| a + b);
                Known::Whole(sums.into_iter().map(i128::from).collect())
            }
            Kept::Halves(high, low) => {
                let high = high.finish(of, |a, b| a + b);
                let low = low.finish(of, |a, b| a + b);
                let all = high.into_iter().zip(low).zip(counts);
                let sum = |((high, low), &n)| joined(high, low, n, signed);
                Known::Whole(all.map(sum).collect())
            }
            Kept::Float(fold) => Known::Float(fold.finish(of, |a, b| a + b)),
            Kept::EndWhole(fold) if least => {
                Known::ExtremeWhole(fold.finish(of, |a, b| extreme(a, b, true)))
            }
            Kept::EndWhole(fold) => {
                Known::ExtremeWhole(fold.finish(of, |a, b| extreme(a, b, false)))
            }
            Kept::EndFloat(fold) if least => {
                Known::ExtremeFloat(fold.finish(of, |a, b| extreme(a, b, true)))
            }
            Kept::EndFloat(fold) => {
                Known::ExtremeFloat(fold.finish(of, |a, b| extreme(a, b, false)))
            }
            Kept::Moments(mut all) => {
                all.resize(of.groups(), Moments::default());
                Known::Moments(all)
            }
            Kept::Same(at) => return Err(at),
        })
    }
}

/// What changes no least value; no greatest one otherwise.
pub(crate) fn furthest(least: bool) -> i64 {
    if least { i64::MAX } else { i64::MIN }
}

/// The same of floats.
pub(crate) fn furthest_float(least: bool) -> f64 {
    if least {
        f64::INFINITY
    } else {
        f64::NEG_INFINITY
    }
}

/// A whole number of 64 bits, moved so that the least is zero, as two of 32.
#[inline(always)]
pub(crate) fn halves<T: Element>(value: T) -> (u64, u64) {
    let value = (ordered(value) ^ i64::MIN) as u64;
    (value >> 32, value & 0xffff_ffff)
}

/// The sum of `count` whole numbers, with a sign or without, from the sums of their [`halves`].
pub(crate) fn joined(high: u64, low: u64, count: u64, signed: bool) -> i128 {
    let sum = (i128::from(high) << 32) + i128::from(low);
    if signed {
        sum - (i128::from(count) << 63)
    } else {
        sum
    }
}

/// Sees values, of which those that the mask leaves out are replaced by what changes nothing.
#[inline(always)]
fn each<T: Copy, A: Copy>(
    fold: &mut Fold<A>,
    of: &Geometry,
    first: usize,
    (values, mask): (&[T], Option<&[u8]>),
    lift: impl Fn(T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) {
    let Some(mask) = mask else {
        return fold.add(of, first, values, lift, join);
    };
    let identity = fold.identity;
    let both = values.iter().zip(mask);
    let some: Vec<A> = both
        .map(|(&value, &counts)| if counts != 0 { lift(value) } else { identity })
        .collect();
    fold.add(of, first, &some, |value| value, join);
}

/// Means first, then the squares of the differences from them.
fn moments<T: Element>(
    of: &Geometry,
    (values, mask): (&[T], Option<&[u8]>),
    counts: Option<&Fold<u64>>,
) -> Vec<Moments> {
    let mut sums = Fold::new(of, 0.0);
    each(&mut sums, of, 0, (values, mask), T::to_f64, |a, b| a + b);
    let sums = sums.finish(of, |a, b| a + b);
    let counts = match counts {
        None => of.counts.clone(),
        Some(fold) => Fold {
            groups: fold.groups.clone(),
            upright: fold.upright.clone(),
            identity: 0,
        }
        .finish(of, |a, b| a + b),
    };
    let means = sums.iter().zip(&counts);
    let means: Vec<f64> = means
        .map(|(sum, &count)| if count == 0 { 0.0 } else { sum / count as f64 })
        .collect();
    let length = of.row.length();
    let mut squares = Vec::with_capacity(values.len());
    if length > 0 {
        of.rows(0, values.len() / length, |number, group| {
            let row = &values[number * length..][..length];
            squares.extend(row.iter().enumerate().map(|(at, value)| {
                let mean = means[group + of.row.group(of.row.start + at as u64)];
                let way = value.to_f64() - mean;
                way * way
            }));
        });
    }
    let mut fold = Fold::new(of, 0.0);
    each(
        &mut fold,
        of,
        0,
        (&squares, mask),
        |value| value,
        |a, b| a + b,
    );
    let squares = fold.finish(of, |a, b| a + b);
    let both = means.into_iter().zip(squares);
    both.map(|(mean, squares)| Moments { mean, squares })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cells_come_to_their_groups_whatever_the_slabs(
            dimensions in prop::collection::vec((0..9u64, 1..7u64, prop::option::of(1..5u64)), 1..5),
            cut in 1..4usize,
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
            let row = cells / shape[0] as usize;
            let step = if shape.len() == 1 { cells } else { cut * row };
            for (at, slab) in values.chunks(step).enumerate() {
                let first = at * step / of.row.length();
                fold.add(&of, first, slab, |value| value, |a, b| a + b);
            }
            prop_assert_eq!(fold.finish(&of, |a, b| a + b), expected);
        }
    }

    #[test]
    fn halves_add_up() {
        let values = [i64::MIN, i64::MAX, -1, 0, 5, i64::MIN];
        let (mut high, mut low) = (0, 0);
        for value in values {
            let (top, bottom) = halves(value);
            (high, low) = (high + top, low + bottom);
        }
        let expected: i128 = values.iter().map(|&of| i128::from(of)).sum();
        assert_eq!(joined(high, low, 6, true), expected);
        let (top, bottom) = halves(u64::MAX);
        assert_eq!(joined(top, bottom, 1, false), i128::from(u64::MAX));
    }
}
