//! Time zones by their abbreviations, names and offsets.

use std::str::FromStr;

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{OffsetComponents, OffsetName, TZ_VARIANTS, Tz};

use crate::temporal::abbreviations::{ABBREVIATIONS, CHANGED};
use crate::temporal::calendar::{civil, days, weekday};

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zone {
    /// So many seconds to the east of UTC.
    Fixed(i64),
    /// The same, with letters of its own.
    Lettered(Letters, i64),
    /// One of the database of zones.
    Named(Tz),
    /// The abbreviation of Moscow's time, which was an hour more from 2011 to 2014.
    Moscow,
}

/// When Moscow's time was an hour more.
const MOSCOW: std::ops::Range<i64> = 1_301_180_400..1_414_274_400;

/// The zone of an abbreviation in lower case, if it is one.
pub(crate) fn abbreviated(word: &str) -> Option<Zone> {
    if word == "msk" {
        return Some(Zone::Moscow);
    }
    let found = ABBREVIATIONS.iter().find(|(own, _)| *own == word);
    let found = found.map(|(_, minutes)| Zone::Fixed(minutes * 60));
    found.or_else(|| {
        let (_, name) = CHANGED.iter().find(|(own, _)| *own == word)?;
        named(name)
    })
}

/// The zone of a name such as `europe/berlin`, whatever its case.
pub(crate) fn named(name: &str) -> Option<Zone> {
    // A sign or a digit at the start would be an offset.
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || name.len() > 64 {
        return None;
    }
    let found = Tz::from_str(name).ok().or_else(|| {
        let mut all = TZ_VARIANTS.iter();
        all.find(|own| own.name().eq_ignore_ascii_case(name))
            .copied()
    });
    found.map(Zone::Named)
}

/// The most letters of a zone of POSIX.
const MOST_LETTERS: usize = 10;

/// The letters of a zone of POSIX, which are shown where others have their abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Letters([u8; MOST_LETTERS]);

impl Letters {
    fn of(text: &str) -> Option<Letters> {
        let mut all = [0; MOST_LETTERS];
        all.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Letters(all))
    }

    fn text(&self) -> String {
        let letters = self.0.iter().take_while(|byte| **byte != 0);
        letters.map(|byte| char::from(*byte)).collect()
    }
}

/// The most hours that a zone may be set to be from UTC: a week, as in POSIX.
const MOST_HOURS: f64 = 167.0;

/// The zone that a session is set to be in, and what it is called from then on: a name, so many hours to the east, or what
/// POSIX has, whose offsets are counted to the west.
pub(crate) fn of_setting(text: &str) -> Option<(String, Zone)> {
    let text = text.trim();
    if let Ok(hours) = text.parse::<f64>() {
        if hours.is_finite() && hours.abs() <= MOST_HOURS {
            return Some(from_utc((hours * 3_600.0) as i64));
        }
        return None;
    }
    if let Some(Zone::Named(zone)) = named(text) {
        return Some((zone.name().to_string(), Zone::Named(zone)));
    }
    if let Some((letters, offset)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        let east = -west(offset)?;
        let zone = if letters == numeric(east, ":") {
            Zone::Fixed(east)
        } else {
            Zone::Lettered(Letters::of(letters)?, east)
        };
        return Some((text.to_uppercase(), zone));
    }
    let end = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let (letters, offset) = text.split_at(end);
    if !letters.is_empty() && letters.len() < 3 {
        return None;
    }
    let name = text.to_uppercase();
    let letters = Letters::of(&letters.to_uppercase())?;
    Some((name, Zone::Lettered(letters, -west(offset)?)))
}

/// The zone so many seconds to the east, as a session is set to be in it, and its name.
pub(crate) fn from_utc(east: i64) -> (String, Zone) {
    let shown = numeric(east, ":");
    let other = numeric(-east, ":");
    let other = if east == 0 { "-00" } else { other.as_str() };
    (format!("<{shown}>{other}"), Zone::Fixed(east))
}

