//! Counts, sums, averages and variances over frames.

use crate::error::{Error, Result};
use crate::logical::relation::Function;
use crate::operators::aggregate::accumulator::AccumulatedValues;
use crate::operators::aggregate::result::{of_deviations, of_sums};
use crate::operators::window::frames::Frames;
use crate::operators::window::shape::{Shape, each_block};
use crate::operators::window::summaries::{Deviations, FloatSums, over_frames};
use crate::vector::value::{Type, Values, Vector};

/// The number of values in the frame of each row, or of rows without an argument.
///
/// # Errors
/// [`Error::Cancelled`].
pub(super) fn counts(arg: Option<&Vector>, frames: &Frames, shape: &Shape) -> Result<Vec<i64>> {
    let Some(valid) = arg.and_then(|arg| arg.valid.as_deref()) else {
        return of_pieces(frames, shape, |from, to| (to - from) as i64, |a, b| a + b);
    };
    let before = before(shape, 0i64, |count, row| count + i64::from(valid[row]))?;
    let between = |from: usize, to: usize| before[to] - before[from];
    of_pieces(frames, shape, between, |a, b| a + b)
}

/// For each row what `add` gives of those before it, and at last of all.
fn before<T: Copy>(shape: &Shape, none: T, add: impl Fn(T, usize) -> T) -> Result<Vec<T>> {
    let mut before = Vec::with_capacity(shape.rows + 1);
    let mut all = none;
    before.push(all);
    each_block(0..shape.rows, &shape.stop, |rows| {
        before.extend(rows.map(|row| {
            all = add(all, row);
            all
        }));
    })?;
    Ok(before)
}

/// What `between` gives of the rows of each frame, from the first to the one behind the last, or of its parts, added up.
fn of_pieces<T: Copy>(
    frames: &Frames,
    shape: &Shape,
    between: impl Fn(usize, usize) -> T,
    plus: impl Fn(T, T) -> T,
) -> Result<Vec<T>> {
    let mut out = Vec::with_capacity(shape.rows);
    each_block(0..shape.rows, &shape.stop, |rows| {
        if frames.have_holes() {
            out.extend(rows.map(|row| {
                let [a, b, c] = frames
                    .pieces(row)
                    .map(|piece| between(piece.start, piece.end));
                plus(plus(a, b), c)
            }));
        } else {
            out.extend(rows.map(|row| {
                let hull = frames.hull(row);
                between(hull.start, hull.end)
            }));
        }
    })?;
    Ok(out)
}

/// The sum, the average, the variance or the standard deviation of the frame of each row, of type `ty`; the argument is of
/// type `of`.
///
/// # Errors
/// [`Error::Overflow`] if one does not fit; [`Error::Cancelled`]; an internal error for values that have no sum.
pub(super) fn sums(
    function: Function,
    arg: &Vector,
    of: &Type,
    ty: &Type,
    frames: &Frames,
    shape: &Shape,
) -> Result<Vector> {
    let valid = arg.valid.as_deref();
    if let Values::Float(values) = &arg.values
        && is_of_deviations(function)
    {
        let found = over_frames(&Deviations { values, valid }, frames, shape)?;
        let counts: Vec<i64> = found.iter().map(|own| own.count).collect();
        let squares: Vec<f64> = found.iter().map(|own| own.squares).collect();
        return of_deviations(function, &counts, &squares);
    }
    let counts = counts(Some(arg), frames, shape)?;
    let of_values = |sums: AccumulatedValues<'_>| of_sums(function, sums, &counts, ty, of.scale());
    match &arg.values {
        Values::Int(v) => of_values(AccumulatedValues::Wide(&whole(
            valid,
            frames,
            shape,
            |row| i128::from(v[row]),
        )?)),
        Values::Wide(v) => of_values(AccumulatedValues::Wide(&whole(
            valid,
            frames,
            shape,
            |row| v[row],
        )?)),
        Values::Float(values) => {
            // The sum of nothing but zeros that are negative is one. The average adds them to zero, in PostgreSQL too.
            let none = if function == Function::Avg { 0.0 } else { -0.0 };
            let sums = FloatSums {
                values,
                valid,
                none,
            };
            of_values(AccumulatedValues::Float(&over_frames(
                &sums, frames, shape,
            )?))
        }
        _ => Err(Error::internal("a sum of such values over a window")),
    }
}

/// Whether a function is made of squared differences from the mean.
fn is_of_deviations(function: Function) -> bool {
    matches!(
        function,
        Function::VarSamp | Function::VarPop | Function::StddevSamp | Function::StddevPop
    )
}

/// The sums of whole numbers: differences of the sums of all rows before. Those may be too large for 128 bits, but the
/// difference is right if it is not.
fn whole(
    valid: Option<&[bool]>,
    frames: &Frames,
    shape: &Shape,
    value: impl Fn(usize) -> i128,
) -> Result<Vec<i128>> {
    let before = match valid {
        None => before(shape, 0i128, |sum, row| sum.wrapping_add(value(row)))?,
        Some(valid) => before(shape, 0i128, |sum, row| {
            sum.wrapping_add(if valid[row] { value(row) } else { 0 })
        })?,
    };
    let between = |from: usize, to: usize| before[to].wrapping_sub(before[from]);
    of_pieces(frames, shape, between, i128::wrapping_add)
}
