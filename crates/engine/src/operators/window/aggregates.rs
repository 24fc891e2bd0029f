//! Counts, sums and averages over frames.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::logical::relation::{FrameBounds, Function};
use crate::operators::aggregate::accumulator::{AccumulatedValues, overflow};
use crate::operators::aggregate::result::of_sums;
use crate::operators::window::shape::Shape;
use crate::vector::value::{Type, Values, Vector};

/// The number of values in the frame of each row, or of rows without an argument.
pub(super) fn counts(arg: Option<&Vector>, frame: FrameBounds, shape: &Shape) -> Vec<i64> {
    let before = arg.and_then(|arg| arg.valid.as_deref()).map(|valid| {
        let mut count = 0;
        let mut before = vec![0];
        before.extend(valid.iter().map(|valid| {
            count += i64::from(*valid);
            count
        }));
        before
    });
    let frames = shape.partitions();
    let mut out = Vec::with_capacity(shape.rows);
    for partition in frames {
        out.extend(partition.frames(frame).map(|rows| match &before {
            Some(before) => before[rows.end] - before[rows.start],
            None => rows.len() as i64,
        }));
    }
    out
}

/// The sum or the average of the frame of each row, of type `ty`; the argument is of type `of`.
///
/// # Errors
/// [`Error::Overflow`] if one does not fit; an internal error for values that have no sum.
pub(super) fn sums(
    function: Function,
    arg: &Vector,
    of: &Type,
    ty: &Type,
    frame: FrameBounds,
    shape: &Shape,
) -> Result<Vector> {
    let counts = counts(Some(arg), frame, shape);
    let valid = arg.valid.as_deref();
    let there = |row: usize| valid.is_none_or(|valid| valid[row]);
    match &arg.values {
        Values::Int(v) => {
            let value = |row: usize| if there(row) { i128::from(v[row]) } else { 0 };
            let sums = whole(value, frame, shape)?;
            of_sums(
                function,
                AccumulatedValues::Wide(&sums),
                &counts,
                ty,
                of.scale(),
            )
        }
        Values::Wide(v) => {
            let value = |row: usize| if there(row) { v[row] } else { 0 };
            let sums = whole(value, frame, shape)?;
            of_sums(
                function,
                AccumulatedValues::Wide(&sums),
                &counts,
                ty,
                of.scale(),
            )
        }
        Values::Float(v) => {
            let sums = floats(v, there, frame, shape);
            of_sums(
                function,
                AccumulatedValues::Float(&sums),
                &counts,
                ty,
                of.scale(),
            )
        }
        _ => Err(Error::internal("a sum of such values over a window")),
    }
}

/// The sums of whole numbers: values enter and leave from one frame to the next.
fn whole(value: impl Fn(usize) -> i128, frame: FrameBounds, shape: &Shape) -> Result<Vec<i128>> {
    let mut out = Vec::with_capacity(shape.rows);
    for partition in shape.partitions() {
        // The rows that are summed.
        let Range { start, .. } = partition.rows;
        let (mut held, mut sum) = (start..start, 0i128);
        for rows in partition.frames(frame) {
            while held.end < rows.end {
                sum = sum.checked_add(value(held.end)).ok_or_else(overflow)?;
                held.end += 1;
            }
            while held.start < rows.start.min(held.end) {
                sum = sum.checked_sub(value(held.start)).ok_or_else(overflow)?;
                held.start += 1;
            }
            out.push(sum);
        }
    }
    Ok(out)
}

/// The sums of floats, in the order of rows. Values are never taken away again, which would lose digits: a frame that
/// leaves rows behind is summed anew.
fn floats(v: &[f64], there: impl Fn(usize) -> bool, frame: FrameBounds, shape: &Shape) -> Vec<f64> {
    let mut out = Vec::with_capacity(shape.rows);
    for partition in shape.partitions() {
        let Range { start, .. } = partition.rows;
        let (mut held, mut sum) = (start..start, 0.0);
        for rows in partition.frames(frame) {
            if held.start < rows.start {
                (held, sum) = (rows.start..rows.start, 0.0);
            }
            let more = (held.end..rows.end).filter(|row| there(*row));
            sum = more.fold(sum, |sum, row| sum + v[row]);
            held.end = rows.end;
            out.push(sum);
        }
    }
    out
}
