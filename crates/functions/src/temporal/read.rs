//! Columns of texts as dates, times, timestamps and intervals, and these as texts.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Int64Array, IntervalMonthDayNanoArray, StringArray,
    StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion_common::{Result, internal_err};
use messages::types::standard_name;
use table::{Infinity, timetz_type};

use crate::arguments::nanoseconds;
use crate::temporal::calendar;
use crate::temporal::duration::interval;
use crate::temporal::fields::Fields;
use crate::temporal::local::Local;
use crate::temporal::moment::{Moment, now};
use crate::temporal::parts::moment;
use crate::temporal::timetz::{TimeInZone, column, values};
use crate::temporal::wrong::Wrong;

/// Whether texts become values of this type here.
pub fn reads(to: &DataType) -> bool {
    matches!(
        to,
        DataType::Date32
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Interval(IntervalUnit::MonthDayNano)
    ) || *to == timetz_type()
}

/// What PostgreSQL calls a type where it says that a text is none of its values.
fn name(to: &DataType) -> String {
    match to {
        DataType::Timestamp(_, None) => "timestamp".to_string(),
        DataType::Time32(_) | DataType::Time64(_) => "time".to_string(),
        other => standard_name(other),
    }
}

/// `of` each text, with the error of the type for one that is none.
fn each<T>(
    texts: &StringArray,
    to: &DataType,
    of: impl Fn(&str) -> Result<T, Wrong>,
) -> Result<Vec<Option<T>>> {
    let mut found = Vec::with_capacity(texts.len());
    for text in texts {
        found.push(match text {
            None => None,
            Some(text) => match of(text) {
                Ok(value) => Some(value),
                Err(wrong) => return Err(wrong.error(&name(to), text)),
            },
        });
    }
    Ok(found)
}

/// Values of type `to` from texts, as the session reads them.
///
/// # Errors
/// For a text that is none.
pub(crate) fn from_texts(texts: &StringArray, to: &DataType, local: Local) -> Result<ArrayRef> {
    Ok(match to {
        DataType::Date32 => {
            let days = each(texts, to, |text| {
                let moment = moment(text, local, false)?;
                if let Some(infinity) = moment.infinity {
                    return Ok(infinity.day());
                }
                let day = moment.day.ok_or(Wrong::Syntax)?;
                i32::try_from(day).map_err(|_| Wrong::Range)
            })?;
            Arc::new(Date32Array::from(days))
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let scale = nanoseconds(*unit);
            // To the microsecond, as all that is written of it.
            let micros = |text: &str| Ok(half_even(time(text, local)?, 1_000) * 1_000);
            let times = each(texts, to, |text| Ok(half_even(micros(text)?, scale)))?;
            let counts: ArrayRef = Arc::new(Int64Array::from(times));
            match to {
                DataType::Time32(_) => cast(&cast(&counts, &DataType::Int32)?, to)?,
                _ => cast(&counts, to)?,
            }
        }
        DataType::Timestamp(unit, zone) => {
            let counts = each(texts, to, |text| {
                let moment = moment(text, local, false)?;
                if let Some(infinity) = moment.infinity {
                    return Ok(infinity.count());
                }
                let (seconds, rest) = match zone {
                    Some(_) => moment.instant(local)?,
                    None => moment.local()?,
                };
                count(seconds, rest, *unit).ok_or(Wrong::Range)
            })?;
            cast(&Int64Array::from(counts), to)?
        }
        DataType::Interval(_) => {
            let found = each(texts, to, |text| interval(text, Fields::ALL))?;
            Arc::new(IntervalMonthDayNanoArray::from(found))
        }
        to if *to == timetz_type() => column(each(texts, to, |text| time_in_zone(text, local))?)?,
        other => return internal_err!("texts are not read as {other} here"),
    })
}

/// `value` in units of `scale`, rounded, from the middle to the even neighbour.
fn half_even(value: i64, scale: i64) -> i64 {
    let (whole, rest) = (value.div_euclid(scale), value.rem_euclid(scale));
    let up = 2 * rest > scale || 2 * rest == scale && scale > 1 && whole % 2 != 0;
    whole + i64::from(up)
}

