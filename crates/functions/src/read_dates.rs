//! The dates that fields of a pattern say: by months and their days, by days or weeks of the year, or by ISO weeks, as in PostgreSQL.
//! A part that is zero is one that is not said.

use chrono::{Datelike, Days, NaiveDate};

use crate::pattern_parts::{Read, number, out_of_range, running, word, wrong};
use crate::patterns::{DAYS, Field, MONTHS, ROMAN};

/// What was read of a date.
#[derive(Debug, Default)]
pub(super) struct Parts {
    year: i64,
    /// Whether the year has two digits at most, so that a century goes with it.
    short: bool,
    /// Whether it is one before Christ.
    pub(super) before: bool,
    century: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    week: i64,
    week_of_month: i64,
    /// From Sunday on, which is 1.
    weekday: i64,
    julian: i64,
    /// Whether the fields are those of ISO weeks, or of months; none if no field says it.
    iso: Option<bool>,
}

impl Parts {
    /// Reads a field of the pattern from the front of the text; returns the rest of the text, or none if the field is none of a
    /// date.
    ///
    /// # Errors
    /// If the text has no such value, and if one is said twice or in two conventions.
    pub(super) fn take<'t>(
        &mut self,
        field: Field,
        rest: &'t str,
        runs_on: bool,
    ) -> Read<Option<&'t str>> {
        self.convention(field)?;
        let digits = |most: usize, name: &'static str| {
            running(rest, most, name, runs_on).map(|(value, after)| (name, value, after))
        };
        let (place, read) = match field {
            Field::Year(_, true) => {
                let read = with_comma(rest)?;
                self.short = false;
                (&mut self.year, read)
            }
            Field::Year(width, false) | Field::IsoYear(width) => {
                let (name, year, after) = digits(width, year_name(field, width))?;
                self.short = width <= 2;
                let written = rest.len() - after.len();
                let whole = width == 4 || written >= 4;
                let year = if whole { year } else { near_2020(year) };
                (&mut self.year, (name, year, after))
            }
            Field::Century => (&mut self.century, digits(2, "CC")?),
            Field::Month => (&mut self.month, digits(2, "MM")?),
            Field::MonthName(_) => (&mut self.month, named(rest, &MONTHS, None, "Month")?),
            Field::MonthShort(_) => (&mut self.month, named(rest, &MONTHS, Some(3), "Mon")?),
            Field::MonthRoman(_) => {
                let (name, back, after) = named(rest, &ROMAN, None, "RM")?;
                (&mut self.month, (name, 13 - back, after))
            }
            Field::Day => (&mut self.day, digits(2, "DD")?),
            Field::DayOfYear => (&mut self.day_of_year, digits(3, "DDD")?),
            Field::IsoDayOfYear => (&mut self.day_of_year, digits(3, "IDDD")?),
            Field::Week => (&mut self.week, digits(2, "WW")?),
            Field::IsoWeek => (&mut self.week, digits(2, "IW")?),
            Field::WeekOfMonth => (&mut self.week_of_month, digits(1, "W")?),
            Field::DayOfWeek => (&mut self.weekday, digits(1, "D")?),
            Field::IsoDayOfWeek => {
                let (name, day, after) = digits(1, "ID")?;
                // From Monday on.
                let day = if day >= 7 { 1 } else { day + 1 };
                (&mut self.weekday, (name, day, after))
            }
            Field::DayName(_) => (&mut self.weekday, named(rest, &DAYS, None, "Day")?),
            Field::DayShort(_) => (&mut self.weekday, named(rest, &DAYS, Some(3), "Dy")?),
            Field::Julian => (&mut self.julian, digits(usize::MAX, "J")?),
            // It is read, and says nothing that the month does not.
            Field::Quarter => return digits(1, "Q").map(|(_, _, after)| Some(after)),
            _ => return Ok(None),
        };
        let (name, value, after) = read;
        if *place != 0 && *place != value {
            return Err(wrong(format!(
                "conflicting values for \"{name}\" field in formatting string"
            )));
        }
        *place = value;
        Ok(Some(after))
    }

    fn convention(&mut self, field: Field) -> Read<()> {
        let iso = match field {
            Field::IsoYear(_) | Field::IsoWeek | Field::IsoDayOfYear | Field::IsoDayOfWeek => true,
            Field::Year(..)
            | Field::Month
            | Field::MonthName(_)
            | Field::MonthShort(_)
            | Field::MonthRoman(_)
            | Field::Day
            | Field::DayOfYear
            | Field::Week
            | Field::WeekOfMonth
            | Field::DayOfWeek => false,
            _ => return Ok(()),
        };
        if self.iso.is_some_and(|own| own != iso) {
            return Err(wrong(
                "invalid combination of date conventions: do not mix Gregorian and ISO week date conventions in a formatting template",
            ));
        }
        self.iso = Some(iso);
        Ok(())
    }

    /// The date that the parts mean, of `text`.
    ///
    /// # Errors
    /// If there is none, and if a day of the year has no year.
    pub(super) fn date(&self, text: &str) -> Read<NaiveDate> {
        let found = self.found(self.day_of_year()?);
        found.ok_or_else(|| out_of_range(text))
    }

    /// The day of the year, which a week of the year says, too.
    fn day_of_year(&self) -> Read<i64> {
        let of_week = self.week != 0 && self.iso != Some(true);
        let day = if of_week {
            (self.week - 1).saturating_mul(7).saturating_add(1)
        } else {
            self.day_of_year
        };
        let missing = self.year == 0 && !self.before;
        if day != 0 && missing && self.is_first() {
            return Err(wrong(
                "cannot calculate day of year without year information",
            ));
        }
        Ok(day)
    }

    /// Whether the parts leave the month or its day open.
    fn is_first(&self) -> bool {
        self.month <= 1 || self.day <= 1 && self.week_of_month <= 1
    }

    /// The year, of which the one before the first is 0.
    fn year(&self) -> i64 {
        let century = if self.before {
            -self.century
        } else {
            self.century
        };
        match (self.year, self.century) {
            (0, 0) => 0,
            (0, _) if century >= 0 => (century - 1).saturating_mul(100).saturating_add(1),
            (0, _) => century.saturating_mul(100).saturating_add(1),
            (year, 1..) if self.short => match (year % 100, century) {
                (0, century) => {
                    let first = i64::from(century < 0);
                    century.saturating_mul(100).saturating_add(first)
                }
                (year, ..0) => (century + 1).saturating_mul(100).saturating_add(1 - year),
                (year, _) => (century - 1).saturating_mul(100).saturating_add(year),
            },
            (year, _) if self.before => 1 - year,
            (year, _) => year,
        }
    }

    fn found(&self, day_of_year: i64) -> Option<NaiveDate> {
        let (mut year, mut month, mut day) = (self.year(), 1, 1);
        let mut put = |date: NaiveDate| {
            (year, month, day) = (date.year().into(), date.month().into(), date.day().into());
        };
        if self.julian != 0 {
            // The first of January of the year 1 is the first day of the calendar here.
            let days = i32::try_from(self.julian - 1_721_425).ok()?;
            put(NaiveDate::from_num_days_from_ce_opt(days)?);
        } else if self.week != 0 && self.iso == Some(true) {
            let within = if self.weekday == 1 {
                6
            } else {
                (self.weekday - 2).max(0)
            };
            put(later(
                first_week(self.year())?,
                self.week
                    .checked_sub(1)?
                    .checked_mul(7)?
                    .checked_add(within)?,
            )?);
        }
        if self.week_of_month != 0 {
            day = (self.week_of_month - 1).checked_mul(7)?.checked_add(1)?;
        }
        if self.day != 0 {
            day = self.day;
        }
        if self.month != 0 {
            month = self.month;
        }
        if day_of_year != 0 && (month <= 1 || day <= 1) {
            if self.iso == Some(true) {
                return later(first_week(year)?, day_of_year.checked_sub(1)?);
            }
            let of_year = NaiveDate::from_yo_opt(
                i32::try_from(year).ok()?,
                u32::try_from(day_of_year).ok()?,
            )?;
            if month <= 1 {
                month = of_year.month().into();
            }
            if day <= 1 {
                day = of_year.day().into();
            }
        }
        let [month, day] = [month, day].map(u32::try_from);
        NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month.ok()?, day.ok()?)
    }
}

