//! The fields of dates, times and intervals that `extract` and `date_part` take: which there are, and what they are of a
//! value.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use messages::types::standard_name;
use table::timetz_type;

use crate::arguments::nanoseconds;
use crate::temporal::calendar::{civil, days, iso_week, weekday};
use crate::temporal::timetz::{TimeInZone, values};

/// A field of a date, a time or an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Epoch,
    Julian,
    Zone,
    ZoneHour,
    ZoneMinute,
}

impl Part {
    fn named(word: &str) -> Option<Part> {
        Some(match word.trim().to_lowercase().as_str() {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => Part::Microsecond,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Part::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Part::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Part::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Part::Hour,
            "d" | "day" | "days" => Part::Day,
            "w" | "week" | "weeks" => Part::Week,
            "mon" | "mons" | "month" | "months" => Part::Month,
            "qtr" | "quarter" => Part::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Part::Year,
            "dec" | "decs" | "decade" | "decades" => Part::Decade,
            "c" | "cent" | "century" | "centuries" => Part::Century,
            "mil" | "mils" | "millennium" | "millennia" => Part::Millennium,
            "isoyear" => Part::IsoYear,
            "dow" => Part::DayOfWeek,
            "isodow" => Part::IsoDayOfWeek,
            "doy" => Part::DayOfYear,
            "epoch" => Part::Epoch,
            "j" | "jd" | "julian" => Part::Julian,
            "timezone" => Part::Zone,
            "timezone_hour" | "timezone_h" => Part::ZoneHour,
            "timezone_minute" | "timezone_m" => Part::ZoneMinute,
            _ => return None,
        })
    }

    fn is_of_time(self) -> bool {
        matches!(
            self,
            Part::Microsecond | Part::Millisecond | Part::Second | Part::Minute | Part::Hour
        )
    }

    /// Whether it goes on with values of this type, so that of an infinite one it is infinite. Others begin again and again, so
    /// that there is none.
    pub(super) fn is_endless(self, ty: &DataType) -> bool {
        matches!(
            ty,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _)
        ) && matches!(
            self,
            Part::Year
                | Part::Decade
                | Part::Century
                | Part::Millennium
                | Part::IsoYear
                | Part::Epoch
                | Part::Julian
        )
    }

    /// Whether it is of the zone of a value.
    pub(super) fn is_of_zone(self) -> bool {
        matches!(self, Part::Zone | Part::ZoneHour | Part::ZoneMinute)
    }

    /// Whether values of this type have it.
    fn is_of(self, ty: &DataType) -> bool {
        match ty {
            DataType::Date32 | DataType::Date64 => !self.is_of_time() && !self.is_of_zone(),
            DataType::Timestamp(_, zone) => zone.is_some() || !self.is_of_zone(),
            DataType::Time32(_) | DataType::Time64(_) => self.is_of_time() || self == Part::Epoch,
            ty if *ty == timetz_type() => {
                self.is_of_time() || self.is_of_zone() || self == Part::Epoch
            }
            _ => !matches!(
                self,
                Part::Week
                    | Part::IsoYear
                    | Part::DayOfWeek
                    | Part::IsoDayOfWeek
                    | Part::DayOfYear
                    | Part::Julian
                    | Part::Zone
                    | Part::ZoneHour
                    | Part::ZoneMinute
            ),
        }
    }

    /// Whether DataFusion's own serves values of this type.
    pub(super) fn is_inner(self, ty: &DataType) -> bool {
        matches!(ty, DataType::Date32 | DataType::Timestamp(_, _))
            && matches!(
                self,
                Part::Minute
                    | Part::Hour
                    | Part::Day
                    | Part::Week
                    | Part::Month
                    | Part::Quarter
                    | Part::Year
                    | Part::DayOfWeek
                    | Part::IsoDayOfWeek
                    | Part::DayOfYear
            )
    }

    /// The word by which DataFusion knows it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Part::Minute => "minute",
            Part::Hour => "hour",
            Part::Day => "day",
            Part::Week => "week",
            Part::Month => "month",
            Part::Quarter => "quarter",
            Part::DayOfWeek => "dow",
            Part::IsoDayOfWeek => "isodow",
            Part::DayOfYear => "doy",
            _ => "year",
        }
    }

    /// The digits behind the point of its values, of this type.
    fn scale(self, ty: &DataType) -> u32 {
        match (self, ty) {
            (Part::Epoch | Part::Julian, DataType::Date32 | DataType::Date64) => 0,
            (Part::Second | Part::Epoch, _) => 6,
            (Part::Millisecond, _) => 3,
            (Part::Julian, _) => 20,
            _ => 0,
        }
    }

    /// The type of its values, of values of this type; `exact` has decimals for fractions.
    pub(super) fn result(self, ty: &DataType, exact: bool) -> DataType {
        let scale = self.scale(ty);
        let wide = matches!(self, Part::Epoch | Part::Microsecond) || self.is_endless(ty) && !exact;
        match (scale, exact) {
            (0, true) if wide => DataType::Int64,
            (0, false) if wide => DataType::Float64,
            (0, _) => DataType::Int32,
            (20, true) => DataType::Decimal128(38, 20),
            (scale, true) => DataType::Decimal128(22, scale as i8),
            (_, false) => DataType::Float64,
        }
    }
}

