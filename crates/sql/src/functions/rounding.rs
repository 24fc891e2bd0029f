//! Timestamps, times and intervals with so many digits of a second: `timestamp(2)`, `time(0)`, `interval(3)`.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, PrimitiveArray, Time64NanosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64NanosecondType, TimeUnit,
};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{Expr, ScalarUDF, lit};

use crate::functions::own::Own;
use crate::messages::types::type_name;

/// The name of the function, which statements cannot write.
pub(crate) const ROUND: &str = "round seconds";

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const TIME: DataType = DataType::Time64(TimeUnit::Nanosecond);

/// Seconds from 1970 to 2000, from where PostgreSQL counts: halves are rounded away from there.
const EPOCH: i64 = 946_684_800;

const DAY: i64 = 86_400_000_000_000;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        ROUND,
        |types| match types {
            [ty @ DataType::Timestamp(..), _] => Ok(vec![ty.clone(), DataType::Int64]),
            [DataType::Time32(_) | DataType::Time64(_), _] => Ok(vec![TIME, DataType::Int64]),
            [DataType::Interval(_), _] => Ok(vec![INTERVAL, DataType::Int64]),
            [DataType::Null, _] => Ok(vec![DataType::Null, DataType::Int64]),
            [ty, _] => plan_err!("a value of type {} has no seconds", type_name(ty)),
            _ => plan_err!("{ROUND} takes a value and a number of digits"),
        },
        |types| Ok(types[0].clone()),
        round,
    )]
}

static ROUNDED: LazyLock<Option<Arc<ScalarUDF>>> =
    LazyLock::new(|| all().pop().map(|own| Arc::new(own.into())));

/// `value`, a timestamp, with so many digits of its seconds.
pub(crate) fn rounded(value: Expr, digits: i64) -> Expr {
    match ROUNDED.as_ref() {
        Some(function) => function.call(vec![value, lit(digits)]),
        None => value,
    }
}

/// How many digits a unit has behind the second.
pub(crate) fn digits(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// `value` to the nearest multiple of `scale`, and from the middle away from zero; none if that does not fit.
fn nearest(value: i64, scale: i64) -> Option<i64> {
    let half = scale / 2;
    let moved = if value >= 0 {
        value.checked_add(half)?
    } else {
        value.checked_sub(half)?
    };
    Some(moved / scale * scale)
}

fn scale(own: i64, wanted: i64) -> i64 {
    match u32::try_from(own - wanted.max(0)) {
        Ok(more) => 10_i64.pow(more.min(9)),
        Err(_) => 1,
    }
}

fn round(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let wanted = args[1].as_primitive::<Int64Type>();
    let scale = |row: usize, own: i64| scale(own, wanted.value(row));
    let values = &args[0];
    Ok(match values.data_type() {
        DataType::Timestamp(unit, _) => {
            let own = digits(*unit);
            let epoch = EPOCH * 10_i64.pow(own as u32);
            let counts = cast(values, &DataType::Int64)?;
            let counts = counts.as_primitive::<Int64Type>();
            let of = |row: usize, count: i64| {
                let since = count.checked_sub(epoch);
                let since = since.and_then(|since| nearest(since, scale(row, own)));
                // What lies at the end of what there is stays: comparisons have it for all that is beyond.
                Some(
                    since
                        .and_then(|since| since.checked_add(epoch))
                        .unwrap_or(count),
                )
            };
            let found = each(counts, rows, of)?;
            cast(&found, values.data_type())?
        }
        DataType::Interval(_) => {
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
            let mut found = Vec::with_capacity(rows);
            for row in 0..rows {
                found.push(if intervals.is_valid(row) {
                    let own = intervals.value(row);
                    let Some(time) = nearest(own.nanoseconds, scale(row, 9)) else {
                        return exec_err!("interval out of range");
                    };
                    Some(IntervalMonthDayNano::new(own.months, own.days, time))
                } else {
                    None
                });
            }
            Arc::new(IntervalMonthDayNanoArray::from(found))
        }
        DataType::Null => values.clone(),
        _ => {
            let times = values.as_primitive::<Time64NanosecondType>();
            let times = cast(times, &DataType::Int64)?;
            let times = times.as_primitive::<Int64Type>();
            let of = |row: usize, time: i64| nearest(time, scale(row, 9)).filter(|at| *at < DAY);
            let found = each(times, rows, of)?;
            let found = cast(&found, &DataType::Time64(TimeUnit::Nanosecond))?;
            let found: &Time64NanosecondArray = found.as_primitive();
            Arc::new(found.clone())
        }
    })
}

/// `of` each value that is there; an error where it gives none.
fn each(
    values: &PrimitiveArray<Int64Type>,
    rows: usize,
    of: impl Fn(usize, i64) -> Option<i64>,
) -> Result<ArrayRef> {
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if values.is_null(row) {
            found.push(None);
            continue;
        }
        match of(row, values.value(row)) {
            Some(value) => found.push(Some(value)),
            None => return exec_err!("date/time field value out of range"),
        }
    }
    Ok(Arc::new(PrimitiveArray::<Int64Type>::from(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero() {
        for (value, scale, wanted) in [
            (14, 10, 10),
            (15, 10, 20),
            (-14, 10, -10),
            (-15, 10, -20),
            (7, 1, 7),
        ] {
            assert_eq!(nearest(value, scale), Some(wanted), "{value}");
        }
        assert_eq!(nearest(i64::MAX, 10), None);
        assert_eq!(
            (scale(6, 2), scale(6, 9), scale(9, 0)),
            (10_000, 1, 1_000_000_000)
        );
    }
}
