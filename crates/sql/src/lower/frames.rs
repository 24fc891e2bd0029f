//! Lowering of the frames of windows.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr as Sql, WindowFrame, WindowFrameBound, WindowFrameUnits};
use engine::{
    Distance, Error, FrameBounds, FrameEdge, FrameExclusion, FrameUnits, Kind, Result, Type,
};

use crate::functions::windows::frame::{Bound, Exclude, Frame, Units, has_offset};
use crate::lower::lowering::unsupported;

/// A whole number that stands in the statement.
pub(super) fn number(e: &Sql) -> Option<i64> {
    let Sql::Literal(value, _) = e else {
        return None;
    };
    whole(value)
}

fn whole(value: &ScalarValue) -> Option<i64> {
    let whole = value
        .data_type()
        .is_integer()
        .then(|| value.cast_to(&DataType::Int64));
    match whole? {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    }
}

/// A frame of DataFusion's.
pub(super) fn of_datafusion(frame: &WindowFrame) -> Result<FrameBounds> {
    let units = match frame.units {
        WindowFrameUnits::Rows => FrameUnits::Rows,
        WindowFrameUnits::Range => FrameUnits::Range,
        WindowFrameUnits::Groups => FrameUnits::Groups,
    };
    let distance = |value: &ScalarValue| match whole(value).map(u64::try_from) {
        Some(Ok(distance)) if units != FrameUnits::Range => Ok(distance),
        _ => unsupported("frames of such distances"),
    };
    let edge = |bound: &WindowFrameBound| -> Result<FrameEdge> {
        Ok(match bound {
            WindowFrameBound::Preceding(value) if value.is_null() => FrameEdge::First,
            WindowFrameBound::Preceding(value) => FrameEdge::Preceding(distance(value)?),
            WindowFrameBound::CurrentRow => FrameEdge::Current,
            WindowFrameBound::Following(value) if value.is_null() => FrameEdge::Last,
            WindowFrameBound::Following(value) => FrameEdge::Following(distance(value)?),
        })
    };
    Ok(FrameBounds::new(
        units,
        edge(&frame.start_bound)?,
        edge(&frame.end_bound)?,
    ))
}

/// A frame of ours with its distances, of rows in the order of a single key of type `key`, if it is one.
pub(super) fn of_own(frame: &Frame, offsets: &[Sql], key: Option<&Type>) -> Result<FrameBounds> {
    let mut offsets = offsets.iter();
    let mut edge = |bound: Bound, side: &str| -> Result<FrameEdge> {
        let offset = if has_offset(bound) {
            offsets.next()
        } else {
            None
        };
        Ok(match (bound, frame.units) {
            (Bound::First, _) => FrameEdge::First,
            (Bound::Current, _) => FrameEdge::Current,
            (Bound::Last, _) => FrameEdge::Last,
            (Bound::Preceding, Units::Range) => {
                FrameEdge::PrecedingBy(distance(offset, key, side)?)
            }
            (Bound::Following, Units::Range) => {
                FrameEdge::FollowingBy(distance(offset, key, side)?)
            }
            (Bound::Preceding, _) => FrameEdge::Preceding(count(offset, side)?),
            (Bound::Following, _) => FrameEdge::Following(count(offset, side)?),
        })
    };
    Ok(FrameBounds {
        units: match frame.units {
            Units::Rows => FrameUnits::Rows,
            Units::Range => FrameUnits::Range,
            Units::Groups => FrameUnits::Groups,
        },
        start: edge(frame.start, "starting")?,
        end: edge(frame.end, "ending")?,
        exclude: match frame.exclude {
            Exclude::None => FrameExclusion::None,
            Exclude::Current => FrameExclusion::Current,
            Exclude::Group => FrameExclusion::Group,
            Exclude::Ties => FrameExclusion::Ties,
        },
    })
}

fn count(offset: Option<&Sql>, side: &str) -> Result<u64> {
    match offset.and_then(number).map(u64::try_from) {
        Some(Ok(count)) => Ok(count),
        Some(Err(_)) => wrong("22013", format!("frame {side} offset must not be negative")),
        None => refused(offset, side),
    }
}

/// A distance between sort keys.
fn distance(offset: Option<&Sql>, key: Option<&Type>, side: &str) -> Result<Distance> {
    let distance = match (offset, key) {
        (Some(Sql::Literal(value, _)), Some(key)) => distance_of(value, key),
        _ => None,
    };
    match distance {
        Some(distance) => Ok(distance),
        None => refused(offset, side),
    }
}

/// What is wrong about a distance that is none.
fn refused<T>(offset: Option<&Sql>, side: &str) -> Result<T> {
    match offset {
        Some(Sql::Literal(value, _)) if value.is_null() => {
            wrong("22004", format!("frame {side} offset must not be null"))
        }
        Some(Sql::Literal(value, _)) if is_negative(value) => wrong(
            "22013",
            "invalid preceding or following size in window function".into(),
        ),
        _ => unsupported("frames of such distances"),
    }
}

