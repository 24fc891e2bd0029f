//! The patterns of `to_char`, `to_date` and `to_timestamp`, as PostgreSQL has them: `YYYY-MM-DD HH24:MI:SS`.

use chrono::{Datelike, NaiveDateTime, Timelike};
use messages::Error;

use crate::present;
use crate::temporal::zones::Zone;

/// After how many parts of a pattern the switch of the statement is looked at: a few milliseconds.
const CHECKED: usize = 1 << 12;

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Pattern(pub(super) Vec<Piece>);

/// A part of a pattern.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// A field, whether it is written without padding (`FM`), and the ending of an ordinal (`TH`).
    Field(Field, bool, Ordinal),
}

/// The ending of an ordinal number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ordinal {
    None,
    Lower,
    Upper,
}

/// The letter case of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Letters {
    Upper,
    Capitalised,
    Lower,
}

/// What a part of a pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field {
    /// How many digits of the year, and whether with a comma.
    Year(usize, bool),
    IsoYear(usize),
    Century,
    Quarter,
    Month,
    MonthName(Letters),
    MonthShort(Letters),
    MonthRoman(Letters),
    Week,
    WeekOfMonth,
    IsoWeek,
    DayOfYear,
    IsoDayOfYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    DayName(Letters),
    DayShort(Letters),
    Julian,
    Hour12,
    Hour24,
    Minute,
    Second,
    SecondOfDay,
    /// How many digits of the fraction of a second.
    Fraction(u32),
    /// `AM` or `PM`: whether in lower case, whether with points.
    HalfDay(bool, bool),
    Era(bool, bool),
    Zone(bool),
    ZoneHours,
    ZoneMinutes,
    /// Hours and, if there are some, minutes.
    Offset,
}

/// The words that name fields, whatever their case. Of words that begin alike the longest comes first.
const WORDS: [(&str, Field); 37] = [
    ("y,yyy", Field::Year(4, true)),
    ("yyyy", Field::Year(4, false)),
    ("yyy", Field::Year(3, false)),
    ("yy", Field::Year(2, false)),
    ("y", Field::Year(1, false)),
    ("iyyy", Field::IsoYear(4)),
    ("iyy", Field::IsoYear(3)),
    ("iy", Field::IsoYear(2)),
    ("iddd", Field::IsoDayOfYear),
    ("id", Field::IsoDayOfWeek),
    ("iw", Field::IsoWeek),
    ("i", Field::IsoYear(1)),
    ("cc", Field::Century),
    ("q", Field::Quarter),
    ("month", Field::MonthName(Letters::Upper)),
    ("mon", Field::MonthShort(Letters::Upper)),
    ("mm", Field::Month),
    ("mi", Field::Minute),
    ("ms", Field::Fraction(3)),
    ("ww", Field::Week),
    ("w", Field::WeekOfMonth),
    ("ddd", Field::DayOfYear),
    ("dd", Field::Day),
    ("day", Field::DayName(Letters::Upper)),
    ("dy", Field::DayShort(Letters::Upper)),
    ("d", Field::DayOfWeek),
    ("j", Field::Julian),
    ("hh24", Field::Hour24),
    ("hh12", Field::Hour12),
    ("hh", Field::Hour12),
    ("sssss", Field::SecondOfDay),
    ("ssss", Field::SecondOfDay),
    ("ss", Field::Second),
    ("us", Field::Fraction(6)),
    ("tzh", Field::ZoneHours),
    ("tzm", Field::ZoneMinutes),
    ("of", Field::Offset),
];

/// The names of the months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The numbers of the months from December back, so that none is the beginning of one behind it.
pub(super) const ROMAN: [&str; 12] = [
    "XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I",
];

