//! Intervals from texts, in all forms that PostgreSQL reads: in words, by the SQL standard and by ISO 8601.

use arrow::datatypes::IntervalMonthDayNano;

use crate::temporal::fields::Fields;
use crate::temporal::pieces::{Piece, Shape, fraction, pieces};
use crate::temporal::units::{Unit, unit};
use crate::temporal::words::is_known;
use crate::temporal::wrong::Wrong;

const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR;

/// An interval while it is put together.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    nanoseconds: i128,
    /// Units that have been named, so that none is twice.
    named: Vec<Unit>,
    clock: bool,
}

/// A number: what stands before the point, and its part behind it, with its sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i128,
    part: f64,
}

fn number(text: &str) -> Option<Result<Number, Wrong>> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = body.split_once('.').unwrap_or((body, ""));
    if whole.is_empty() && rest.is_empty() {
        return None;
    }
    if !whole
        .bytes()
        .chain(rest.bytes())
        .all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let whole: i128 = match whole {
        "" => 0,
        whole => match whole.parse::<i64>() {
            Ok(value) => value.into(),
            // The least of these numbers, too.
            Err(_) if negative && whole.trim_start_matches('0') == "9223372036854775808" => 1 << 63,
            Err(_) => return Some(Err(Wrong::IntervalField)),
        },
    };
    let part: f64 = format!("0.{rest}").parse().unwrap_or(0.0);
    let (whole, part) = if negative {
        (-whole, -part)
    } else {
        (whole, part)
    };
    Some(Ok(Number { whole, part }))
}

/// A part of a unit of so many nanoseconds, to the microsecond.
fn part_of(part: f64, nanoseconds: i128) -> i128 {
    let micros = part * (nanoseconds / 1_000) as f64;
    let whole = micros.trunc();
    let rest = micros - whole;
    let up = if rest > 0.5 {
        1
    } else if rest < -0.5 {
        -1
    } else {
        0
    };
    (whole as i128 + up) * 1_000
}

impl Sum {
    fn add(&mut self, number: Number, unit: Unit) -> Result<(), Wrong> {
        let again = match unit {
            // A quarter is three months.
            Unit::Quarter => Unit::Month,
            unit => unit,
        };
        let parted = unit == Unit::Second && number.part != 0.0;
        let below = [Unit::Millisecond, Unit::Microsecond];
        if self.named.contains(&again) || self.clock && is_of_clock(unit) {
            return Err(Wrong::Syntax);
        }
        if parted && self.named.iter().any(|own| below.contains(own)) {
            return Err(Wrong::Syntax);
        }
        self.named.push(again);
        if parted {
            self.named.extend(below);
        }
        let Number { whole, part } = number;
        match unit {
            Unit::Microsecond => {
                self.nanoseconds += (whole + part.round_ties_even() as i128) * 1_000;
            }
            Unit::Millisecond => self.time(number, SECOND / 1_000),
            Unit::Second => self.time(number, SECOND),
            Unit::Minute => self.time(number, MINUTE),
            Unit::Hour => self.time(number, HOUR),
            Unit::Day => self.time_of_days(whole, part, 1),
            Unit::Week => self.time_of_days(whole, part, 7),
            Unit::Month => {
                self.months += whole;
                self.time_of_days(0, part, 30);
            }
            Unit::Quarter => return Err(Wrong::Syntax),
            Unit::Year => self.years(number, 1),
            Unit::Decade => self.years(number, 10),
            Unit::Century => self.years(number, 100),
            Unit::Millennium => self.years(number, 1_000),
        }
        Ok(())
    }

    fn time(&mut self, number: Number, unit: i128) {
        self.nanoseconds += number.whole * unit + part_of(number.part, unit);
    }

    /// Whole units of so many days, and a part of one, whose rest becomes time.
    fn time_of_days(&mut self, whole: i128, part: f64, days: i128) {
        self.days += whole * days;
        let part = part * days as f64;
        self.days += part.trunc() as i128;
        self.nanoseconds += part_of(part.fract(), DAY);
    }

