//! Functions of dates and timestamps.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Float64Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::format::{Item, StrftimeItems};
use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, Timelike};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use table::Infinity;

use crate::arguments::{MICROS, TEXT, UTC, is_text, strings};
use crate::casts::instant;
use crate::lengthened::Made;
use crate::number_texts;
use crate::own::Own;
use crate::patterns::{Pattern, Shown};
use crate::read_pattern;
use crate::span_patterns;
use crate::temporal::local::Local;
use crate::temporal::moment::now;
use crate::temporal::moments;

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(TEXT);
    vec![
        Own::new("strftime", stamp_and_text, text, strftime),
        Own::new("to_char", pattern_types, text, to_char),
        Own::new(
            "date_diff",
            difference_types,
            |_| Ok(DataType::Int64),
            difference,
        ),
        Own::new(
            "age",
            stamps,
            |types| match types {
                [own] if own.is_integer() => Ok(DataType::Int32),
                _ => Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
            },
            age,
        ),
        Own::new("dayname", stamp, text, |args, _| named(&args[0], "%A")),
        Own::new("monthname", stamp, text, |args, _| named(&args[0], "%B")),
        Own::new("last_day", stamp, |_| Ok(DataType::Date32), last_day),
        Own::new("make_timestamp", parts, |_| Ok(MICROS), made),
        Own::new("make_date", date_parts, |_| Ok(DataType::Date32), made_date),
        Own::new(
            "to_timestamp",
            to_timestamp_types,
            |_| Ok(zoned()),
            to_timestamp,
        ),
    ]
}

pub(super) fn zoned() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
}

pub(super) fn is_stamp(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _)
    ) || is_text(ty)
}

/// One date or timestamp.
fn stamp(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_stamp(ty) => Ok(vec![MICROS]),
        _ => plan_err!("the function takes one date or timestamp"),
    }
}

/// Microseconds since 1970 in UTC.
fn micros(array: &ArrayRef) -> &TimestampMicrosecondArray {
    array.as_primitive::<TimestampMicrosecondType>()
}

fn clock(micros: i64) -> Result<NaiveDateTime> {
    if let Some(infinity) = Infinity::of_count(micros) {
        return Err(Error::coded(
            "22008",
            format!("timestamp out of range: {} has no date", infinity.text()),
        )
        .into());
    }
    match instant(micros) {
        Some(instant) => Ok(instant.naive_utc()),
        None => exec_err!("a timestamp is out of range: {micros} microseconds from 1970"),
    }
}

/// `f` of each value that is not NULL.
fn each<T>(
    array: &ArrayRef,
    mut f: impl FnMut(NaiveDateTime) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    micros(array)
        .iter()
        .map(|value| value.map(|value| f(clock(value)?)).transpose())
        .collect()
}

fn stamp_and_text(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [a, b] if is_stamp(a) && !is_text(a) && is_text(b) => Ok(vec![MICROS, DataType::Utf8]),
        // SQLite's order of arguments.
        [a, b] if is_text(a) && is_stamp(b) && !is_text(b) => Ok(vec![DataType::Utf8, MICROS]),
        [a, b] if a.is_null() && is_text(b) || b.is_null() && is_text(a) => {
            Ok(vec![MICROS, DataType::Utf8])
        }
        _ => plan_err!("strftime takes a date or timestamp and a text such as '%Y-%m-%d'"),
    }
}

fn strftime(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (stamps, texts) = match args[0].data_type() {
        DataType::Timestamp(_, _) => (&args[0], strings(&args[1])?),
        _ => (&args[1], strings(&args[0])?),
    };
    let stamps = micros(stamps);
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(if stamps.is_null(row) || texts.is_null(row) {
            None
        } else {
            Some(written(clock(stamps.value(row))?, texts.value(row))?)
        });
    }
    Ok(Arc::new(StringArray::from(found)))
}