/// A year of up to three digits that is meant by its last.
fn near_2020(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// The Monday of the first ISO week of a year: that which has the fourth of January.
fn first_week(year: i64) -> Option<NaiveDate> {
    let fourth = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, 1, 4)?;
    fourth.checked_sub_days(Days::new(fourth.weekday().num_days_from_monday().into()))
}

fn later(date: NaiveDate, days: i64) -> Option<NaiveDate> {
    let count = Days::new(days.unsigned_abs());
    if days < 0 {
        date.checked_sub_days(count)
    } else {
        date.checked_add_days(count)
    }
}

fn year_name(field: Field, width: usize) -> &'static str {
    match (field, width) {
        (Field::IsoYear(_), 4) => "IYYY",
        (Field::IsoYear(_), 3) => "IYY",
        (Field::IsoYear(_), 2) => "IY",
        (Field::IsoYear(_), _) => "I",
        (_, 4) => "YYYY",
        (_, 3) => "YYY",
        (_, 2) => "YY",
        _ => "Y",
    }
}

/// A field's name, its value, and what follows it.
type Value<'t> = (&'static str, i64, &'t str);

/// `2,024`: thousands, and the rest of the year.
fn with_comma(rest: &str) -> Read<Value<'_>> {
    let refused = || wrong("invalid input string for \"Y,YYY\"");
    let (thousands, after) = number(rest, usize::MAX, "Y,YYY").map_err(|_| refused())?;
    let after = after.strip_prefix(',').ok_or_else(refused)?;
    let (year, after) = number(after, 3, "Y,YYY").map_err(|_| refused())?;
    let whole = thousands
        .checked_mul(1_000)
        .and_then(|all| all.checked_add(year));
    Ok(("Y,YYY", whole.ok_or_else(refused)?, after))
}