    fn years(&mut self, number: Number, years: i128) {
        let part = number.part * years as f64 * 12.0;
        self.months += number.whole * years * 12 + part.round_ties_even() as i128;
    }

    /// A time of hours, minutes and seconds.
    fn clock(&mut self, nanoseconds: i128) -> Result<(), Wrong> {
        if self.clock || self.named.iter().any(|unit| is_of_clock(*unit)) {
            return Err(Wrong::Syntax);
        }
        self.clock = true;
        self.nanoseconds += nanoseconds;
        Ok(())
    }

    fn finish(self, ago: bool) -> Result<IntervalMonthDayNano, Wrong> {
        let sign = if ago { -1 } else { 1 };
        let small = |value: i128| i32::try_from(value * sign).map_err(|_| Wrong::IntervalField);
        let (months, days) = (small(self.months)?, small(self.days)?);
        let time = i64::try_from(self.nanoseconds * sign).map_err(|_| Wrong::IntervalField)?;
        Ok(IntervalMonthDayNano::new(months, days, time))
    }
}

fn is_of_clock(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Hour | Unit::Minute | Unit::Second | Unit::Millisecond | Unit::Microsecond
    )
}

/// The nanoseconds of `04:05`, `04:05:06.7`; where only minutes and seconds are wanted, `04:05` are those.
fn clock(text: &str, fields: Fields) -> Result<i128, Wrong> {
    let (whole, rest) = match text.split_once('.') {
        Some((whole, rest)) => (whole, Some(rest)),
        None => (text, None),
    };
    let nanoseconds = fraction(rest.unwrap_or_default()).ok_or(Wrong::Syntax)?;
    // To the microsecond.
    let nanoseconds = (i128::from(nanoseconds) + 500) / 1_000 * 1_000;
    let parts = whole.split(':').map(|part| {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Wrong::Syntax);
        }
        let value = part.parse::<i64>().map_err(|_| Wrong::IntervalField)?;
        Ok(i128::from(value))
    });
    let parts = parts.collect::<Result<Vec<i128>, Wrong>>()?;
    let (hours, minutes, seconds) = match parts[..] {
        [minutes, seconds] if rest.is_some() || fields == Fields::MINUTE_TO_SECOND => {
            (0, minutes, seconds)
        }
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(Wrong::Syntax),
    };
    if minutes > 59 || seconds > 60 {
        return Err(Wrong::IntervalField);
    }
    Ok(hours * HOUR + minutes * MINUTE + seconds * SECOND + nanoseconds)
}

/// The interval that a text says; `fields` are those of its type.
pub(crate) fn interval(text: &str, fields: Fields) -> Result<IntervalMonthDayNano, Wrong> {
    let in_words = match pieces(text, is_known) {
        Some(pieces) => of_pieces(&pieces, fields),
        None => Err(Wrong::Syntax),
    };
    let found = match in_words {
        Err(Wrong::Syntax) => of_iso(text),
        found => found,
    };
    found.map(|interval| fields.cut(interval))
}

