//! Sums and differences of times with dates, intervals and one another.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, Time64NanosecondArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit,
};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{Expr, ScalarUDF, cast as as_type};
use messages::Error;
use messages::types::standard_name;
use table::{Infinity, timetz_type};

use crate::arguments::{MICROS, UTC};
use crate::dates::zoned;
use crate::own::Own;
use crate::temporal::moments;
use crate::temporal::shift::TIME;
use crate::temporal::timetz::{TimeInZone, column, values};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Date,
    Time,
    TimeInZone,
    Interval,
    /// A timestamp, whether it has a zone, and whether it counts nanoseconds.
    Stamp(bool, bool),
    Other,
}

fn kind(ty: &DataType) -> Kind {
    match ty {
        DataType::Date32 => Kind::Date,
        DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
        DataType::Interval(_) => Kind::Interval,
        DataType::Timestamp(unit, zone) => {
            Kind::Stamp(zone.is_some(), *unit == TimeUnit::Nanosecond)
        }
        ty if *ty == timetz_type() => Kind::TimeInZone,
        _ => Kind::Other,
    }
}

/// The sum, or the difference, of two values of which one is a time; none of others.
///
/// # Errors
/// For values that have none.
pub fn planned(
    plus: bool,
    (left, l): (&Expr, &DataType),
    (right, r): (&Expr, &DataType),
) -> Result<Option<Expr>> {
    let call = |function: &LazyLock<Arc<ScalarUDF>>, a: &Expr, b: &Expr| {
        Ok(Some(function.call(vec![a.clone(), b.clone()])))
    };
    match (kind(l), plus, kind(r)) {
        (Kind::Date, true, Kind::Time) => call(&AT_TIME, left, right),
        (Kind::Time, true, Kind::Date) => call(&AT_TIME, right, left),
        (Kind::Date, true, Kind::TimeInZone) => call(&AT_TIME_IN_ZONE, left, right),
        (Kind::TimeInZone, true, Kind::Date) => call(&AT_TIME_IN_ZONE, right, left),
        (Kind::Time, true, Kind::Interval) => call(&LATER, left, right),
        (Kind::Interval, true, Kind::Time) => call(&LATER, right, left),
        (Kind::Time, false, Kind::Interval) => call(&EARLIER, left, right),
        (Kind::TimeInZone, true, Kind::Interval) => call(&LATER_IN_ZONE, left, right),
        (Kind::Interval, true, Kind::TimeInZone) => call(&LATER_IN_ZONE, right, left),
        (Kind::TimeInZone, false, Kind::Interval) => call(&EARLIER_IN_ZONE, left, right),
        (Kind::Time, false, Kind::Time) => call(&BETWEEN, left, right),
        (Kind::Stamp(a, fine), false, Kind::Stamp(b, other)) if a == b && fine == other => {
            call(&APART, left, right)
        }
        // One without a zone is one by the clocks of the session, as in comparisons.
        (Kind::Stamp(true, _), false, Kind::Stamp(false, _)) => {
            call(&APART, left, &as_type(right.clone(), l.clone()))
        }
        (Kind::Stamp(false, _), false, Kind::Stamp(true, _)) => {
            call(&APART, &as_type(left.clone(), r.clone()), right)
        }
        (Kind::Time, true, Kind::Time) => plan_err!(
            "operator is not unique: {} + {}: cast one to interval",
            standard_name(l),
            standard_name(r)
        ),
        (Kind::Date, false, Kind::Time | Kind::TimeInZone)
        | (Kind::TimeInZone, _, _)
        | (_, _, Kind::TimeInZone) => plan_err!(
            "operator does not exist: {} {} {}",
            standard_name(l),
            if plus { "+" } else { "-" },
            standard_name(r)
        ),
        _ => Ok(None),
    }
}

fn own(
    name: &'static str,
    takes: fn(&[DataType]) -> Result<Vec<DataType>>,
    returns: fn(&[DataType]) -> Result<DataType>,
    run: fn(&[ArrayRef], usize) -> Result<ArrayRef>,
) -> Arc<ScalarUDF> {
    Arc::new(Own::new(name, takes, returns, run).into())
}

static AT_TIME: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let takes = |_: &[DataType]| Ok(vec![DataType::Date32, TIME]);
    own(
        "date at time",
        takes,
        |_| Ok(MICROS),
        |args, _| at_time(args),
    )
});

static AT_TIME_IN_ZONE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let takes = |_: &[DataType]| Ok(vec![DataType::Date32, timetz_type()]);
    own(
        "date at time in zone",
        takes,
        |_| Ok(zoned()),
        |args, _| at_time_in_zone(args),
    )
});

fn of_time(_: &[DataType]) -> Result<Vec<DataType>> {
    Ok(vec![TIME, INTERVAL])
}

fn of_time_in_zone(_: &[DataType]) -> Result<Vec<DataType>> {
    Ok(vec![timetz_type(), INTERVAL])
}

static LATER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    own(
        "time later",
        of_time,
        |_| Ok(TIME),
        |args, _| moved(args, 1),
    )
});

static EARLIER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    own(
        "time earlier",
        of_time,
        |_| Ok(TIME),
        |args, _| moved(args, -1),
    )
});

static LATER_IN_ZONE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let returns = |_: &[DataType]| Ok(timetz_type());
    own("time in zone later", of_time_in_zone, returns, |args, _| {
        moved_in_zone(args, 1)
    })
});