/// A value, taken apart.
enum Value {
    /// A day, and the nanoseconds of it.
    Moment(i64, i64),
    Time(TimeInZone),
    Interval(IntervalMonthDayNano),
}

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// A field of a value, times ten to the power of its digits.
fn value_of(part: Part, value: &Value, ty: &DataType) -> i128 {
    let found = match value {
        Value::Moment(day, time) => of_moment(part, *day, (*time).into(), ty),
        Value::Time(time) => {
            let zone = i128::from(time.east);
            match part {
                Part::Zone => Some(zone),
                Part::ZoneHour => Some(zone / 3_600),
                Part::ZoneMinute => Some(zone / 60 % 60),
                Part::Epoch => Some((i128::from(time.local) - zone * SECOND) / 1_000),
                part => of_time(part, time.local.into()),
            }
        }
        Value::Interval(interval) => of_interval(part, *interval),
    };
    found.unwrap_or(0)
}

/// A field of a time within a day or of an interval.
fn of_time(part: Part, time: i128) -> Option<i128> {
    let minute = 60 * SECOND;
    Some(match part {
        Part::Microsecond | Part::Millisecond | Part::Second => time % minute / 1_000,
        Part::Minute => time / minute % 60,
        Part::Hour => time / minute / 60,
        _ => return None,
    })
}