/// `at` in the format of `strftime`'s directions.
fn written(at: NaiveDateTime, directions: &str) -> Result<String> {
    let items: Vec<Item<'_>> = StrftimeItems::new(directions).collect();
    if items.contains(&Item::Error) {
        return exec_err!("strftime: '{directions}' has an unknown direction");
    }
    // For directions that tell the zone: it is UTC.
    Ok(at.and_utc().format_with_items(items.iter()).to_string())
}

fn named(stamps: &ArrayRef, directions: &str) -> Result<ArrayRef> {
    let found = each(stamps, |at| written(at, directions))?;
    Ok(Arc::new(StringArray::from(found)))
}

fn pattern_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [value, pattern] if value.is_numeric() && is_text(pattern) => {
            Ok(number_texts::types(value))
        }
        [DataType::Timestamp(_, Some(_)), pattern] if is_text(pattern) => {
            Ok(vec![zoned(), DataType::Utf8])
        }
        // A date is an instant, as in PostgreSQL.
        [DataType::Date32 | DataType::Date64, pattern] if is_text(pattern) => {
            Ok(vec![zoned(), DataType::Utf8])
        }
        [DataType::Interval(_), pattern] if is_text(pattern) => Ok(vec![
            DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::Utf8,
        ]),
        [value, pattern] if is_stamp(value) && is_text(pattern) => Ok(vec![MICROS, DataType::Utf8]),
        _ => plan_err!(
            "to_char takes a date, a timestamp, an interval or a number, and a pattern such as 'YYYY-MM-DD' or '999D99'"
        ),
    }
}

fn to_char(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if args[0].data_type().is_numeric() {
        return number_texts::to_char(args, rows);
    }
    if let DataType::Interval(_) = args[0].data_type() {
        return span_patterns::to_char(args, rows);
    }
    let (stamps, patterns) = (micros(&args[0]), strings(&args[1])?);
    let clocks = Local::now();
    let zoned = matches!(args[0].data_type(), DataType::Timestamp(_, Some(_)));
    let mut known: HashMap<&str, Pattern> = HashMap::new();
    let mut made = Made::new(rows);
    for row in 0..rows {
        if stamps.is_null(row) || patterns.is_null(row) {
            made.null();
            continue;
        }
        let text = patterns.value(row);
        if !known.contains_key(text) {
            match Pattern::parse(text) {
                Ok(pattern) => known.insert(text, pattern),
                Err(message) => return exec_err!("to_char: {message}"),
            };
        }
        let at = stamps.value(row);
        if Infinity::of_count(at).is_some() {
            // As in PostgreSQL.
            made.null();
            continue;
        }
        let zone = zoned.then(|| Shown::of(clocks.zone, at.div_euclid(1_000_000)));
        let east = zone.as_ref().map_or(0, |zone| zone.east);
        let shown = clock(at.saturating_add(east * 1_000_000))?;
        let text = known[text].format(shown, zone.as_ref())?;
        made.allow(text.len())?;
        made.put(&text);
    }
    Ok(made.finish())
}

fn difference_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [part, from, to] if is_text(part) && is_stamp(from) && is_stamp(to) => {
            Ok(vec![DataType::Utf8, MICROS, MICROS])
        }
        _ => plan_err!("date_diff takes a part such as 'day', and two dates or timestamps"),
    }
}

/// How many boundaries of a part (of days, months, ...) lie between two timestamps.
fn difference(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (parts, from, to) = (strings(&args[0])?, micros(&args[1]), micros(&args[2]));
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if parts.is_null(row) || from.is_null(row) || to.is_null(row) {
            found.push(None);
            continue;
        }
        let part = parts.value(row);
        found.push(Some(
            ordinal(part, to.value(row))? - ordinal(part, from.value(row))?,
        ));
    }
    Ok(Arc::new(Int64Array::from(found)))
}

