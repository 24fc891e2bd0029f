//! `date_trunc` over all years that timestamps have: DataFusion's goes by nanoseconds, which end in 2262.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray, new_null_array,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use chrono::{Datelike, NaiveDate};
use datafusion_common::{Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use messages::Error;
use table::{finite_part, has_infinite};

use crate::arguments::{MICROS, UTC, is_text, nanoseconds, strings};
use crate::dates::{is_stamp, zoned};
use crate::temporal::instants::cast_across;
use crate::temporal::local::Local;
use crate::temporal::zones::of_text;

/// `date_trunc(part, date or timestamp)`, and `date_trunc(part, instant, zone)`. DataFusion's own, `inner`, serves timestamps with zones other than UTC, which
/// files may have.
pub(super) fn truncated(inner: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Truncated {
        inner: Arc::clone(inner),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

/// Whether clocks in a zone of this name, which the schema of a file may have, are those of UTC.
pub(super) fn is_utc(zone: &str) -> bool {
    [UTC, "UTC", "Z", "Etc/UTC", "GMT", "-00:00", "+0000"].contains(&zone)
}

/// The type of intervals.
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Truncated {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Truncated {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [part, at @ DataType::Timestamp(_, _)] if is_text(part) => {
                Ok(vec![DataType::Utf8, at.clone()])
            }
            // A date is an instant, as in PostgreSQL.
            [part, DataType::Date32 | DataType::Date64] if is_text(part) => {
                Ok(vec![DataType::Utf8, zoned()])
            }
            [part, DataType::Interval(_)] if is_text(part) => Ok(vec![DataType::Utf8, INTERVAL]),
            [part, at] if is_text(part) && is_stamp(at) => Ok(vec![DataType::Utf8, MICROS]),
            [part, at, zone] if is_text(part) && is_stamp(at) && is_text(zone) => {
                Ok(vec![DataType::Utf8, zoned(), DataType::Utf8])
            }
            _ => plan_err!("date_trunc takes a part such as 'month', and a date or timestamp"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.get(1).cloned().unwrap_or(MICROS))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (part, at, zones) = match &args.args[..] {
            [ColumnarValue::Scalar(part), at] => (part, at, None),
            [ColumnarValue::Scalar(part), at, zones] => (part, at, Some(zones)),
            _ => {
                return exec_err!(
                    "date_trunc takes a part that is the same for all rows, such as 'month'"
                );
            }
        };
        if let DataType::Interval(_) = at.data_type() {
            return of_interval(part, at);
        }
        let DataType::Timestamp(unit, zone) = at.data_type() else {
            return plan_err!("date_trunc takes a date or timestamp");
        };
        let clocks = Local::of(&args.config_options);
        let clocks = if zone.is_some() { clocks } else { Local::PLAIN };
        if zones.is_none() && clocks.is_utc() && zone.as_deref().is_some_and(|zone| !is_utc(zone)) {
            if has_infinite(&at.to_array(args.number_rows)?) {
                return exec_err!("date_trunc: an infinite timestamp in a zone other than UTC");
            }
            return self.inner.invoke_with_args(args);
        }
        let Some(part) = part.try_as_str().flatten() else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(
                at.data_type(),
            )?));
        };
        let part = Part::known(part)?;
        let constant = matches!(
            (at, zones),
            (
                ColumnarValue::Scalar(_),
                None | Some(ColumnarValue::Scalar(_))
            )
        );
        let rows = if constant { 1 } else { args.number_rows };
        let values = at.to_array(rows)?;
        let found = match zones {
            None => part.by_clocks(clocks, &values, unit)?,
            Some(zones) => part.in_zones(&zones.to_array(rows)?, &values, unit)?,
        };
        if constant {
            let found = ScalarValue::try_from_array(&found, 0)?;
            return Ok(ColumnarValue::Scalar(found));
        }
        Ok(ColumnarValue::Array(found))
    }
}

/// The unit to which timestamps are truncated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    /// Multiples of so many nanoseconds.
    Nanoseconds(i64),
    /// Mondays.
    Week,
    /// The first days of every so many months.
    Months(i32),
    /// The first days of every so many years, counted from the year 1: centuries and millennia.
    Years(i32),
}

const SECOND: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
/// Days from the beginning of the year 1 to 1970.
const DAYS_TO_1970: i64 = 719_163;

