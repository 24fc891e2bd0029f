//! Time zones by their abbreviations, names and offsets.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};

/// A time zone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Zone {
    /// So many seconds to the east of UTC.
    Fixed(i64),
    /// One whose clocks change.
    Named(Tz),
    /// The abbreviation of Moscow's time, which was an hour more from 2011 to 2014.
    Moscow,
}

/// Abbreviations with their minutes to the east of UTC: those that PostgreSQL knows unless it is told otherwise, and whose
/// meaning has never changed.
const ABBREVIATIONS: [(&str, i64); 145] = [
    ("acdt", 630),
    ("acsst", 630),
    ("acst", 570),
    ("act", -300),
    ("acwst", 525),
    ("adt", -180),
    ("aedt", 660),
    ("aesst", 660),
    ("aest", 600),
    ("aft", 270),
    ("akdt", -480),
    ("akst", -540),
    ("almst", 420),
    ("almt", 360),
    ("amt", -240),
    ("ast", -240),
    ("awsst", 540),
    ("awst", 480),
    ("azost", 0),
    ("azot", -60),
    ("bdst", 120),
    ("bdt", 360),
    ("bnt", 480),
    ("bort", 480),
    ("bot", -240),
    ("bra", -180),
    ("brst", -120),
    ("brt", -180),
    ("bst", 60),
    ("btt", 360),
    ("cadt", 630),
    ("cast", 570),
    ("cct", 480),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("cetdst", 120),
    ("chadt", 825),
    ("chast", 765),
    ("chut", 600),
    ("clst", -180),
    ("cot", -300),
    ("cst", -360),
    ("cxt", 420),
    ("ddut", 600),
    ("eat", 180),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("eetdst", 180),
    ("egst", 0),
    ("egt", -60),
    ("est", -300),
    ("fet", 180),
    ("fjst", 780),
    ("fjt", 720),
    ("fnst", -60),
    ("fnt", -120),
    ("galt", -360),
    ("gamt", -540),
    ("gft", -180),
    ("gilt", 720),
    ("gmt", 0),
    ("hkt", 480),
    ("hst", -600),
    ("ict", 420),
    ("idt", 180),
    ("irt", 210),
    ("ist", 120),
    ("jayt", 540),
    ("jst", 540),
    ("kdt", 600),
    ("kgst", 360),
    ("kst", 540),
    ("lhst", 630),
    ("ligt", 600),
    ("mart", -570),
    ("mdt", -360),
    ("mest", 120),
    ("mesz", 120),
    ("met", 60),
    ("metdst", 120),
    ("mez", 60),
    ("mht", 720),
    ("mmt", 390),
    ("mpt", 600),
    ("msd", 240),
    ("mst", -420),
    ("must", 300),
    ("mut", 240),
    ("mvt", 300),
    ("myt", 480),
    ("ndt", -150),
    ("nft", -210),
    ("npt", 345),
    ("nst", -210),
    ("nzdt", 780),
    ("nzst", 720),
    ("nzt", 720),
    ("pdt", -420),
    ("pet", -300),
    ("pgt", 600),
    ("pht", 480),
    ("pkst", 360),
    ("pkt", 300),
    ("pmdt", -120),
    ("pmst", -180),
    ("pont", 660),
    ("pst", -480),
    ("pwt", 540),
    ("pyst", -180),
    ("ret", 240),
    ("sadt", 630),
    ("sast", 120),
    ("sct", 240),
    ("taht", -600),
    ("tft", 300),
    ("tjt", 300),
    ("tot", 780),
    ("trut", 600),
    ("tvt", 720),
    ("uct", 0),
    ("ulast", 540),
    ("ut", 0),
    ("utc", 0),
    ("uyst", -120),
    ("uyt", -180),
    ("uzst", 360),
    ("uzt", 300),
    ("vut", 660),
    ("wadt", 480),
    ("wakt", 720),
    ("wast", 420),
    ("wat", 60),
    ("wdt", 540),
    ("wet", 0),
    ("wetdst", 60),
    ("wft", 720),
    ("wgst", -120),
    ("wgt", -180),
    ("xjt", 360),
    ("yapt", 600),
    ("yekst", 360),
    ("z", 0),
    ("zulu", 0),
];