/// The number of the part (the day, the month, ...) in which a timestamp lies.
fn ordinal(part: &str, micros: i64) -> Result<i64> {
    const SECOND: i64 = 1_000_000;
    if Infinity::of_count(micros).is_some() {
        return Err(moments::not_subtracted("timestamps"));
    }
    let date = || clock(micros).map(|at| at.date());
    let part = part.to_lowercase();
    let part = part.strip_suffix('s').unwrap_or(&part);
    Ok(match part {
        "microsecond" | "u" => micros,
        "millisecond" | "m" => micros.div_euclid(1_000),
        "second" | "sec" => micros.div_euclid(SECOND),
        "minute" | "min" => micros.div_euclid(60 * SECOND),
        "hour" => micros.div_euclid(3_600 * SECOND),
        "day" => micros.div_euclid(86_400 * SECOND),
        // The first of January 1970 was a Thursday.
        "week" => (micros.div_euclid(86_400 * SECOND) + 3).div_euclid(7),
        "month" => date().map(|d| i64::from(d.year()) * 12 + i64::from(d.month0()))?,
        "quarter" => date().map(|d| i64::from(d.year()) * 4 + i64::from(d.month0() / 3))?,
        "year" => date().map(|d| i64::from(d.year()))?,
        "decade" => date().map(|d| i64::from(d.year()).div_euclid(10))?,
        "century" => date().map(|d| (i64::from(d.year()) - 1).div_euclid(100))?,
        other => {
            return exec_err!(
                "date_diff: there is no part '{other}'; there are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, decade and century"
            );
        }
    })
}

/// Takes two timestamps, or one that is subtracted from today; or the number of a transaction.
fn stamps(types: &[DataType]) -> Result<Vec<DataType>> {
    match types.len() {
        1 if types.iter().all(DataType::is_integer) => Ok(types.to_vec()),
        1 | 2 if types.iter().all(is_stamp) => Ok(vec![MICROS; types.len()]),
        _ => plan_err!("age takes one or two dates or timestamps"),
    }
}

fn age(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    // Transactions have no numbers here: none is older than another.
    if let [own] = args
        && own.data_type().is_integer()
    {
        return Ok(Arc::new(Int32Array::from(vec![0; rows])));
    }
    let day = now(Local::now(), 0, false).day.unwrap_or(0);
    let midnight = day * 86_400_000_000;
    let today: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![midnight; rows]));
    let (late, early) = match args {
        [late, early] => (late, early),
        _ => (&today, &args[0]),
    };
    let (late, early) = (micros(late), micros(early));
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let infinite = |of: &TimestampMicrosecondArray| Infinity::of_count(of.value(row)).is_some();
        found.push(if late.is_null(row) || early.is_null(row) {
            None
        } else if infinite(late) || infinite(early) {
            return Err(moments::not_subtracted("timestamps"));
        } else {
            Some(between(clock(early.value(row))?, clock(late.value(row))?))
        });
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(found)))
}