/// Seconds of an offset, whose sign may be left out.
fn west(text: &str) -> Option<i64> {
    let signed = if text.starts_with(['+', '-']) {
        text.to_string()
    } else {
        format!("+{text}")
    };
    displacement(&signed).ok()
}

/// `-08`, `+0530` and its kin.
fn numeric(east: i64, mark: &str) -> String {
    let sign = if east < 0 { '-' } else { '+' };
    let all = east.abs();
    let mut text = format!("{sign}{:02}", all / 3_600);
    if all % 3_600 != 0 {
        text += &format!("{mark}{:02}", all / 60 % 60);
    }
    if all % 60 != 0 {
        text += &format!("{mark}{:02}", all % 60);
    }
    text
}

/// The zone that `at time zone` and its kin take: an abbreviation, a name or an offset, which is counted to the west as in
/// POSIX.
pub fn of_text(text: &str) -> Option<Zone> {
    let word = text.trim().to_lowercase();
    if let Some(zone) = abbreviated(&word).or_else(|| named(text.trim())) {
        return Some(zone);
    }
    posix(&word)
}

/// The zone of `gmt+8` and `pst08`: of three letters or more, or of none, and an offset, which is counted to the west.
pub(crate) fn posix(text: &str) -> Option<Zone> {
    let offset = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letters = text.len() - offset.len();
    if offset.is_empty() || matches!(letters, 1 | 2) {
        return None;
    }
    Some(Zone::Fixed(-west(offset)?))
}

/// Why a text is no displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displaced {
    /// It is not written like one.
    Syntax,
    /// It is more than zones are apart.
    Range,
}

/// Seconds to the east of `+01`, `-03:30`, `+0530`, `+01:02:03`.
///
/// # Errors
/// Why it is none.
pub(crate) fn displacement(text: &str) -> Result<i64, Displaced> {
    let (east, body) = match text.as_bytes().first() {
        Some(b'+') => (true, &text[1..]),
        Some(b'-') => (false, &text[1..]),
        _ => return Err(Displaced::Syntax),
    };
    let number = |digits: &str| -> Result<i64, Displaced> {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Displaced::Syntax);
        }
        digits.parse().map_err(|_| Displaced::Range)
    };
    let parts: Vec<&str> = body.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [one] if one.len() > 2 => {
            let all = number(one)?;
            (all / 100, all % 100, 0)
        }
        [hours] => (number(hours)?, 0, 0),
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return Err(Displaced::Syntax),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Displaced::Range);
    }
    let all = hours * 3_600 + minutes * 60 + seconds;
    Ok(if east { all } else { -all })
}

/// From here on, the rules of the years before are those of all years: the database of zones ends with the century.
const RULES_FROM: i64 = 4_070_908_800;

/// An instant with the same rules for clocks as the one `seconds` from 1970 on, in a year that the database knows.
fn within_rules(seconds: i64) -> i64 {
    if seconds < RULES_FROM {
        return seconds;
    }
    let day = seconds.div_euclid(86_400);
    let (year, _, _) = civil(day);
    let (first, next) = (days(year, 1, 1), days(year + 1, 1, 1));
    // The latest: some zones have rules of their own for each of many years.
    let alike = (2_071..2_099).rev().find(|own| {
        let other = days(*own, 1, 1);
        weekday(other) == weekday(first) && days(own + 1, 1, 1) - other == next - first
    });
    match alike {
        Some(own) => seconds - (first - days(own, 1, 1)) * 86_400,
        None => seconds,
    }
}

/// What clocks of a zone show at an instant.
fn span(zone: Tz, seconds: i64) -> Option<<Tz as TimeZone>::Offset> {
    let at = DateTime::from_timestamp(within_rules(seconds), 0)?.naive_utc();
    Some(zone.offset_from_utc_datetime(&at))
}

impl Zone {
    /// UTC.
    pub(crate) const UTC: Zone = Zone::Named(Tz::UTC);

