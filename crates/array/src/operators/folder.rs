//! The aggregates of a part of an array: a fold for each, and what is left out of it.

use crate::data::block::{Block, Column};
use crate::data::region::Region;
use crate::model::types::{DataType, Element, with_type};
use crate::operators::fold::Fold;
use crate::operators::functions::{Bound, Call, Function};
use crate::operators::geometry::{Cursor, Geometry};
use crate::operators::states::{Known, Moments, State, States, extreme, ordered};

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