fn of_pieces(pieces: &[Piece], fields: Fields) -> Result<IntervalMonthDayNano, Wrong> {
    let mut sum = Sum::default();
    let (mut ago, mut any) = (false, false);
    // From the end: a unit stands behind its number.
    let mut next: Option<Unit> = None;
    for piece in pieces.iter().rev() {
        let text = piece.text.as_str();
        match piece.shape {
            Shape::Time => {
                sum.clock(clock(text, fields)?)?;
                next = Some(Unit::Day);
                any = true;
            }
            Shape::Signed if text.contains(':') => {
                // What is no time is no number either.
                let time = clock(&text[1..], fields).map_err(|_| Wrong::Syntax)?;
                sum.clock(if text.starts_with('-') { -time } else { time })?;
                next = Some(Unit::Day);
                any = true;
            }
            Shape::Signed | Shape::Number | Shape::Date => {
                any = true;
                let unit = next.unwrap_or(fields.last());
                if let Some((years, months)) = years_and_months(text)? {
                    let of_months = Number {
                        whole: years * 12 + months,
                        part: 0.0,
                    };
                    sum.add(of_months, Unit::Month)?;
                    next = Some(Unit::Month);
                    continue;
                }
                sum.add(number(text).ok_or(Wrong::Syntax)??, unit)?;
                // A number before hours counts days.
                next = Some(if unit == Unit::Hour { Unit::Day } else { unit });
            }
            Shape::Word if text == "ago" => {
                ago = true;
                next = None;
            }
            Shape::Word => match unit(text) {
                Some(unit) => next = Some(unit),
                None if matches!(text, "at" | "on") => {}
                None => return Err(Wrong::Syntax),
            },
            Shape::SignedWord => return Err(Wrong::Syntax),
        }
    }
    if !any {
        return Err(Wrong::Syntax);
    }
    sum.finish(ago)
}

/// `1-2`, years and months; none for what is no such pair.
fn years_and_months(text: &str) -> Result<Option<(i128, i128)>, Wrong> {
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let Some((years, months)) = body.split_once('-') else {
        return Ok(None);
    };
    let number = |digits: &str| -> Result<i128, Wrong> {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Wrong::Syntax);
        }
        let value = digits.parse::<i64>().map_err(|_| Wrong::IntervalField)?;
        Ok(value.into())
    };
    let (years, months) = (number(years)?, number(months)?);
    if months >= 12 {
        return Err(Wrong::IntervalField);
    }
    let sign = if negative { -1 } else { 1 };
    Ok(Some((sign * years, sign * months)))
}

/// `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`.
fn of_iso(text: &str) -> Result<IntervalMonthDayNano, Wrong> {
    let mut rest = text.strip_prefix('P').ok_or(Wrong::Syntax)?;
    if rest.is_empty() {
        return Err(Wrong::Syntax);
    }
    let mut sum = Sum::default();
    let (mut of_time, mut any) = (false, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            if of_time {
                return Err(Wrong::Syntax);
            }
            of_time = true;
            rest = after;
            continue;
        }
        let end = rest
            .char_indices()
            .find(|(at, c)| !c.is_ascii_digit() && *c != '.' && !(*at == 0 && *c == '-'))
            .map_or(rest.len(), |(at, _)| at);
        let value = number(&rest[..end]).ok_or(Wrong::Syntax)??;
        let mut letters = rest[end..].chars();
        let unit = match (letters.next(), of_time) {
            (Some('Y'), false) => Unit::Year,
            (Some('M'), false) => Unit::Month,
            (Some('W'), false) => Unit::Week,
            (Some('D'), false) => Unit::Day,
            (Some('H'), true) => Unit::Hour,
            (Some('M'), true) => Unit::Minute,
            (Some('S'), true) => Unit::Second,
            (Some('-' | ':') | None, _) if !any => return of_iso_marks(rest, of_time, sum),
            (Some('T') | None, false) if !any => return of_iso_marks(rest, of_time, sum),
            (None, _) if any => return Err(Wrong::Syntax),
            _ if of_time => return of_iso_marks(rest, of_time, sum),
            _ => return Err(Wrong::Syntax),
        };
        // The same unit may come again.
        sum.named.clear();
        sum.add(value, unit)?;
        any = true;
        rest = letters.as_str();
    }
    if any || of_time {
        sum.finish(false)
    } else {
        Err(Wrong::Syntax)
    }
}