    /// Whether the zone is UTC at all times.
    pub fn is_utc(self) -> bool {
        match self {
            Zone::Fixed(east) | Zone::Lettered(_, east) => east == 0,
            Zone::Named(zone) => matches!(
                zone.name(),
                "UTC"
                    | "Etc/UTC"
                    | "UCT"
                    | "Etc/UCT"
                    | "GMT"
                    | "Etc/GMT"
                    | "GMT0"
                    | "GMT+0"
                    | "GMT-0"
                    | "Greenwich"
                    | "Universal"
                    | "Zulu"
                    | "Etc/Zulu"
                    | "Etc/Universal"
            ),
            Zone::Moscow => false,
        }
    }

    /// Seconds to the east at an instant, in seconds from 1970 on.
    pub fn at_instant(self, seconds: i64) -> Option<i64> {
        match self {
            Zone::Fixed(east) | Zone::Lettered(_, east) => Some(east),
            // Most sessions are there.
            Zone::Named(Tz::UTC) => Some(0),
            Zone::Named(zone) => {
                let offset = span(zone, seconds)?;
                Some(offset.fix().local_minus_utc().into())
            }
            Zone::Moscow => Some(if MOSCOW.contains(&seconds) {
                14_400
            } else {
                10_800
            }),
        }
    }

    /// Seconds to the east when clocks show a time, in seconds from 1970 on as if they showed UTC. A time that occurs
    /// twice, when summer time ends, is the later one; one that is skipped, when it begins, is read as if the clocks had
    /// not changed.
    pub(crate) fn at_local(self, seconds: i64) -> Option<i64> {
        match self {
            Zone::Fixed(east) | Zone::Lettered(_, east) => return Some(east),
            Zone::Named(Tz::UTC) => return Some(0),
            Zone::Named(_) => {}
            Zone::Moscow => {
                let probable = named("Europe/Moscow")?.at_local(seconds)?;
                return self.at_instant(seconds - probable);
            }
        }
        let (before, after) = (
            self.at_instant(seconds - 86_400)?,
            self.at_instant(seconds + 86_400)?,
        );
        let so = |east: i64| Some(self.at_instant(seconds - east)? == east);
        Some(if so(after)? { after } else { before })
    }

    /// What clocks there are said to show at an instant: `PST`, `-08`.
    pub fn abbreviation(self, seconds: i64) -> String {
        match self {
            Zone::Fixed(east) => numeric(east, ":"),
            Zone::Lettered(letters, _) => letters.text(),
            Zone::Named(zone) => span(zone, seconds).map_or_else(String::new, |offset| {
                let east = i64::from(offset.fix().local_minus_utc());
                offset
                    .abbreviation()
                    .map_or_else(|| numeric(east, ""), str::to_string)
            }),
            Zone::Moscow => "MSK".to_string(),
        }
    }

    /// Whether clocks there show summer time at an instant.
    pub fn is_summer(self, seconds: i64) -> bool {
        match self {
            Zone::Named(zone) => {
                let offset = span(zone, seconds);
                offset.is_some_and(|offset| offset.dst_offset() != chrono::TimeDelta::zero())
            }
            _ => false,
        }
    }

    /// Seconds to the east, if they are always the same.
    pub(crate) fn fixed(self) -> Option<i64> {
        match self {
            Zone::Fixed(east) | Zone::Lettered(_, east) => Some(east),
            // That of now.
            Zone::Moscow => Some(10_800),
            Zone::Named(_) => {
                // Two months of each of many years tell whether clocks change, or ever have.
                let months =
                    (0..2_400).map(|month| self.at_instant(month * 2_592_000 - 2_208_988_800));
                let mut all = months.flatten();
                let first = all.next()?;
                all.all(|other| other == first).then_some(first)
            }
        }
    }
}

/// The names of all zones of the database, in order.
pub fn names() -> impl Iterator<Item = (&'static str, Zone)> {
    let all = TZ_VARIANTS.iter();
    all.map(|zone| (zone.name(), Zone::Named(*zone)))
}

