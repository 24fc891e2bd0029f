//! Instants and what clocks in the session's zone show: casts between both, and intervals later, whose days and months are
//! those of the calendar there.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, TimestampMicrosecondArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator, ScalarUDF};
use messages::Error;
use table::{Infinity, finite_part};

use crate::arguments::{MICROS, UTC, nanoseconds};
use crate::dates::zoned;
use crate::own::Own;
use crate::temporal::calendar::{civil, days, days_of_month};
use crate::temporal::local::Local;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The names of what is so much later or earlier than an instant, which statements cannot write.
const LATER: &str = "later instant";
const EARLIER: &str = "earlier instant";

static LATER_THAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let run = |args: &[ArrayRef], rows| moved(args, rows, false);
    Arc::new(Own::new(LATER, types, |_| Ok(zoned()), run).into())
});

static EARLIER_THAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let run = |args: &[ArrayRef], rows| moved(args, rows, true);
    Arc::new(Own::new(EARLIER, types, |_| Ok(zoned()), run).into())
});

fn types(given: &[DataType]) -> Result<Vec<DataType>> {
    match given.len() {
        2 => Ok(vec![zoned(), INTERVAL]),
        _ => plan_err!("an interval is added to an instant"),
    }
}

/// Whether a cast between these types is one between instants and what clocks show.
pub fn crosses(from: &DataType, to: &DataType) -> bool {
    let plain = |ty: &DataType| {
        matches!(
            ty,
            DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64
        )
    };
    match (from, to) {
        (DataType::Timestamp(_, Some(_)), to) => {
            plain(to) || matches!(to, DataType::Time32(_) | DataType::Time64(_))
        }
        (from, DataType::Timestamp(_, Some(_))) => plain(from),
        _ => false,
    }
}

/// Whether a cast between these types counts anew, or moves what it counts to another zone, which what is infinite must not be.
pub fn recounts(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    match (from, to) {
        (Date32 | Date64, Timestamp(_, _)) => true,
        (Timestamp(_, _), Date32 | Date64 | Time32(_) | Time64(_)) => true,
        (Timestamp(unit, zone), Timestamp(other, to)) => {
            unit != other || zone.is_some() != to.is_some()
        }
        _ => false,
    }
}