/// The names of the days of the week.
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// A word, and the field that it stands for, given whether it is in lower case.
type Mark = (&'static str, fn(bool) -> Field);

/// The words whose case decides that of the text.
const MARKS: [Mark; 9] = [
    ("a.m.", |lower| Field::HalfDay(lower, true)),
    ("p.m.", |lower| Field::HalfDay(lower, true)),
    ("am", |lower| Field::HalfDay(lower, false)),
    ("pm", |lower| Field::HalfDay(lower, false)),
    ("b.c.", |lower| Field::Era(lower, true)),
    ("a.d.", |lower| Field::Era(lower, true)),
    ("bc", |lower| Field::Era(lower, false)),
    ("ad", |lower| Field::Era(lower, false)),
    ("tz", Field::Zone),
];

/// What clocks in a zone are at an instant.
#[derive(Debug)]
pub(super) struct Shown {
    /// Seconds to the east of UTC.
    pub(super) east: i64,
    /// What they are said to show.
    letters: String,
}

impl Shown {
    /// Those of a zone at an instant, in seconds from 1970 on.
    pub(super) fn of(zone: Zone, seconds: i64) -> Shown {
        Shown {
            east: zone.at_instant(seconds).unwrap_or(0),
            letters: zone.abbreviation(seconds),
        }
    }
}

impl Ordinal {
    /// Whether there is one.
    pub(super) fn is_there(self) -> bool {
        self != Ordinal::None
    }
}

impl Field {
    /// Whether it is the name of a month or a day.
    fn is_name(self) -> bool {
        matches!(
            self,
            Field::MonthName(_) | Field::MonthShort(_) | Field::DayName(_) | Field::DayShort(_)
        )
    }

    /// Whether it is written in digits alone.
    pub(super) fn is_number(self) -> bool {
        !matches!(
            self,
            Field::MonthName(_)
                | Field::MonthShort(_)
                | Field::MonthRoman(_)
                | Field::DayName(_)
                | Field::DayShort(_)
                | Field::HalfDay(..)
                | Field::Era(..)
                | Field::Zone(_)
                | Field::ZoneHours
                | Field::Offset
        )
    }
}

impl Pattern {
    /// # Errors
    ///
    /// For directions of `strftime`.
    pub(super) fn parse(text: &str) -> Result<Pattern, String> {
        if text.contains('%') {
            return Err(format!(
                "'{text}' looks like a format of strftime: use strftime, or a pattern such as 'YYYY-MM-DD'"
            ));
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        let mut steps = 0usize;
        while let Some(first) = rest.chars().next() {
            steps += 1;
            if steps.is_multiple_of(CHECKED) {
                present::check().map_err(|e| e.to_string())?;
            }
            if first == '"' {
                let (quoted, after) = unquoted(&rest[1..]);
                plain.push_str(&quoted);
                rest = after;
                continue;
            }
            let (prefix, after) = prefixed(rest);
            let Some((field, after)) = field(after) else {
                // A prefix of nothing says nothing.
                if !prefix.is_empty() && after.starts_with('"') {
                    rest = after;
                    continue;
                }
                let mut letters = after.chars();
                plain.extend(letters.next());
                rest = letters.as_str();
                continue;
            };
            let bare = match prefix {
                "fm" => true,
                // In the language of the locale C, and as long as the name is.
                "tm" => field.is_name(),
                _ => false,
            };
            let (ordinal, after) = match after.get(..2) {
                Some("th") => (Ordinal::Lower, &after[2..]),
                Some("TH") => (Ordinal::Upper, &after[2..]),
                // PostgreSQL spells no numbers, and passes over what asks for it.
                Some("SP") => (Ordinal::None, &after[2..]),
                _ => (Ordinal::None, after),
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Field(field, bare, ordinal));
            rest = after;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Pattern(pieces))
    }

    /// The text of `at`, which clocks of this zone show.
    ///
    /// # Errors
    /// If the statement was cancelled.
    pub(super) fn format(&self, at: NaiveDateTime, zone: Option<&Shown>) -> Result<String, Error> {
        self.written(|field, bare| Ok(field.format(at, bare, zone)))
    }

    /// The pattern with the text of each field in its place, which may be wanted without padding.
    ///
    /// # Errors
    /// That of a field, and if the statement was cancelled.
    pub(super) fn written(
        &self,
        part: impl Fn(Field, bool) -> Result<String, Error>,
    ) -> Result<String, Error> {
        let mut text = String::new();
        for (number, piece) in self.0.iter().enumerate() {
            if number % CHECKED == CHECKED - 1 {
                present::check()?;
            }
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Field(field, bare, ordinal) => {
                    let part = part(*field, *bare)?;
                    let ending = ending(&part);
                    text.push_str(&part);
                    match ordinal {
                        _ if matches!(field, Field::MonthRoman(_)) => {}
                        Ordinal::None => {}
                        Ordinal::Lower => text.push_str(ending),
                        Ordinal::Upper => text.push_str(&ending.to_uppercase()),
                    }
                }
            }
        }
        Ok(text)
    }
}

/// The text up to the closing quote, in which a backslash escapes the next character, and what follows.
fn unquoted(text: &str) -> (String, &str) {
    let mut quoted = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (quoted, &text[at + 1..]),
            '\\' => quoted.extend(chars.next().map(|(_, c)| c)),
            c => quoted.push(c),
        }
    }
    (quoted, "")
}