/// An interval truncated to a unit: its years, months, days and time each towards zero.
fn of_interval(part: &ScalarValue, at: &ColumnarValue) -> Result<ColumnarValue> {
    let Some(part) = part.try_as_str().flatten() else {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&INTERVAL)?));
    };
    let unit = Part::known(part)?;
    let cut = |values: &ArrayRef| -> Result<ArrayRef> {
        let values = values.as_primitive::<IntervalMonthDayNanoType>();
        let found: IntervalMonthDayNanoArray = match unit {
            Part::Week => {
                return Err(Error::coded(
                    "0A000",
                    format!(
                        "unit \"{part}\" not supported for type interval: months usually have fractional weeks"
                    ),
                )
                .into());
            }
            Part::Nanoseconds(step) if step < DAY_SECONDS * SECOND => values.unary(|own| {
                let time = own.nanoseconds - own.nanoseconds % step;
                IntervalMonthDayNano::new(own.months, own.days, time)
            }),
            Part::Nanoseconds(_) => {
                values.unary(|own| IntervalMonthDayNano::new(own.months, own.days, 0))
            }
            Part::Months(step) => {
                values.unary(|own| IntervalMonthDayNano::new(own.months - own.months % step, 0, 0))
            }
            Part::Years(years) => {
                let step = 12 * years;
                values.unary(|own| IntervalMonthDayNano::new(own.months - own.months % step, 0, 0))
            }
        };
        Ok(Arc::new(found))
    };
    Ok(match at {
        ColumnarValue::Array(values) => ColumnarValue::Array(cut(values)?),
        ColumnarValue::Scalar(value) => {
            let found = cut(&value.to_array()?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
        }
    })
}

impl Part {
    /// The part of this name.
    fn known(name: &str) -> Result<Part> {
        match Part::named(name) {
            Some(part) => Ok(part),
            None => exec_err!(
                "date_trunc has no part '{name}'; it takes microsecond, second, minute, hour, day, week, month, quarter, year and the like"
            ),
        }
    }

    pub(super) fn named(name: &str) -> Option<Part> {
        let name = name.to_lowercase();
        let one = name.strip_suffix('s').unwrap_or(&name);
        Some(match one {
            "nanosecond" => Part::Nanoseconds(1),
            "microsecond" => Part::Nanoseconds(1_000),
            "millisecond" => Part::Nanoseconds(1_000_000),
            "second" => Part::Nanoseconds(SECOND),
            "minute" => Part::Nanoseconds(60 * SECOND),
            "hour" => Part::Nanoseconds(3_600 * SECOND),
            "day" => Part::Nanoseconds(DAY_SECONDS * SECOND),
            "week" => Part::Week,
            "month" => Part::Months(1),
            "quarter" => Part::Months(3),
            "year" => Part::Months(12),
            "decade" => Part::Months(120),
            "century" | "centurie" => Part::Years(100),
            "millennium" => Part::Years(1_000),
            _ => return None,
        })
    }

    /// Timestamps truncated as these clocks show them; what is infinite stays so.
    fn by_clocks(self, clocks: Local, values: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
        let of_finite = |values: &ArrayRef| {
            if clocks.is_utc() {
                self.of_all(values, unit)
            } else {
                clocks.within(|| self.of_instants(values, unit))
            }
        };
        match finite_part(values) {
            None => of_finite(values),
            Some((finite, infinities)) => Ok(infinities.put_into(of_finite(&finite)?)),
        }
    }

    /// Instants, each truncated as clocks in the zone of its row show it.
    fn in_zones(self, zones: &ArrayRef, values: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
        let zones = strings(zones)?;
        let name = |row: usize| zones.is_valid(row).then(|| zones.value(row));
        let rows = values.len();
        let (mut start, mut pieces) = (0, vec![values.slice(0, 0)]);
        while start < rows {
            // Rows in the same zone are truncated together.
            let own = name(start);
            let end = (start..rows).find(|row| name(*row) != own).unwrap_or(rows);
            let piece = values.slice(start, end - start);
            pieces.push(match own {
                None => new_null_array(piece.data_type(), piece.len()),
                Some(name) => {
                    let unknown =
                        || Error::coded("22023", format!("time zone \"{name}\" not recognized"));
                    let zone = of_text(name).ok_or_else(unknown)?;
                    let clocks = Local {
                        zone,
                        ..Local::PLAIN
                    };
                    self.by_clocks(clocks, &piece, unit)?
                }
            });
            start = end;
        }
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        Ok(concat(&pieces)?)
    }

    /// Instants truncated as clocks of the session show them.
    fn of_instants(self, values: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
        let plain = DataType::Timestamp(unit, None);
        let Some(shown) = cast_across(values, &plain)? else {
            return self.of_all(values, unit);
        };
        let cut = self.of_all(&shown, unit)?;
        if let Part::Nanoseconds(step) = self
            && step <= 3_600 * SECOND
        {
            // Clocks do not change within what is cut off, so that of two hours that are shown alike each stays itself.
            let counts = |values: &ArrayRef| cast(values, &DataType::Int64);
            let (shown, cut, at) = (counts(&shown)?, counts(&cut)?, counts(values)?);
            let off = arrow::compute::kernels::numeric::sub(
                shown.as_primitive::<Int64Type>(),
                cut.as_primitive::<Int64Type>(),
            )?;
            let found = arrow::compute::kernels::numeric::sub(
                at.as_primitive::<Int64Type>(),
                off.as_primitive::<Int64Type>(),
            )?;
            return Ok(cast(&found, values.data_type())?);
        }
        match cast_across(&cut, values.data_type())? {
            Some(found) => Ok(found),
            None => Ok(cut),
        }
    }

