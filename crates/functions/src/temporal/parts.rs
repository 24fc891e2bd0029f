//! Dates and times put together from the parts of a text, in all forms that PostgreSQL reads.

use table::Infinity;

use crate::temporal::calendar::{FIRST_DAY, days, days_of_month};
use crate::temporal::local::{Local, Order};
use crate::temporal::moment::{DAY, Moment, Read, SECOND, infinite, now, number, plain, within};
use crate::temporal::pieces::{Piece, Shape, fraction, pieces, runs};
use crate::temporal::words::{Unit, Word, is_known, word};
use crate::temporal::wrong::Wrong;
use crate::temporal::zones::{Displaced, Zone, abbreviated, displacement, named, posix};

/// The parts of a text that have been found.
#[derive(Default)]
struct Parts {
    local: Local,
    year: Option<i64>,
    /// Whether the year has at most two digits.
    short: bool,
    month: Option<i64>,
    /// Whether the month is a word.
    spelled: bool,
    date: Option<i64>,
    /// The day of the year, in place of month and date.
    of_year: Option<i64>,
    /// A day, from 1970 on, in place of the three.
    day: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    nanoseconds: i64,
    after_noon: Option<bool>,
    before: Option<bool>,
    zone: Option<Zone>,
    summer: bool,
    /// What the next number counts.
    unit: Option<Unit>,
    /// Whether only a time is wanted.
    only_time: bool,
}

fn put(into: &mut Option<i64>, value: i64) -> Read<()> {
    match into.replace(value) {
        None => Ok(()),
        Some(_) => Err(Wrong::Syntax),
    }
}

fn once(into: &mut Option<bool>, value: bool) -> Read<()> {
    match into.replace(value) {
        None => Ok(()),
        Some(_) => Err(Wrong::Syntax),
    }
}

/// The moment that a text says; `only_time` for times of a day.
pub(crate) fn moment(text: &str, local: Local, only_time: bool) -> Read<Moment> {
    if !only_time && let Some(plain) = plain(text.as_bytes()) {
        return Ok(plain);
    }
    let pieces = pieces(text, is_known).ok_or(Wrong::Syntax)?;
    if pieces.is_empty() {
        return Err(Wrong::Syntax);
    }
    let mut parts = Parts {
        local,
        only_time,
        ..Parts::default()
    };
    for at in 0..pieces.len() {
        if let Some(special) = parts.take(&pieces, at)? {
            // It stands alone, but for words that say nothing more.
            let bare = |piece: &Piece| {
                matches!(
                    word(&piece.text),
                    Some(Word::Era { .. } | Word::Filler | Word::Weekday)
                )
            };
            let mut others = pieces.iter().enumerate().filter(|(other, _)| *other != at);
            return if others.all(|(_, piece)| bare(piece)) {
                Ok(special)
            } else {
                Err(Wrong::Syntax)
            };
        }
    }
    if parts.unit.is_some() {
        return Err(Wrong::Syntax);
    }
    parts.finish()
}

impl Parts {
    fn has_date(&self) -> bool {
        self.day.is_some()
            || self.of_year.is_some()
            || self.year.is_some() && self.month.is_some() && self.date.is_some()
    }

    fn has_any_date(&self) -> bool {
        self.day.is_some()
            || self.of_year.is_some()
            || self.year.is_some()
            || self.month.is_some()
            || self.date.is_some()
    }

    fn has_time(&self) -> bool {
        self.hour.is_some() && self.minute.is_some() && self.second.is_some()
    }

    /// Takes a piece; the moment that it is by itself, if it is one.
    fn take(&mut self, pieces: &[Piece], at: usize) -> Read<Option<Moment>> {
        let piece = &pieces[at];
        let text = piece.text.as_str();
        match piece.shape {
            Shape::Date => self.take_date(pieces, at)?,
            Shape::Time => {
                if self.unit.take().is_some_and(|unit| unit != Unit::Time) {
                    return Err(Wrong::Syntax);
                }
                self.clock(text)?;
            }
            Shape::Signed => {
                if self.unit.is_some() {
                    return Err(Wrong::Syntax);
                }
                self.displaced(text)?;
            }
            Shape::Number => self.take_number(pieces, at)?,
            Shape::Word => return self.take_word(pieces, at),
            Shape::SignedWord => {
                // `+infinity` is none, as in PostgreSQL.
                return match (word(&text[1..]), text.starts_with('-')) {
                    (Some(Word::Infinity), true) => infinite(Infinity::Past, self.only_time),
                    _ => Err(Wrong::Syntax),
                };
            }
        }
        Ok(None)
    }