/// Units from 1970 on; none if they are too many, or as many as would be infinite.
fn count(seconds: i64, rest: i64, unit: TimeUnit) -> Option<i64> {
    let scale = nanoseconds(unit);
    let whole = seconds.checked_mul(1_000_000_000 / scale)?;
    let count = whole.checked_add(half_even(rest, scale))?;
    Infinity::of_count(count).is_none().then_some(count)
}

fn time(text: &str, local: Local) -> Result<i64, Wrong> {
    let moment = moment(text, local, true)?;
    zone_of(&moment, local)?;
    moment.time.ok_or(Wrong::Syntax)
}

/// Seconds to the east of the zone of a time. One whose clocks change needs a date, which is today's for that of the session.
fn zone_of(moment: &Moment, local: Local) -> Result<i64, Wrong> {
    let Some(zone) = moment.zone else {
        let day = moment.day.or_else(|| now(local, 0, false).day).unwrap_or(0);
        let time = moment.time.unwrap_or(0) / 1_000_000_000;
        let east = local.zone.at_local(day * 86_400 + time);
        return east.ok_or(Wrong::Field);
    };
    match (zone.fixed(), moment.day) {
        (Some(east), _) => Ok(east),
        (None, Some(_)) => zone.at_local(moment.local()?.0).ok_or(Wrong::Field),
        (None, None) => Err(Wrong::Syntax),
    }
}

fn time_in_zone(text: &str, local: Local) -> Result<TimeInZone, Wrong> {
    let moment = moment(text, local, true)?;
    Ok(TimeInZone {
        // To the microsecond.
        local: half_even(moment.time.ok_or(Wrong::Syntax)?, 1_000) * 1_000,
        east: zone_of(&moment, local)?,
    })
}