    fn of_all(self, values: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
        let counts = cast(values, &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        // How many units a second has.
        let second = SECOND / nanoseconds(unit);
        let cut: Int64Array = match self {
            Part::Nanoseconds(step) => {
                let step = (step / (SECOND / second)).max(1);
                counts.try_unary(|count| below(count, step))?
            }
            _ => {
                let day = DAY_SECONDS * second;
                counts.try_unary(|count| {
                    let days = self.of_day(count.div_euclid(day)).ok_or_else(range)?;
                    days.checked_mul(day).ok_or_else(range)
                })?
            }
        };
        Ok(cast(&cut, values.data_type())?)
    }

    /// `day`, counted from 1970, truncated to this unit.
    fn of_day(self, day: i64) -> Option<i64> {
        if self == Part::Week {
            // The first of January 1970 was a Thursday.
            return Some(day - (day + 3).rem_euclid(7));
        }
        let from_one = i32::try_from(day + DAYS_TO_1970).ok()?;
        let date = NaiveDate::from_num_days_from_ce_opt(from_one)?;
        let (year, month) = match self {
            Part::Months(step) => {
                let months = date.year() * 12 + date.month0() as i32;
                let first = months - months.rem_euclid(step);
                (first.div_euclid(12), first.rem_euclid(12) as u32 + 1)
            }
            Part::Years(step) => (date.year() - (date.year() - 1).rem_euclid(step), 1),
            Part::Week | Part::Nanoseconds(_) => return Some(day),
        };
        let first = NaiveDate::from_ymd_opt(year, month, 1)?;
        Some(i64::from(first.num_days_from_ce()) - DAYS_TO_1970)
    }
}

/// The greatest multiple of `step` that is at most `count`.
fn below(count: i64, step: i64) -> std::result::Result<i64, arrow::error::ArrowError> {
    count.checked_sub(count.rem_euclid(step)).ok_or_else(range)
}

fn range() -> arrow::error::ArrowError {
    arrow::error::ArrowError::ComputeError("timestamp out of range".into())
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMicrosecondArray;
    use arrow::datatypes::TimestampMicrosecondType;

    use super::*;

    fn cut(part: &str, text: &str) -> String {
        let at: chrono::NaiveDateTime = text.parse().unwrap();
        let values: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            at.and_utc().timestamp_micros(),
        ]));
        let found = Part::named(part)
            .unwrap()
            .of_all(&values, TimeUnit::Microsecond);
        let found = found.unwrap();
        let found = found.as_primitive::<TimestampMicrosecondType>();
        found.value_as_datetime(0).unwrap().to_string()
    }

    #[test]
    fn timestamps_are_cut_down() {
        let at = "2023-08-17T13:45:59.123456";
        for (part, wanted) in [
            ("microseconds", "2023-08-17 13:45:59.123456"),
            ("milliseconds", "2023-08-17 13:45:59.123"),
            ("Second", "2023-08-17 13:45:59"),
            ("minute", "2023-08-17 13:45:00"),
            ("hour", "2023-08-17 13:00:00"),
            ("day", "2023-08-17 00:00:00"),
            ("week", "2023-08-14 00:00:00"),
            ("month", "2023-08-01 00:00:00"),
            ("quarter", "2023-07-01 00:00:00"),
            ("year", "2023-01-01 00:00:00"),
            ("decade", "2020-01-01 00:00:00"),
            ("century", "2001-01-01 00:00:00"),
            ("millennium", "2001-01-01 00:00:00"),
        ] {
            assert_eq!(cut(part, at), wanted, "{part}");
        }
        assert_eq!(cut("hour", "1969-12-31T23:59:59.5"), "1969-12-31 23:00:00");
        assert_eq!(cut("week", "1969-12-31T12:00:00"), "1969-12-29 00:00:00");
        assert_eq!(cut("century", "2000-12-31T12:00:00"), "1901-01-01 00:00:00");
        assert_eq!(cut("year", "9999-12-31T23:59:59"), "9999-01-01 00:00:00");
        assert_eq!(cut("month", "0001-01-31T00:00:00"), "0001-01-01 00:00:00");
        assert_eq!(Part::named("fortnight"), None);
    }

    #[test]
    fn what_lies_outside_is_an_error() {
        let values: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN]));
        for part in ["hour", "week", "year"] {
            let found = Part::named(part)
                .unwrap()
                .of_all(&values, TimeUnit::Microsecond);
            assert!(found.is_err(), "{part}");
        }
    }
}
