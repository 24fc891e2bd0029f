//! The calendar: days and their dates, and how dates and times are written.
//!
//! It is that of Gregory, also for the time before him. Years are counted as astronomers do: the year 0 is the one
//! before the year 1, which people call 1 BC.

use std::fmt::Write as _;

/// The number, from 1970 on, of the first day that there is: the first of PostgreSQL's, 24 November 4714 BC.
pub(crate) const FIRST_DAY: i64 = -2_440_588;

/// And of the last: 31 December 262142, the last that all parts of the engine know.
pub(crate) const LAST_DAY: i64 = 95_026_236;

/// The date of a day that is counted from 1970: year, month and day.
pub(crate) fn civil(day: i64) -> (i64, i64, i64) {
    // From the first of March of the year 0 on, so that the day of a leap year is the last of a year.
    let from_march = day + 719_468;
    let era = from_march.div_euclid(146_097);
    let of_era = from_march.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, date)
}

/// The number of the day of a date; the month is 1 to 12, the day may be any.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = (month + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// How many days a month has.
pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The day of the week, from 0 for Sunday on.
pub(crate) fn weekday(day: i64) -> i64 {
    // The first of January 1970 was a Thursday.
    (day + 4).rem_euclid(7)
}

/// The year and the number of the week of a day by ISO 8601, whose weeks begin on Mondays.
pub(crate) fn iso_week(day: i64) -> (i64, i64) {
    let thursday = day - (day + 3).rem_euclid(7) + 3;
    let (year, _, _) = civil(thursday);
    (year, (thursday - days(year, 1, 1)) / 7 + 1)
}

/// The year as people count it, and whether it is before the year 1.
pub(crate) fn era(year: i64) -> (i64, bool) {
    if year > 0 {
        (year, false)
    } else {
        (1 - year, true)
    }
}

/// Writes a date: `1999-01-08`, `0044-03-15 BC`.
pub(crate) fn date(day: i64, out: &mut String) {
    let (year, month, date) = civil(day);
    let (year, before) = era(year);
    let _ = write!(out, "{year:04}-{month:02}-{date:02}");
    if before {
        out.push_str(" BC");
    }
}

/// Writes a time of a day in nanoseconds: `12:00:00.5`.
pub(crate) fn time(nanoseconds: i64, out: &mut String) {
    let (seconds, fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let _ = write!(
        out,
        "{:02}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    );
    if fraction != 0 {
        let digits = format!(".{fraction:09}");
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// Writes how far a zone is from UTC, in seconds to the east: `+01`, `-03:30`.
pub(crate) fn offset(east: i64, out: &mut String) {
    let sign = if east < 0 { '-' } else { '+' };
    let all = east.abs();
    let _ = write!(out, "{sign}{:02}", all / 3_600);
    if all % 3_600 != 0 {
        let _ = write!(out, ":{:02}", all / 60 % 60);
    }
    if all % 60 != 0 {
        let _ = write!(out, ":{:02}", all % 60);
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate};

    use super::*;

    #[test]
    fn days_are_those_of_chrono() {
        let first = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for day in (-1_000_000..1_000_000).step_by(37) {
            let wanted = first + chrono::TimeDelta::days(day);
            let (year, month, date) = civil(day);
            assert_eq!(
                (year, month, date),
                (
                    wanted.year().into(),
                    wanted.month().into(),
                    wanted.day().into()
                ),
                "{day}"
            );
            assert_eq!(days(year, month, date), day);
            assert_eq!(
                weekday(day),
                i64::from(wanted.weekday().num_days_from_sunday())
            );
            let week = wanted.iso_week();
            assert_eq!(iso_week(day), (week.year().into(), week.week().into()));
        }
    }

    #[test]
    fn the_first_and_the_last_day() {
        assert_eq!(civil(FIRST_DAY), (-4713, 11, 24));
        assert_eq!(civil(LAST_DAY), (262_142, 12, 31));
        let mut text = String::new();
        date(FIRST_DAY, &mut text);
        assert_eq!(text, "4714-11-24 BC");
    }
}
