//! What attributes of files say by the CF conventions: which of them are kept, and which values are times.

use array::{Column, DataType, Entries, MetadataValue, Scalar, Time};

use crate::options::Times;

/// Attributes that say how a file has its values, or which of its other variables belong to one. They are not kept: values
/// are decoded when they are read, and coded anew when they are written.
const OF_THE_FILE: [&str; 23] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "DIMENSION_LABELS",
    "REFERENCE_LIST",
    "_ARRAY_DIMENSIONS",
    "_FillValue",
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_Unsigned",
    "_nc3_strict",
    "add_offset",
    "ancillary_variables",
    "bounds",
    "cell_measures",
    "climatology",
    "coordinates",
    "dtype",
    "formula_terms",
    "grid_mapping",
    "missing_value",
    "scale_factor",
];

/// Attributes that count packed values.
const OF_PACKED: [&str; 4] = ["actual_range", "valid_max", "valid_min", "valid_range"];

/// The most bytes of an attribute that is kept.
const MOST_BYTES: usize = 32 << 10;

/// The most numbers or texts of an attribute that is kept.
const MOST_VALUES: usize = 1024;

/// The most bytes of the attributes of a variable or a file that are kept.
const MOST_TOGETHER: usize = 256 << 10;

/// The longest name of an attribute.
const LONGEST: usize = 255;

/// The attributes that are kept of those of a variable, or of the file; `packed` if its values are unpacked. `notes` says
/// which are left out because they are too long; `of` is whose they are.
pub(crate) fn kept(
    attributes: &[(String, MetadataValue)],
    (of, packed): (&str, bool),
    notes: &mut Vec<String>,
) -> Entries {
    let mut entries = Entries::new();
    let mut together = 0;
    for (name, value) in attributes {
        let of_the_file = OF_THE_FILE.contains(&name.as_str());
        let no_name = name.is_empty() || name.contains(char::is_control);
        if of_the_file || no_name || (packed && OF_PACKED.contains(&name.as_str())) {
            continue;
        }
        let (bytes, values) = match value {
            MetadataValue::Numbers(numbers) => (numbers.len() * 8, numbers.len()),
            MetadataValue::Texts(texts) => (texts.iter().map(String::len).sum(), texts.len()),
        };
        if values == 0 {
            continue;
        }
        if bytes > MOST_BYTES
            || values > MOST_VALUES
            || name.len() > LONGEST
            || together + bytes > MOST_TOGETHER
        {
            let name: String = name.chars().take(80).collect();
            notes.push(format!(
                "the attribute '{name}' of {of} is too long to be kept"
            ));
            continue;
        }
        together += bytes + name.len();
        entries.push((name.clone(), value.clone()));
    }
    entries
}

/// The type and the bytes, little-endian, of the numbers of an attribute `name` of a variable whose values have the type
/// `of`: theirs where the conventions ask for it, else whole numbers of 32 bits, of 64 where `long` says that the file has
/// them, or doubles. `None` if there are none.
pub(crate) fn numbers(
    (name, numbers): (&str, &[Scalar]),
    of: Option<DataType>,
    long: bool,
) -> Option<(DataType, Vec<u8>)> {
    // Truth values are bytes.
    let plain: Vec<Scalar> = numbers
        .iter()
        .map(|of| match of {
            Scalar::Bool(truth) => Scalar::Int((*truth).into()),
            other => *other,
        })
        .collect();
    let asked = OF_PACKED.contains(&name) || name == "missing_value" || name.starts_with("flag_");
    let own = of.filter(|&of| asked && of != DataType::Bool);
    let shorter = [Some(DataType::I32), long.then_some(DataType::I64)];
    let whole = plain.iter().all(|of| matches!(of, Scalar::Int(_)));
    let usual = shorter.into_iter().flatten().filter(|_| whole);
    let types = own.into_iter().chain(usual).chain([DataType::F64]);
    let mut fitting = types.filter_map(|of| {
        // A whole number that a double does not keep is not written as another.
        let keeps = |value: &Scalar| match (value, value.cast(of)?) {
            (Scalar::Int(whole), Scalar::Float(float)) if float as i128 != *whole => None,
            (_, cast) => Some(cast),
        };
        let cast: Option<Vec<Scalar>> = plain.iter().map(keeps).collect();
        let column = Column::of_scalars(of, &cast?).ok()?;
        Some((of, column.values().bytes().to_vec()))
    });
    fitting.next().filter(|(_, bytes)| !bytes.is_empty())
}