/// A year as people count it: there is no year 0.
fn counted(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// Whole spans of so many years, the first of which begins with the year 1.
fn spans(year: i64, span: i64) -> i64 {
    if year > 0 {
        (year + span - 1) / span
    } else {
        -((span - year) / span)
    }
}

fn of_moment(part: Part, day: i64, time: i128, ty: &DataType) -> Option<i128> {
    let (year, month, date) = civil(day);
    let found = match part {
        Part::Day => date,
        Part::Week => iso_week(day).1,
        Part::Month => month,
        Part::Quarter => (month - 1) / 3 + 1,
        Part::Year => counted(year),
        Part::Decade => year.div_euclid(10),
        Part::Century => spans(year, 100),
        Part::Millennium => spans(year, 1_000),
        Part::IsoYear => counted(iso_week(day).0),
        Part::DayOfWeek => weekday(day),
        Part::IsoDayOfWeek => (weekday(day) + 6) % 7 + 1,
        Part::DayOfYear => day - days(year, 1, 1) + 1,
        Part::Epoch => {
            let seconds = i128::from(day) * 86_400;
            return Some(match ty {
                DataType::Date32 | DataType::Date64 => seconds,
                _ => seconds * 1_000_000 + time / 1_000,
            });
        }
        Part::Julian => {
            let julian = i128::from(day) + 2_440_588;
            if matches!(ty, DataType::Date32 | DataType::Date64) {
                return Some(julian);
            }
            let power = 10_i128.pow(20);
            // To the nearest of twenty digits.
            let micros = time / 1_000;
            let of_day = (micros * power * 2 / (DAY / 1_000) + 1) / 2;
            return Some(julian * power + of_day);
        }
        part if part.is_of_zone() => 0,
        part => return of_time(part, time),
    };
    Some(found.into())
}

fn of_interval(part: Part, of: IntervalMonthDayNano) -> Option<i128> {
    let (months, days) = (i128::from(of.months), i128::from(of.days));
    let years = months / 12;
    Some(match part {
        Part::Day => days,
        Part::Month => months % 12,
        Part::Quarter => months % 12 / 3 + 1,
        Part::Year => years,
        Part::Decade => years / 10,
        Part::Century => years / 100,
        Part::Millennium => years / 1_000,
        Part::Epoch => {
            // A year has 365 days and a quarter, a month 30.
            let quarters = years * 1_461 + months % 12 * 120 + days * 4;
            quarters * 21_600 * 1_000_000 + i128::from(of.nanoseconds) / 1_000
        }
        part => return of_time(part, of.nanoseconds.into()),
    })
}

fn taken_apart(array: &ArrayRef) -> Result<Vec<Option<Value>>> {
    Ok(match array.data_type() {
        DataType::Date32 => {
            let all = array.as_primitive::<Date32Type>().iter();
            all.map(|day| day.map(|day| Value::Moment(day.into(), 0)))
                .collect()
        }
        DataType::Timestamp(unit, _) => {
            let scale = nanoseconds(*unit);
            let per_day = 86_400_000_000_000 / scale;
            let counts = cast(array, &DataType::Int64)?;
            let all = counts.as_primitive::<Int64Type>().iter();
            all.map(|count| {
                count.map(|count| {
                    let of_day = count.rem_euclid(per_day) * scale;
                    Value::Moment(count.div_euclid(per_day), of_day)
                })
            })
            .collect()
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let scale = nanoseconds(*unit);
            let counts = match array.data_type() {
                DataType::Time32(_) => cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?,
                _ => cast(array, &DataType::Int64)?,
            };
            let all = counts.as_primitive::<Int64Type>().iter();
            all.map(|count| {
                count.map(|count| {
                    Value::Time(TimeInZone {
                        local: count * scale,
                        east: 0,
                    })
                })
            })
            .collect()
        }
        ty if *ty == timetz_type() => values(array).map(|v| v.map(Value::Time)).collect(),
        DataType::Interval(_) => {
            let all = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let all = all.as_primitive::<IntervalMonthDayNanoType>().iter();
            all.map(|value| value.map(Value::Interval)).collect()
        }
        other => return plan_err!("extract takes a date, a time or an interval, not {other}"),
    })
}

/// The field that `word` names, of values of type `ty`.
///
/// # Errors
/// If there is no such field, or values of the type have none.
pub(super) fn part_of(word: Option<&str>, ty: &DataType) -> Result<Part> {
    let Some(word) = word else {
        return exec_err!("the field is a constant, such as 'year'");
    };
    let shown = word.to_lowercase();
    match Part::named(word) {
        Some(part) if part.is_of(ty) => Ok(part),
        Some(_) => Err(Error::coded(
            "0A000",
            format!(
                "unit \"{shown}\" not supported for type {}",
                standard_name(ty)
            ),
        )
        .into()),
        None => Err(Error::coded(
            "22023",
            format!(
                "unit \"{shown}\" not recognized for type {}",
                standard_name(ty)
            ),
        )
        .into()),
    }
}

/// A field of all values, as values of type `to`.
///
/// # Errors
/// For values that have no fields, and such as are too great for the type.
pub(super) fn own(part: Part, of: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let ty = of.data_type();
    let scale = part.scale(ty);
    let found = taken_apart(of)?;
    let found = found.iter().map(|value| {
        let value = value.as_ref()?;
        Some(value_of(part, value, ty))
    });
    let found: Decimal128Array = found.collect();
    if *to == DataType::Float64 {
        let power = 10_f64.powi(scale as i32);
        let doubles: arrow::array::Float64Array = found.unary(|value| value as f64 / power);
        return Ok(Arc::new(doubles));
    }
    if let DataType::Decimal128(precision, scale) = to {
        let found = found.with_precision_and_scale(*precision, *scale)?;
        return Ok(Arc::new(found));
    }
    let found = found.with_precision_and_scale(38, 0)?;
    Ok(cast(&found, to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_postgresql() {
        let stamp = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None);
        let day = days(2020, 5, 26);
        let time = (13 * 3_600 + 30 * 60 + 25) * 1_000_000_000 + 575_401_000;
        let moment = Value::Moment(day, time);
        for (word, wanted) in [
            ("microseconds", 25_575_401),
            ("milliseconds", 25_575_401),
            ("second", 25_575_401),
            ("hour", 13),
            ("decade", 202),
            ("century", 21),
            ("millennium", 3),
            ("isoyear", 2020),
            ("epoch", 1_590_499_825_575_401),
            ("julian", 245_899_656_279_601_158_564_814_815),
        ] {
            let part = part_of(Some(word), &stamp).unwrap();
            assert_eq!(value_of(part, &moment, &stamp), wanted, "{word}");
        }
        for (year, century, decade, counted_as) in [
            (1, 1, 0, 1),
            (0, -1, 0, -1),
            (-99, -1, -10, -100),
            (-100, -2, -10, -101),
            (1900, 19, 190, 1900),
        ] {
            assert_eq!(spans(year, 100), century, "{year}");
            assert_eq!(year.div_euclid(10), decade, "{year}");
            assert_eq!(counted(year), counted_as, "{year}");
        }
        assert!(part_of(Some("hour"), &DataType::Date32).is_err());
        assert!(part_of(Some("fortnight"), &stamp).is_err());
    }

    #[test]
    fn fields_of_intervals() {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let value = Value::Interval(IntervalMonthDayNano::new(-14, 3, 3_661_500_000_000));
        for (word, wanted) in [
            ("year", -1),
            ("month", -2),
            ("day", 3),
            ("hour", 1),
            ("second", 1_500_000),
            (
                "epoch",
                (-365 * 86_400 - 21_600 - 60 * 86_400 + 3 * 86_400) * 1_000_000 + 3_661_500_000,
            ),
        ] {
            let part = part_of(Some(word), &interval).unwrap();
            assert_eq!(value_of(part, &value, &interval), wanted, "{word}");
        }
    }
}
