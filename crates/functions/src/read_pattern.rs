//! `to_date` and `to_timestamp` of a text and a pattern, as PostgreSQL has them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Date32Type};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;

use crate::arguments::{UTC, is_text};
use crate::own::Own;
use crate::pattern_parts::{Read, number, out_of_range, running, word, wrong};
use crate::patterns::{Field, Pattern, Piece};
use crate::read_dates;
use crate::temporal::local::Local;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        "to_date",
        |types| match types {
            [text, pattern] if is_text(text) && is_text(pattern) => Ok(vec![DataType::Utf8; 2]),
            _ => plan_err!("to_date takes a text and a pattern such as 'YYYY-MM-DD'"),
        },
        |_| Ok(DataType::Date32),
        |args, _| {
            let moments = moments(args)?.into_iter();
            let days = moments.map(|at| at.map(|at| Date32Type::from_naive_date(at.at.date())));
            Ok(Arc::new(days.collect::<Date32Array>()))
        },
    )]
}

/// The instants that texts mean by patterns; they are in the zone of the session unless they have one.
pub(super) fn to_timestamp(args: &[ArrayRef]) -> Result<ArrayRef> {
    let clocks = Local::now();
    let mut found = Vec::with_capacity(args[0].len());
    for at in moments(args)? {
        let Some(at) = at else {
            found.push(None);
            continue;
        };
        let micros = at.at.and_utc().timestamp_micros();
        let instant = if at.zoned {
            Some(micros)
        } else {
            clocks.instant(micros)
        };
        match instant {
            Some(instant) => found.push(Some(instant)),
            None => return exec_err!("timestamp out of range"),
        }
    }
    Ok(Arc::new(
        TimestampMicrosecondArray::from(found).with_timezone(UTC),
    ))
}

/// What a text means.
#[derive(Clone, Copy, Debug)]
struct Found {
    at: NaiveDateTime,
    /// Whether it names a zone; then `at` is in UTC.
    zoned: bool,
}

fn moments(args: &[ArrayRef]) -> Result<Vec<Option<Found>>> {
    let (texts, patterns): (&StringArray, &StringArray) =
        (args[0].as_string(), args[1].as_string());
    let mut known: HashMap<&str, Pattern> = HashMap::new();
    let mut found = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        if texts.is_null(row) || patterns.is_null(row) {
            found.push(None);
            continue;
        }
        let (text, pattern) = (texts.value(row), patterns.value(row));
        if !known.contains_key(pattern) {
            match Pattern::parse(pattern) {
                Ok(parsed) => known.insert(pattern, parsed),
                Err(message) => return exec_err!("{message}"),
            };
        }
        match read(&known[pattern].0, text) {
            Ok(at) => found.push(Some(at)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(found)
}

/// What was read of a text.
#[derive(Default)]
struct Parts {
    date: read_dates::Parts,
    hour: Option<i64>,
    half: Option<bool>,
    minute: i64,
    second: i64,
    second_of_day: Option<i64>,
    micros: i64,
    /// Whether it names a zone.
    zoned: bool,
    zone_hours: i64,
    zone_minutes: i64,
}

fn read(pieces: &[Piece], text: &str) -> Read<Found> {
    let mut parts = Parts::default();
    let mut rest = text.trim_start();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(plain) => {
                for c in plain.chars() {
                    rest = beyond(rest, c);
                }
            }
            Piece::Field(field, bare, ordinal) => {
                rest = rest.trim_start();
                if rest.is_empty() {
                    break;
                }
                // Digits that run into those of the next field are cut at their number, but for those of `FM`.
                let next = pieces.get(at + 1);
                let runs_on =
                    !bare && matches!(next, Some(Piece::Field(next, _, _)) if next.is_number());
                rest = parts.take(*field, rest, runs_on, text)?;
                if ordinal.is_there() {
                    rest = rest.get(2..).unwrap_or_default();
                }
            }
        }
    }
    let zoned = parts.zoned;
    let at = parts.moment(text)?;
    Ok(Found { at, zoned })
}

/// What follows a character of the pattern: a separator stands for any, or for none, and another for any character.
fn beyond(rest: &str, c: char) -> &str {
    let separates = |c: char| !c.is_alphanumeric();
    let mut others = rest.chars();
    match others.next() {
        Some(found) if !separates(c) || separates(found) && found != '+' && found != '-' => {
            others.as_str()
        }
        Some('-' | '+') if separates(c) && !c.is_whitespace() => others.as_str(),
        _ => rest,
    }
}