static EARLIER_IN_ZONE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let returns = |_: &[DataType]| Ok(timetz_type());
    own(
        "time in zone earlier",
        of_time_in_zone,
        returns,
        |args, _| moved_in_zone(args, -1),
    )
});

static BETWEEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let takes = |_: &[DataType]| Ok(vec![TIME; 2]);
    own(
        "time between",
        takes,
        |_| Ok(INTERVAL),
        |args, _| between(args),
    )
});

/// The name of the function that takes the difference of two timestamps: days of 24 hours and a time. Statements cannot write
/// it.
pub const DIFFERENCE: &str = "days and time between";

static APART: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| own(DIFFERENCE, stamps, |_| Ok(INTERVAL), |args, _| apart(args)));

fn stamps(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Timestamp(unit, zone), DataType::Timestamp(_, _)] => {
            let unit = match unit {
                TimeUnit::Nanosecond => TimeUnit::Nanosecond,
                _ => TimeUnit::Microsecond,
            };
            Ok(vec![DataType::Timestamp(unit, zone.clone()); 2])
        }
        _ => plan_err!("timestamps are taken from timestamps"),
    }
}

/// Days of 24 hours, and the time that is left.
fn apart(args: &[ArrayRef]) -> Result<ArrayRef> {
    let scale = match args[0].data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
        _ => 1_000,
    };
    let late = cast(&args[0], &DataType::Int64)?;
    let early = cast(&args[1], &DataType::Int64)?;
    let late = late.as_primitive::<Int64Type>();
    let early = early.as_primitive::<Int64Type>();
    let all = late.iter().zip(early).map(|(late, early)| {
        let (Some(late), Some(early)) = (late, early) else {
            return Ok(None);
        };
        if Infinity::of_count(late)
            .or(Infinity::of_count(early))
            .is_some()
        {
            return Err(moments::not_subtracted("timestamps"));
        }
        let day = DAY / scale;
        let Some(between) = late.checked_sub(early) else {
            return out_of_range();
        };
        match i32::try_from(between / day) {
            Ok(days) => Ok(Some(IntervalMonthDayNano::new(
                0,
                days,
                between % day * scale,
            ))),
            Err(_) => out_of_range(),
        }
    });
    let all = all.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(IntervalMonthDayNanoArray::from(all)))
}

/// Nanoseconds of times.
fn counts(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(&cast(array, &TIME)?, &DataType::Int64)?)
}

fn out_of_range<T>() -> Result<T> {
    Err(Error::coded("22008", "timestamp out of range").into())
}

fn at_time(args: &[ArrayRef]) -> Result<ArrayRef> {
    let days = args[0].as_primitive::<Date32Type>();
    let times = counts(&args[1])?;
    let times = times.as_primitive::<Int64Type>();
    let all = days.iter().zip(times).map(|(day, time)| {
        let micros = |day: i32, time: i64| match Infinity::of_day(day) {
            Some(infinity) => infinity.count(),
            None => i64::from(day) * (DAY / 1_000) + time / 1_000,
        };
        Some(micros(day?, time?))
    });
    Ok(Arc::new(all.collect::<TimestampMicrosecondArray>()))
}

fn at_time_in_zone(args: &[ArrayRef]) -> Result<ArrayRef> {
    let days = args[0].as_primitive::<Date32Type>();
    let all = days.iter().zip(values(&args[1])).map(|(day, time)| {
        let micros = |day: i32, utc: i64| match Infinity::of_day(day) {
            Some(infinity) => infinity.count(),
            None => i64::from(day) * (DAY / 1_000) + utc / 1_000,
        };
        Some(micros(day?, time?.utc()))
    });
    let all: TimestampMicrosecondArray = all.collect();
    Ok(Arc::new(all.with_timezone(UTC)))
}

/// A time after an interval, whose months and days do not matter, around midnight.
fn turned(time: i64, interval: IntervalMonthDayNano, sign: i64) -> i64 {
    (time + sign * (interval.nanoseconds % DAY)).rem_euclid(DAY)
}

fn moved(args: &[ArrayRef], sign: i64) -> Result<ArrayRef> {
    let times = counts(&args[0])?;
    let times = times.as_primitive::<Int64Type>();
    let intervals = args[1].as_primitive::<IntervalMonthDayNanoType>();
    let all = times.iter().zip(intervals);
    let all = all.map(|(time, interval)| Some(turned(time?, interval?, sign)));
    Ok(Arc::new(all.collect::<Time64NanosecondArray>()))
}

fn moved_in_zone(args: &[ArrayRef], sign: i64) -> Result<ArrayRef> {
    let intervals = args[1].as_primitive::<IntervalMonthDayNanoType>();
    let all = values(&args[0]).zip(intervals.iter());
    column(all.map(|(time, interval)| {
        let (time, interval) = (time?, interval?);
        Some(TimeInZone {
            local: turned(time.local, interval, sign),
            ..time
        })
    }))
}

fn between(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (late, early) = (counts(&args[0])?, counts(&args[1])?);
    let (late, early) = (
        late.as_primitive::<Int64Type>(),
        early.as_primitive::<Int64Type>(),
    );
    let all = late
        .iter()
        .zip(early)
        .map(|(late, early)| match (late, early) {
            (Some(late), Some(early)) => match late.checked_sub(early) {
                Some(time) => Ok(Some(IntervalMonthDayNano::new(0, 0, time))),
                None => out_of_range(),
            },
            _ => Ok(None),
        });
    let all = all.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(IntervalMonthDayNanoArray::from(all)))
}