/// The error of a value that a window does not take.
///
/// # Errors
/// This one.
pub(super) fn wrong<T>(code: &'static str, message: String) -> Result<T> {
    let e = crate::error::Error::coded(code, message);
    Err(Error::Call(Box::new(e)))
}

fn is_negative(value: &ScalarValue) -> bool {
    if let ScalarValue::IntervalMonthDayNano(Some(by)) = value {
        let parts = [i64::from(by.months), i64::from(by.days), by.nanoseconds];
        return parts.iter().all(|part| *part <= 0) && parts.iter().any(|part| *part < 0);
    }
    let zero = ScalarValue::new_zero(&value.data_type());
    zero.is_ok_and(|zero| *value < zero)
}

fn distance_of(value: &ScalarValue, key: &Type) -> Option<Distance> {
    let found = match (value, key.kind, &key.data) {
        (ScalarValue::Float64(Some(by)), Kind::Float, _) => {
            return (*by >= 0.0).then_some(Distance::Float(*by));
        }
        (ScalarValue::Decimal128(Some(by), _, of), _, DataType::Decimal128(_, scale)) => {
            rescaled(*by, *of, *scale)?
        }
        (value, _, DataType::Decimal128(_, scale)) => rescaled(whole(value)?.into(), 0, *scale)?,
        (ScalarValue::IntervalMonthDayNano(Some(by)), Kind::Int, data) => {
            return interval(*by, data);
        }
        (value, Kind::Int | Kind::Wide, data) if data.is_integer() => whole(value)?.into(),
        _ => return None,
    };
    (found >= 0).then_some(Distance::Whole(found))
}

/// A decimal with so many digits behind its point, with another number of them. What lies within the distance stays the
/// same if digits are cut off that no key has.
fn rescaled(by: i128, from: i8, to: i8) -> Option<i128> {
    let factor = 10i128.checked_pow(u32::from(from.abs_diff(to)))?;
    if from <= to {
        by.checked_mul(factor)
    } else {
        Some(by.div_euclid(factor))
    }
}

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;

/// A distance between moments or times of day.
fn interval(by: arrow::datatypes::IntervalMonthDayNano, data: &DataType) -> Option<Distance> {
    let days = i128::from(by.days);
    let nanoseconds = i128::from(by.nanoseconds);
    let of_unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let (tick, all) = match data {
        // Only the part that is within a day counts, as in PostgreSQL.
        DataType::Time32(unit) | DataType::Time64(unit) => (of_unit(unit), nanoseconds),
        // How long days and months are depends on the zone of the session.
        DataType::Timestamp(unit, Some(_)) if by.months == 0 && by.days == 0 => {
            (of_unit(unit), nanoseconds)
        }
        DataType::Timestamp(unit, None) => (of_unit(unit), days * DAY + nanoseconds),
        DataType::Date32 => (DAY, days * DAY + nanoseconds),
        _ => return None,
    };
    let dated = !matches!(data, DataType::Time32(_) | DataType::Time64(_));
    if dated && by.months != 0 {
        let length = i128::from(by.months) * 30 * DAY + all;
        return (length >= 0).then_some(Distance::Months {
            months: by.months,
            days: by.days,
            nanoseconds: by.nanoseconds,
        });
    }
    // What is less than a unit of the key changes nothing.
    (all >= 0).then_some(Distance::Whole(all / tick))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    fn of(value: &ScalarValue, data: &DataType) -> Option<Distance> {
        distance_of(value, &Type::of(data, true).unwrap())
    }

    #[test]
    fn distances_are_in_the_units_of_keys() {
        let decimal = |by, scale| ScalarValue::Decimal128(Some(by), 20, scale);
        let key = DataType::Decimal128(10, 2);
        assert_eq!(of(&decimal(5, 0), &key), Some(Distance::Whole(500)));
        assert_eq!(of(&decimal(1_259, 4), &key), Some(Distance::Whole(12)));
        assert_eq!(of(&decimal(-1, 4), &key), None);
        assert_eq!(
            of(&ScalarValue::Int64(Some(3)), &key),
            Some(Distance::Whole(300))
        );
        let hours = |hours: i64| {
            let by = IntervalMonthDayNano::new(0, 0, hours * 3_600_000_000_000);
            ScalarValue::IntervalMonthDayNano(Some(by))
        };
        assert_eq!(of(&hours(36), &DataType::Date32), Some(Distance::Whole(1)));
        assert_eq!(of(&hours(-1), &DataType::Date32), None);
        let stamps = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(of(&hours(1), &stamps), Some(Distance::Whole(3_600_000_000)));
        let month = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(1, -3, 0)));
        assert!(matches!(
            of(&month, &stamps),
            Some(Distance::Months { months: 1, .. })
        ));
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(of(&month, &zoned), None);
        assert_eq!(
            of(&ScalarValue::Float64(Some(f64::NAN)), &DataType::Float64),
            None
        );
        assert_eq!(of(&ScalarValue::Int64(None), &DataType::Int64), None);
    }
}