/// Months, days and time from `from` to `to`, as PostgreSQL counts them: it borrows the days of the month of the
/// earlier one.
fn between(from: NaiveDateTime, to: NaiveDateTime) -> IntervalMonthDayNano {
    if to < from {
        let other = between(to, from);
        return IntervalMonthDayNano::new(-other.months, -other.days, -other.nanoseconds);
    }
    let mut months = (to.year() - from.year()) * 12 + to.month() as i32 - from.month() as i32;
    let mut days = to.day() as i32 - from.day() as i32;
    let nanoseconds = |at: NaiveDateTime| {
        i64::from(at.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(at.nanosecond())
    };
    let mut rest = nanoseconds(to) - nanoseconds(from);
    if rest < 0 {
        rest += 86_400_000_000_000;
        days -= 1;
    }
    if days < 0 {
        days += days_of_month(from.date());
        months -= 1;
    }
    IntervalMonthDayNano::new(months, days, rest)
}

fn days_of_month(date: NaiveDate) -> i32 {
    last_of_month(date).map_or(31, |last| last.day() as i32)
}

fn last_of_month(date: NaiveDate) -> Option<NaiveDate> {
    date.with_day(1)?
        .checked_add_months(Months::new(1))?
        .checked_sub_days(Days::new(1))
}

fn last_day(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let found = each(&args[0], |at| match last_of_month(at.date()) {
        Some(last) => Ok(Date32Type::from_naive_date(last)),
        None => exec_err!("last_day: {at} is out of range"),
    })?;
    Ok(Arc::new(Date32Array::from(found)))
}

fn parts(types: &[DataType]) -> Result<Vec<DataType>> {
    let numbers = types.iter().all(|ty| ty.is_numeric() || ty.is_null());
    match types.len() {
        6 if numbers => {
            let mut wanted = vec![DataType::Int64; 5];
            wanted.push(DataType::Float64);
            Ok(wanted)
        }
        _ => plan_err!("make_timestamp takes a year, month, day, hour, minute and second"),
    }
}

fn date_parts(types: &[DataType]) -> Result<Vec<DataType>> {
    let numbers = types.iter().all(|ty| ty.is_integer() || ty.is_null());
    match types.len() {
        3 if numbers => Ok(vec![DataType::Int64; 3]),
        _ => plan_err!("make_date takes a year, a month and a day"),
    }
}

fn made_date(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let numbers: Vec<_> = args
        .iter()
        .map(|arg| arg.as_primitive::<Int64Type>())
        .collect();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args.iter().any(|arg| arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let [year, month, day] = [0, 1, 2].map(|at: usize| numbers[at].value(row));
        match date_of(year, month, day) {
            Some(date) => found.push(Some(Date32Type::from_naive_date(date))),
            None => {
                return Err(Error::coded(
                    "22008",
                    format!("date field value out of range: {year}-{month:02}-{day:02}"),
                )
                .into());
            }
        }
    }
    Ok(Arc::new(Date32Array::from(found)))
}

/// A date by its parts. The year -1 is the one before the year 1, and there is none between them.
fn date_of(year: i64, month: i64, day: i64) -> Option<NaiveDate> {
    let year = match year {
        0 => return None,
        ..0 => year.checked_add(1)?,
        _ => year,
    };
    let small = |number: i64| u32::try_from(number).ok();
    NaiveDate::from_ymd_opt(year.try_into().ok()?, small(month)?, small(day)?)
}

fn made(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let numbers: Vec<_> = args[..5]
        .iter()
        .map(|arg| arg.as_primitive::<Int64Type>())
        .collect();
    let seconds = args[5].as_primitive::<Float64Type>();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args.iter().any(|arg| arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let number = |at: usize| numbers[at].value(row);
        match moment([0, 1, 2, 3, 4].map(number), seconds.value(row)) {
            Some(micros) => found.push(Some(micros)),
            None => return exec_err!("make_timestamp: a part is out of range"),
        }
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(found)))
}

/// Microseconds from 1970 on of a timestamp by its parts; none if one is out of range.
pub(crate) fn moment([year, month, day, hour, minute]: [i64; 5], second: f64) -> Option<i64> {
    if !(0.0..60.0).contains(&second) {
        return None;
    }
    let small = |number: i64| u32::try_from(number).ok();
    let date = date_of(year, month, day)?;
    let at = date.and_hms_opt(small(hour)?, small(minute)?, 0)?;
    Some(at.and_utc().timestamp_micros() + (second * 1e6).round() as i64)
}

fn to_timestamp_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if ty.is_integer() => Ok(vec![DataType::Int64]),
        [ty] if ty.is_numeric() => Ok(vec![DataType::Float64]),
        [ty] if is_stamp(ty) => Ok(vec![zoned()]),
        [text, pattern] if is_text(text) && is_text(pattern) => Ok(vec![DataType::Utf8; 2]),
        _ => {
            plan_err!("to_timestamp takes seconds since 1970, or a text such as '2020-01-31 12:00'")
        }
    }
}

