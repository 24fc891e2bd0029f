//! Intervals, times and timestamps from their parts, and functions of several of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, IntervalMonthDayNanoArray, Time64NanosecondArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimestampMicrosecondType,
};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use table::Infinity;

use crate::arguments::{MICROS, UTC, is_text, strings};
use crate::dates::{is_stamp, moment, zoned};
use crate::own::Own;
use crate::temporal::duration;
use crate::temporal::fields::Fields;
use crate::temporal::instants::later_instant;
use crate::temporal::local::Local;
use crate::temporal::shift::TIME;
use crate::temporal::zones::{Zone, displacement, of_text};

/// The name of the function that reads intervals of a type with fields. Statements cannot write it.
pub const READ_INTERVAL: &str = "read interval";

/// The name of the function that cuts intervals to such fields. Statements cannot write it.
pub const CUT_INTERVAL: &str = "cut interval";

/// The name of the function that `overlaps` becomes. Statements cannot write it.
pub const OVERLAPS: &str = "periods overlap";

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

pub(crate) fn all() -> Vec<Own> {
    let interval = |_: &[DataType]| Ok(INTERVAL);
    vec![
        Own::new(READ_INTERVAL, two_texts, interval, read_interval),
        Own::new(CUT_INTERVAL, interval_and_text, interval, cut_interval),
        Own::new("make_interval", interval_parts, interval, make_interval),
        Own::new("make_time", time_parts, |_| Ok(TIME), make_time),
        Own::new(
            "make_timestamptz",
            stamp_parts,
            |_| Ok(zoned()),
            make_timestamptz,
        ),
        Own::new(
            "date_bin",
            bin_types,
            |types| Ok(types[1].clone()),
            date_bin,
        ),
        Own::new(OVERLAPS, periods, |_| Ok(DataType::Boolean), overlaps),
    ]
}

fn two_texts(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [a, b] if is_text(a) && is_text(b) => Ok(vec![DataType::Utf8; 2]),
        _ => plan_err!("an interval is read from a text"),
    }
}

fn interval_and_text(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [
            DataType::Interval(_) | DataType::Duration(_) | DataType::Null,
            b,
        ] if is_text(b) => Ok(vec![INTERVAL, DataType::Utf8]),
        _ => plan_err!("fields are those of an interval"),
    }
}

fn fields_of(text: &str) -> Result<Fields> {
    if text.is_empty() {
        return Ok(Fields::ALL);
    }
    match Fields::of(text) {
        Some(fields) => Ok(fields),
        None => {
            Err(Error::coded("42601", format!("interval {text}: there is no such type")).into())
        }
    }
}

fn read_interval(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (texts, fields) = (strings(&args[0])?, strings(&args[1])?);
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || fields.is_null(row) {
            found.push(None);
            continue;
        }
        let text = texts.value(row);
        let fields = fields_of(fields.value(row))?;
        match duration::interval(text, fields) {
            Ok(interval) => found.push(Some(interval)),
            Err(wrong) => return Err(wrong.error("interval", text)),
        }
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(found)))
}

fn cut_interval(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let intervals = args[0].as_primitive::<IntervalMonthDayNanoType>();
    let fields = strings(&args[1])?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(if intervals.is_null(row) {
            None
        } else {
            Some(fields_of(fields.value(row))?.cut(intervals.value(row)))
        });
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(found)))
}

/// Years, months, weeks, days, hours, minutes and seconds.
fn interval_parts(types: &[DataType]) -> Result<Vec<DataType>> {
    let numbers = types.iter().all(|ty| ty.is_numeric() || ty.is_null());
    let whole = types
        .iter()
        .take(6)
        .all(|ty| ty.is_integer() || ty.is_null());
    if !numbers || !whole || types.is_empty() || types.len() > 7 {
        return plan_err!("make_interval takes years, months, weeks, days, hours, mins and secs");
    }
    let mut wanted = vec![DataType::Int64; types.len().min(6)];
    if types.len() == 7 {
        wanted.push(DataType::Float64);
    }
    Ok(wanted)
}

