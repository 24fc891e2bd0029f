//! Kernels of the engine that do the same as functions of dates and timestamps, with the values that they do so for: those of the
//! years 1 to 9999. Functions do the rest: what is infinite, what is out of range, and clocks of other zones than UTC.

use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use engine::{DateField, WholeFunction};

use crate::arguments::nanoseconds;
use crate::temporal::components::{Part, part_of};
use crate::temporal::local::Local;
use crate::truncate;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// More days than are ever added: those of 100,000 years.
const MOST_DAYS: i64 = 36_525_000;

/// What a day counts of a type whose values are shown in UTC; none of other types.
fn day_of(ty: &DataType, clocks: Local) -> Option<i64> {
    match ty {
        DataType::Date32 => Some(1),
        DataType::Timestamp(unit, zone) => {
            let is_shown = |zone: &str| truncate::is_utc(zone) && clocks.is_utc();
            let as_it_is = zone.as_deref().is_none_or(is_shown);
            as_it_is.then(|| DAY / nanoseconds(*unit))
        }
        _ => None,
    }
}

/// The dates or timestamps of the years 1 to 9999, or as many of a type as make no sum overflow; none of other types.
pub fn range(ty: &DataType) -> Option<(i64, i64)> {
    let day = day_of(ty, Local::PLAIN).or_else(|| match ty {
        DataType::Timestamp(unit, _) => Some(DAY / nanoseconds(*unit)),
        _ => None,
    })?;
    let (first, last) = (-719_162i64, 2_932_896i64);
    let ends = first.checked_mul(day).zip(last.checked_mul(day));
    Some(ends.unwrap_or((-(i64::MAX / 2), i64::MAX / 2)))
}

/// `date_trunc` to the part of this name.
pub fn truncated(part: &str, ty: &DataType, clocks: Local) -> Option<WholeFunction> {
    let (day, DataType::Timestamp(unit, _)) = (day_of(ty, clocks)?, ty) else {
        return None;
    };
    Some(match truncate::Part::named(part)? {
        truncate::Part::Nanoseconds(step) => WholeFunction::Bin {
            step: (step / nanoseconds(*unit)).max(1),
            origin: 0,
        },
        // The first of January 1970 was a Thursday.
        truncate::Part::Week => WholeFunction::Bin {
            step: 7 * day,
            origin: -3 * day,
        },
        truncate::Part::Months(step) => WholeFunction::Months {
            step: step.into(),
            day,
        },
        truncate::Part::Years(_) => return None,
    })
}

