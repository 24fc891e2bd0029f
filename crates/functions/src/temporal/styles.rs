//! How sessions write dates, timestamps and intervals: the four styles of `DateStyle`, and those of `IntervalStyle`.

use std::fmt::Write as _;

use arrow::datatypes::IntervalMonthDayNano;
use table::Infinity;

use crate::intervals;
use crate::temporal::calendar::{self, civil, era, weekday};
use crate::temporal::local::{Local, Order, Spans, Style};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The most letters of a zone that are shown.
const MOST_LETTERS: usize = 10;

impl Local {
    /// Writes a date that is counted from 1970: `1999-01-08`, `01/08/1999`, `infinity`.
    pub fn date(&self, day: i64, out: &mut String) {
        if let Some(infinity) = i32::try_from(day).ok().and_then(Infinity::of_day) {
            return out.push_str(infinity.text());
        }
        if self.style == Style::Iso {
            return calendar::date(day, out);
        }
        let mark = if self.style == Style::Postgres {
            '-'
        } else {
            '/'
        };
        let before = self.numbers(day, mark, out);
        out.push_str(before);
    }

    /// Writes day, month and year as numbers; what stands behind all else.
    fn numbers(&self, day: i64, mark: char, out: &mut String) -> &'static str {
        let (year, month, date) = civil(day);
        let (year, before) = era(year);
        let _ = match (self.style, self.order) {
            (Style::German, _) => write!(out, "{date:02}.{month:02}.{year:04}"),
            (_, Order::Dmy) => write!(out, "{date:02}{mark}{month:02}{mark}{year:04}"),
            _ => write!(out, "{month:02}{mark}{date:02}{mark}{year:04}"),
        };
        if before { " BC" } else { "" }
    }

    /// Writes a timestamp, seconds from 1970 on and nanoseconds; if `zoned` an instant, otherwise what clocks show.
    pub fn timestamp(&self, seconds: i64, nanoseconds: i64, zoned: bool, out: &mut String) {
        let east = if zoned {
            self.zone.at_instant(seconds).unwrap_or(0)
        } else {
            0
        };
        let shown = seconds + east;
        let (day, of_day) = (shown.div_euclid(86_400), shown.rem_euclid(86_400));
        let time = of_day * 1_000_000_000 + nanoseconds;
        let (year, month, date) = civil(day);
        let (year, before) = era(year);
        let mut end = if before { " BC" } else { "" };
        match self.style {
            Style::Iso => {
                let _ = write!(out, "{year:04}-{month:02}-{date:02} ");
                calendar::time(time, out);
                if zoned {
                    calendar::offset(east, out);
                }
                out.push_str(end);
                return;
            }
            Style::Postgres => {
                let name = MONTHS[(month - 1) as usize];
                let _ = write!(out, "{} ", DAYS[weekday(day) as usize]);
                let _ = match self.order {
                    Order::Dmy => write!(out, "{date:02} {name} "),
                    _ => write!(out, "{name} {date:02} "),
                };
                calendar::time(time, out);
                let _ = write!(out, " {year:04}");
            }
            Style::Sql | Style::German => {
                end = self.numbers(day, '/', out);
                out.push(' ');
                calendar::time(time, out);
            }
        }
        if zoned {
            let letters = self.zone.abbreviation(seconds);
            let letters = letters.get(..MOST_LETTERS).unwrap_or(&letters);
            let _ = write!(out, " {letters}");
        }
        out.push_str(end);
    }

    /// Writes an interval: `1 day 02:00:00`, `@ 1 day 2 hours`, `P1DT2H`.
    pub fn interval(&self, months: i32, days: i32, nanoseconds: i64, out: &mut String) {
        match self.spans {
            Spans::Postgres => {
                let of = IntervalMonthDayNano::new(months, days, nanoseconds);
                out.push_str(&intervals::text(of));
            }
            Spans::Verbose => verbose(months, days, nanoseconds, out),
            Spans::Iso => iso(months, days, nanoseconds, out),
        }
    }
}

/// Seconds with what is behind their point, without a sign.
fn seconds(nanoseconds: i64) -> String {
    let all = nanoseconds.unsigned_abs();
    let mut text = (all / 1_000_000_000).to_string();
    let rest = all % 1_000_000_000;
    if rest != 0 {
        let digits = format!(".{rest:09}");
        text.push_str(digits.trim_end_matches('0'));
    }
    text
}

/// Hours, minutes, and nanoseconds of a minute, all of one sign.
fn clock(nanoseconds: i64) -> (i64, i64, i64) {
    let minutes = nanoseconds / 60_000_000_000;
    (minutes / 60, minutes % 60, nanoseconds % 60_000_000_000)
}