impl Parts {
    /// Reads a field of the pattern from the front of the text; returns the rest of the text.
    fn take<'t>(
        &mut self,
        field: Field,
        rest: &'t str,
        runs_on: bool,
        text: &str,
    ) -> Read<&'t str> {
        match self.date.take(field, rest, runs_on)? {
            Some(after) => Ok(after),
            None if matches!(field, Field::Hour24 | Field::Hour12) => {
                self.take_hour(field == Field::Hour12, rest, runs_on)
            }
            None => self.take_clock(field, rest, runs_on, text),
        }
    }

    /// The same of an hour, of a clock that shows twelve or all.
    fn take_hour<'t>(&mut self, twelve: bool, rest: &'t str, runs_on: bool) -> Read<&'t str> {
        let name = if twelve { "HH12" } else { "HH24" };
        let (hour, after) = running(rest, 2, name, runs_on)?;
        if twelve {
            if !(1..=12).contains(&hour) {
                return Err(wrong(format!(
                    "hour \"{hour}\" is invalid for the 12-hour clock"
                )));
            }
            self.half = self.half.or(Some(false));
        }
        Ok(keep(&mut self.hour, (hour, after)))
    }

    /// The same of the fields of a clock, of eras and of zones.
    fn take_clock<'t>(
        &mut self,
        field: Field,
        rest: &'t str,
        runs_on: bool,
        text: &str,
    ) -> Read<&'t str> {
        let digits = |most: usize, name: &str| running(rest, most, name, runs_on);
        let rest = match field {
            Field::HalfDay(_, points) => {
                let wanted = if points {
                    ["A.M.", "P.M."]
                } else {
                    ["AM", "PM"]
                };
                let (at, after) = one_of(rest, &wanted)?;
                self.half = Some(at == 1);
                after
            }
            Field::Era(_, points) => {
                let wanted = if points {
                    ["A.D.", "B.C."]
                } else {
                    ["AD", "BC"]
                };
                let (at, after) = one_of(rest, &wanted)?;
                self.date.before = at == 1;
                after
            }
            Field::Minute => self.small(digits(2, "MI")?, |parts| &mut parts.minute),
            Field::Second => self.small(digits(2, "SS")?, |parts| &mut parts.second),
            Field::SecondOfDay => keep(&mut self.second_of_day, digits(5, "SSSS")?),
            Field::Fraction(width) => {
                let (_, after) = number(rest, width as usize, "US")?;
                let written = &rest[..rest.len() - after.len()];
                let scale = 10_i64.pow(6_u32.saturating_sub(written.len() as u32));
                let fraction: i64 = written.parse().map_err(|_| out_of_range(text))?;
                self.micros = fraction.saturating_mul(scale);
                after
            }
            Field::ZoneHours | Field::Offset => {
                let (sign, digits) = match rest.strip_prefix('-') {
                    Some(digits) => (-1, digits),
                    None => (1, rest.strip_prefix('+').unwrap_or(rest)),
                };
                let (hours, after) = number(digits, 2, "TZH")?;
                self.zone_hours = sign * hours;
                self.zoned = true;
                match after.strip_prefix(':') {
                    Some(minutes) if field == Field::Offset => {
                        self.small(number(minutes, 2, "OF")?, |parts| &mut parts.zone_minutes)
                    }
                    _ => after,
                }
            }
            Field::ZoneMinutes => {
                self.zoned = true;
                self.small(digits(2, "TZM")?, |parts| &mut parts.zone_minutes)
            }
            other => {
                return Err(Error::unsupported(format!(
                    "{other:?} is not supported where a text is read by a pattern"
                )));
            }
        };
        Ok(rest)
    }

    fn small<'t>(
        &mut self,
        (value, after): (i64, &'t str),
        at: fn(&mut Parts) -> &mut i64,
    ) -> &'t str {
        *at(self) = value;
        after
    }

    /// The moment, in UTC where it names a zone.
    ///
    /// # Errors
    /// If a part is out of its range.
    fn moment(self, text: &str) -> Read<NaiveDateTime> {
        let date = self.date.date(text)?;
        self.clock(date).ok_or_else(|| out_of_range(text))
    }

    fn clock(self, date: NaiveDate) -> Option<NaiveDateTime> {
        let small = |value: i64| u32::try_from(value).ok();
        let hour = match (self.hour.unwrap_or(0), self.half) {
            (12, Some(false)) => 0,
            (hour @ 1..12, Some(true)) => hour + 12,
            (hour, _) => hour,
        };
        let (date, hour) = match hour {
            24 if self.minute + self.second + self.micros == 0 => {
                (date.checked_add_days(Days::new(1))?, 0)
            }
            hour => (date, hour),
        };
        let time = match self.second_of_day {
            Some(second) => NaiveTime::from_num_seconds_from_midnight_opt(small(second)?, 0)?,
            None => {
                NaiveTime::from_hms_opt(small(hour)?, small(self.minute)?, small(self.second)?)?
            }
        };
        let sign = if self.zone_hours < 0 { -1 } else { 1 };
        let zone = self.zone_hours * 60 + sign * self.zone_minutes;
        let at = date.and_time(time) + chrono::Duration::microseconds(self.micros);
        at.checked_sub_signed(chrono::Duration::minutes(zone))
    }
}