/// Which of the names stands at the start of a text, from 1 on; of each so many letters, or all.
fn named<'t>(
    rest: &'t str,
    names: &[&str],
    letters: Option<usize>,
    wanted: &'static str,
) -> Read<Value<'t>> {
    for (at, name) in (1..).zip(names) {
        let name = letters
            .and_then(|letters| name.get(..letters))
            .unwrap_or(name);
        if let Some((start, after)) = rest.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            return Ok((wanted, at, after));
        }
    }
    Err(wrong(format!(
        "invalid value \"{}\" for \"{wanted}\"",
        word(rest)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::{Pattern, Piece};

    fn shown(text: &str, pattern: &str) -> String {
        let pattern = Pattern::parse(pattern).unwrap();
        let mut parts = Parts::default();
        let mut rest = text;
        for piece in &pattern.0 {
            if let Piece::Field(field, ..) = piece {
                match parts.take(*field, rest.trim_start(), false) {
                    Ok(after) => rest = after.unwrap(),
                    Err(e) => return e.to_string(),
                }
            }
        }
        match parts.date(text) {
            Ok(date) => date.to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn dates_are_those_of_postgresql() {
        for (text, pattern, wanted) in [
            ("2024 05", "IYYY IW", "2024-01-29"),
            ("24 05 3", "IY IW ID", "2024-01-31"),
            ("024 05 3", "IYY IW ID", "2024-01-31"),
            ("4 05 3", "I IW ID", "2004-01-28"),
            ("2024 054", "IYYY IDDD", "2024-02-23"),
            ("2024 0 1", "IYYY IW ID", "2024-01-01"),
            ("2024 53 1", "IYYY IW ID", "2024-12-30"),
            ("2020 53 7", "IYYY IW ID", "2021-01-03"),
            ("2024 5 8", "IYYY IW ID", "2024-02-04"),
            ("2024 05 Tuesday", "IYYY IW Day", "2024-01-30"),
            ("2024 05 tue", "IYYY IW dy", "2024-01-30"),
            ("2024 371", "IYYY IDDD", "2025-01-05"),
            ("05 3", "IW ID", "0000-02-02"),
            ("2024 05 3", "YYYY WW D", "2024-01-29"),
            ("2024 3 2", "YYYY MM W", "2024-03-08"),
            ("2024 2", "YYYY Q", "2024-01-01"),
            ("2460000", "J", "2023-02-24"),
            ("2460000 05", "J DD", "2023-02-05"),
            ("2460000 05", "J MM", "2023-05-24"),
            ("21", "CC", "2001-01-01"),
            ("21 05", "CC YY", "2005-01-01"),
            ("2,024 05 03", "Y,YYY MM DD", "2024-05-03"),
            ("520 05 03", "YYY MM DD", "1520-05-03"),
            ("519 05 03", "YYY MM DD", "2519-05-03"),
            ("2024 00 00", "YYYY MM DD", "2024-01-01"),
            ("2024 366 5", "YYYY DDD MM", "2024-05-31"),
            (
                "5",
                "DDD",
                "cannot calculate day of year without year information",
            ),
            (
                "2024 2025",
                "YYYY YYYY",
                "conflicting values for \"YYYY\" field in formatting string",
            ),
            ("foo 5", "Day DD", "invalid value \"foo\" for \"Day\""),
        ] {
            assert_eq!(shown(text, pattern), wanted, "{text} {pattern}");
        }
        let mixed = shown("2024 5", "YYYY IW");
        assert!(mixed.contains("date conventions"), "{mixed}");
    }
}
