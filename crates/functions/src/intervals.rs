//! Multiples and lengths of intervals.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, IntervalMonthDayNanoArray, ListArray,
    Time64NanosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{Expr, ScalarUDF};
use messages::Error;

use crate::arguments::{is_text, nanoseconds};
use crate::lists::types::{item, list_of, lists, plain};
use crate::own::Own;

/// The type of intervals.
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

pub(super) fn all() -> Vec<Own> {
    let own = |name, run: fn(&[ArrayRef], usize) -> Result<ArrayRef>| {
        Own::new(name, one, |_| Ok(INTERVAL), run)
    };
    vec![
        own("justify_days", |args, _| each(&args[0], days)),
        own("justify_hours", |args, _| each(&args[0], hours)),
        own("justify_interval", |args, _| each(&args[0], whole)),
        Own::new(PART, part_types, |_| Ok(DataType::Decimal128(20, 0)), part),
        Own::new(WHOLE, whole_types, |_| Ok(INTERVAL), of_parts),
    ]
}

/// The name of the function that takes the months, days or nanoseconds of an interval, by 0, 1 or 2. Statements cannot write
/// it.
pub const PART: &str = "part of interval";

/// The name of the function that makes an interval of months, days and nanoseconds. Statements cannot write it.
pub const WHOLE: &str = "interval of parts";

fn part_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Interval(_) | DataType::Null, _] => Ok(vec![INTERVAL, DataType::Int64]),
        _ => plan_err!("a part is one of an interval"),
    }
}

fn part(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let intervals = args[0].as_primitive::<IntervalMonthDayNanoType>();
    let which = args[1].as_primitive::<Int64Type>().iter().flatten().next();
    let found: Decimal128Array = intervals.unary(|own| match which {
        Some(0) => i128::from(own.months),
        Some(1) => i128::from(own.days),
        _ => i128::from(own.nanoseconds),
    });
    Ok(Arc::new(found.with_precision_and_scale(20, 0)?))
}

fn whole_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types.len() {
        3 => Ok(vec![SPAN_TYPE; 3]),
        _ => plan_err!("an interval has three parts"),
    }
}

/// Intervals of months, days and nanoseconds.
fn of_parts(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let parts: Vec<_> = args
        .iter()
        .map(|arg| arg.as_primitive::<Decimal128Type>())
        .collect();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if parts.iter().any(|part| part.is_null(row)) {
            found.push(None);
            continue;
        }
        let [months, days, time] = [0, 1, 2].map(|at: usize| parts[at].value(row));
        let whole = || {
            Some(IntervalMonthDayNano::new(
                months.try_into().ok()?,
                days.try_into().ok()?,
                time.try_into().ok()?,
            ))
        };
        match whole() {
            Some(interval) => found.push(Some(interval)),
            None => return Err(Error::coded("22008", "interval out of range").into()),
        }
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(found)))
}

/// A call of [`PART`], [`WHOLE`] or another function of intervals, by its name.
///
/// # Errors
/// If there is none of that name: a defect.
pub fn call(name: &str, args: Vec<Expr>) -> Result<Expr> {
    static ALL: LazyLock<Vec<Arc<ScalarUDF>>> =
        LazyLock::new(|| all().into_iter().map(|own| Arc::new(own.into())).collect());
    match ALL.iter().find(|own| own.name() == name) {
        Some(own) => Ok(own.call(args)),
        None => plan_err!("there is no function {name}"),
    }
}

fn one(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Interval(_) | DataType::Null] => Ok(vec![INTERVAL]),
        // A constant in quotes.
        [text] if is_text(text) => Ok(vec![INTERVAL]),
        _ => plan_err!("the function takes one interval"),
    }
}

fn each(
    intervals: &ArrayRef,
    of: impl Fn(IntervalMonthDayNano) -> Option<IntervalMonthDayNano>,
) -> Result<ArrayRef> {
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let mut found = Vec::with_capacity(intervals.len());
    for interval in intervals {
        match interval.map(&of) {
            Some(None) => return Err(Error::coded("22008", "interval out of range").into()),
            other => found.push(other.flatten()),
        }
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(found)))
}

const DAY: i64 = 86_400_000_000_000;

/// Days as months of 30 days, with one sign for both.
fn days(of: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let (mut months, mut days) = (of.months.checked_add(of.days / 30)?, of.days % 30);
    if months > 0 && days < 0 {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && days > 0 {
        (months, days) = (months + 1, days - 30);
    }
    Some(IntervalMonthDayNano::new(months, days, of.nanoseconds))
}

/// Hours as days of 24 hours, with one sign for both.
fn hours(of: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let more = i32::try_from(of.nanoseconds / DAY).ok()?;
    let (mut days, mut time) = (of.days.checked_add(more)?, of.nanoseconds % DAY);
    if days > 0 && time < 0 {
        (days, time) = (days - 1, time + DAY);
    } else if days < 0 && time > 0 {
        (days, time) = (days + 1, time - DAY);
    }
    Some(IntervalMonthDayNano::new(of.months, days, time))
}

/// Both, with one sign for all parts.
fn whole(of: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let more = i32::try_from(of.nanoseconds / DAY).ok()?;
    let (all, mut time) = (of.days.checked_add(more)?, of.nanoseconds % DAY);
    let (mut months, mut days) = (of.months.checked_add(all / 30)?, all % 30);
    if months > 0 && (days < 0 || days == 0 && time < 0) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || days == 0 && time > 0) {
        (months, days) = (months + 1, days - 30);
    }
    if days > 0 && time < 0 {
        (days, time) = (days - 1, time + DAY);
    } else if days < 0 && time > 0 {
        (days, time) = (days + 1, time - DAY);
    }
    Some(IntervalMonthDayNano::new(months, days, time))
}

