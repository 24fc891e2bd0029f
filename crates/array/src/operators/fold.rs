//! Folding the cells of a block into groups: sums, least and greatest values.
//!
//! What a group comes to depends on its cells and on the whole part of the array that is folded, and on nothing else: not on
//! how many slabs the part is seen in, nor on which other groups are asked for. So both models have the same bits.

use crate::data::block::{Block, Column};
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
    /// Groups along a row.
    abreast: usize,
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
            abreast: row.counts().count(),
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
            abreast: 0,
            upright: false,
        }
    }

    fn groups(&self) -> usize {
        self.counts.len()
    }
}

/// How far the cells of a part were seen, in row-major order.
#[derive(Debug, Clone)]
struct Cursor {
    position: Vec<u64>,
    /// What each position adds to the number of the group, and all of them together.
    groups: Vec<usize>,
    group: usize,
    /// Cells of the row that were seen.
    offset: usize,
}

impl Cursor {
    fn new(of: &Geometry) -> Cursor {
        Cursor {
            position: of.outer.iter().map(|of| of.start).collect(),
            groups: vec![0; of.outer.len()],
            group: 0,
            offset: 0,
        }
    }

    /// Goes on by cells of the row, and to the next at its end.
    #[inline(always)]
    fn advance(&mut self, of: &Geometry, cells: usize) {
        self.offset += cells;
        if self.offset < of.row.length() {
            return;
        }
        self.offset = 0;
        for (at, of) in of.outer.iter().enumerate().rev() {
            self.position[at] += 1;
            let around = self.position[at] == of.end;
            if around {
                self.position[at] = of.start;
            }
            let before = std::mem::replace(&mut self.groups[at], of.group(self.position[at]));
            self.group = self.group + self.groups[at] - before;
            if !around {
                break;
            }
        }
    }
}

/// What the values of each group come to.
#[derive(Clone)]
struct Fold<A> {
    groups: Vec<A>,
    /// Of rows that are joined with each other first, what the cells at each place come to.
    upright: Vec<A>,
    /// What the values of a row that was not seen to its end come to, by their places.
    lanes: [A; LANES],
    identity: A,
    cursor: Cursor,
}

