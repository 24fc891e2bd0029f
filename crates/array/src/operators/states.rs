//! The states of aggregates: for each group of cells what is known of those seen so far.

use std::cmp::Ordering;

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::error::{Error, Result};
use crate::model::types::{DataType, Element, Scalar, with_type};
use crate::operators::functions::{Bound, Call, Function};

/// The states of some aggregates for a number of groups.
#[derive(Debug)]
pub(crate) struct States {
    /// Cells that exist, in each group.
    pub cells: Vec<u64>,
    calls: Vec<(Call, State)>,
}

/// The state of one aggregate, for each group.
#[derive(Debug)]
enum State {
    Count(Vec<u64>),
    /// Whole numbers: the sum of fewer than 2^64 of 64 bits fits.
    Whole(Vec<(i128, u64)>),
    Float(Vec<(f64, u64)>),
    /// The least or greatest.
    ExtremeWhole(Vec<Option<i128>>),
    ExtremeFloat(Vec<Option<f64>>),
    Moments(Vec<Moments>),
}

/// How many, their mean, and the sum of the squares of their differences from it (Welford; merged by Chan et al.).
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        let count = self.count + other.count;
        let way = other.mean - self.mean;
        let part = other.count as f64 / count as f64;
        self.mean += way * part;
        self.squares += other.squares + way * way * self.count as f64 * part;
        self.count = count;
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
        let state = |call: &Call| match (call.function, call.of.map(|of| of.1)) {
            (Function::Count, _) | (_, None) => State::Count(vec![0; groups]),
            (Function::Sum | Function::Avg, Some(of)) if !of.is_float() => {
                State::Whole(vec![(0, 0); groups])
            }
            (Function::Sum | Function::Avg, _) => State::Float(vec![(0.0, 0); groups]),
            (Function::Min | Function::Max, Some(of)) if !of.is_float() => {
                State::ExtremeWhole(vec![None; groups])
            }
            (Function::Min | Function::Max, _) => State::ExtremeFloat(vec![None; groups]),
            _ => State::Moments(vec![Moments::default(); groups]),
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

    /// Sees a row of cells of a block. Those that do not exist are left out.
    pub fn add(&mut self, block: &Block, row: Row) {
        let present = block
            .present()
            .map(|of| &of[row.start..row.start + row.length]);
        count(&mut self.cells, row, present, None);
        for (call, state) in &mut self.calls {
            let column = call.of.and_then(|(number, _)| block.column(number));
            let valid = column.and_then(Column::valid);
            let valid = valid.map(|of| &of[row.start..row.start + row.length]);
            let seen = Seen {
                row,
                present,
                valid,
            };
            match (state, column) {
                (State::Count(counts), _) => count(counts, row, present, valid),
                (_, None) => {}
                (state, Some(column)) => {
                    let least = call.function == Function::Min;
                    with_type!(column.values().data_type(), T => {
                        let values = &column.values().values::<T>()[row.start..][..row.length];
                        state.add(values, seen, least);
                    });
                }
            }
        }
    }

    /// Adds what others have seen after: their groups are those from `group` on, for a row of `length` from `from` on.
    pub fn merge(&mut self, other: &States, from: usize, group: usize, length: usize) {
        for at in 0..length {
            self.cells[group + at] += other.cells[from + at];
        }
        for ((call, state), (_, more)) in self.calls.iter_mut().zip(&other.calls) {
            let least = call.function == Function::Min;
            for at in 0..length {
                state.merge(more, from + at, group + at, least);
            }
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
    /// Calls `each` with every value that counts and its group, in order.
    #[inline(always)]
    fn each<T: Copy>(&self, values: &[T], mut each: impl FnMut(usize, T)) {
        let Row { group, step, .. } = self.row;
        match (self.present, self.valid) {
            (None, None) => {
                values
                    .iter()
                    .enumerate()
                    .for_each(|(at, &value)| each(group + at * step, value));
            }
            (present, valid) => {
                for (at, &value) in values.iter().enumerate() {
                    let counts = |of: Option<&[u8]>| of.is_none_or(|of| of[at] != 0);
                    if counts(present) && counts(valid) {
                        each(group + at * step, value);
                    }
                }
            }
        }
    }
}

fn count(counts: &mut [u64], row: Row, present: Option<&[u8]>, valid: Option<&[u8]>) {
    match (present, valid, row.step) {
        (None, None, 0) => counts[row.group] += row.length as u64,
        _ => {
            let seen = Seen {
                row,
                present,
                valid,
            };
            // The values do not matter; a row of nothings has a length.
            let nothings = vec![(); row.length];
            seen.each(&nothings, |group, ()| counts[group] += 1);
        }
    }
}

impl State {
    fn add<T: Element>(&mut self, values: &[T], seen: Seen<'_>, least: bool) {
        let alone = seen.row.step == 0;
        let group = seen.row.group;
        match self {
            State::Count(_) => {}
            State::Whole(sums) if alone => {
                let (mut sum, mut count) = sums[group];
                seen.each(values, |_, value| {
                    sum += value.to_i128();
                    count += 1;
                });
                sums[group] = (sum, count);
            }
            State::Whole(sums) => seen.each(values, |group, value| {
                sums[group].0 += value.to_i128();
                sums[group].1 += 1;
            }),
            State::Float(sums) if alone => {
                let (mut sum, mut count) = (0.0, 0);
                seen.each(values, |_, value| {
                    sum += value.to_f64();
                    count += 1;
                });
                sums[group].0 += sum;
                sums[group].1 += count;
            }
            State::Float(sums) => seen.each(values, |group, value| {
                sums[group].0 += value.to_f64();
                sums[group].1 += 1;
            }),
            State::ExtremeWhole(ends) => seen.each(values, |group, value| {
                ends[group] = Some(extreme(ends[group], value.to_i128(), least));
            }),
            State::ExtremeFloat(ends) => seen.each(values, |group, value| {
                ends[group] = Some(extreme(ends[group], value.to_f64(), least));
            }),
            State::Moments(all) => seen.each(values, |group, value| all[group].add(value.to_f64())),
        }
    }

    fn merge(&mut self, other: &State, from: usize, to: usize, least: bool) {
        match (self, other) {
            (State::Count(a), State::Count(b)) => a[to] += b[from],
            (State::Whole(a), State::Whole(b)) => {
                a[to].0 += b[from].0;
                a[to].1 += b[from].1;
            }
            (State::Float(a), State::Float(b)) => {
                a[to].0 += b[from].0;
                a[to].1 += b[from].1;
            }
            (State::ExtremeWhole(a), State::ExtremeWhole(b)) => {
                if let Some(end) = b[from] {
                    a[to] = Some(extreme(a[to], end, least));
                }
            }
            (State::ExtremeFloat(a), State::ExtremeFloat(b)) => {
                if let Some(end) = b[from] {
                    a[to] = Some(extreme(a[to], end, least));
                }
            }
            (State::Moments(a), State::Moments(b)) => a[to].merge(&b[from]),
            _ => debug_assert!(false, "states of the same aggregate"),
        }
    }

    fn finish(&self, call: Call) -> Result<Column> {
        let of = call
            .of
            .map_or(DataType::U64, |of| call.function.result(of.1));
        let groups = match self {
            State::Count(all) => return Ok(Column::new(Buffer::of(DataType::U64, all))),
            State::Whole(all) => all.len(),
            State::Float(all) => all.len(),
            State::ExtremeWhole(all) => all.len(),
            State::ExtremeFloat(all) => all.len(),
            State::Moments(all) => all.len(),
        };
        let mut values = Buffer::zeros(of, groups);
        let mut valid = vec![0; groups];
        for (group, valid) in valid.iter_mut().enumerate() {
            let value = self.value(group, call.function);
            if value.is_null() {
                continue;
            }
            let fits = value.cast(of).ok_or_else(|| Error::Arithmetic {
                what: format!("sum of {of}: {value} is too large; cast to double before"),
            })?;
            values.set(group, fits);
            *valid = 1;
        }
        Ok(Column::nullable(values, valid))
    }

    fn value(&self, group: usize, function: Function) -> Scalar {
        let average = function == Function::Avg;
        match self {
            State::Count(all) => Scalar::Int(all[group].into()),
            State::Whole(all) => match all[group] {
                (_, 0) => Scalar::Null,
                (sum, count) if average => Scalar::Float(sum as f64 / count as f64),
                (sum, _) => Scalar::Int(sum),
            },
            State::Float(all) => match all[group] {
                (_, 0) => Scalar::Null,
                (sum, count) if average => Scalar::Float(sum / count as f64),
                (sum, _) => Scalar::Float(sum),
            },
            State::ExtremeWhole(all) => all[group].map_or(Scalar::Null, Scalar::Int),
            State::ExtremeFloat(all) => all[group].map_or(Scalar::Null, Scalar::Float),
            State::Moments(all) => {
                let Moments { count, squares, .. } = all[group];
                match count {
                    0 | 1 => Scalar::Null,
                    _ if function == Function::Var => Scalar::Float(squares / (count - 1) as f64),
                    _ => Scalar::Float((squares / (count - 1) as f64).sqrt()),
                }
            }
        }
    }
}

/// The lesser or greater; what does not compare (NaN) wins.
#[inline(always)]
fn extreme<T: PartialOrd + Copy>(before: Option<T>, value: T, least: bool) -> T {
    let Some(before) = before else {
        return value;
    };
    match value.partial_cmp(&before) {
        Some(Ordering::Less) if least => value,
        Some(Ordering::Greater) if !least => value,
        Some(_) => before,
        // One of them is no number, and so is the result.
        None if before.partial_cmp(&before).is_none() => before,
        None => value,
    }
}