fn keep<'t>(place: &mut Option<i64>, (value, after): (i64, &'t str)) -> &'t str {
    *place = Some(value);
    after
}

/// Which of `words` stands at the start of `rest`, and what follows.
fn one_of<'t>(rest: &'t str, words: &[&str]) -> Read<(usize, &'t str)> {
    for (at, wanted) in words.iter().enumerate() {
        let start = rest.get(..wanted.len());
        if start.is_some_and(|start| start.eq_ignore_ascii_case(wanted)) {
            return Ok((at, &rest[wanted.len()..]));
        }
    }
    Err(wrong(format!(
        "invalid value \"{}\" for \"{}\"",
        word(rest),
        words.join("\" or \"")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, pattern: &str) -> String {
        let pattern = Pattern::parse(pattern).unwrap();
        match read(&pattern.0, text) {
            Ok(found) => found.at.to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn texts_are_read_by_patterns() {
        for (text, pattern, wanted) in [
            ("2020-01-31", "YYYY-MM-DD", "2020-01-31 00:00:00"),
            ("20200131123456", "YYYYMMDDHH24MISS", "2020-01-31 12:34:56"),
            ("31/1/2020", "DD/MM/YYYY", "2020-01-31 00:00:00"),
            ("05 Dec 2000", "DD Mon YYYY", "2000-12-05 00:00:00"),
            ("december 5,  99", "Month DD, YY", "1999-12-05 00:00:00"),
            ("Friday 01 May 69", "Day DD Month YY", "2069-05-01 00:00:00"),
            (
                "12:30 am 1/2/3",
                "HH12:MI AM DD/MM/YYYY",
                "0003-02-01 00:30:00",
            ),
            ("2020 366", "YYYY DDD", "2020-12-31 00:00:00"),
            ("1:02:03.5 pm", "HH:MI:SS.US PM", "0000-01-01 13:02:03.500"),
            (
                "2000-01-01 10:00 +02:30",
                "YYYY-MM-DD HH24:MI TZH:TZM",
                "2000-01-01 07:30:00",
            ),
            (
                "2000-01-01 10:00 -02",
                "YYYY-MM-DD HH24:MI TZH",
                "2000-01-01 12:00:00",
            ),
            ("44-03-15 BC", "YYYY-MM-DD BC", "-0043-03-15 00:00:00"),
            ("1985 the 9th", "YYYY \"the\" DDth", "1985-01-09 00:00:00"),
            (
                "2011-12-18 24:00",
                "YYYY-MM-DD HH24:MI",
                "2011-12-19 00:00:00",
            ),
            (
                "2011-02-29",
                "YYYY-MM-DD",
                "date/time field value out of range: \"2011-02-29\"",
            ),
            (
                "2011-xx-29",
                "YYYY-MM-DD",
                "invalid value \"xx-29\" for \"MM\"",
            ),
            ("2011 Foo", "YYYY Mon", "invalid value \"Foo\" for \"Mon\""),
            (
                "13:00 am",
                "HH12:MI AM",
                "hour \"13\" is invalid for the 12-hour clock",
            ),
        ] {
            assert_eq!(shown(text, pattern), wanted, "{text} {pattern}");
        }
        assert!(shown("2011 CET", "YYYY TZ").contains("not supported"));
    }
}
