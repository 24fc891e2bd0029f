//! Values of settings: what they may be, and how they are shown.

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// `on` or `off`.
    Truth,
    Number,
    /// Bytes, in units of 1024 of them.
    Memory,
    /// Milliseconds.
    Time,
    /// How many digits of floats are shown beyond those that are sure: -15 to 3.
    Digits,
}

/// A value as it is kept and shown; none if it is not of its kind.
pub(crate) fn normal(kind: Kind, value: &str) -> Option<String> {
    let trimmed = value.trim();
    match kind {
        Kind::Text => Some(value.to_string()),
        Kind::Truth => truth(trimmed).map(|on| if on { "on" } else { "off" }.to_string()),
        Kind::Number => {
            let number: f64 = trimmed.parse().ok()?;
            number.is_finite().then(|| number.to_string())
        }
        Kind::Memory => memory(trimmed),
        Kind::Time => millis(trimmed).map(|millis| millis.to_string()),
        Kind::Digits => {
            let digits: i32 = trimmed.parse().ok()?;
            (-15..=3).contains(&digits).then(|| digits.to_string())
        }
    }
}

/// What a value of the kind is, in words.
pub(crate) fn hint(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "it is a text",
        Kind::Truth => "it is on or off",
        Kind::Number => "it is a number",
        Kind::Memory => "valid units are \"kB\", \"MB\", \"GB\" and \"TB\"",
        Kind::Time => "valid units are \"ms\", \"s\", \"min\", \"h\" and \"d\"",
        Kind::Digits => "it is a number from -15 to 3",
    }
}

/// Whether a word says on, or off; it may be shortened as long as it says only one of them.
fn truth(word: &str) -> Option<bool> {
    let word = word.to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Some(false)
    } else {
        None
    }
}

/// Digits, and the unit that follows them.
fn parts(text: &str) -> Option<(u64, &str)> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, text[digits..].trim()))
}

/// Bytes in the largest unit in which they are a whole number, as PostgreSQL shows them.
fn memory(text: &str) -> Option<String> {
    const UNITS: [(&str, u64); 4] = [("kB", 1), ("MB", 1 << 10), ("GB", 1 << 20), ("TB", 1 << 30)];
    let (number, unit) = parts(text)?;
    let unit = match unit {
        "" => 1,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let kilobytes = number.checked_mul(unit)?;
    kilobytes.checked_mul(1024)?;
    let fits = |(_, unit): &&(&str, u64)| kilobytes > 0 && kilobytes.is_multiple_of(*unit);
    Some(match UNITS.iter().rev().find(fits) {
        Some((name, unit)) => format!("{}{name}", kilobytes / unit),
        None => "0".into(),
    })
}

/// A time in milliseconds: `500`, `2s`, `1 min`.
pub(crate) fn millis(text: &str) -> Option<u64> {
    let (number, unit) = parts(text.trim())?;
    let unit = match unit {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number
        .checked_mul(unit)
        .filter(|millis| *millis <= i32::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_postgresql_shows_them() {
        for (kind, value, shown) in [
            (Kind::Truth, "TRUE", Some("on")),
            (Kind::Truth, "of", Some("off")),
            (Kind::Truth, "o", None),
            (Kind::Truth, "2", None),
            (Kind::Truth, "", None),
            (Kind::Memory, "65536", Some("64MB")),
            (Kind::Memory, "100 kB", Some("100kB")),
            (Kind::Memory, "1024MB", Some("1GB")),
            (Kind::Memory, "0", Some("0")),
            (Kind::Memory, "64mb", None),
            (Kind::Memory, "99999999999999999999", None),
            (Kind::Memory, "99999999999TB", None),
            (Kind::Number, "1.10", Some("1.1")),
            (Kind::Number, "x", None),
            (Kind::Number, "inf", None),
            (Kind::Time, "2s", Some("2000")),
            (Kind::Time, "soon", None),
            (Kind::Digits, "3", Some("3")),
            (Kind::Digits, "4", None),
        ] {
            assert_eq!(normal(kind, value).as_deref(), shown, "{value}");
        }
    }
}
