//! The states of aggregates: for each group of cells what is known of those seen so far.

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::error::{Error, Result};
use crate::model::types::{DataType, Element, with_type};
use crate::operators::functions::{Bound, Call, Function};

/// The states of some aggregates for a number of groups.
#[derive(Debug)]
pub(crate) struct States {
    /// Cells that exist, in each group.
    pub cells: Vec<u64>,
    calls: Vec<(Call, State)>,
}

/// The state of one aggregate: for each group, how many values were seen, and what is known of them.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub counts: Vec<u64>,
    pub known: Known,
}

/// What is known of the values of each group. Of a group without any it means nothing, but sums are zero.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// Nothing but how many there are.
    Count,
    /// The sum of whole numbers: that of fewer than 2^64 of 64 bits fits.
    Whole(Vec<i128>),
    /// The sum of floats.
    Float(Vec<f64>),
    /// The least or greatest whole number, [`ordered`].
    ExtremeWhole(Vec<i64>),
    /// The least or greatest float.
    ExtremeFloat(Vec<f64>),
    /// The mean, and the sum of the squares of differences from it.
    Moments(Vec<Moments>),
}

/// The mean of some values, and the sum of the squares of their differences from it (Welford; merged by Chan et al.).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Moments {
    pub mean: f64,
    pub squares: f64,
}

impl Moments {
    /// Those of one value more, which is the one of this number, from 1.
    fn add(&mut self, value: f64, count: u64) {
        let before = value - self.mean;
        self.mean += before / count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Those of the values of both, of which there are so many.
    #[inline(always)]
    pub fn merged(self, count: u64, other: Moments, more: u64) -> Moments {
        if more == 0 {
            return self;
        }
        if count == 0 {
            return other;
        }
        let way = other.mean - self.mean;
        let part = more as f64 / (count + more) as f64;
        Moments {
            mean: self.mean + way * part,
            squares: self.squares + (other.squares + way * way * count as f64 * part),
        }
    }
}

/// A whole number as one of 64 bits with a sign, in the same order.
#[inline(always)]
pub(crate) fn ordered<T: Element>(value: T) -> i64 {
    let low = value.to_i128() as i64;
    if T::is_of(DataType::U64) {
        low ^ i64::MIN
    } else {
        low
    }
}

/// What [`ordered`] made of a value of this type.
fn of_ordered(of: DataType, value: i64) -> i128 {
    match of {
        DataType::U64 => i128::from((value ^ i64::MIN) as u64),
        _ => i128::from(value),
    }
}

/// The lesser or greater; what does not compare (NaN) wins.
#[inline(always)]
pub(crate) fn extreme<T: PartialOrd + Copy>(before: T, value: T, least: bool) -> T {
    let further = if least {
        value < before
    } else {
        value > before
    };
    // What is not itself is no number.
    #[expect(clippy::eq_op, reason = "NaN of any type of float")]
    if further || value != value {
        value
    } else {
        before
    }
}

/// A row of cells that lie side by side, and the groups that they belong to: the first one's, and the step to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub start: usize,
    pub length: usize,
    pub group: usize,
    pub step: usize,
}

impl States {
    /// Of `groups` groups, in which nothing was seen.
    pub fn new(bound: &Bound, groups: usize) -> States {
        let state = |call: &Call| State {
            counts: vec![0; groups],
            known: Known::of(*call, groups),
        };
        States {
            cells: vec![0; groups],
            calls: bound
                .calls
                .iter()
                .map(|call| (*call, state(call)))
                .collect(),
        }
    }

    /// These, of as many groups as `cells` has: a state for each aggregate.
    pub fn of(bound: &Bound, cells: Vec<u64>, states: Vec<State>) -> States {
        debug_assert_eq!(bound.calls.len(), states.len());
        States {
            cells,
            calls: bound.calls.iter().copied().zip(states).collect(),
        }
    }

    /// Sees a row of cells of a block. Those that do not exist are left out.
    pub fn add(&mut self, block: &Block, row: Row) {
        let present = block
            .present()
            .map(|of| &of[row.start..row.start + row.length]);
        let all = Seen {
            row,
            present,
            valid: None,
        };
        all.each(|group, _| self.cells[group] += 1);
        for (call, state) in &mut self.calls {
            let column = call.of.and_then(|(number, _)| block.column(number));
            let valid = column.and_then(Column::valid);
            let valid = valid.map(|of| &of[row.start..row.start + row.length]);
            let seen = Seen { valid, ..all };
            let Some(column) = column.filter(|_| !matches!(state.known, Known::Count)) else {
                seen.each(|group, _| state.counts[group] += 1);
                continue;
            };
            let least = call.function == Function::Min;
            with_type!(column.values().data_type(), T => {
                let values = &column.values().values::<T>()[row.start..][..row.length];
                state.add(values, seen, least);
            });
        }
    }