/// `@ 1 day 2 hours ago`.
fn verbose(months: i32, days: i32, nanoseconds: i64, out: &mut String) {
    let (hours, minutes, rest) = clock(nanoseconds);
    out.push('@');
    let (mut zero, mut ago) = (true, false);
    let parts = [
        (i64::from(months / 12), "year"),
        (i64::from(months % 12), "mon"),
        (i64::from(days), "day"),
        (hours, "hour"),
        (minutes, "min"),
    ];
    for (value, unit) in parts {
        if value == 0 {
            continue;
        }
        // The first tells the sign of all, and others are told against it.
        let shown = if zero {
            ago = value < 0;
            value.abs()
        } else if ago {
            -value
        } else {
            value
        };
        zero = false;
        let plural = if shown == 1 { "" } else { "s" };
        let _ = write!(out, " {shown} {unit}{plural}");
    }
    if rest != 0 {
        out.push(' ');
        if rest < 0 && zero {
            ago = true;
        } else if (rest < 0) != ago {
            out.push('-');
        }
        zero = false;
        let plural = if rest.abs() == 1_000_000_000 { "" } else { "s" };
        let _ = write!(out, "{} sec{plural}", seconds(rest));
    }
    if zero {
        out.push_str(" 0");
    }
    if ago {
        out.push_str(" ago");
    }
}

/// `P1DT2H`.
fn iso(months: i32, days: i32, nanoseconds: i64, out: &mut String) {
    if months == 0 && days == 0 && nanoseconds == 0 {
        return out.push_str("PT0S");
    }
    let (hours, minutes, rest) = clock(nanoseconds);
    let part = |value: i64, unit: char, out: &mut String| {
        if value != 0 {
            let _ = write!(out, "{value}{unit}");
        }
    };
    out.push('P');
    part((months / 12).into(), 'Y', out);
    part((months % 12).into(), 'M', out);
    part(days.into(), 'D', out);
    if nanoseconds == 0 {
        return;
    }
    out.push('T');
    part(hours, 'H', out);
    part(minutes, 'M', out);
    if rest != 0 {
        let sign = if rest < 0 { "-" } else { "" };
        let _ = write!(out, "{sign}{}S", seconds(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_all_styles() {
        // 2001-02-16 20:38:40.5 in UTC.
        let (at, rest) = (982_355_920, 500_000_000);
        for (style, stamp, plain, day) in [
            (
                "ISO, MDY",
                "2001-02-16 12:38:40.5-08",
                "2001-02-16 20:38:40.5",
                "2001-02-16",
            ),
            (
                "Postgres, MDY",
                "Fri Feb 16 12:38:40.5 2001 PST",
                "Fri Feb 16 20:38:40.5 2001",
                "02-16-2001",
            ),
            (
                "Postgres, DMY",
                "Fri 16 Feb 12:38:40.5 2001 PST",
                "Fri 16 Feb 20:38:40.5 2001",
                "16-02-2001",
            ),
            (
                "SQL, DMY",
                "16/02/2001 12:38:40.5 PST",
                "16/02/2001 20:38:40.5",
                "16/02/2001",
            ),
            (
                "SQL, MDY",
                "02/16/2001 12:38:40.5 PST",
                "02/16/2001 20:38:40.5",
                "02/16/2001",
            ),
            (
                "German, DMY",
                "16.02.2001 12:38:40.5 PST",
                "16.02.2001 20:38:40.5",
                "16.02.2001",
            ),
        ] {
            let local = Local::new("PST8PDT", style, "postgres");
            let mut text = String::new();
            local.timestamp(at, rest, true, &mut text);
            assert_eq!(text, stamp);
            text.clear();
            local.timestamp(at, rest, false, &mut text);
            assert_eq!(text, plain);
            text.clear();
            local.date(at / 86_400, &mut text);
            assert_eq!(text, day);
        }
    }

    #[test]
    fn intervals_are_written_in_all_styles() {
        for (months, days, time, said, short) in [
            (0, 0, 0, "@ 0", "PT0S"),
            (
                14,
                3,
                14_706_700_000_000,
                "@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs",
                "P1Y2M3DT4H5M6.7S",
            ),
            (0, -1, 0, "@ 1 day ago", "P-1D"),
            (0, -1, 3_600_000_000_000, "@ 1 day -1 hours ago", "P-1DT1H"),
            (0, 0, -1_000_000_000, "@ 1 sec ago", "PT-1S"),
            (0, -1, 1_000_000_000, "@ 1 day -1 sec ago", "P-1DT1S"),
            (0, 1, -1_500_000_000, "@ 1 day -1.5 secs", "P1DT-1.5S"),
        ] {
            for (style, wanted) in [("postgres_verbose", said), ("iso_8601", short)] {
                let mut text = String::new();
                Local::new("UTC", "ISO", style).interval(months, days, time, &mut text);
                assert_eq!(text, wanted);
            }
        }
    }
}