/// Values as texts, as the session writes them; none of types that are written elsewhere.
///
/// # Errors
/// Those of Arrow's casts.
pub(crate) fn to_texts(items: &ArrayRef) -> Result<Option<ArrayRef>> {
    let local = Local::now();
    let written = |text: &dyn Fn(usize) -> String| -> ArrayRef {
        let nulls = items.logical_nulls();
        let valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let rows = (0..items.len()).map(|row| valid(row).then(|| text(row)));
        Arc::new(StringViewArray::from_iter(rows))
    };
    Ok(Some(match items.data_type() {
        DataType::Date32 => {
            let days = items.as_primitive::<Date32Type>();
            written(&|row| {
                let mut text = String::new();
                local.date(days.value(row).into(), &mut text);
                text
            })
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let scale = nanoseconds(*unit);
            let counts = match items.data_type() {
                DataType::Time32(_) => cast(&cast(items, &DataType::Int32)?, &DataType::Int64)?,
                _ => cast(items, &DataType::Int64)?,
            };
            let counts = counts.as_primitive::<Int64Type>().clone();
            written(&|row| {
                let mut text = String::new();
                calendar::time(counts.value(row).saturating_mul(scale), &mut text);
                text
            })
        }
        DataType::Timestamp(unit, zone) => {
            let units = 1_000_000_000 / nanoseconds(*unit);
            let counts = cast(items, &DataType::Int64)?;
            let counts = counts.as_primitive::<Int64Type>().clone();
            let zone = zone.is_some();
            written(&|row| {
                let count = counts.value(row);
                if let Some(infinity) = Infinity::of_count(count) {
                    return infinity.text().to_string();
                }
                let rest = count.rem_euclid(units) * (1_000_000_000 / units);
                let mut text = String::new();
                local.timestamp(count.div_euclid(units), rest, zone, &mut text);
                text
            })
        }
        DataType::Interval(_) => {
            let values = cast(items, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let values = values.as_primitive::<IntervalMonthDayNanoType>().clone();
            written(&|row| {
                let of = values.value(row);
                let mut text = String::new();
                local.interval(of.months, of.days, of.nanoseconds, &mut text);
                text
            })
        }
        ty if *ty == timetz_type() => {
            let texts = values(items).map(|value| value.map(TimeInZone::text));
            Arc::new(StringViewArray::from_iter(texts))
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::local::Order;

    fn read(text: &str, to: &DataType, order: Order) -> Result<String, String> {
        let texts = StringArray::from(vec![text]);
        let values = from_texts(&texts, to, Local::in_order(order)).map_err(|e| e.to_string())?;
        let texts = to_texts(&values).unwrap().unwrap();
        Ok(texts.as_string_view().value(0).to_string())
    }

    fn stamp() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, None)
    }

    fn stamp_in_zone() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
    }

    #[test]
    fn dates_are_read_in_all_forms() {
        for (text, order, wanted) in [
            ("January 8, 1999", Order::Mdy, "1999-01-08"),
            ("1999-01-08", Order::Ymd, "1999-01-08"),
            ("1999-01-18", Order::Dmy, "1999-01-18"),
            ("1/8/1999", Order::Mdy, "1999-01-08"),
            ("1/8/1999", Order::Dmy, "1999-08-01"),
            ("18/1/1999", Order::Dmy, "1999-01-18"),
            ("01/02/03", Order::Mdy, "2003-01-02"),
            ("01/02/03", Order::Ymd, "2001-02-03"),
            ("1999-Jan-08", Order::Mdy, "1999-01-08"),
            ("08-Jan-99", Order::Mdy, "1999-01-08"),
            ("08-Jan-1999", Order::Ymd, "1999-01-08"),
            ("Jan-08-99", Order::Dmy, "1999-01-08"),
            ("19990108", Order::Mdy, "1999-01-08"),
            ("990108", Order::Mdy, "1999-01-08"),
            ("1999.008", Order::Mdy, "1999-01-08"),
            ("J2451187", Order::Mdy, "1999-01-08"),
            ("January 8, 99 BC", Order::Mdy, "0099-01-08 BC"),
            ("99 Jan 08", Order::Ymd, "1999-01-08"),
            ("08 Jan 1999", Order::Mdy, "1999-01-08"),
            ("99-08-01", Order::Ymd, "1999-08-01"),
            ("epoch", Order::Mdy, "1970-01-01"),
            ("infinity", Order::Mdy, "infinity"),
            (" - Infinity ", Order::Dmy, "-infinity"),
            ("4714-11-24 BC", Order::Mdy, "4714-11-24 BC"),
        ] {
            let found = read(text, &DataType::Date32, order);
            assert_eq!(found.as_deref(), Ok(wanted), "{text:?} {order:?}");
        }
        for (text, order) in [
            ("18/1/1999", Order::Mdy),
            ("1997-02-29", Order::Mdy),
            ("99-Jan-08", Order::Mdy),
            ("January", Order::Mdy),
            ("4714-11-23 BC", Order::Mdy),
            ("0000-01-01", Order::Mdy),
            ("", Order::Mdy),
            ("+infinity", Order::Mdy),
            ("inf", Order::Mdy),
            ("infinity infinity", Order::Mdy),
            ("2000-01-01 2000-01-01", Order::Mdy),
        ] {
            let found = read(text, &DataType::Date32, order);
            assert!(found.is_err(), "{text:?} {found:?}");
        }
    }

    #[test]
    fn times_and_timestamps_are_read_in_all_forms() {
        let time = DataType::Time64(TimeUnit::Nanosecond);
        for (text, to, wanted) in [
            ("04:05:06.789", time.clone(), "04:05:06.789"),
            ("040506", time.clone(), "04:05:06"),
            ("04:05 PM", time.clone(), "16:05:00"),
            ("12:05 AM", time.clone(), "00:05:00"),
            ("24:00:00", time.clone(), "24:00:00"),
            ("allballs", time.clone(), "00:00:00"),
            ("20:15 PST", timetz_type(), "20:15:00-08"),
            ("04:05:06-08:30", timetz_type(), "04:05:06-08:30"),
            ("040506.789-08", timetz_type(), "04:05:06.789-08"),
            (
                "2003-07-07 15:36:39 America/New_York",
                timetz_type(),
                "15:36:39-04",
            ),
            ("2001-12-27 04:05:06", stamp(), "2001-12-27 04:05:06"),
            ("20011227T040506", stamp(), "2001-12-27 04:05:06"),
            (
                "2001-12-27 04:05:06.7891234",
                stamp(),
                "2001-12-27 04:05:06.789123",
            ),
            ("Thu Dec 27 04:05:06 2001", stamp(), "2001-12-27 04:05:06"),
            (
                "Mon Feb 10 17:32:01 1997 PST",
                stamp_in_zone(),
                "1997-02-11 01:32:01+00",
            ),
            (
                "2001-12-27 04:05:06 PM +01:30",
                stamp_in_zone(),
                "2001-12-27 14:35:06+00",
            ),
            (
                "20011227 040506+08",
                stamp_in_zone(),
                "2001-12-26 20:05:06+00",
            ),
            (
                "J2452271 T040506.789-08",
                stamp_in_zone(),
                "2001-12-27 12:05:06.789+00",
            ),
            (
                "2024-07-01 12:00 Europe/Berlin",
                stamp_in_zone(),
                "2024-07-01 10:00:00+00",
            ),
            ("epoch", stamp_in_zone(), "1970-01-01 00:00:00+00"),
        ] {
            let found = read(text, &to, Order::Mdy);
            assert_eq!(found.as_deref(), Ok(wanted), "{text:?}");
        }
        for (text, to) in [
            ("24:00:01", time.clone()),
            ("25:00", time.clone()),
            ("13:00 PM", time.clone()),
            ("15:36:39 America/New_York", time),
            ("15:36:39 America/New_York", timetz_type()),
            ("2001-12-27 04:05:06 +16", stamp_in_zone()),
            ("19970710 173201 America/Does_not_exist", stamp_in_zone()),
        ] {
            let found = read(text, &to, Order::Mdy);
            assert!(found.is_err(), "{text:?} {found:?}");
        }
    }

    /// POSIX counts to the west.
    #[test]
    fn zones_of_posix_are_read() {
        for (text, wanted) in [
            ("2001-12-27 04:05:06 PST+3", "2001-12-27 07:05:06+00"),
            ("2001-12-27 FOOBAR-2:30", "2001-12-26 21:30:00+00"),
        ] {
            let found = read(text, &stamp_in_zone(), Order::Mdy);
            assert_eq!(found.as_deref(), Ok(wanted), "{text:?}");
        }
    }

    /// Texts drawn at random, and what PostgreSQL 15 makes of them: a value, or the code of an error. What
    /// it takes for a zone in POSIX's notation, and times beside `epoch`, are left out. Each line has a type, the
    /// order of the parts of dates, a text and the answer.
    const TEXTS: &str = include_str!("texts.tsv");

    #[test]
    fn random_texts_are_read_as_postgresql_reads_them() {
        let mut wrong = Vec::new();
        for line in TEXTS.lines() {
            let [name, order, text, wanted] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line:?}");
            };
            let to = match name {
                "date" => DataType::Date32,
                "timestamp" => stamp(),
                "timestamptz" => stamp_in_zone(),
                "time" => DataType::Time64(TimeUnit::Nanosecond),
                "timetz" => timetz_type(),
                _ => DataType::Interval(IntervalUnit::MonthDayNano),
            };
            let order = match order {
                "DMY" => Order::Dmy,
                "YMD" => Order::Ymd,
                _ => Order::Mdy,
            };
            let found =
                match from_texts(&StringArray::from(vec![text]), &to, Local::in_order(order)) {
                    Ok(values) => {
                        let texts = to_texts(&values).unwrap().unwrap();
                        texts.as_string_view().value(0).to_string()
                    }
                    Err(e) => format!("!{}", messages::Error::from(e).sqlstate()),
                };
            if found != wanted {
                wrong.push(format!(
                    "{name} {order:?} {text:?}: {found}, and not {wanted}"
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} differ:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
}