    /// Adds what others have seen after: their groups are those from `group` on, for a row of `length` from `from` on.
    pub fn merge(&mut self, other: &States, from: usize, group: usize, length: usize) {
        add_all(
            &mut self.cells[group..][..length],
            &other.cells[from..],
            |a, b| a + b,
        );
        for ((call, state), (_, more)) in self.calls.iter_mut().zip(&other.calls) {
            let least = call.function == Function::Min;
            state.merge(more, (from, group, length), least);
        }
    }

    /// The results of all groups, a column for each aggregate.
    ///
    /// # Errors
    /// [`Error::Arithmetic`]: a sum that does not fit.
    pub fn finish(&self) -> Result<Vec<Column>> {
        self.calls
            .iter()
            .map(|(call, state)| state.finish(*call))
            .collect()
    }
}

/// Which cells of a row count.
#[derive(Clone, Copy)]
struct Seen<'a> {
    row: Row,
    present: Option<&'a [u8]>,
    valid: Option<&'a [u8]>,
}

impl Seen<'_> {
    /// Calls `each` with the group of every cell that counts, and its number in the row, in order.
    #[inline(always)]
    fn each(&self, mut each: impl FnMut(usize, usize)) {
        let Row { group, step, .. } = self.row;
        for at in 0..self.row.length {
            let counts = |of: Option<&[u8]>| of.is_none_or(|of| of[at] != 0);
            if counts(self.present) && counts(self.valid) {
                each(group + at * step, at);
            }
        }
    }
}

/// Joins values with those at the same places.
fn add_all<A: Copy>(all: &mut [A], more: &[A], join: impl Fn(A, A) -> A) {
    all.iter_mut()
        .zip(more)
        .for_each(|(a, &b)| *a = join(*a, b));
}

impl Known {
    /// Of `groups` groups, in which nothing was seen.
    fn of(call: Call, groups: usize) -> Known {
        match (call.function, call.of.map(|of| of.1.is_float())) {
            (Function::Count, _) | (_, None) => Known::Count,
            (Function::Sum | Function::Avg, Some(false)) => Known::Whole(vec![0; groups]),
            (Function::Sum | Function::Avg, _) => Known::Float(vec![0.0; groups]),
            (Function::Min | Function::Max, Some(false)) => Known::ExtremeWhole(vec![0; groups]),
            (Function::Min | Function::Max, _) => Known::ExtremeFloat(vec![0.0; groups]),
            _ => Known::Moments(vec![Moments::default(); groups]),
        }
    }
}

impl State {
    fn add<T: Element>(&mut self, values: &[T], seen: Seen<'_>, least: bool) {
        let counts = &mut self.counts;
        // Which value of its group it is, from 1.
        let mut count = |group: usize| {
            counts[group] += 1;
            counts[group]
        };
        match &mut self.known {
            Known::Count => seen.each(|group, _| {
                count(group);
            }),
            Known::Whole(sums) => seen.each(|group, at| {
                count(group);
                sums[group] += values[at].to_i128();
            }),
            Known::Float(sums) => seen.each(|group, at| {
                count(group);
                sums[group] += values[at].to_f64();
            }),
            Known::ExtremeWhole(ends) => seen.each(|group, at| {
                let value = ordered(values[at]);
                ends[group] = if count(group) == 1 {
                    value
                } else {
                    extreme(ends[group], value, least)
                };
            }),
            Known::ExtremeFloat(ends) => seen.each(|group, at| {
                let value = values[at].to_f64();
                ends[group] = if count(group) == 1 {
                    value
                } else {
                    extreme(ends[group], value, least)
                };
            }),
            Known::Moments(all) => seen.each(|group, at| {
                all[group].add(values[at].to_f64(), count(group));
            }),
        }
    }

    fn merge(&mut self, other: &State, (from, to, length): (usize, usize, usize), least: bool) {
        let (counts, more) = (&mut self.counts[to..][..length], &other.counts[from..]);
        match (&mut self.known, &other.known) {
            (Known::Count, Known::Count) => {}
            (Known::Whole(a), Known::Whole(b)) => {
                add_all(&mut a[to..][..length], &b[from..], |a, b| a + b);
            }
            (Known::Float(a), Known::Float(b)) => {
                add_all(&mut a[to..][..length], &b[from..], |a, b| a + b);
            }
            (Known::ExtremeWhole(a), Known::ExtremeWhole(b)) => {
                merge_ends(&mut a[to..][..length], counts, &b[from..], more, least);
            }
            (Known::ExtremeFloat(a), Known::ExtremeFloat(b)) => {
                merge_ends(&mut a[to..][..length], counts, &b[from..], more, least);
            }
            (Known::Moments(a), Known::Moments(b)) => {
                let both = a[to..][..length].iter_mut().zip(&b[from..]);
                for ((a, &b), (&count, &more)) in both.zip(counts.iter().zip(more)) {
                    *a = a.merged(count, b, more);
                }
            }
            _ => debug_assert!(false, "states of the same aggregate"),
        }
        add_all(counts, more, |a, b| a + b);
    }