    fn displaced(&mut self, text: &str) -> Read<()> {
        let east = displacement(text).map_err(|wrong| match wrong {
            Displaced::Syntax => Wrong::Syntax,
            Displaced::Range => Wrong::Displacement,
        })?;
        self.in_zone(Zone::Fixed(east))
    }

    fn in_zone(&mut self, zone: Zone) -> Read<()> {
        match self.zone.replace(zone) {
            None => Ok(()),
            // `PST+3` is none: a second zone.
            Some(_) => Err(Wrong::Syntax),
        }
    }

    /// `1999-01-08`, `08-Jan-99`; a time with a zone behind it, or the name of a zone.
    fn take_date(&mut self, pieces: &[Piece], at: usize) -> Read<()> {
        let text = pieces[at].text.as_str();
        let digit = text.starts_with(|c: char| c.is_ascii_digit());
        match self.unit.take() {
            Some(Unit::Julian) => {
                // A zone behind the number.
                let end = text.find('-').ok_or(Wrong::Syntax)?;
                self.julian(&text[..end])?;
                return self.displaced(&text[end..]);
            }
            Some(Unit::Time) => return self.clock_in_zone(text),
            Some(_) => return Err(Wrong::Syntax),
            None => {}
        }
        let dated = self.month.is_some() && self.date.is_some() || self.has_date();
        if self.only_time {
            let behind = pieces.last().is_some_and(|last| last.shape == Shape::Date);
            let before = pieces.get(1).is_some_and(|next| next.shape == Shape::Time);
            if at == 0 && pieces.len() >= 2 && (behind || before) {
                return self.written_date(text);
            }
            if digit {
                if self.has_time() {
                    return Err(Wrong::Syntax);
                }
                return self.clock_in_zone(text);
            }
            return self.named_zone(text);
        }
        if !dated {
            return self.written_date(text);
        }
        if digit {
            return self.clock_in_zone(text);
        }
        self.named_zone(text)
    }

    fn named_zone(&mut self, text: &str) -> Read<()> {
        let zone = named(text).or_else(|| posix(text));
        let zone = zone.ok_or_else(|| Wrong::Zone(text.to_string()))?;
        self.in_zone(zone)
    }

    /// `040506-08`.
    fn clock_in_zone(&mut self, text: &str) -> Read<()> {
        let end = text.find('-').ok_or(Wrong::Syntax)?;
        self.displaced(&text[end..])?;
        if self.has_time() {
            return Err(Wrong::Syntax);
        }
        self.run_together(&text[..end], true)
    }

    /// A date whose parts are held together.
    fn written_date(&mut self, text: &str) -> Read<()> {
        let runs = runs(text);
        // A date whose parts are held together stands before the time.
        if runs.len() > 3 || self.hour.is_some() {
            return Err(Wrong::Syntax);
        }
        // The month first: it tells what the numbers are.
        let is_word = |run: &&str| run.starts_with(|c: char| c.is_ascii_alphabetic());
        for run in runs.iter().filter(|run| is_word(run)) {
            match word(run) {
                Some(Word::Month(month)) => {
                    put(&mut self.month, month)?;
                    self.spelled = true;
                }
                Some(Word::Filler | Word::Weekday) => {}
                _ => return Err(Wrong::Syntax),
            }
        }
        for run in runs.iter().filter(|run| !is_word(run)) {
            if self.has_date() {
                return Err(Wrong::Syntax);
            }
            self.part(run)?;
        }
        if self.has_date() {
            Ok(())
        } else {
            Err(Wrong::Syntax)
        }
    }

