//! Timestamps, times and intervals with so many digits behind the second.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder, Int64Array,
    IntervalMonthDayNanoArray, ListArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use arrow::error::ArrowError;

use crate::error::Result;
use crate::schema::infinite::Infinity;
use crate::schema::types::timetz_type;

/// Seconds from 1970 to 2000, from where PostgreSQL counts: halves are rounded away from there.
const EPOCH: i64 = 946_684_800;

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

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

/// What a value is a multiple of that has `wanted` of its `own` digits.
fn scale(own: u8, wanted: u8) -> i64 {
    10_i64.pow(own.saturating_sub(wanted).min(9).into())
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn out_of_range(what: &str) -> ArrowError {
    ArrowError::ComputeError(format!("{what} out of range"))
}

/// Values of a timestamp, a time or an interval, or arrays of such, with at most so many digits behind the second; others as
/// they are.
///
/// # Errors
/// [`Error::Arrow`](crate::Error::Arrow) for an interval that becomes longer than there are.
pub fn to_second_digits(values: &ArrayRef, wanted: u8) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Timestamp(unit, _) => {
            let own = digits(*unit);
            let (scale, epoch) = (scale(own, wanted), EPOCH * 10_i64.pow(own.into()));
            let counts = cast(values, &DataType::Int64)?;
            let rounded: Int64Array = counts.as_primitive::<Int64Type>().unary(|count| {
                if Infinity::of_count(count).is_some() {
                    return count;
                }
                let since = count.checked_sub(epoch);
                let since = since.and_then(|since| nearest(since, scale));
                // What lies at the end of what there is stays: comparisons have it for all that is beyond.
                let moved = since.and_then(|since| since.checked_add(epoch));
                moved.unwrap_or(count)
            });
            cast(&rounded, values.data_type())?
        }
        DataType::Time64(unit) => {
            let scale = scale(digits(*unit), wanted);
            let counts = cast(values, &DataType::Int64)?;
            let of = |count: i64| nearest(count, scale).ok_or_else(|| out_of_range("time"));
            let rounded: Int64Array = counts.as_primitive::<Int64Type>().try_unary(of)?;
            cast(&rounded, values.data_type())?
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let scale = scale(9, wanted);
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
            let rounded: IntervalMonthDayNanoArray = intervals.try_unary(|own| {
                let time = nearest(own.nanoseconds, scale);
                let time = time.ok_or_else(|| out_of_range("interval"))?;
                Ok::<_, ArrowError>(IntervalMonthDayNano::new(own.months, own.days, time))
            })?;
            Arc::new(rounded)
        }
        DataType::List(item) => {
            let lists = values.as_list::<i32>();
            let rounded = to_second_digits(lists.values(), wanted)?;
            Arc::new(ListArray::try_new(
                Arc::clone(item),
                lists.offsets().clone(),
                rounded,
                lists.nulls().cloned(),
            )?)
        }
        ty if *ty == timetz_type() => in_zones(values.as_fixed_size_binary(), scale(9, wanted))?,
        _ => values.clone(),
    })
}

/// Times with a zone: their first eight bytes are a time in UTC, and zones are whole seconds.
fn in_zones(values: &FixedSizeBinaryArray, scale: i64) -> Result<ArrayRef> {
    let mut all = FixedSizeBinaryBuilder::with_capacity(values.len(), values.value_length());
    for row in 0..values.len() {
        let Some((first, zone)) = values.value(row).split_first_chunk::<8>() else {
            all.append_null();
            continue;
        };
        if values.is_null(row) {
            all.append_null();
            continue;
        }
        let time = (u64::from_be_bytes(*first) ^ 1 << 63) as i64;
        // As a time of a day, which is not negative.
        let rounded = nearest(time.saturating_add(DAY), scale).unwrap_or(time) - DAY;
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&((rounded as u64) ^ 1 << 63).to_be_bytes());
        bytes[8..].copy_from_slice(zone);
        all.append_value(bytes)?;
    }
    Ok(Arc::new(all.finish()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Time64NanosecondArray, TimestampMicrosecondArray};
    use arrow::datatypes::TimestampMicrosecondType;

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

    #[test]
    fn values_keep_the_digits_that_are_wanted() {
        let stamps: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            Some(EPOCH * 1_000_000 + 15_000),
            Some(EPOCH * 1_000_000 - 15_000),
            None,
            Some(i64::MAX),
            Some(-i64::MAX),
        ]));
        let rounded = to_second_digits(&stamps, 2).unwrap();
        let rounded = rounded.as_primitive::<TimestampMicrosecondType>();
        let since = |row| rounded.value(row) - EPOCH * 1_000_000;
        assert_eq!(
            (since(0), since(1), rounded.is_null(2)),
            (20_000, -20_000, true)
        );
        assert_eq!((rounded.value(3), rounded.value(4)), (i64::MAX, -i64::MAX));
        let times: ArrayRef = Arc::new(Time64NanosecondArray::from(vec![DAY - 1]));
        let rounded = to_second_digits(&times, 0).unwrap();
        let rounded = cast(&rounded, &DataType::Int64).unwrap();
        assert_eq!(rounded.as_primitive::<Int64Type>().value(0), DAY);
    }
}