    /// The results of all groups.
    ///
    /// # Errors
    /// [`Error::Arithmetic`]: a sum that does not fit.
    pub fn finish(&self, call: Call) -> Result<Column> {
        let counts = &self.counts;
        let of = call
            .of
            .map_or(DataType::U64, |of| call.function.result(of.1));
        let average = call.function == Function::Avg;
        let mut values = match &self.known {
            Known::Count => return Ok(Column::new(Buffer::of(DataType::U64, counts))),
            Known::Whole(sums) if average => floats(sums, counts, |sum, n| sum as f64 / n as f64),
            Known::Whole(sums) => whole(of, sums.iter().copied())?,
            Known::Float(sums) if average => floats(sums, counts, |sum, n| sum / n as f64),
            Known::Float(sums) => Buffer::of(DataType::F64, sums),
            Known::ExtremeWhole(ends) => {
                let value = |(&end, &count)| if count == 0 { 0 } else { of_ordered(of, end) };
                whole(of, ends.iter().zip(counts).map(value))?
            }
            Known::ExtremeFloat(ends) if of == DataType::F32 => {
                let ends: Vec<f32> = ends.iter().map(|&end| end as f32).collect();
                Buffer::of(of, &ends)
            }
            Known::ExtremeFloat(ends) => Buffer::of(of, ends),
            Known::Moments(all) if call.function == Function::Var => {
                floats(all, counts, |of, n| of.squares / (n as f64 - 1.0))
            }
            Known::Moments(all) => {
                floats(all, counts, |of, n| (of.squares / (n as f64 - 1.0)).sqrt())
            }
        };
        let fewest = if matches!(self.known, Known::Moments(_)) {
            2
        } else {
            1
        };
        if counts.iter().all(|&count| count >= fewest) {
            return Ok(Column::new(values));
        }
        let valid: Vec<u8> = counts
            .iter()
            .map(|&count| u8::from(count >= fewest))
            .collect();
        let width = of.width();
        let bytes = values.bytes_mut().chunks_exact_mut(width).zip(&valid);
        bytes
            .filter(|(_, valid)| **valid == 0)
            .for_each(|(value, _)| value.fill(0));
        Ok(Column::nullable(values, valid))
    }
}

/// The lesser or greater of both sides, where either has seen something.
fn merge_ends<A: PartialOrd + Copy>(
    ends: &mut [A],
    counts: &[u64],
    others: &[A],
    more: &[u64],
    least: bool,
) {
    let counts = counts.iter().zip(more);
    for ((end, &other), (&count, &more)) in ends.iter_mut().zip(others).zip(counts) {
        if more > 0 {
            *end = if count == 0 {
                other
            } else {
                extreme(*end, other, least)
            };
        }
    }
}

/// What `each` makes of the state of each group, and of its count.
fn floats<A: Copy>(all: &[A], counts: &[u64], each: impl Fn(A, u64) -> f64) -> Buffer {
    let both = all.iter().zip(counts);
    let values: Vec<f64> = both.map(|(&of, &count)| each(of, count)).collect();
    Buffer::of(DataType::F64, &values)
}

/// Whole numbers, which must fit the type.
fn whole(of: DataType, values: impl Iterator<Item = i128>) -> Result<Buffer> {
    let values: Vec<i128> = values.collect();
    let (least, most) = of.bounds();
    if let Some(value) = values.iter().find(|of| !(least..=most).contains(*of)) {
        let what = format!("sum of {of}: {value} is too large; cast to double before");
        return Err(Error::Arithmetic { what });
    }
    Ok(match of.width() {
        1 => cast(of, &values, |value| value as u8),
        2 => cast(of, &values, |value| value as u16),
        4 => cast(of, &values, |value| value as u32),
        _ => cast(of, &values, |value| value as u64),
    })
}

/// The low bytes of whole numbers.
fn cast<T: bytemuck::Pod>(of: DataType, values: &[i128], low: impl Fn(i128) -> T) -> Buffer {
    let values: Vec<T> = values.iter().map(|&value| low(value)).collect();
    let mut buffer = Buffer::zeros(of, values.len());
    buffer
        .bytes_mut()
        .copy_from_slice(bytemuck::cast_slice(&values));
    buffer
}