/// What follows `word` at the start of `text`.
fn strip<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let start = text.get(..word.len())?;
    start
        .eq_ignore_ascii_case(word)
        .then(|| &text[word.len()..])
}

/// The prefix at the start of `text`, none if it is empty, and what follows: `FM` is without padding, `TM` in the language of the
/// locale, and `FX` says how a text is read.
fn prefixed(text: &str) -> (&'static str, &str) {
    let found = ["fm", "tm", "fx"]
        .into_iter()
        .find_map(|prefix| Some((prefix, strip(text, prefix)?)));
    found.unwrap_or(("", text))
}

/// The field at the start of `text`, and what follows.
fn field(text: &str) -> Option<(Field, &str)> {
    for (word, letters) in [("RM", Letters::Upper), ("rm", Letters::Lower)] {
        if let Some(after) = text.strip_prefix(word) {
            return Some((Field::MonthRoman(letters), after));
        }
    }
    for (word, of) in MARKS {
        if word == "tz" && (strip(text, "tzh").is_some() || strip(text, "tzm").is_some()) {
            continue;
        }
        if let Some(after) = strip(text, word) {
            let lower = text.starts_with(|c: char| c.is_lowercase());
            return Some((of(lower), after));
        }
    }
    if let Some(after) = strip(text, "ff")
        && let Some(digits @ '1'..='6') = after.chars().next()
    {
        return Some((Field::Fraction(digits as u32 - '0' as u32), &after[1..]));
    }
    let (field, after) = WORDS
        .iter()
        .find_map(|(word, field)| Some((*field, strip(text, word)?)))?;
    let letters = |text: &str| {
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(first), _) if first.is_lowercase() => Letters::Lower,
            (_, Some(second)) if second.is_lowercase() => Letters::Capitalised,
            _ => Letters::Upper,
        }
    };
    let field = match field {
        Field::MonthName(_) => Field::MonthName(letters(text)),
        Field::MonthShort(_) => Field::MonthShort(letters(text)),
        Field::DayName(_) => Field::DayName(letters(text)),
        Field::DayShort(_) => Field::DayShort(letters(text)),
        field => field,
    };
    Some((field, after))
}

/// The century of a year, of which those before 1 are counted from 0 down.
fn century(year: i32, bare: bool) -> String {
    let (century, sign) = if year > 0 {
        ((year + 99) / 100, 0)
    } else {
        // A sign takes a place of its own, but in the last year before Christ.
        (year / 100 - 1, usize::from(year < 0))
    };
    let digits = if bare { 0 } else { 2 + sign };
    format!("{century:0digits$}")
}

