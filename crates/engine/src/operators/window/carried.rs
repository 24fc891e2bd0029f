//! Values of window functions that follow from those of the rows before.

use crate::error::{Error, Result};
use crate::logical::relation::Function;
use crate::operators::aggregate::accumulator::AccumulatedValues;
use crate::operators::aggregate::result::of_sums;
use crate::operators::window::cells::compare_floats;
use crate::vector::value::{Type, Values, Vector};

/// How the value at a row follows from that of the last row of the chunk before, if it is in the same partition, and the one that the
/// chunk alone gives.
#[derive(Clone, Copy)]
pub(super) enum Carried {
    /// It is the one of the chunk.
    Alone,
    /// It is the one before, as long as the partition goes on.
    First,
    /// So many rows as the partition had before are added.
    Rows,
    /// The sum of both.
    Sum,
    /// The lesser or the greater of both.
    Extreme { least: bool },
}

/// Where the partition of row `from` ends, at `end` at the latest.
pub(super) fn partition_end(from: usize, end: usize, same: &dyn Fn(usize, usize) -> bool) -> usize {
    let (mut low, mut high) = (from + 1, end);
    while low < high {
        let middle = low.midpoint(high);
        if same(from, middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The first of the rows `from..end` that is the same as the last of them.
pub(super) fn first_of_last(from: usize, end: usize, same: &dyn Fn(usize, usize) -> bool) -> usize {
    let (mut low, mut high) = (from, end - 1);
    while low < high {
        let middle = low.midpoint(high);
        if same(middle, end - 1) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Has the first `on` values of a chunk follow the one `before` it, in a partition that had so many `rows`.
pub(super) fn follow(
    how: Carried,
    (own, ty): (&mut Vector, &Type),
    before: &Vector,
    (on, rows): (usize, i64),
) -> Result<()> {
    if matches!(how, Carried::Alone) {
        return Ok(());
    }
    let is_there = |vector: &Vector, row: usize| {
        let valid = vector.valid.as_ref();
        valid.is_none_or(|valid| valid[row])
    };
    let all = own.len();
    let known = is_there(before, 0);
    if let Carried::First = how {
        // The picks of the first rows are the value before them.
        let rest = own.run(on..all);
        let first = before.at(&vec![0; on])?;
        let runs = [(0, 0..on), (1, 0..all - on)];
        *own = Vector::runs(ty.kind, &[&first, &rest], &runs)?;
        return Ok(());
    }
    if !known && !matches!(how, Carried::Rows) {
        return Ok(());
    }
    let mut valid = own.valid.take();
    let has = |valid: &Option<Vec<bool>>, row: usize| valid.as_ref().is_none_or(|own| own[row]);
    match (&mut own.values, &before.values) {
        (Values::Int(_) | Values::Wide(_), Values::Int(_) | Values::Wide(_)) => {
            let last = whole_at(&before.values, 0);
            let mut numbers = Vec::with_capacity(all);
            for row in 0..all {
                let value = whole_at(&own.values, row);
                numbers.push(match (row < on, has(&valid, row), how) {
                    (false, ..) => value,
                    (true, _, Carried::Rows) => value + i128::from(rows),
                    (true, false, _) => last,
                    (true, true, Carried::Extreme { least: true }) => value.min(last),
                    (true, true, Carried::Extreme { least: false }) => value.max(last),
                    (true, true, _) => value.checked_add(last).ok_or(Error::Overflow {
                        what: "a sum over a window".into(),
                    })?,
                });
            }
            let there: Vec<i64> = (0..all)
                .map(|row| i64::from(row < on || has(&valid, row)))
                .collect();
            let sums = AccumulatedValues::Wide(&numbers);
            *own = of_sums(Function::Sum, sums, &there, ty, 0)?;
            return Ok(());
        }
        (Values::Float(values), Values::Float(last)) => {
            let last = last[0];
            for (row, value) in values.iter_mut().enumerate().take(on) {
                *value = match (has(&valid, row), how) {
                    (false, _) => last,
                    (true, Carried::Extreme { least }) => {
                        let is_less = compare_floats(last, *value).is_lt();
                        if is_less == least { last } else { *value }
                    }
                    _ => *value + last,
                };
            }
        }
        _ => return Err(Error::internal("such values over a window")),
    }
    if let Some(valid) = &mut valid {
        valid[..on].fill(true);
    }
    own.valid = valid;
    Ok(())
}

pub(super) fn whole_at(values: &Values, row: usize) -> i128 {
    match values {
        Values::Int(own) => i128::from(own[row]),
        Values::Wide(own) => own[row],
        _ => 0,
    }
}