/// How values with these attributes are times, if they are: by their `units`, such as `days since 2000-01-01`, and a
/// `calendar` whose days are those of SQL.
pub(crate) fn time(entries: &[(String, MetadataValue)], times: Times) -> Option<Time> {
    let text = |name: &str| {
        let found = entries.iter().find(|(of, _)| of == name);
        match found.map(|(_, value)| value) {
            Some(MetadataValue::Texts(texts)) => texts.first().map(|of| of.trim()),
            _ => None,
        }
    };
    let calendar = match (times, text("calendar")) {
        (Times::Never, _) | (Times::Said, None) => return None,
        (_, calendar) => calendar.unwrap_or("standard").to_ascii_lowercase(),
    };
    let time = since(text("units")?)?;
    match calendar.as_str() {
        "proleptic_gregorian" => Some(time),
        "standard" | "gregorian" => time.from_1582(),
        _ => None,
    }
}

/// Whether attributes have units that count from a moment, whatever the calendar.
pub(crate) fn counts_from_a_moment(entries: &[(String, MetadataValue)]) -> bool {
    entries.iter().any(|(name, value)| {
        let texts = match value {
            MetadataValue::Texts(texts) if name == "units" => &texts[..],
            _ => &[],
        };
        texts.iter().any(|text| since(text.trim()).is_some())
    })
}

/// Units since a moment: `hours since 1900-01-01 00:00:0.0`. `None` of all else, and of units without a fixed length.
fn since(units: &str) -> Option<Time> {
    let lower = units.to_ascii_lowercase();
    let mut words = lower.split_ascii_whitespace();
    let unit = match words.next()? {
        "microsecond" | "microseconds" | "microsec" | "microsecs" | "us" => 1,
        "millisecond" | "milliseconds" | "millisec" | "millisecs" | "msec" | "msecs" | "ms" => 1000,
        "second" | "seconds" | "sec" | "secs" | "s" => 1_000_000,
        "minute" | "minutes" | "min" | "mins" => 60_000_000,
        "hour" | "hours" | "hr" | "hrs" | "h" => 3_600_000_000,
        "day" | "days" | "d" => 86_400_000_000,
        _ => return None,
    };
    if words.next()? != "since" {
        return None;
    }
    let rest = words.collect::<Vec<_>>().join(" ");
    Time::new(moment(&rest)?, unit)
}

/// A date, perhaps with a time and a zone, in microseconds from 1970 on.
fn moment(text: &str) -> Option<i64> {
    let (date, rest) = match text.find([' ', 't']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, ""),
    };
    let mut parts = date.split('-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || date.len() > 16 {
        return None;
    }
    let days = days_from_1970(year, month, day)?;
    let seconds = days.checked_mul(86_400_000_000)?;
    seconds.checked_add(clock(rest.trim())?)
}

/// A time of day, and a zone or none, in microseconds: what is added to the date to have the moment.
fn clock(text: &str) -> Option<i64> {
    let end = text.find(|of: char| !matches!(of, '0'..='9' | ':' | '.'));
    let (time, zone) = text.split_at(end.unwrap_or(text.len()));
    let mut parts = time.split(':');
    let hour = match parts.next()? {
        "" => 0,
        hour => number(hour)?,
    };
    let minute = parts.next().map_or(Some(0), number)?;
    let micros = parts.next().map_or(Some(0), seconds)?;
    let fits = hour < 24 && minute < 60 && micros < 60_000_000 && parts.next().is_none();
    let offset = offset(zone.trim())?;
    fits.then(|| (hour * 60 + minute - offset) * 60_000_000 + micros)
}

/// Seconds with a fraction, in microseconds; `None` of more digits.
fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 6 {
        return None;
    }
    let micros = match fraction {
        "" => 0,
        _ => number(&format!("{fraction:0<6}"))?,
    };
    Some(number(whole)? * 1_000_000 + micros)
}