/// All abbreviations, in lower case, and seconds to the east at an instant.
pub fn abbreviations(seconds: i64) -> impl Iterator<Item = (&'static str, i64)> {
    let all = ABBREVIATIONS.iter();
    let all = all.map(|(word, minutes)| (*word, minutes * 60));
    let changed = CHANGED.iter().filter_map(move |(word, name)| {
        let east = named(name)?.at_instant(seconds)?;
        Some((*word, east))
    });
    all.chain([("msk", 10_800)]).chain(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_whatever_their_case() {
        let summer = 1_720_000_000;
        for (text, wanted) in [
            ("PST", Some(-28_800)),
            ("utc", Some(0)),
            ("Europe/Berlin", Some(7_200)),
            ("europe/berlin", Some(7_200)),
            ("AMERICA/NEW_YORK", Some(-14_400)),
            ("america/port_of_spain", Some(-14_400)),
            ("MSK", Some(10_800)),
            ("+02:00", Some(-7_200)),
            ("UTC+3", Some(-10_800)),
            ("Nowhere/There", None),
            ("", None),
        ] {
            let found = of_text(text).and_then(|zone| zone.at_instant(summer));
            assert_eq!(found, wanted, "{text:?}");
        }
    }

    #[test]
    fn clocks_that_change() {
        let zone = named("Europe/Berlin").unwrap();
        // The 31st of March 2024, 02:30, is skipped, the 27th of October, 02:30, occurs twice.
        assert_eq!(zone.at_local(1_711_852_200), Some(3_600));
        assert_eq!(zone.at_local(1_729_996_200), Some(3_600));
        assert_eq!(zone.fixed(), None);
        assert_eq!(named("Etc/GMT+5").and_then(Zone::fixed), Some(-18_000));
    }

    #[test]
    fn sessions_are_set_to_zones() {
        for (text, name, letters, east) in [
            ("europe/BERLIN", "Europe/Berlin", "CEST", 7_200),
            ("-8", "<-08>+08", "-08", -28_800),
            ("5.5", "<+05:30>-05:30", "+05:30", 19_800),
            ("<-08>+08", "<-08>+08", "-08", -28_800),
            ("PST8PDT", "PST8PDT", "PDT", -25_200),
            ("abc3", "ABC3", "ABC", -10_800),
            ("+02:00", "+02:00", "", -7_200),
            ("utc", "UTC", "UTC", 0),
        ] {
            let (found, zone) = of_setting(text).unwrap();
            let summer = 1_720_000_000;
            assert_eq!(found, name, "{text}");
            assert_eq!(zone.abbreviation(summer), letters, "{text}");
            assert_eq!(zone.at_instant(summer), Some(east), "{text}");
        }
        for text in ["PST", "Nowhere", "1000", "ab3", "", "Europe/Berlin2"] {
            assert_eq!(of_setting(text), None, "{text}");
        }
    }

    #[test]
    fn rules_go_on_beyond_the_century() {
        let zone = named("America/New_York").unwrap();
        let at = |year, month, day| days(year, month, day) * 86_400;
        for year in [2_037, 2_099, 2_100, 2_400, 9_999] {
            assert_eq!(zone.at_instant(at(year, 1, 15)), Some(-18_000), "{year}");
            assert_eq!(zone.at_instant(at(year, 7, 15)), Some(-14_400), "{year}");
            assert_eq!(zone.at_local(at(year, 7, 15)), Some(-14_400), "{year}");
        }
    }

    #[test]
    fn displacements() {
        for (text, wanted) in [
            ("+01", Ok(3_600)),
            ("-03:30", Ok(-12_600)),
            ("+0530", Ok(19_800)),
            ("+530", Ok(19_800)),
            ("-01:02:03", Ok(-3_723)),
            ("+16", Err(Displaced::Range)),
            ("+x", Err(Displaced::Syntax)),
            ("1", Err(Displaced::Syntax)),
        ] {
            assert_eq!(displacement(text), wanted, "{text}");
        }
    }
}