/// Counts of a unit, each moved to or from what clocks of the session show.
fn across(values: &ArrayRef, unit: TimeUnit, to: DataType, shown: bool) -> Result<ArrayRef> {
    let local = Local::now();
    let second = 1_000_000_000 / nanoseconds(unit);
    let counts = cast(values, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let mut moved = Vec::with_capacity(counts.len());
    for count in counts {
        let Some(count) = count else {
            moved.push(None);
            continue;
        };
        let seconds = count.div_euclid(second);
        let east = if shown {
            local.zone.at_instant(seconds)
        } else {
            local.zone.at_local(seconds).map(|east| -east)
        };
        match east.and_then(|east| count.checked_add(east * second)) {
            Some(found) => moved.push(Some(found)),
            None => return Err(Error::coded("22008", "timestamp out of range").into()),
        }
    }
    Ok(cast(&Int64Array::from(moved), &to)?)
}

/// Instants as timestamps, dates or times that clocks of the session show, or the other way round; none of other casts. What
/// is infinite stays so.
///
/// # Errors
/// If one is out of range.
pub(crate) fn cast_across(values: &ArrayRef, to: &DataType) -> Result<Option<ArrayRef>> {
    if !crosses(values.data_type(), to) {
        return Ok(None);
    }
    Ok(Some(match finite_part(values) {
        None => shown_across(values, to)?,
        Some((finite, infinities)) => infinities.put_into(shown_across(&finite, to)?),
    }))
}

fn shown_across(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type().clone();
    let exact = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let plain = match &from {
        DataType::Timestamp(unit, Some(_)) => {
            across(values, *unit, DataType::Timestamp(*unit, None), true)?
        }
        DataType::Timestamp(unit, None) => {
            let zone = Some(UTC.into());
            across(values, *unit, DataType::Timestamp(*unit, zone), false)?
        }
        _ => {
            let midnights = cast_with_options(values, &MICROS, &exact)?;
            across(&midnights, TimeUnit::Microsecond, zoned(), false)?
        }
    };
    Ok(cast_with_options(&plain, to, &exact)?)
}

/// The moment an interval after another, in microseconds; none if it is out of range.
fn later(at: i64, interval: IntervalMonthDayNano) -> Option<i64> {
    const DAY: i64 = 86_400_000_000;
    let (mut day, time) = (at.div_euclid(DAY), at.rem_euclid(DAY));
    if interval.months != 0 {
        let (year, month, date) = civil(day);
        let months = year * 12 + month - 1 + i64::from(interval.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        day = days(year, month, date.min(days_of_month(year, month)));
    }
    day += i64::from(interval.days);
    day.checked_mul(DAY)?
        .checked_add(time)?
        .checked_add(interval.nanoseconds / 1_000)
}

/// The instant an interval after another, in microseconds: months and days are those of clocks in the session's zone. None if
/// it is out of range. What is infinite stays so.
pub(crate) fn later_instant(local: Local, at: i64, interval: IntervalMonthDayNano) -> Option<i64> {
    if Infinity::of_count(at).is_some() {
        return Some(at);
    }
    if local.is_utc() {
        return later(at, interval);
    }
    let mut at = at;
    for part in [
        IntervalMonthDayNano::new(interval.months, 0, 0),
        IntervalMonthDayNano::new(0, interval.days, 0),
    ] {
        if part.months != 0 || part.days != 0 {
            at = local.instant(later(local.shown(at)?, part)?)?;
        }
    }
    at.checked_add(interval.nanoseconds / 1_000)
}

fn moved(args: &[ArrayRef], rows: usize, back: bool) -> Result<ArrayRef> {
    let local = Local::now();
    let stamps = args[0].as_primitive::<TimestampMicrosecondType>();
    let intervals = args[1].as_primitive::<IntervalMonthDayNanoType>();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if stamps.is_null(row) || intervals.is_null(row) {
            found.push(None);
            continue;
        }
        let of = intervals.value(row);
        let negative = || {
            Some(IntervalMonthDayNano::new(
                of.months.checked_neg()?,
                of.days.checked_neg()?,
                of.nanoseconds.checked_neg()?,
            ))
        };
        let step = if back { negative() } else { Some(of) };
        match step.and_then(|step| later_instant(local, stamps.value(row), step)) {
            Some(at) => found.push(Some(at)),
            None => return Err(Error::coded("22008", "timestamp out of range").into()),
        }
    }
    Ok(Arc::new(
        TimestampMicrosecondArray::from(found).with_timezone(UTC),
    ))
}

/// The sum or difference of an instant and an interval, by the clocks of the session; none of others.
pub fn later_than(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_instant =
        |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Timestamp(_, Some(_))));
    let is_interval = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Interval(_)));
    let (name, at, step) = match binary.op {
        Operator::Plus if is_instant(&binary.left) && is_interval(&binary.right) => {
            (LATER, &binary.left, &binary.right)
        }
        Operator::Plus if is_interval(&binary.left) && is_instant(&binary.right) => {
            (LATER, &binary.right, &binary.left)
        }
        Operator::Minus if is_instant(&binary.left) && is_interval(&binary.right) => {
            (EARLIER, &binary.left, &binary.right)
        }
        _ => return None,
    };
    let own = |expr: &Expr, to: DataType| match expr.get_type(schema) {
        Ok(ty) if ty == to => expr.clone(),
        _ => Expr::Cast(Cast::new(Box::new(expr.clone()), to)),
    };
    let args = vec![own(at, zoned()), own(step, INTERVAL)];
    let function = if name == LATER {
        &LATER_THAN
    } else {
        &EARLIER_THAN
    };
    Some(function.call(args))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let local = Local::new("America/New_York", "ISO", "postgres");
        let at = |month, day, hour: i64| (days(2024, month, day) * 24 + hour) * 3_600_000_000;
        let day = IntervalMonthDayNano::new(0, 1, 0);
        let hours = IntervalMonthDayNano::new(0, 0, 24 * 3_600_000_000_000);
        let month = IntervalMonthDayNano::new(1, 0, 0);
        // Noon of the day before clocks go forward: in UTC one hour less is to come.
        let noon = at(3, 9, 17);
        assert_eq!(later_instant(local, noon, day), Some(at(3, 10, 16)));
        assert_eq!(later_instant(local, noon, hours), Some(at(3, 10, 17)));
        assert_eq!(later_instant(local, noon, month), Some(at(4, 9, 16)));
        assert_eq!(later_instant(Local::PLAIN, noon, day), Some(at(3, 10, 17)));
        for local in [local, Local::PLAIN] {
            assert_eq!(later_instant(local, i64::MAX, month), Some(i64::MAX));
            assert_eq!(later_instant(local, -i64::MAX, day), Some(-i64::MAX));
        }
    }

    #[test]
    fn months_end_with_their_last_day() {
        let at = |year, month, day| days(year, month, day) * 86_400_000_000;
        let month = IntervalMonthDayNano::new(1, 0, 0);
        assert_eq!(later(at(2024, 1, 31), month), Some(at(2024, 2, 29)));
        assert_eq!(later(at(-1, 12, 31), month), Some(at(0, 1, 31)));
    }
}