/// A zone, in minutes east of Greenwich.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1) {
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        _ => return matches!(text, "" | "z" | "utc" | "gmt").then_some(0),
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) => (number(hours)?, number(minutes)?),
        None if rest.len() > 2 => {
            let all = number(rest)?;
            (all / 100, all % 100)
        }
        None => (number(rest)?, 0),
    };
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// A whole number of a few digits without a sign.
fn number(text: &str) -> Option<i64> {
    let digits = (1..=6).contains(&text.len()) && text.bytes().all(|of| of.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// The days from 1970-01-01 to a date of the Gregorian calendar; `None` if it has no such date.
fn days_from_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1 || day < 1 || day > length {
        return None;
    }
    // Years begin in March, so that leap days end them; eras have 400 years.
    let shifted = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (shifted / 400, shifted % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(era * 146_097 + days - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(units: &str, calendar: Option<&str>) -> Entries {
        let calendar = calendar.map(|of| ("calendar".to_owned(), of.into()));
        let units = ("units".to_owned(), units.into());
        [units].into_iter().chain(calendar).collect()
    }

    #[test]
    fn units_since_a_moment_are_read() {
        for (units, number, expected) in [
            ("days since 1970-01-01", 1, 86_400_000_000),
            ("days since 2000-3-1", 0, 951_868_800_000_000),
            (
                "Hours since 1900-01-01 00:00:0.0",
                0,
                -2_208_988_800_000_000,
            ),
            ("seconds since 1970-01-01T00:00:01Z", 1, 2_000_000),
            ("seconds since 1970-01-01 00:00:00.25 UTC", 1, 1_250_000),
            ("minutes since 1970-01-01 12:30", 0, 45_000_000_000),
            ("hours since 1970-01-01 00:00:00 -5:00", 0, 18_000_000_000),
            ("hours since 1970-01-01 00:00:00 +0530", 0, -19_800_000_000),
            ("hours since 1970-01-01 00:00:00+01", 1, 0),
            ("milliseconds since 1970-01-01", 5, 5000),
            ("microseconds since 1970-01-01", 5, 5),
            ("days since 0001-01-01", 719_162, 0),
        ] {
            let time = time(&entries(units, Some("proleptic_gregorian")), Times::Said);
            let found = time.and_then(|of| of.of_whole(number));
            assert_eq!(found, Some(expected), "{units}");
        }
    }

    #[test]
    fn other_units_and_calendars_are_numbers() {
        for units in [
            "",
            "K",
            "days",
            "days since",
            "days since never",
            "days since 1970",
            "days since 1970-02-30",
            "days since 1970-13-01",
            "days since 0000-01-01",
            "days since -4713-01-01",
            "days since 1970-01-01-01",
            "days since 1970-01-01 25:00",
            "days since 1970-01-01 10:00 Berlin",
            "days since 1970-01-01 10:00:00.1234567",
            "days since 99999999999999999999-01-01",
            "days since 999999-01-01",
            "days since ä1970-01-01",
            "days since 1970-01-01 +ä",
            "months since 1970-01-01",
            "years since 1970-01-01",
            "nanoseconds since 1970-01-01",
            "1e300 days since 1970-01-01",
            "days after 1970-01-01",
        ] {
            let entries = entries(units, Some("standard"));
            assert_eq!(time(&entries, Times::Said), None, "{units}");
        }
        let of = |units: &str, calendar, times| time(&entries(units, calendar), times).is_some();
        let days = "days since 1970-01-01";
        for calendar in [
            "noleap", "365_day", "360_day", "julian", "all_leap", "none", "",
        ] {
            assert!(!of(days, Some(calendar), Times::Always), "{calendar}");
        }
        assert!(of(days, Some("Gregorian"), Times::Said));
        assert!(!of(days, None, Times::Said), "nothing is said");
        assert!(
            of(days, None, Times::Always),
            "CF's calendar is the standard one"
        );
        assert!(!of(days, Some("standard"), Times::Never));
        let early = "days since 0001-01-01";
        assert!(
            !of(early, Some("standard"), Times::Always),
            "of the Julian calendar"
        );
        assert!(of(early, Some("proleptic_gregorian"), Times::Said));
    }

    #[test]
    fn what_only_the_file_needs_is_not_kept() {
        let numbers = |count: usize| MetadataValue::Numbers(vec![Scalar::Int(1); count]);
        let attributes: Entries = vec![
            ("units".to_owned(), "K".into()),
            ("_FillValue".to_owned(), numbers(1)),
            ("valid_min".to_owned(), numbers(1)),
            ("flags".to_owned(), numbers(3)),
            ("none".to_owned(), numbers(0)),
            ("many".to_owned(), numbers(2000)),
            ("long".to_owned(), "x".repeat(40_000).as_str().into()),
            ("\n".to_owned(), "x".into()),
        ];
        let mut notes = Vec::new();
        let found = kept(&attributes, ("'t'", false), &mut notes);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["units", "valid_min", "flags"]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("'many' of 't'"), "{notes:?}");
        let packed = kept(&attributes, ("'t'", true), &mut notes);
        assert_eq!(packed.len(), 2);
    }
}
