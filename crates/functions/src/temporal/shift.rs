//! `at time zone`, and casts from and to times with a zone.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, StringArray, Time64NanosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use table::{Infinity, finite_part, timetz_type};

use crate::arguments::{MICROS, UTC, is_text, strings};
use crate::dates::{is_stamp, zoned};
use crate::own::Own;
use crate::temporal::local::Local;
use crate::temporal::moment::now;
use crate::temporal::timetz::{TimeInZone, column, values};
use crate::temporal::zones::{Zone, of_text};

/// The type of times without a zone.
pub const TIME: DataType = DataType::Time64(TimeUnit::Nanosecond);

pub(crate) fn all() -> Vec<Own> {
    vec![Own::new("timezone", zone_types, zone_returns, timezone)]
}

/// Whether there is a cast between these types, of which one is a time with a zone.
pub(crate) fn casts(from: &DataType, to: &DataType) -> bool {
    let time = |ty: &DataType| matches!(ty, DataType::Time32(_) | DataType::Time64(_));
    time(from) || time(to) || matches!(from, DataType::Timestamp(_, Some(_)))
}

/// Values as times with a zone, or those as times; none of other casts.
///
/// # Errors
/// Those of Arrow's casts.
pub(crate) fn cast_zones(values_in: &ArrayRef, to: &DataType) -> Result<Option<ArrayRef>> {
    let from = values_in.data_type();
    if *from == timetz_type() {
        if !matches!(to, DataType::Time32(_) | DataType::Time64(_)) {
            return Ok(None);
        }
        let times = values(values_in).map(|value| value.map(|value| value.local));
        let times = Time64NanosecondArray::from_iter(times);
        return Ok(Some(cast(&times, to)?));
    }
    if *to != timetz_type() {
        return Ok(None);
    }
    let clocks = Local::now();
    Ok(match from {
        DataType::Time32(_) | DataType::Time64(_) => {
            let times = cast(&cast(values_in, &TIME)?, &DataType::Int64)?;
            let times = times.as_primitive::<Int64Type>().iter();
            // Of clocks of today.
            let day = now(clocks, 0, false).day.unwrap_or(0);
            let in_zone = |local: i64| {
                let seconds = day * 86_400 + local / 1_000_000_000;
                let east = clocks.zone.at_local(seconds).unwrap_or(0);
                TimeInZone { local, east }
            };
            Some(column(times.map(|time| time.map(in_zone)))?)
        }
        DataType::Timestamp(_, Some(_)) => {
            // What is infinite has no time of the day.
            let finite = finite_part(values_in).map(|(finite, _)| finite);
            let micros = cast(finite.as_ref().unwrap_or(values_in), &zoned())?;
            let micros = micros.as_primitive::<TimestampMicrosecondType>().iter();
            let of_day = |at: i64| {
                let east = clocks
                    .zone
                    .at_instant(at.div_euclid(1_000_000))
                    .unwrap_or(0);
                let local =
                    (at.rem_euclid(86_400_000_000) + east * 1_000_000).rem_euclid(86_400_000_000);
                TimeInZone {
                    local: local * 1_000,
                    east,
                }
            };
            Some(column(micros.map(|at| at.map(of_day)))?)
        }
        _ => None,
    })
}

fn zone_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [zone, at] = types else {
        return plan_err!("`at time zone` takes a value and a zone");
    };
    let zone = match zone {
        zone if is_text(zone) => DataType::Utf8,
        DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => return plan_err!("`at time zone` takes the name of a zone or an interval"),
    };
    let at = match at {
        // A constant in quotes is one with a zone, as in PostgreSQL, and so is the midnight of a date.
        at if is_text(at) => zoned(),
        DataType::Date32 => zoned(),
        DataType::Timestamp(_, Some(_)) => zoned(),
        at if is_stamp(at) => MICROS,
        DataType::Time32(_) | DataType::Time64(_) => TIME,
        at if *at == timetz_type() => timetz_type(),
        _ => return plan_err!("`at time zone` takes a timestamp or a time"),
    };
    Ok(vec![zone, at])
}