fn make_interval(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args.iter().any(|arg| arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let part = |at: usize| match args.get(at) {
            Some(arg) => i128::from(arg.as_primitive::<Int64Type>().value(row)),
            None => 0,
        };
        let seconds = match args.get(6) {
            Some(arg) => (arg.as_primitive::<Float64Type>().value(row) * 1e6).round_ties_even(),
            None => 0.0,
        };
        let made = || {
            let months = i32::try_from(part(0) * 12 + part(1)).ok()?;
            let days = i32::try_from(part(2) * 7 + part(3)).ok()?;
            if !seconds.is_finite() || seconds.abs() > 1e18 {
                return None;
            }
            let time = (part(4) * 3_600 + part(5) * 60) * 1_000_000 + seconds as i128;
            let time = i64::try_from(time * 1_000).ok()?;
            Some(IntervalMonthDayNano::new(months, days, time))
        };
        match made() {
            Some(interval) => found.push(Some(interval)),
            None => return Err(Error::coded("22008", "interval out of range").into()),
        }
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(found)))
}

fn time_parts(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [h, m, s] if [h, m, s].iter().all(|ty| ty.is_numeric() || ty.is_null()) => {
            Ok(vec![DataType::Int64, DataType::Int64, DataType::Float64])
        }
        _ => plan_err!("make_time takes an hour, a minute and seconds"),
    }
}

fn make_time(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (hours, minutes) = (
        args[0].as_primitive::<Int64Type>(),
        args[1].as_primitive::<Int64Type>(),
    );
    let seconds = args[2].as_primitive::<Float64Type>();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args.iter().any(|arg| arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let (hour, minute, second) = (hours.value(row), minutes.value(row), seconds.value(row));
        let good = (0..=24).contains(&hour)
            && (0..60).contains(&minute)
            && (0.0..=60.0).contains(&second)
            && (hour < 24 || minute == 0 && second == 0.0);
        if !good {
            return Err(Error::coded(
                "22008",
                format!("time field value out of range: {hour}:{minute:02}:{second:02}"),
            )
            .into());
        }
        let micros = (hour * 3_600 + minute * 60) * 1_000_000 + (second * 1e6).round() as i64;
        found.push(Some(micros * 1_000));
    }
    Ok(Arc::new(Time64NanosecondArray::from(found)))
}

fn stamp_parts(types: &[DataType]) -> Result<Vec<DataType>> {
    let numbers = types
        .iter()
        .take(6)
        .all(|ty| ty.is_numeric() || ty.is_null());
    let zone = types.get(6).is_none_or(is_text);
    if !numbers || !zone || !(6..=7).contains(&types.len()) {
        return plan_err!(
            "make_timestamptz takes a year, month, day, hour, minute, second and perhaps a zone"
        );
    }
    let mut wanted = vec![DataType::Int64; 5];
    wanted.push(DataType::Float64);
    wanted.extend((types.len() == 7).then_some(DataType::Utf8));
    Ok(wanted)
}

/// The zone of `make_timestamptz`, whose offsets are counted to the east.
fn given_zone(text: &str) -> Result<Zone> {
    if text.starts_with(['+', '-']) {
        return match displacement(text) {
            Ok(east) => Ok(Zone::Fixed(east)),
            Err(_) => Err(Error::coded(
                "22023",
                format!("numeric time zone \"{text}\" out of range"),
            )
            .into()),
        };
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Error::coded(
            "22023",
            format!(
                "invalid input syntax for type numeric time zone: \"{text}\": Numeric time zones must have \"-\" or \"+\" as first character."
            ),
        )
        .into());
    }
    match of_text(text) {
        Some(zone) => Ok(zone),
        None => Err(Error::coded("22023", format!("time zone \"{text}\" not recognized")).into()),
    }
}