/// Microseconds from seconds, both from 1970 on.
fn of_seconds(seconds: f64) -> Result<i64> {
    if seconds.is_nan() {
        return Err(Error::coded("22008", "timestamp cannot be NaN").into());
    }
    if seconds.is_infinite() {
        let future = seconds > 0.0;
        let infinity = if future {
            Infinity::Future
        } else {
            Infinity::Past
        };
        return Ok(infinity.count());
    }
    // From 2000 on, as PostgreSQL counts: nearer numbers have more digits behind the point.
    let start = 946_684_800.0;
    match ((seconds - start) * 1e6).round_ties_even() {
        micros if micros.abs() < 9.2e18 => Ok(micros as i64 + 946_684_800_000_000),
        _ => exec_err!("to_timestamp: {seconds} is out of range"),
    }
}

/// Seconds since 1970, or a text, which may come with a pattern.
fn to_timestamp(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    if args.len() == 2 {
        return read_pattern::to_timestamp(args);
    }
    let out_of_range = |what: String| exec_err!("to_timestamp: {what} is out of range");
    let found: Vec<Option<i64>> = match args[0].data_type() {
        DataType::Int64 => {
            let seconds = args[0].as_primitive::<Int64Type>();
            let micros = |seconds: i64| match seconds.checked_mul(1_000_000) {
                Some(micros) => Ok(micros),
                None => out_of_range(seconds.to_string()),
            };
            seconds
                .iter()
                .map(|v| v.map(micros).transpose())
                .collect::<Result<_>>()?
        }
        DataType::Float64 => {
            let seconds: &Float64Array = args[0].as_primitive::<Float64Type>();
            seconds
                .iter()
                .map(|v| v.map(of_seconds).transpose())
                .collect::<Result<_>>()?
        }
        _ => return Ok(Arc::clone(&args[0])),
    };
    Ok(Arc::new(
        TimestampMicrosecondArray::from(found).with_timezone(UTC),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn ages_borrow_days_as_postgresql_does() {
        for (from, to, months, days, seconds) in [
            (
                "1957-06-13T00:00:00",
                "2001-04-10T00:00:00",
                43 * 12 + 9,
                27,
                0,
            ),
            ("2024-01-31T00:00:00", "2024-03-01T00:00:00", 1, 1, 0),
            (
                "2020-01-01T12:00:00",
                "2020-01-02T11:00:00",
                0,
                0,
                23 * 3600,
            ),
            (
                "2020-01-02T11:00:00",
                "2020-01-01T12:00:00",
                0,
                0,
                -23 * 3600,
            ),
        ] {
            assert_eq!(
                between(at(from), at(to)),
                IntervalMonthDayNano::new(months, days, seconds * 1_000_000_000),
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn borders_are_counted() {
        let micros = |text: &str| at(text).and_utc().timestamp_micros();
        for (part, from, to, borders) in [
            ("year", "2019-12-31T23:59:59", "2020-01-01T00:00:00", 1),
            ("Months", "2020-01-31T00:00:00", "2020-02-01T00:00:00", 1),
            ("day", "1969-12-31T23:59:59", "1970-01-01T00:00:00", 1),
            ("week", "2024-01-07T00:00:00", "2024-01-08T00:00:00", 1),
            ("week", "2024-01-08T00:00:00", "2024-01-14T00:00:00", 0),
            ("hour", "2020-01-01T01:00:00", "2020-01-01T00:59:59", -1),
        ] {
            let found = ordinal(part, micros(to)).unwrap() - ordinal(part, micros(from)).unwrap();
            assert_eq!(found, borders, "{part} from {from} to {to}");
        }
        assert!(ordinal("fortnight", 0).is_err());
    }
}