    fn take_number(&mut self, pieces: &[Piece], at: usize) -> Read<()> {
        let text = pieces[at].text.as_str();
        if let Some(unit) = self.unit.take() {
            return self.counted(unit, text);
        }
        let whole = text.split('.').next().unwrap_or_default();
        let point = text.contains('.');
        if self.only_time {
            let behind = pieces.last().is_some_and(|last| last.shape == Shape::Date);
            return match point {
                true if at == 0 && pieces.len() >= 2 && behind => self.written_date(text),
                true if whole.len() > 2 => self.run_together(text, true),
                true => Err(Wrong::Syntax),
                false if text.len() > 4 => self.run_together(text, true),
                false if !self.has_time() && text.len() == 4 => self.run_together(text, true),
                false => Err(Wrong::Syntax),
            };
        }
        if point && !self.has_any_date() {
            return self.written_date(text);
        }
        if point && whole.len() > 2 {
            return self.run_together(text, self.has_date());
        }
        if text.len() >= 6 && (!self.has_any_date() || self.hour.is_none()) {
            return self.run_together(text, self.has_date());
        }
        self.part(text)
    }

    /// `J2451187`, `y2001`.
    fn counted(&mut self, unit: Unit, text: &str) -> Read<()> {
        match unit {
            Unit::Julian => self.julian(text),
            Unit::Time => {
                if self.has_time() {
                    return Err(Wrong::Syntax);
                }
                self.run_together(text, true)
            }
            Unit::Year => put(&mut self.year, number(text)?),
            Unit::Month if self.month.is_some() && self.hour.is_some() => {
                put(&mut self.minute, number(text)?)
            }
            Unit::Month => put(&mut self.month, number(text)?),
            Unit::Day => put(&mut self.date, number(text)?),
            Unit::Hour => put(&mut self.hour, number(text)?),
            Unit::Minute => put(&mut self.minute, number(text)?),
            Unit::Second => {
                let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
                self.nanoseconds = fraction(rest).ok_or(Wrong::Syntax)?;
                put(&mut self.second, number(whole)?)
            }
        }
    }

    fn julian(&mut self, text: &str) -> Read<()> {
        if self.has_any_date() {
            return Err(Wrong::Syntax);
        }
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        self.day = Some(number(whole)? + FIRST_DAY);
        if !rest.is_empty() {
            // A part of a day, from midnight on.
            let digits = &rest[..rest.len().min(15)];
            let part: f64 = format!("0.{digits}").parse().map_err(|_| Wrong::Syntax)?;
            let time = (part * 86_400e6).round() as i64 * 1_000;
            self.put_time(
                time / SECOND / 3_600,
                time / SECOND / 60 % 60,
                time / SECOND % 60,
            )?;
            self.nanoseconds = time % SECOND;
        }
        Ok(())
    }

    fn put_time(&mut self, hour: i64, minute: i64, second: i64) -> Read<()> {
        put(&mut self.hour, hour)?;
        put(&mut self.minute, minute)?;
        put(&mut self.second, second)
    }

    /// `04:05`, `04:05:06.7`; `05:06.7` are minutes and seconds.
    fn clock(&mut self, text: &str) -> Read<()> {
        let (whole, rest) = match text.split_once('.') {
            Some((whole, rest)) => (whole, Some(rest)),
            None => (text, None),
        };
        self.nanoseconds = fraction(rest.unwrap_or_default()).ok_or(Wrong::Syntax)?;
        let parts: Vec<&str> = whole.split(':').collect();
        let (hour, minute, second) = match parts[..] {
            [minute, second] if rest.is_some() => (0, number(minute)?, number(second)?),
            [hour, minute] => (number(hour)?, number(minute)?, 0),
            [hour, minute, second] => (number(hour)?, number(minute)?, number(second)?),
            _ => return Err(Wrong::Syntax),
        };
        let rest = second + i64::from(self.nanoseconds > 0);
        if minute > 59 || second > 60 || hour > 24 || hour == 24 && minute + rest > 0 {
            return Err(Wrong::Field);
        }
        self.put_time(hour, minute, second)
    }