static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        "interval_times",
        |_| Ok(vec![INTERVAL, DataType::Float64]),
        |_| Ok(INTERVAL),
        times,
    );
    Arc::new(own.into())
});

/// `interval * factor`.
pub fn interval_times(interval: Expr, factor: Expr) -> Expr {
    TIMES.call(vec![interval, factor])
}

static SPAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let types = |types: &[DataType]| match types {
        // Of arrays, those that this module can look into.
        [array] if item(array).is_some() => Ok(vec![plain(array)]),
        types => Ok(types.to_vec()),
    };
    let returns = |types: &[DataType]| Ok(types.first().map_or(SPAN_TYPE, span_type));
    let own = Own::new("span", types, returns, |args, _| lengths(&args[0]));
    Arc::new(own.into())
});

/// Nanoseconds. The longest interval, with months of 30 days, takes 25 digits.
const SPAN_TYPE: DataType = DataType::Decimal128(38, 0);

/// The type of the lengths of values of a type: arrays of intervals have arrays of lengths.
fn span_type(ty: &DataType) -> DataType {
    match item(ty) {
        Some(item) => list_of(span_type(item)),
        None => SPAN_TYPE,
    }
}

/// Whether values of this type are intervals, or arrays of intervals, which are compared by their [lengths](span).
pub fn has_length(ty: &DataType) -> bool {
    matches!(ty, DataType::Interval(_)) || item(ty).is_some_and(has_length)
}

/// The length of an interval or duration for comparisons, in nanoseconds: a month has 30 days, a day 24 hours. Of an array
/// of intervals, the array of their lengths.
pub fn span(interval: Expr) -> Expr {
    SPAN.call(vec![interval])
}

/// The lengths of intervals, durations, or arrays of them; see [`span`].
///
/// # Errors
/// Those of Arrow's casts.
pub(crate) fn lengths(values: &ArrayRef) -> Result<ArrayRef> {
    const LENGTH: i128 = DAY as i128;
    if item(values.data_type()).is_some() {
        let own = lists(values);
        let items = lengths(own.values())?;
        let DataType::List(field) = list_of(items.data_type().clone()) else {
            return plan_err!("an array has items");
        };
        return Ok(Arc::new(ListArray::try_new(
            field,
            own.offsets().clone(),
            items,
            own.nulls().cloned(),
        )?));
    }
    let spans: Decimal128Array = match values.data_type() {
        DataType::Duration(unit) => {
            let factor = i128::from(nanoseconds(*unit));
            let counts = cast(values, &DataType::Int64)?;
            let counts = counts.as_primitive::<Int64Type>();
            counts.unary(|count| i128::from(count) * factor)
        }
        _ => {
            let intervals = cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            intervals.unary(|interval| {
                let days = i128::from(interval.months) * 30 + i128::from(interval.days);
                days * LENGTH + i128::from(interval.nanoseconds)
            })
        }
    };
    Ok(Arc::new(spans.with_data_type(SPAN_TYPE)))
}

static TIME_OF_DAY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    const TIME: DataType = DataType::Time64(TimeUnit::Nanosecond);
    let run = |args: &[ArrayRef], _: usize| -> Result<ArrayRef> {
        let intervals = args[0].as_primitive::<IntervalMonthDayNanoType>();
        let times: Time64NanosecondArray = intervals.unary(|own| own.nanoseconds.rem_euclid(DAY));
        Ok(Arc::new(times))
    };
    Arc::new(Own::new("time of interval", one, |_| Ok(TIME), run).into())
});

/// The time of the day that an interval is after midnight, whatever its months and days.
pub fn time_of_day(interval: Expr) -> Expr {
    TIME_OF_DAY.call(vec![interval])
}

fn times(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    scaled(args, rows, |factor| Ok(Scale::Times(factor)))
}

static DIVIDED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        "interval_divided",
        |_| Ok(vec![INTERVAL, DataType::Float64]),
        |_| Ok(INTERVAL),
        divided,
    );
    Arc::new(own.into())
});

/// `interval / divisor`.
pub fn interval_divided(interval: Expr, divisor: Expr) -> Expr {
    DIVIDED.call(vec![interval, divisor])
}

fn divided(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    scaled(args, rows, |divisor| {
        if divisor == 0.0 {
            return Err(Error::coded("22012", "division by zero").into());
        }
        Ok(Scale::Over(divisor))
    })
}

