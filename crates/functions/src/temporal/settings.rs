//! What `TimeZone`, `DateStyle` and `IntervalStyle` may be set to, and what they are then.

use messages::{Error, Result};

use crate::temporal::duration;
use crate::temporal::fields::Fields;
use crate::temporal::zones;

/// The styles of intervals.
const INTERVAL_STYLES: [&str; 3] = ["postgres", "postgres_verbose", "iso_8601"];

/// How a session reads and writes dates and times, where nobody serves it: `TimeZone`, `DateStyle` and `IntervalStyle`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateSettings([String; 3]);

/// Their names in lower case, and as they are shown.
const OF_DATES: [(&str, &str); 3] = [
    ("timezone", "TimeZone"),
    ("datestyle", "DateStyle"),
    ("intervalstyle", "IntervalStyle"),
];

impl Default for DateSettings {
    fn default() -> DateSettings {
        DateSettings(["UTC", "ISO, MDY", "postgres"].map(str::to_owned))
    }
}

impl DateSettings {
    fn place(name: &str) -> Option<usize> {
        OF_DATES
            .iter()
            .position(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// The name of one of the settings as it is shown, whatever the case of `name`; none if it is another.
    pub fn shown(name: &str) -> Option<&'static str> {
        DateSettings::place(name).map(|at| OF_DATES[at].1)
    }

    /// The value of one of the settings.
    pub fn get(&self, name: &str) -> Option<&str> {
        DateSettings::place(name).map(|at| self.0[at].as_str())
    }

    /// They with this value of the one of that name, which may have it.
    pub(crate) fn put(&self, name: &str, value: String) -> DateSettings {
        let mut all = self.clone();
        if let Some(at) = DateSettings::place(name) {
            all.0[at] = value;
        }
        all
    }

    /// The settings after one of them was set; none: to what it is at first.
    ///
    /// # Errors
    /// If there is none of that name, or it cannot be that.
    pub fn with(&self, name: &str, value: Option<&str>) -> Result<DateSettings> {
        let (Some(shown), Some(now)) = (DateSettings::shown(name), self.get(name)) else {
            return Err(Error::coded(
                "42704",
                format!("unrecognized configuration parameter \"{name}\""),
            ));
        };
        let found = match (shown, value) {
            (_, None) => DateSettings::default().get(name).map(str::to_owned),
            ("TimeZone", Some(value)) => time_zone(value),
            ("DateStyle", Some(value)) => date_style(value, now),
            (_, Some(value)) => {
                let value = value.trim().to_lowercase();
                INTERVAL_STYLES.contains(&value.as_str()).then_some(value)
            }
        };
        let Some(found) = found else {
            let value = value.unwrap_or_default();
            return Err(Error::coded(
                "22023",
                format!("invalid value for parameter \"{shown}\": \"{value}\""),
            ));
        };
        Ok(self.put(name, found))
    }
}

/// What a session's time zone is called once it is set to `text`: the name of a zone, so many hours to the east of UTC, what
/// POSIX has, or `interval '-08:00'`; none if there is none such.
pub fn time_zone(text: &str) -> Option<String> {
    let text = text.trim();
    let is_interval = |start: &str| start.eq_ignore_ascii_case("interval");
    if text.get(..8).is_some_and(is_interval) {
        // What stands in quotes; `hour to minute` behind it says nothing that the text does not.
        let quoted = text.get(8..)?.trim_start().strip_prefix('\'')?;
        let (length, fields) = quoted.split_once('\'')?;
        let fields = fields.trim().to_lowercase();
        if !matches!(
            fields.as_str(),
            "" | "hour to minute" | "hour to second" | "hour"
        ) {
            return None;
        }
        let of = duration::interval(length, Fields::of(&fields).unwrap_or(Fields::ALL)).ok()?;
        let is_near = of.nanoseconds.abs() < 168 * 3_600_000_000_000;
        let plain = of.months == 0 && of.days == 0 && is_near;
        return plain.then(|| zones::from_utc(of.nanoseconds / 1_000_000_000).0);
    }
    zones::of_setting(text).map(|(name, _)| name)
}

/// `DateStyle` after it is set to `value`, such as `ISO, DMY`; a word that is left out stays as it was. None for what is no
/// style here, or names two.
pub fn date_style(value: &str, now: &str) -> Option<String> {
    let (mut style, mut order) = (None, None);
    for word in value.split(',') {
        let word = word.trim().trim_matches(['\'', '"']).to_ascii_lowercase();
        let (own, of_order) = match word.as_str() {
            "iso" => (Some("ISO"), None),
            "sql" => (Some("SQL"), None),
            "german" => (Some("German"), None),
            "ymd" => (None, Some("YMD")),
            "dmy" => (None, Some("DMY")),
            "mdy" | "us" => (None, Some("MDY")),
            "default" => (style.or(Some("ISO")), order.or(Some("MDY"))),
            word if word.starts_with("postgres") => (Some("Postgres"), None),
            word if word.starts_with("euro") => (None, Some("DMY")),
            word if word.starts_with("noneuro") => (None, Some("MDY")),
            _ => return None,
        };
        let clash = |before: Option<&str>, own: Option<&str>| {
            before.is_some_and(|before| own.is_some_and(|own| own != before))
        };
        if clash(style, own) || clash(order, of_order) {
            return None;
        }
        (style, order) = (own.or(style), of_order.or(order));
    }
    // Germans write the day first.
    let order = order.or((style == Some("German")).then_some("DMY"));
    let (own, of_order) = now.split_once(',').unwrap_or((now, "MDY"));
    let style = style.unwrap_or(own.trim());
    let order = order.unwrap_or(of_order.trim());
    Some(format!("{style}, {order}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_dates_are_put_together() {
        for (value, now, wanted) in [
            ("dmy", "ISO, MDY", Some("ISO, DMY")),
            ("German", "ISO, MDY", Some("German, DMY")),
            ("german, mdy", "ISO, MDY", Some("German, MDY")),
            ("Postgres", "ISO, YMD", Some("Postgres, YMD")),
            ("sql, european", "ISO, MDY", Some("SQL, DMY")),
            (
                "'postgresql', 'noneuropean'",
                "ISO, DMY",
                Some("Postgres, MDY"),
            ),
            ("iso, sql", "ISO, MDY", None),
            ("dmy, mdy", "ISO, MDY", None),
            ("default", "German, DMY", Some("ISO, MDY")),
            ("Roman", "ISO, MDY", None),
        ] {
            assert_eq!(date_style(value, now).as_deref(), wanted, "{value}");
        }
    }

    #[test]
    fn zones_are_intervals_too() {
        for (text, wanted) in [
            ("interval '-08:00' hour to minute", Some("<-08>+08")),
            ("INTERVAL '+01:30'", Some("<+01:30>-01:30")),
            ("interval '1 month'", None),
            ("interval '1 day'", None),
            ("europe/rome", Some("Europe/Rome")),
        ] {
            assert_eq!(time_zone(text).as_deref(), wanted, "{text}");
        }
    }
}