fn make_timestamptz(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let numbers: Vec<_> = args[..5]
        .iter()
        .map(|arg| arg.as_primitive::<Int64Type>())
        .collect();
    let seconds = args[5].as_primitive::<Float64Type>();
    let zones = args.get(6).map(strings).transpose()?;
    let clocks = Local::now();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args.iter().any(|arg| arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let parts = [0, 1, 2, 3, 4].map(|at: usize| numbers[at].value(row));
        let Some(local) = moment(parts, seconds.value(row)) else {
            return out_of_range("date/time field value");
        };
        let east = match &zones {
            Some(zones) => given_zone(zones.value(row))?.at_local(local.div_euclid(1_000_000)),
            None => clocks.zone.at_local(local.div_euclid(1_000_000)),
        };
        let at = east.and_then(|east| local.checked_sub(east * 1_000_000));
        match at {
            Some(at) => found.push(Some(at)),
            None => return out_of_range("timestamp"),
        }
    }
    Ok(Arc::new(
        TimestampMicrosecondArray::from(found).with_timezone(UTC),
    ))
}

fn out_of_range<T>(what: &str) -> Result<T> {
    Err(Error::coded("22008", format!("{what} out of range")).into())
}

fn bin_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [stride, at, origin] => {
            let stride_is = matches!(stride, DataType::Interval(_) | DataType::Duration(_));
            let zone = [at, origin]
                .iter()
                .any(|ty| matches!(ty, DataType::Timestamp(_, Some(_))));
            if !(stride_is || is_text(stride)) || !is_stamp(at) || !is_stamp(origin) {
                return plan_err!("date_bin takes an interval and two timestamps");
            }
            let stamp = if zone { zoned() } else { MICROS };
            Ok(vec![INTERVAL, stamp.clone(), stamp])
        }
        [stride, at] => bin_types(&[stride.clone(), at.clone(), at.clone()]).map(|mut wanted| {
            wanted.truncate(2);
            wanted
        }),
        _ => plan_err!("date_bin takes an interval and two timestamps"),
    }
}

/// The start of the bin of a timestamp, of bins of one length from an origin on.
fn date_bin(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let strides = args[0].as_primitive::<IntervalMonthDayNanoType>();
    let stamps = args[1].as_primitive::<TimestampMicrosecondType>();
    let origins = args
        .get(2)
        .map(|arg| arg.as_primitive::<TimestampMicrosecondType>());
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let gone = origins.is_some_and(|origins| origins.is_null(row));
        if strides.is_null(row) || stamps.is_null(row) || gone {
            found.push(None);
            continue;
        }
        let (at, start) = (stamps.value(row), origins.map_or(0, |own| own.value(row)));
        if Infinity::of_count(at).is_some() {
            found.push(Some(at));
            continue;
        }
        if Infinity::of_count(start).is_some() {
            return out_of_range("origin");
        }
        let stride = strides.value(row);
        if stride.months != 0 {
            return Err(Error::coded(
                "0A000",
                "timestamps cannot be binned into intervals containing months or years",
            )
            .into());
        }
        let length =
            i128::from(stride.days) * 86_400_000_000 + i128::from(stride.nanoseconds / 1_000);
        if length <= 0 {
            return Err(Error::coded("22008", "stride must be greater than zero").into());
        }
        let origin = i128::from(start);
        let since = i128::from(at) - origin;
        let start = i64::try_from(origin + since.div_euclid(length) * length);
        match start {
            Ok(start) => found.push(Some(start)),
            Err(_) => return out_of_range("timestamp"),
        }
    }
    let found = TimestampMicrosecondArray::from(found);
    Ok(Arc::new(match args[1].data_type() {
        DataType::Timestamp(_, Some(_)) => found.with_timezone(UTC),
        _ => found,
    }))
}