    /// Digits of a date or a time that nothing separates: `19990108`, `040506.789`, `0405`.
    fn run_together(&mut self, text: &str, dated: bool) -> Read<()> {
        let (whole, rest) = match text.split_once('.') {
            Some((whole, rest)) => (whole, Some(rest)),
            None => (text, None),
        };
        if !whole.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Wrong::Syntax);
        }
        let length = whole.len();
        if rest.is_none() && !dated && length >= 6 {
            put(&mut self.date, number(&whole[length - 2..])?)?;
            put(&mut self.month, number(&whole[length - 4..length - 2])?)?;
            put(&mut self.year, number(&whole[..length - 4])?)?;
            self.short = length == 6;
            return Ok(());
        }
        if self.has_time() {
            return Err(Wrong::Syntax);
        }
        self.nanoseconds = fraction(rest.unwrap_or_default()).ok_or(Wrong::Syntax)?;
        match length {
            6 => self.put_time(
                number(&whole[..2])?,
                number(&whole[2..4])?,
                number(&whole[4..])?,
            ),
            4 => self.put_time(number(&whole[..2])?, number(&whole[2..])?, 0),
            _ => Err(Wrong::Syntax),
        }
    }

    /// A number whose place in the date tells what it is.
    fn part(&mut self, text: &str) -> Read<()> {
        if text.contains('.') {
            let whole = text.split('.').next().unwrap_or_default();
            return match whole.len() {
                0..=2 => Err(Wrong::Syntax),
                _ => self.run_together(text, true),
            };
        }
        let value = number(text)?;
        let long = text.len() >= 3;
        if self.day.is_some() || self.of_year.is_some() {
            return self.run_together(text, true);
        }
        let parts = (
            self.year.is_some(),
            self.month.is_some(),
            self.date.is_some(),
        );
        if parts == (true, false, false) && text.len() == 3 && (1..=366).contains(&value) {
            return put(&mut self.of_year, value);
        }
        match parts {
            (false, false, false) if long || self.local.order == Order::Ymd => self.put_year(text),
            (false, false, false) if self.local.order == Order::Dmy => put(&mut self.date, value),
            (false, false, false) => put(&mut self.month, value),
            (true, false, false) | (false, false, true) => put(&mut self.month, value),
            (false, true, false) if self.spelled && (long || self.local.order == Order::Ymd) => {
                self.put_year(text)
            }
            (false, true, false) => put(&mut self.date, value),
            (true, true, false) if self.spelled && long && self.short => {
                // What was taken for the year is the day: `08-Jan-1999` where years come first.
                self.date = self.year.take();
                self.put_year(text)
            }
            (true, true, false) => put(&mut self.date, value),
            (false, true, true) => self.put_year(text),
            (true, true, true) => self.run_together(text, true),
            (true, false, true) => Err(Wrong::Syntax),
        }
    }

    fn put_year(&mut self, text: &str) -> Read<()> {
        self.short = text.len() <= 2;
        put(&mut self.year, number(text)?)
    }

    fn take_word(&mut self, pieces: &[Piece], at: usize) -> Read<Option<Moment>> {
        let text = pieces[at].text.as_str();
        if let Some(zone) = abbreviated(text) {
            // A unit stands before a number only.
            if self.unit.is_some() {
                return Err(Wrong::Syntax);
            }
            self.in_zone(zone)?;
            return Ok(None);
        }
        let Some(known) = word(text) else {
            let zone = named(text).ok_or(Wrong::Syntax)?;
            self.in_zone(zone)?;
            return Ok(None);
        };
        if self.unit.is_some() {
            return Err(Wrong::Syntax);
        }
        match known {
            Word::Now => return Ok(Some(now(self.local, 0, true))),
            Word::Epoch if self.only_time => return Err(Wrong::Syntax),
            Word::Epoch => {
                let utc = Some(Zone::Fixed(0));
                return Ok(Some(Moment::new(Some(0), Some(0), utc)));
            }
            Word::Infinity => return infinite(Infinity::Future, self.only_time),
            Word::Time => {
                let next = pieces.get(at + 1).map(|piece| piece.shape);
                let time = matches!(next, Some(Shape::Number | Shape::Time | Shape::Date));
                if !time || !self.only_time && !self.has_date() {
                    return Err(Wrong::Syntax);
                }
                self.unit = Some(Unit::Time);
            }
            known => self.take_known(known)?,
        }
        Ok(None)
    }

    /// Takes a word that does not stand for a whole moment.
    fn take_known(&mut self, known: Word) -> Read<()> {
        if self.only_time && matches!(known, Word::Month(_) | Word::Weekday) {
            return Err(Wrong::Syntax);
        }
        match known {
            Word::Month(month) => {
                if let Some(number) = self.month
                    && !self.spelled
                    && self.date.is_none()
                    && (1..=31).contains(&number)
                {
                    // What was taken for the month is the day.
                    self.date = self.month.take();
                }
                put(&mut self.month, month)?;
                self.spelled = true;
            }
            Word::Noon { after } => once(&mut self.after_noon, after)?,
            Word::Era { before } => once(&mut self.before, before)?,
            Word::Unit(unit) => self.unit = Some(unit),
            Word::Today => self.put_today(0)?,
            Word::Tomorrow => self.put_today(1)?,
            Word::Yesterday => self.put_today(-1)?,
            Word::AllBalls => {
                self.put_time(0, 0, 0)?;
                self.in_zone(Zone::Fixed(0))?;
            }
            Word::Summer => self.summer = true,
            Word::Weekday
            | Word::Filler
            | Word::Now
            | Word::Epoch
            | Word::Infinity
            | Word::Time => {}
        }
        Ok(())
    }

    /// The day of today, or so many after it.
    fn put_today(&mut self, shift: i64) -> Read<()> {
        if self.has_any_date() || self.only_time {
            return Err(Wrong::Syntax);
        }
        self.day = now(self.local, shift, false).day;
        Ok(())
    }

    fn finish(self) -> Read<Moment> {
        let time = self.time()?;
        let day = self.whole_date()?;
        if self.only_time && time.is_none() || !self.only_time && day.is_none() {
            return Err(Wrong::Syntax);
        }
        let mut zone = self.zone;
        if self.summer {
            zone = match zone {
                Some(Zone::Fixed(east)) => Some(Zone::Fixed(east + 3_600)),
                _ => return Err(Wrong::Syntax),
            };
        }
        Ok(Moment::new(day, time, zone))
    }

    fn time(&self) -> Read<Option<i64>> {
        let Some(hour) = self.hour else {
            return match (self.minute, self.second, self.after_noon) {
                (None, None, None) => Ok(None),
                _ => Err(Wrong::Syntax),
            };
        };
        let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
        let hour = match self.after_noon {
            Some(_) if hour > 12 => return Err(Wrong::Field),
            Some(false) if hour == 12 => 0,
            Some(true) if hour != 12 => hour + 12,
            _ => hour,
        };
        if hour > 24 || minute > 59 || second > 60 {
            return Err(Wrong::Field);
        }
        let time = (hour * 3_600 + minute * 60 + second) * SECOND + self.nanoseconds;
        if time > DAY {
            return Err(Wrong::Field);
        }
        Ok(Some(time))
    }

    /// The year with its century and era.
    fn whole_year(&self, year: i64) -> Read<i64> {
        match self.before {
            Some(true) if year <= 0 => Err(Wrong::Field),
            Some(true) => Ok(1 - year),
            _ if self.short && year < 70 => Ok(year + 2_000),
            _ if self.short && year < 100 => Ok(year + 1_900),
            _ if year <= 0 => Err(Wrong::Field),
            _ => Ok(year),
        }
    }

    fn whole_date(&self) -> Read<Option<i64>> {
        if let Some(day) = self.day {
            return within(day).map(Some);
        }
        let year = self.year.map(|year| self.whole_year(year)).transpose()?;
        let wrong = |part: Option<i64>, most: i64| part.is_some_and(|own| own < 1 || own > most);
        if wrong(self.month, 12) || wrong(self.date, 31) {
            return Err(Wrong::FieldOrOrder);
        }
        if let (Some(year), Some(of_year)) = (year, self.of_year) {
            return within(days(year, 1, 1) + of_year - 1).map(Some);
        }
        let (Some(year), Some(month), Some(date)) = (year, self.month, self.date) else {
            return if self.has_any_date() && !self.only_time {
                Err(Wrong::Syntax)
            } else {
                Ok(None)
            };
        };
        if date > days_of_month(year, month) {
            return Err(Wrong::Field);
        }
        let day = days(year, month, date);
        if self.only_time {
            return Ok(Some(day));
        }
        within(day).map(Some)
    }
}