fn zone_returns(types: &[DataType]) -> Result<DataType> {
    Ok(match types {
        [_, DataType::Timestamp(_, Some(_)) | DataType::Date32] => MICROS,
        [_, at] if is_text(at) => MICROS,
        [_, DataType::Time32(_) | DataType::Time64(_)] => timetz_type(),
        [_, at] if *at == timetz_type() => timetz_type(),
        _ => zoned(),
    })
}

/// The zones of an argument, row by row.
struct Zones {
    texts: Option<StringArray>,
    east: Option<ArrayRef>,
    known: HashMap<String, Zone>,
}

impl Zones {
    fn of(argument: &ArrayRef) -> Result<Zones> {
        let (texts, east) = match argument.data_type() {
            DataType::Interval(_) => (None, Some(Arc::clone(argument))),
            _ => (Some(strings(argument)?), None),
        };
        Ok(Zones {
            texts,
            east,
            known: HashMap::new(),
        })
    }

    fn get(&mut self, row: usize) -> Result<Option<Zone>> {
        if let Some(texts) = &self.texts {
            if texts.is_null(row) {
                return Ok(None);
            }
            let text = texts.value(row);
            if let Some(known) = self.known.get(text) {
                return Ok(Some(*known));
            }
            let Some(zone) = of_text(text) else {
                return Err(
                    Error::coded("22023", format!("time zone \"{text}\" not recognized")).into(),
                );
            };
            self.known.insert(text.to_string(), zone);
            return Ok(Some(zone));
        }
        let Some(intervals) = &self.east else {
            return Ok(None);
        };
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        if intervals.is_null(row) {
            return Ok(None);
        }
        let east = intervals.value(row);
        if east.months != 0 || east.days != 0 {
            return Err(Error::coded(
                "22023",
                "interval time zone must not include months or days",
            )
            .into());
        }
        Ok(Some(Zone::Fixed(east.nanoseconds / 1_000_000_000)))
    }
}

fn out_of_range<T>() -> Result<T> {
    Err(Error::coded("22008", "timestamp out of range").into())
}

/// `at time zone`: the local time of an instant in a zone, or the instant of a local time; a time with a zone in another.
fn timezone(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut zones = Zones::of(&args[0])?;
    match args[1].data_type() {
        DataType::Timestamp(_, zone) => {
            let aware = zone.is_some();
            let stamps = args[1].as_primitive::<TimestampMicrosecondType>();
            let mut found = Vec::with_capacity(rows);
            for row in 0..rows {
                let (Some(zone), true) = (zones.get(row)?, stamps.is_valid(row)) else {
                    found.push(None);
                    continue;
                };
                let at = stamps.value(row);
                if Infinity::of_count(at).is_some() {
                    found.push(Some(at));
                    continue;
                }
                let seconds = at.div_euclid(1_000_000);
                let east = if aware {
                    zone.at_instant(seconds)
                } else {
                    zone.at_local(seconds)
                };
                let Some(east) = east else {
                    return out_of_range();
                };
                let shift = if aware { east } else { -east } * 1_000_000;
                match at.checked_add(shift) {
                    Some(shifted) => found.push(Some(shifted)),
                    None => return out_of_range(),
                }
            }
            let found = TimestampMicrosecondArray::from(found);
            Ok(if aware {
                Arc::new(found)
            } else {
                Arc::new(found.with_timezone(UTC))
            })
        }
        _ => {
            let times = match cast_zones(&args[1], &timetz_type())? {
                Some(times) => times,
                None => Arc::clone(&args[1]),
            };
            if *times.data_type() != timetz_type() {
                return exec_err!("`at time zone` takes a timestamp or a time");
            }
            let now = chrono::Utc::now().timestamp();
            let mut found = Vec::with_capacity(rows);
            for (row, value) in values(&times).enumerate() {
                let zone = zones.get(row)?;
                found.push(match (zone, value) {
                    (Some(zone), Some(value)) => {
                        // The rules of zones are those of today.
                        let east = zone.at_instant(now).unwrap_or(0);
                        Some(value.to_zone(east))
                    }
                    _ => None,
                });
            }
            column(found)
        }
    }
}