impl<A: Copy> Fold<A> {
    fn new(of: &Geometry, identity: A) -> Fold<A> {
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
    fn see<T: Copy>(
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
    fn finish(mut self, of: &Geometry, join: impl Fn(A, A) -> A + Copy) -> Vec<A> {
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
    beside(&mut lanes[..rest.len()], rest, lift, join);
}

/// What the lanes of a row come to.
#[inline(always)]
fn joined_lanes<A: Copy>(mut lanes: [A; LANES], join: impl Fn(A, A) -> A) -> A {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for at in 0..width {
            lanes[at] = join(lanes[at], lanes[at + width]);
        }
    }
    lanes[0]
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

/// What is kept of a column for one aggregate.
enum Kept {
    /// How many values there are is all.
    Count,
    /// The sum of whole numbers of at most 32 bits.
    Sum(Fold<i64>),
    /// The sums of the high and low halves of whole numbers of 64 bits, [`ordered`] and taken without a sign.
    Halves(Box<[Fold<u64>; 2]>),
    Float(Fold<f64>),
    EndWhole(Fold<i64>),
    EndFloat(Fold<f64>),
    Moments(Vec<Moments>),
    /// What another aggregate has.
    Same(usize),
}

/// Aggregates of the groups of a part of an array.
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

    /// Whether it can see the values of its part piece by piece.
    pub fn in_pieces(&self) -> bool {
        !self.kept.iter().any(|of| matches!(of, Kept::Moments(_)))
    }

    /// Sees the values of an attribute that come next, in row-major order, of cells that all exist and are no nulls.
    ///
    /// # Panics
    /// If there are bytes of a part of a value.
    pub fn piece(&mut self, attribute: usize, of: DataType, bytes: &[u8]) {
        for number in 0..self.kept.len() {
            if self.bound.calls[number].of.map(|of| of.0) == Some(attribute) {
                with_type!(of, T => {
                    match bytemuck::try_cast_slice::<u8, T>(bytes) {
                        Ok(values) => self.see(number, values, None),
                        // Where pages begin anywhere.
                        Err(_) => {
                            let mut values: Vec<T> = vec![bytemuck::Zeroable::zeroed(); bytes.len() / size_of::<T>()];
                            bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
                            self.see(number, &values, None);
                        }
                    }
                });
            }
        }
    }

    /// Sees all cells of the part.
    pub fn block(&mut self, block: &Block) {
        let count = |of: &Geometry, mask: &[u8]| {
            let mut fold = Fold::new(of, 0u64);
            fold.see(of, mask, u64::from, |a, b| a + b);
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
                let values = column.values();
                with_type!(values.data_type(), T => {
                    self.see(number, values.values::<T>(), mask.as_deref());
                });
            }
        }
    }

    fn see<T: Element>(&mut self, number: usize, values: &[T], mask: Option<&[u8]>) {
        let least = self.bound.calls[number].function == Function::Min;
        let counts = self.counts[number].as_ref();
        self.kept[number].see(&self.geometry, (values, mask), (least, counts));
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
                Kept::Halves(Box::new([Fold::new(geometry, 0), Fold::new(geometry, 0)]))
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
        seen: (&[T], Option<&[u8]>),
        (least, counts): (bool, Option<&Fold<u64>>),
    ) {
        match self {
            Kept::Count | Kept::Same(_) => {}
            Kept::Sum(fold) => each(fold, of, seen, |of| of.to_i128() as i64, |a, b| a + b),
            Kept::Halves(both) => {
                let [high, low] = &mut **both;
                let (top, bottom) = (|of: T| halves(of).0, |of: T| halves(of).1);
                each(high, of, seen, top, |a, b| a + b);
                each(low, of, seen, bottom, |a, b| a + b);
            }
            Kept::Float(fold) => each(fold, of, seen, T::to_f64, |a, b| a + b),
            Kept::EndWhole(fold) if least => {
                each(fold, of, seen, ordered, |a, b| extreme(a, b, true));
            }
            Kept::EndWhole(fold) => {
                each(fold, of, seen, ordered, |a, b| extreme(a, b, false));
            }
            Kept::EndFloat(fold) if least => {
                each(fold, of, seen, T::to_f64, |a, b| extreme(a, b, true));
            }
            Kept::EndFloat(fold) => {
                each(fold, of, seen, T::to_f64, |a, b| extreme(a, b, false));
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
            Kept::Halves(both) => {
                let [high, low] = *both;
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
    (values, mask): (&[T], Option<&[u8]>),
    lift: impl Fn(T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) {
    let Some(mask) = mask else {
        return fold.see(of, values, lift, join);
    };
    let identity = fold.identity;
    let both = values.iter().zip(mask);
    let some: Vec<A> = both
        .map(|(&value, &counts)| if counts != 0 { lift(value) } else { identity })
        .collect();
    fold.see(of, &some, |value| value, join);
}

/// Means first, then the squares of the differences from them.
fn moments<T: Element>(
    of: &Geometry,
    (values, mask): (&[T], Option<&[u8]>),
    counts: Option<&Fold<u64>>,
) -> Vec<Moments> {
    let mut sums = Fold::new(of, 0.0);
    each(&mut sums, of, (values, mask), T::to_f64, |a, b| a + b);
    let sums = sums.finish(of, |a, b| a + b);
    let counts = match counts {
        None => of.counts.clone(),
        Some(fold) => fold.clone().finish(of, |a, b| a + b),
    };
    let means = sums.iter().zip(&counts);
    let means: Vec<f64> = means
        .map(|(sum, &count)| if count == 0 { 0.0 } else { sum / count as f64 })
        .collect();
    let length = of.row.length();
    let mut squares = Vec::with_capacity(values.len());
    let mut cursor = Cursor::new(of);
    for row in values.chunks(length.max(1)) {
        squares.extend(row.iter().enumerate().map(|(at, value)| {
            let mean = means[cursor.group + of.row.group(of.row.start + at as u64)];
            let way = value.to_f64() - mean;
            way * way
        }));
        cursor.advance(of, row.len());
    }
    let mut fold = Fold::new(of, 0.0);
    each(&mut fold, of, (&squares, mask), |value| value, |a, b| a + b);
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
