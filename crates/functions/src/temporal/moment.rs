//! Moments: what texts of dates, times and timestamps say.

use chrono::{DateTime, Utc};
use table::Infinity;

use crate::temporal::calendar::{FIRST_DAY, LAST_DAY, days, days_of_month};
use crate::temporal::local::Local;
use crate::temporal::wrong::Wrong;
use crate::temporal::zones::Zone;

/// Nanoseconds of a second, and of a day.
pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// What is read, or why it is none.
pub(crate) type Read<T> = Result<T, Wrong>;

/// What a text says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    /// The day, from 1970 on.
    pub day: Option<i64>,
    /// The time of the day in nanoseconds, at most a whole day.
    pub time: Option<i64>,
    /// The zone, if it names one.
    pub zone: Option<Zone>,
    /// That it is infinite; it has nothing else then.
    pub infinity: Option<Infinity>,
}

impl Moment {
    /// A finite one.
    pub(crate) fn new(day: Option<i64>, time: Option<i64>, zone: Option<Zone>) -> Moment {
        Moment {
            day,
            time,
            zone,
            infinity: None,
        }
    }

    /// Seconds from 1970 on that clocks show, and nanoseconds.
    pub(crate) fn local(&self) -> Read<(i64, i64)> {
        let day = self.day.ok_or(Wrong::Syntax)?;
        let time = self.time.unwrap_or(0);
        Ok((day * 86_400 + time / SECOND, time % SECOND))
    }

    /// Seconds from 1970 on, and nanoseconds, of the instant; in the zone of the session if it names none.
    pub(crate) fn instant(&self, local: Local) -> Read<(i64, i64)> {
        let (seconds, rest) = self.local()?;
        let zone = self.zone.unwrap_or(local.zone);
        let east = zone.at_local(seconds).ok_or(Wrong::Field)?;
        Ok((seconds - east, rest))
    }
}

/// An infinite one. Of the times of a day there is none.
pub(crate) fn infinite(infinity: Infinity, only_time: bool) -> Read<Option<Moment>> {
    if only_time {
        return Err(Wrong::Syntax);
    }
    Ok(Some(Moment {
        infinity: Some(infinity),
        ..Moment::default()
    }))
}

/// A whole number.
pub(crate) fn number(digits: &str) -> Read<i64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Wrong::Syntax);
    }
    match digits.parse::<i32>() {
        Ok(value) => Ok(value.into()),
        Err(_) => Err(Wrong::Field),
    }
}

/// `1999-01-08` and `1999-01-08 04:05:06.789`, which most texts are; none of others, and of those that are wrong.
pub(crate) fn plain(text: &[u8]) -> Option<Moment> {
    let digits = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.iter().try_fold(0, |value, digit| {
            digit
                .is_ascii_digit()
                .then(|| value * 10 + i64::from(digit - b'0'))
        })
    };
    let mark = |at: usize, mark: u8| text.get(at) == Some(&mark);
    let (year, month, date) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let good = mark(4, b'-') && mark(7, b'-') && year > 0 && (1..=12).contains(&month);
    if !good || date < 1 || date > days_of_month(year, month) {
        return None;
    }
    let day = Some(days(year, month, date));
    if text.len() == 10 {
        return Some(Moment {
            day,
            ..Moment::default()
        });
    }
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    let good = mark(13, b':') && mark(16, b':') && (mark(10, b' ') || mark(10, b'T'));
    if !good || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanoseconds = match text.len() {
        19 => 0,
        21..=28 if mark(19, b'.') => {
            let power = 10_i64.pow(29 - text.len() as u32);
            digits(20, text.len())? * power
        }
        _ => return None,
    };
    let time = (hour * 3_600 + minute * 60 + second) * SECOND + nanoseconds;
    Some(Moment {
        day,
        time: Some(time),
        ..Moment::default()
    })
}

/// The day, if there is one of that number.
pub(crate) fn within(day: i64) -> Read<i64> {
    if (FIRST_DAY..=LAST_DAY).contains(&day) {
        Ok(day)
    } else {
        Err(Wrong::Range)
    }
}

/// This moment as clocks of the session show it, so many days later.
pub(crate) fn now(local: Local, shift: i64, with_time: bool) -> Moment {
    let at: DateTime<Utc> = Utc::now();
    let east = local.zone.at_instant(at.timestamp()).unwrap_or(0);
    let seconds = at.timestamp() + east;
    let of_day = seconds.rem_euclid(86_400) * SECOND;
    let micros = i64::from(at.timestamp_subsec_micros()) * 1_000;
    Moment {
        day: Some(seconds.div_euclid(86_400) + shift),
        time: with_time.then_some(of_day + micros),
        zone: with_time.then_some(Zone::Fixed(east)),
        infinity: None,
    }
}