/// `date_bin` into bins of this length, of microseconds.
pub fn binned(length: IntervalMonthDayNano, origin: i64) -> Option<WholeFunction> {
    let days = i64::from(length.days).checked_mul(DAY / 1_000)?;
    let step = days.checked_add(length.nanoseconds / 1_000)?;
    let (low, high) = range(&DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let is_fit =
        length.months == 0 && (1..=i64::MAX / 4).contains(&step) && (low..=high).contains(&origin);
    is_fit.then_some(WholeFunction::Bin { step, origin })
}

/// `extract` or `date_part` of a field; `to` is the type of its values.
pub fn field(word: &str, ty: &DataType, to: &DataType, clocks: Local) -> Option<WholeFunction> {
    let part = part_of(Some(word), ty).ok()?;
    if part == Part::Epoch {
        return epoch(ty, to);
    }
    let day = day_of(ty, clocks)?;
    let cycle = |unit, length, start, first| WholeFunction::Cycle {
        unit,
        length,
        start,
        first,
    };
    let of_date = |field| WholeFunction::Field { field, day };
    let is_micros = matches!(ty, DataType::Timestamp(TimeUnit::Microsecond, _));
    let is_stamp = matches!(ty, DataType::Timestamp(_, _));
    Some(match (part, to) {
        // Thousands and millions of seconds are the same numbers with fewer digits behind the point.
        (Part::Second | Part::Millisecond, DataType::Decimal128(..))
        | (Part::Microsecond, DataType::Int64)
            if is_micros =>
        {
            cycle(1, day / 1_440, 0, 0)
        }
        (Part::Minute, DataType::Int32) if is_stamp => cycle(day / 1_440, 60, 0, 0),
        (Part::Hour, DataType::Int32) if is_stamp => cycle(day / 24, 24, 0, 0),
        // The first of January 1970 was a Thursday.
        (Part::DayOfWeek, DataType::Int32) => cycle(day, 7, 4, 0),
        (Part::IsoDayOfWeek, DataType::Int32) => cycle(day, 7, 3, 1),
        (Part::Day, DataType::Int32) => of_date(DateField::Day),
        (Part::Month, DataType::Int32) => of_date(DateField::Month),
        (Part::Quarter, DataType::Int32) => of_date(DateField::Quarter),
        (Part::Year, DataType::Int32) => of_date(DateField::Year),
        _ => return None,
    })
}

fn epoch(ty: &DataType, to: &DataType) -> Option<WholeFunction> {
    Some(match (ty, to) {
        (DataType::Date32, DataType::Int64) => WholeFunction::Times(86_400),
        (DataType::Timestamp(unit, _), DataType::Decimal128(_, 6)) => match unit {
            TimeUnit::Second => WholeFunction::Times(1_000_000),
            TimeUnit::Millisecond => WholeFunction::Times(1_000),
            TimeUnit::Microsecond => WholeFunction::Plus(0),
            TimeUnit::Nanosecond => WholeFunction::Floor(1_000),
        },
        (DataType::Timestamp(TimeUnit::Microsecond, _), DataType::Float64) => {
            WholeFunction::Float(1e6)
        }
        _ => return None,
    })
}

/// Whether a word is the field `epoch`.
pub fn is_epoch(word: &str) -> bool {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    part_of(Some(word), &micros).is_ok_and(|part| part == Part::Epoch)
}

/// The sum of a date or timestamp with an interval, or the difference. Dates are moved by whole days only.
pub fn moved(
    by: IntervalMonthDayNano,
    forward: bool,
    ty: &DataType,
    clocks: Local,
) -> Option<WholeFunction> {
    let day = day_of(ty, clocks)?;
    let unit = DAY / day;
    if by.nanoseconds % unit != 0 || *ty == DataType::Date32 && by.months != 0 {
        return None;
    }
    let days = i64::from(by.days);
    let plus = days.checked_mul(day)?.checked_add(by.nanoseconds / unit)?;
    if plus / day > MOST_DAYS || plus / day < -MOST_DAYS {
        return None;
    }
    let sign = if forward { 1 } else { -1 };
    let (months, plus) = (sign * i64::from(by.months), sign * plus);
    Some(match months {
        0 => WholeFunction::Plus(plus),
        _ => WholeFunction::Later { months, day, plus },
    })
}

/// The cast of a date or timestamp to another such type.
pub fn cast(from: &DataType, to: &DataType, clocks: Local) -> Option<WholeFunction> {
    let (own, wanted) = (day_of(from, clocks)?, day_of(to, clocks)?);
    match (from, to) {
        (DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            Some(WholeFunction::Times(wanted))
        }
        (DataType::Timestamp(_, _), DataType::Date32) => Some(WholeFunction::Floor(own)),
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _)) => {
            (own == wanted).then_some(WholeFunction::Plus(0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

    fn zoned(zone: &str) -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()))
    }

    #[test]
    fn clocks_of_other_zones_have_no_kernel() {
        let berlin = Local::new("Europe/Berlin", "ISO", "postgres");
        for (zone, clocks, wanted) in [
            ("UTC", Local::PLAIN, true),
            ("+00:00", Local::PLAIN, true),
            ("+01:00", Local::PLAIN, false),
            ("UTC", berlin, false),
        ] {
            let ty = zoned(zone);
            let found = truncated("hour", &ty, clocks);
            assert_eq!(found.is_some(), wanted, "{zone}");
            let found = field("hour", &ty, &DataType::Int32, clocks);
            assert_eq!(found.is_some(), wanted, "{zone}");
        }
        // A plain timestamp is what it shows, wherever.
        assert!(truncated("month", &MICROS, berlin).is_some());
        let exact = DataType::Decimal128(22, 6);
        let epoch = field("epoch", &zoned("+01:00"), &exact, berlin);
        assert_eq!(epoch, Some(WholeFunction::Plus(0)));
    }

    #[test]
    fn intervals_that_dates_are_moved_by() {
        let by = |months, days, nanoseconds| IntervalMonthDayNano::new(months, days, nanoseconds);
        let date = DataType::Date32;
        let day = by(0, 1, DAY);
        assert_eq!(
            moved(day, true, &date, Local::PLAIN),
            Some(WholeFunction::Plus(2))
        );
        assert_eq!(moved(by(0, 1, 1), true, &date, Local::PLAIN), None);
        assert_eq!(moved(by(1, 0, 0), true, &date, Local::PLAIN), None);
        let minute = by(0, 0, 60 * SECOND);
        let earlier = Some(WholeFunction::Plus(-60_000_000));
        assert_eq!(moved(minute, false, &MICROS, Local::PLAIN), earlier);
        assert_eq!(moved(by(0, 0, 1), true, &MICROS, Local::PLAIN), None);
        assert_eq!(moved(by(0, i32::MAX, 0), true, &MICROS, Local::PLAIN), None);
    }

    #[test]
    fn bins_have_a_length() {
        let by = |months, days, nanoseconds| IntervalMonthDayNano::new(months, days, nanoseconds);
        assert_eq!(binned(by(0, 0, 999), 0), None);
        assert_eq!(binned(by(0, -1, 0), 0), None);
        assert_eq!(binned(by(1, 0, 0), 0), None);
        assert_eq!(binned(by(0, 1, 0), i64::MAX), None);
        let step = 86_400_000_000;
        let wanted = WholeFunction::Bin { step, origin: 7 };
        assert_eq!(binned(by(0, 1, 0), 7), Some(wanted));
    }
}