impl Field {
    /// The text of this field of `at`, without padding if `bare`. Long because it is a table of all fields.
    fn format(self, at: NaiveDateTime, bare: bool, zone: Option<&Shown>) -> String {
        let padded = |number: i64, digits: usize| {
            if bare {
                number.to_string()
            } else if number < 0 {
                format!("-{:0digits$}", -number)
            } else {
                format!("{number:0digits$}")
            }
        };
        // Years before 1 are counted from 1 backwards.
        let year = |year: i32| i64::from(if year > 0 { year } else { 1 - year });
        let named = |name: &str, letters: Letters, width: usize| {
            let name = match letters {
                Letters::Upper => name.to_uppercase(),
                Letters::Lower => name.to_lowercase(),
                Letters::Capitalised => name.to_string(),
            };
            if bare { name } else { format!("{name:width$}") }
        };
        let (date, time) = (at.date(), at.time());
        let weekday = date.weekday();
        let day_name = DAYS[weekday.num_days_from_sunday() as usize];
        let month_name = MONTHS[date.month0() as usize];
        match self {
            Field::Year(_, true) => {
                let year = year(date.year());
                format!("{},{:03}", year / 1000, year % 1000)
            }
            Field::Year(digits, false) => last_digits(year(date.year()), digits, bare),
            Field::IsoYear(digits) => last_digits(year(date.iso_week().year()), digits, bare),
            Field::Century => century(date.year(), bare),
            Field::Quarter => (date.month0() / 3 + 1).to_string(),
            Field::Month => padded(date.month().into(), 2),
            Field::MonthName(letters) => named(month_name, letters, 9),
            Field::MonthShort(letters) => named(&month_name[..3], letters, 0),
            Field::MonthRoman(letters) => named(ROMAN[11 - date.month0() as usize], letters, 4),
            Field::Week => padded(i64::from(date.ordinal0() / 7 + 1), 2),
            Field::WeekOfMonth => (date.day0() / 7 + 1).to_string(),
            Field::IsoWeek => padded(date.iso_week().week().into(), 2),
            Field::DayOfYear => padded(date.ordinal().into(), 3),
            Field::IsoDayOfYear => {
                let week = i64::from(date.iso_week().week0());
                padded(week * 7 + i64::from(weekday.number_from_monday()), 3)
            }
            Field::Day => padded(date.day().into(), 2),
            Field::DayOfWeek => weekday.number_from_sunday().to_string(),
            Field::IsoDayOfWeek => weekday.number_from_monday().to_string(),
            Field::DayName(letters) => named(day_name, letters, 9),
            Field::DayShort(letters) => named(&day_name[..3], letters, 0),
            // Julian days count from the first of January 4713 before Christ, `num_days_from_ce` from the year 1.
            Field::Julian => (i64::from(date.num_days_from_ce()) + 1_721_425).to_string(),
            Field::Hour12 => padded((time.hour() + 11).rem_euclid(12) as i64 + 1, 2),
            Field::Hour24 => padded(time.hour().into(), 2),
            Field::Minute => padded(time.minute().into(), 2),
            Field::Second => padded(time.second().into(), 2),
            Field::SecondOfDay => time.num_seconds_from_midnight().to_string(),
            Field::Fraction(digits) => {
                let fraction = time.nanosecond() / 10_u32.pow(9 - digits);
                format!("{fraction:0width$}", width = digits as usize)
            }
            Field::HalfDay(lower, points) => {
                let half = if time.hour() < 12 { "AM" } else { "PM" };
                marked(half, lower, points)
            }
            Field::Era(lower, points) => {
                let era = if date.year() > 0 { "AD" } else { "BC" };
                marked(era, lower, points)
            }
            Field::Zone(_) | Field::ZoneHours | Field::ZoneMinutes | Field::Offset => {
                self.of_zone(zone, bare)
            }
        }
    }