/// Two periods, each a moment and another or a length.
fn periods(types: &[DataType]) -> Result<Vec<DataType>> {
    let [a, b, c, d] = types else {
        return plan_err!("overlaps takes two pairs of moments");
    };
    let starts = [a, c];
    let zone = types
        .iter()
        .any(|ty| matches!(ty, DataType::Timestamp(_, Some(_))));
    let times = types
        .iter()
        .any(|ty| matches!(ty, DataType::Time32(_) | DataType::Time64(_)));
    if !starts
        .iter()
        .all(|ty| is_stamp(ty) || ty.is_null() || times)
    {
        return plan_err!("overlaps takes two pairs of moments, or of moments and intervals");
    }
    let moment = match (times, zone) {
        (true, _) => TIME,
        (_, true) => zoned(),
        _ => MICROS,
    };
    let end = |ty: &DataType| match ty {
        DataType::Interval(_) | DataType::Duration(_) => INTERVAL,
        _ => moment.clone(),
    };
    Ok(vec![moment.clone(), end(b), moment.clone(), end(d)])
}

fn overlaps(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let counts = |arg: &ArrayRef| -> Result<ArrayRef> {
        Ok(match arg.data_type() {
            DataType::Interval(_) => Arc::clone(arg),
            _ => arrow::compute::cast(arg, &DataType::Int64)?,
        })
    };
    let times = matches!(args[0].data_type(), DataType::Time64(_));
    let clocks = match args[0].data_type() {
        DataType::Timestamp(_, Some(_)) => Local::now(),
        _ => Local::PLAIN,
    };
    let args = args.iter().map(counts).collect::<Result<Vec<_>>>()?;
    let start = |at: usize, row: usize| {
        let values = args[at].as_primitive::<Int64Type>();
        values.is_valid(row).then(|| values.value(row))
    };
    let end = |at: usize, row: usize, from: Option<i64>| -> Result<Option<i64>> {
        let arg = &args[at];
        if !matches!(arg.data_type(), DataType::Interval(_)) {
            return Ok(start(at, row));
        }
        let (Some(from), true) = (from, arg.is_valid(row)) else {
            return Ok(None);
        };
        let interval = arg.as_primitive::<IntervalMonthDayNanoType>().value(row);
        if times {
            // Around midnight.
            return Ok(Some(
                from.wrapping_add(interval.nanoseconds)
                    .rem_euclid(86_400_000_000_000),
            ));
        }
        match later_instant(clocks, from, interval) {
            Some(found) => Ok(Some(found)),
            None => exec_err!("timestamp out of range"),
        }
    };
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let (a, c) = (start(0, row), start(2, row));
        found.push(overlap((a, end(1, row, a)?), (c, end(3, row, c)?)));
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// Whether two periods have a moment in common, of which one end may not be known.
fn overlap(one: (Option<i64>, Option<i64>), other: (Option<i64>, Option<i64>)) -> Option<bool> {
    // The known end first, or else the lesser one.
    let ordered = |period: (Option<i64>, Option<i64>)| match period {
        (None, None) => None,
        (Some(only), None) | (None, Some(only)) => Some((only, None)),
        (Some(a), Some(b)) => Some((a.min(b), Some(a.max(b)))),
    };
    let (first, second) = (ordered(one)?, ordered(other)?);
    let ((start, end), (later, last)) = if first.0 <= second.0 {
        (first, second)
    } else {
        (second, first)
    };
    if start == later {
        // They begin together.
        return (first.1.is_some() && second.1.is_some()).then_some(true);
    }
    match end {
        Some(end) if later < end => Some(true),
        Some(_) => last.is_some().then_some(false),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_overlap_as_in_postgresql() {
        for (one, other, wanted) in [
            ((Some(1), Some(5)), (Some(4), Some(8)), Some(true)),
            ((Some(1), Some(4)), (Some(4), Some(8)), Some(false)),
            ((Some(5), Some(1)), (Some(4), Some(8)), Some(true)),
            ((Some(1), Some(1)), (Some(1), Some(1)), Some(true)),
            ((Some(1), None), (Some(0), Some(2)), Some(true)),
            ((Some(1), Some(2)), (Some(1), None), None),
            ((Some(1), None), (Some(2), Some(3)), None),
            ((None, None), (Some(2), Some(3)), None),
        ] {
            assert_eq!(overlap(one, other), wanted, "{one:?} {other:?}");
        }
    }
}