/// What an interval is multiplied with, or divided by.
#[derive(Clone, Copy)]
enum Scale {
    Times(f64),
    Over(f64),
}

impl Scale {
    fn of(self, value: f64) -> f64 {
        match self {
            Scale::Times(factor) => value * factor,
            Scale::Over(divisor) => value / divisor,
        }
    }
}

fn scaled(
    args: &[ArrayRef],
    rows: usize,
    scale: impl Fn(f64) -> Result<Scale>,
) -> Result<ArrayRef> {
    let intervals = args[0].as_primitive::<IntervalMonthDayNanoType>();
    let factors = args[1].as_primitive::<Float64Type>();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if intervals.is_null(row) || factors.is_null(row) {
            found.push(None);
            continue;
        }
        match multiple(intervals.value(row), scale(factors.value(row))?) {
            Some(interval) => found.push(Some(interval)),
            None => return Err(Error::coded("22008", "interval out of range").into()),
        }
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(found)))
}

/// A multiple of an interval. A fraction of a month becomes days, at 30 a month, and a fraction of a day becomes time, at 24
/// hours a day, as in PostgreSQL. `None` if out of range.
fn multiple(interval: IntervalMonthDayNano, scale: Scale) -> Option<IntervalMonthDayNano> {
    let within = |value: f64, most: f64| (value.abs() < most).then_some(value);
    // To the microsecond, in seconds: below it, doubles say nothing.
    let cleaned = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let months = within(scale.of(f64::from(interval.months)), 2_147_483_648.0)?;
    let days = within(scale.of(f64::from(interval.days)), 2_147_483_648.0)?;
    let of_months = cleaned(months.fract() * 30.0);
    let mut seconds = cleaned((days.fract() + of_months.fract()) * 86_400.0);
    let mut more = 0.0;
    if seconds.abs() >= 86_400.0 {
        more = (seconds / 86_400.0).trunc();
        seconds -= more * 86_400.0;
    }
    let days = within(days.trunc() + of_months.trunc() + more, 2_147_483_648.0)?;
    let time = scale.of(interval.nanoseconds as f64 / 1e3) + seconds * 1e6;
    let time = within(time.round_ties_even(), 9.2e15)?;
    Some(IntervalMonthDayNano::new(
        months.trunc() as i32,
        days as i32,
        time as i64 * 1_000,
    ))
}

/// An interval as PostgreSQL writes it: `1 year 2 mons -3 days +04:05:06.7`.
pub(crate) fn text(of: IntervalMonthDayNano) -> String {
    let (years, months) = (of.months / 12, of.months % 12);
    let mut parts: Vec<String> = Vec::new();
    let mut before_negative = false;
    for (count, unit) in [(years, "year"), (months, "mon"), (of.days, "day")] {
        if count != 0 {
            // What follows something negative says that it is not.
            let sign = if before_negative && count > 0 {
                "+"
            } else {
                ""
            };
            let plural = if count == 1 { "" } else { "s" };
            parts.push(format!("{sign}{count} {unit}{plural}"));
            before_negative = count < 0;
        }
    }
    if of.nanoseconds != 0 || parts.is_empty() {
        let sign = match (of.nanoseconds < 0, before_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let time = of.nanoseconds.unsigned_abs();
        let (seconds, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
        let mut clock = format!(
            "{sign}{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        if fraction != 0 {
            clock += format!(".{fraction:09}").trim_end_matches('0');
        }
        parts.push(clock);
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_written_as_in_postgresql() {
        for (months, days, nanoseconds, wanted) in [
            (0, 0, 0, "00:00:00"),
            (
                14,
                -3,
                14_706_700_000_000,
                "1 year 2 mons -3 days +04:05:06.7",
            ),
            (-1, 1, -1_000_000_000, "-1 mons +1 day -00:00:01"),
            (0, 1, 93_600_000_000_000, "1 day 26:00:00"),
            (-12, 0, 0, "-1 years"),
        ] {
            let interval = IntervalMonthDayNano::new(months, days, nanoseconds);
            assert_eq!(text(interval), wanted);
        }
    }

    #[test]
    fn parts_go_to_smaller_units() {
        let times = |months, days, seconds: i64, factor| {
            let interval = IntervalMonthDayNano::new(months, days, seconds * 1_000_000_000);
            multiple(interval, Scale::Times(factor))
                .map(|i| (i.months, i.days, i.nanoseconds / 1_000_000_000))
        };
        assert_eq!(times(1, 0, 0, 3.0), Some((3, 0, 0)));
        assert_eq!(times(1, 0, 0, 1.5), Some((1, 15, 0)));
        assert_eq!(times(0, 1, 0, -0.5), Some((0, 0, -43_200)));
        assert_eq!(times(0, 0, 60, 1000.0), Some((0, 0, 60_000)));
        assert_eq!(times(i32::MAX, 0, 0, 2.0), None);
        assert_eq!(times(0, 0, 1, f64::NAN), None);
    }
}