/// When Moscow's time was an hour more.
const MOSCOW: std::ops::Range<i64> = 1_301_180_400..1_414_274_400;

/// The zone of an abbreviation in lower case, if it is one.
pub(crate) fn abbreviated(word: &str) -> Option<Zone> {
    if word == "msk" {
        return Some(Zone::Moscow);
    }
    let found = ABBREVIATIONS.iter().find(|(own, _)| *own == word);
    found.map(|(_, minutes)| Zone::Fixed(minutes * 60))
}

/// The zone of a name such as `europe/berlin`, whatever its case.
pub(crate) fn named(name: &str) -> Option<Zone> {
    // A sign or a digit at the start would be an offset.
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || name.len() > 64 {
        return None;
    }
    let mut title = String::with_capacity(name.len());
    let mut first = true;
    let mut word = String::new();
    let end = |word: &mut String, title: &mut String| {
        // The small words of `Port_of_Spain` and its kind.
        if matches!(word.as_str(), "Of" | "Es" | "Au") && !title.is_empty() {
            *word = word.to_lowercase();
        }
        title.push_str(word);
        word.clear();
    };
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            word.extend(if first {
                letter.to_uppercase().collect::<Vec<_>>()
            } else {
                letter.to_lowercase().collect::<Vec<_>>()
            });
            first = false;
        } else {
            end(&mut word, &mut title);
            title.push(letter);
            first = true;
        }
    }
    end(&mut word, &mut title);
    let spellings = [name.to_string(), title, name.to_uppercase()];
    let found = spellings.iter().find_map(|own| Tz::from_str(own).ok());
    found.map(Zone::Named)
}

/// The zone that `at time zone` and its kin take: an abbreviation, a name or an offset, which is counted to the west as in
/// POSIX.
pub(crate) fn of_text(text: &str) -> Option<Zone> {
    let word = text.trim().to_lowercase();
    if let Some(zone) = abbreviated(&word).or_else(|| named(text.trim())) {
        return Some(zone);
    }
    let body = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if body.is_empty() {
        return None;
    }
    let letters = word.len() - body.len();
    if letters == 0 || letters >= 3 {
        let signed = if body.starts_with(['+', '-']) {
            body.to_string()
        } else {
            format!("+{body}")
        };
        let east = displacement(&signed).ok()?;
        // With a zone's own letters and without them, POSIX counts to the west.
        return Some(Zone::Fixed(-east));
    }
    None
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

impl Zone {
    /// Seconds to the east at an instant, in seconds from 1970 on.
    pub(crate) fn at_instant(self, seconds: i64) -> Option<i64> {
        match self {
            Zone::Fixed(east) => Some(east),
            Zone::Named(zone) => {
                let at = DateTime::from_timestamp(seconds, 0)?.naive_utc();
                Some(east(zone, &at))
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
        let zone = match self {
            Zone::Fixed(east) => return Some(east),
            Zone::Named(zone) => zone,
            Zone::Moscow => {
                let probable = named("Europe/Moscow")?.at_local(seconds)?;
                return self.at_instant(seconds - probable);
            }
        };
        let local = DateTime::from_timestamp(seconds, 0)?.naive_utc();
        match zone.from_local_datetime(&local).latest() {
            Some(found) => Some(found.offset().fix().local_minus_utc().into()),
            None => {
                let before = local.checked_sub_signed(TimeDelta::hours(30))?;
                Some(east(zone, &before))
            }
        }
    }

    /// Seconds to the east, if they are always the same.
    pub(crate) fn fixed(self) -> Option<i64> {
        match self {
            Zone::Fixed(east) => Some(east),
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

fn east(zone: Tz, at: &NaiveDateTime) -> i64 {
    zone.offset_from_utc_datetime(at)
        .fix()
        .local_minus_utc()
        .into()
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
