//! `to_char` of intervals, which have parts and no place in the calendar: hours may be more than a day has.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion_common::{Result, exec_err};
use messages::Error;

use crate::arguments::strings;
use crate::lengthened::Made;
use crate::patterns::{Field, Letters, Pattern, ROMAN, marked};

/// The texts of intervals by patterns.
///
/// # Errors
/// For a pattern that says nothing of an interval.
pub(super) fn to_char(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let intervals = args[0].as_primitive::<IntervalMonthDayNanoType>();
    let patterns = strings(&args[1])?;
    let mut known: Option<(&str, Pattern)> = None;
    let mut made = Made::new(rows);
    for row in 0..rows {
        if intervals.is_null(row) || patterns.is_null(row) {
            made.null();
            continue;
        }
        let text = patterns.value(row);
        let pattern = match known.take().filter(|(own, _)| *own == text) {
            Some((_, pattern)) => pattern,
            None => match Pattern::parse(text) {
                Ok(pattern) => pattern,
                Err(message) => return exec_err!("to_char: {message}"),
            },
        };
        let of = intervals.value(row);
        let shown = pattern.written(|field, bare| part(field, of, bare))?;
        made.allow(shown.len())?;
        made.put(&shown);
        known = Some((text, pattern));
    }
    Ok(made.finish())
}

/// A field of an interval, without padding if `bare`.
fn part(field: Field, of: IntervalMonthDayNano, bare: bool) -> std::result::Result<String, Error> {
    const SECOND: i64 = 1_000_000_000;
    let (years, month) = (i64::from(of.months / 12), i64::from(of.months % 12));
    let seconds = of.nanoseconds / SECOND;
    let (hours, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    // A sign takes a place of its own.
    let padded = |number: i64, digits: usize| {
        let digits = if bare {
            0
        } else {
            digits + usize::from(number < 0)
        };
        format!("{number:0digits$}")
    };
    Ok(match field {
        Field::Year(_, true) => format!("{},{:03}", years / 1_000, years % 1_000),
        Field::Year(digits @ 1..=3, false) => padded(years % 10_i64.pow(digits as u32), digits),
        Field::Year(digits, false) => padded(years, digits),
        Field::Quarter if month == 0 => String::new(),
        Field::Quarter => ((month - 1) / 3 + 1).to_string(),
        Field::Month => padded(month, 2),
        Field::MonthRoman(_) if years == 0 && month == 0 => String::new(),
        Field::MonthRoman(letters) => {
            let back = match month {
                0 if years > 0 => 0,
                0 => 11,
                ..0 => -1 - month,
                _ => 12 - month,
            };
            let number = ROMAN[back as usize];
            let width = if bare { 0 } else { 4 };
            match letters {
                Letters::Lower => format!("{:width$}", number.to_lowercase()),
                _ => format!("{number:width$}"),
            }
        }
        Field::Day if bare => of.days.to_string(),
        Field::Day => format!("{:02}", of.days),
        Field::Hour24 => padded(hours, 2),
        Field::Hour12 if hours % 12 == 0 => padded(12, 2),
        Field::Hour12 => padded(hours % 12, 2),
        Field::Minute => padded(minute, 2),
        Field::Second => padded(second, 2),
        Field::SecondOfDay => seconds.to_string(),
        Field::Fraction(digits @ 1..=9) => {
            let fraction = of.nanoseconds % SECOND / 10_i64.pow(9 - digits);
            format!("{fraction:0width$}", width = digits as usize)
        }
        Field::HalfDay(lower, points) => {
            let half = if hours % 24 >= 12 { "PM" } else { "AM" };
            marked(half, lower, points)
        }
        _ => {
            return Err(Error::coded(
                "22007",
                "invalid format specification for an interval value: intervals are not tied to specific calendar dates",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_written_as_postgresql_writes_them() {
        let of = |months: i32, days: i32, seconds: f64| {
            IntervalMonthDayNano::new(months, days, (seconds * 1e9) as i64)
        };
        let hours = |hours: f64| of(0, 0, hours * 3_600.0);
        for (interval, pattern, wanted) in [
            (of(0, 0, 54_132.0), "HH24:MI:SS", "15:02:12"),
            (
                of(0, 3, 93_906.7),
                "DD HH24 HH12 HH MI SS MS US AM",
                "03 26 02 02 05 06 700 700000 AM",
            ),
            (of(26, 0, 0.0), "YYYY MM", "0002 02"),
            (of(0, -1, -7_380.0), "DD HH24:MI", "-1 -02:-03"),
            (hours(100.0), "HH24 FMHH12", "100 4"),
            (of(168, 0, 0.0), "YY Y YYY Y,YYY", "14 4 014 0,014"),
            (of(2, 1, 0.0), "FMDD FMMM FMHH24 DDth", "1 2 0 01st"),
            (of(-27, 0, 0.0), "YYYY MM", "-0002 -03"),
            (hours(130.0), "HH", "10"),
            (of(3, 0, 0.0), "RM|rm|FMRM", "III |iii |III"),
            (of(-3, 0, 0.0), "RM", "X   "),
            (of(12, 0, 0.0), "RM", "XII "),
            (of(0, 1, 0.0), "RM", ""),
        ] {
            let own = Pattern::parse(pattern).unwrap();
            let found = own.written(|field, bare| part(field, interval, bare));
            assert_eq!(found.unwrap(), wanted, "{pattern}");
        }
        let own = Pattern::parse("Mon").unwrap();
        assert!(
            own.written(|field, bare| part(field, hours(1.0), bare))
                .is_err()
        );
    }
}