    /// The text of a field that is about the zone; what has none is in UTC, without a name.
    fn of_zone(self, zone: Option<&Shown>, bare: bool) -> String {
        let east = zone.map_or(0, |zone| zone.east);
        let sign = if east < 0 { '-' } else { '+' };
        let (hours, minutes) = (east.abs() / 3_600, east.abs() / 60 % 60);
        match self {
            Field::Zone(lower) => match zone {
                Some(zone) if lower => zone.letters.to_lowercase(),
                Some(zone) => zone.letters.clone(),
                None => String::new(),
            },
            Field::ZoneMinutes => format!("{minutes:02}"),
            Field::Offset if minutes != 0 => format!("{sign}{hours:02}:{minutes:02}"),
            Field::Offset if bare => format!("{sign}{hours}"),
            _ => format!("{sign}{hours:02}"),
        }
    }
}

fn last_digits(year: i64, digits: usize, bare: bool) -> String {
    let year = match digits {
        1..=3 => year % 10_i64.pow(digits as u32),
        _ => year,
    };
    if bare {
        year.to_string()
    } else {
        format!("{year:0digits$}")
    }
}

pub(super) fn marked(word: &str, lower: bool, points: bool) -> String {
    let word = if lower {
        word.to_lowercase()
    } else {
        word.to_string()
    };
    if points {
        word.chars().flat_map(|c| [c, '.']).collect()
    } else {
        word
    }
}

/// `st`, `nd`, `rd` or `th`.
fn ending(number: &str) -> &'static str {
    if number.ends_with("11") || number.ends_with("12") || number.ends_with("13") {
        return "th";
    }
    match number.chars().last() {
        Some('1') => "st",
        Some('2') => "nd",
        Some('3') => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_say_what_postgresql_says() {
        let at: NaiveDateTime = "2021-03-04T15:06:07.089012".parse().unwrap();
        for (pattern, wanted) in [
            ("YYYY-MM-DD HH24:MI:SS.US", "2021-03-04 15:06:07.089012"),
            ("yyyy-mm-dd hh12:mi:ss.ms am", "2021-03-04 03:06:07.089 pm"),
            ("FMDD. FMMonth YYYY", "4. March 2021"),
            ("Month|MONTH|mon|Mon|MON", "March    |MARCH    |mar|Mar|MAR"),
            ("Day|FMDay|DY|dy", "Thursday |Thursday|THU|thu"),
            ("Y,YYY YYY YY Y", "2,021 021 21 1"),
            ("IYYY-IW-ID", "2021-09-4"),
            ("DDD WW W D Q CC J", "063 09 1 5 1 21 2459278"),
            ("DDth FMMMth DDTH", "04th 3rd 04TH"),
            ("SSSS SSSSS", "54367 54367"),
            ("FF1 FF3 FF6", "0 089 089012"),
            ("P.M. a.m.", "P.M. p.m."),
            ("\"year\" YYYY \"a\\\"b\"", "year 2021 a\"b"),
            ("HH:MI", "03:06"),
            ("AD b.c.", "AD a.d."),
            ("x-YYYY", "x-2021"),
            ("TMMonth|TMDAY|tmdy|TMMon", "March|THURSDAY|thu|Mar"),
            ("TMDD TMMM TMDDD TMDDth", "04 03 063 04th"),
            ("FXYYYY FMTMMonth", "2021 T03onth"),
            ("RM|rm|FMRM|rM", "III |iii |III|rM"),
            ("DDSP DDsp", "04 04sp"),
        ] {
            let found = Pattern::parse(pattern).unwrap().format(at, None).unwrap();
            assert_eq!(found, wanted, "{pattern}");
        }
        let midnight: NaiveDateTime = "2000-01-01T00:00:00".parse().unwrap();
        let found = Pattern::parse("HH12 HH24 AM J")
            .unwrap()
            .format(midnight, None)
            .unwrap();
        assert_eq!(found, "12 00 AM 2451545");
        assert!(Pattern::parse("%Y").is_err());
    }
}