/// The other form of ISO 8601: `0001-02-03T04:05:06`.
fn of_iso_marks(text: &str, of_time: bool, mut sum: Sum) -> Result<IntervalMonthDayNano, Wrong> {
    let (date, time) = match (of_time, text.split_once('T')) {
        (true, _) => ("", Some(text)),
        (false, Some((date, time))) => (date, Some(time)),
        (false, None) => (text, None),
    };
    let mut add = |text: &str, units: [Unit; 3], mark: char| -> Result<(), Wrong> {
        let parts: Vec<&str> = match text.strip_prefix('-') {
            // Signs belong to numbers.
            _ if mark == '-' && text.contains("--") => return Err(Wrong::Syntax),
            Some(_) if mark == '-' => return Err(Wrong::Syntax),
            _ => text.split(mark).collect(),
        };
        if parts.len() > 3 {
            return Err(Wrong::Syntax);
        }
        for (part, unit) in parts.iter().zip(units) {
            sum.add(number(part).ok_or(Wrong::Syntax)??, unit)?;
        }
        Ok(())
    };
    // Eight digits are a date.
    let spread;
    let date = if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) {
        spread = format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]);
        spread.as_str()
    } else {
        date
    };
    if !date.is_empty() {
        add(date, [Unit::Year, Unit::Month, Unit::Day], '-')?;
    }
    if let Some(time) = time {
        let spread;
        let time = if time.len() == 6 && time.bytes().all(|b| b.is_ascii_digit()) {
            spread = format!("{}:{}:{}", &time[..2], &time[2..4], &time[4..]);
            spread.as_str()
        } else {
            time
        };
        add(time, [Unit::Hour, Unit::Minute, Unit::Second], ':')?;
    }
    sum.finish(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, fields: Fields) -> Result<(i32, i32, i64), Wrong> {
        interval(text, fields).map(|i| (i.months, i.days, i.nanoseconds / 1_000))
    }

    #[test]
    fn intervals_are_those_of_postgresql() {
        for (text, wanted) in [
            ("1 day 10:00:00", (0, 1, 36_000_000_000)),
            ("@ 1 minute", (0, 0, 60_000_000)),
            ("1-2", (14, 0, 0)),
            ("-1-2", (-14, 0, 0)),
            ("3 4:05:06", (0, 3, 14_706_000_000)),
            ("1.5 weeks", (0, 10, 43_200_000_000)),
            ("6 years", (72, 0, 0)),
            ("1 month 2 days ago", (-1, -2, 0)),
            ("-1 day +02:03", (0, -1, 7_380_000_000)),
            ("P1Y2M3DT4H5M6.5S", (14, 3, 14_706_500_000)),
            ("P0001-02-03T04:05:06", (14, 3, 14_706_000_000)),
            ("P1W", (0, 7, 0)),
            ("1", (0, 0, 1_000_000)),
            ("0.1 millennium 1 century", (2_400, 0, 0)),
            ("2 h 30 m", (0, 0, 9_000_000_000)),
            ("1d", (0, 1, 0)),
        ] {
            assert_eq!(parts(text, Fields::ALL), Ok(wanted), "{text}");
        }
        for text in [
            "",
            "badly",
            "1 fortnight",
            "1 day 1 day",
            "1:2:3:4",
            "P",
            "5 +",
        ] {
            assert_eq!(parts(text, Fields::ALL), Err(Wrong::Syntax), "{text}");
        }
    }

    #[test]
    fn a_type_says_what_numbers_count() {
        for (text, fields, wanted) in [
            ("1", Fields::of("YEAR").unwrap(), (12, 0, 0)),
            (
                "1 2",
                Fields::of("DAY TO HOUR").unwrap(),
                (0, 1, 7_200_000_000),
            ),
            ("1:2", Fields::MINUTE_TO_SECOND, (0, 0, 62_000_000)),
            (
                "1 2:03:04",
                Fields::of("DAY TO MINUTE").unwrap(),
                (0, 1, 7_380_000_000),
            ),
            ("1 year 5 months", Fields::of("YEAR").unwrap(), (12, 0, 0)),
        ] {
            assert_eq!(parts(text, fields), Ok(wanted), "{text}");
        }
    }
}
