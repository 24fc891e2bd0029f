//! Numbers and words at the start of a text that is [read by a pattern](crate::read_pattern), and what is wrong with
//! them.

use messages::Error;

/// What was read, or what is wrong.
pub(super) type Read<T> = std::result::Result<T, Error>;

/// What is wrong with a text or its pattern.
pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::coded("22007", message)
}

pub(super) fn out_of_range(text: &str) -> Error {
    let message = format!("date/time field value out of range: \"{text}\"");
    Error::coded("22008", message)
}

/// The number at the start of `rest`, of at most so many digits.
pub(super) fn number<'t>(rest: &'t str, most: usize, field: &str) -> Read<(i64, &'t str)> {
    let digits = rest
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    match rest[..digits].parse() {
        Ok(value) => Ok((value, &rest[digits..])),
        Err(_) => Err(wrong(format!(
            "invalid value \"{}\" for \"{field}\"",
            word(rest)
        ))),
    }
}

/// The same of a number that runs on into the next one if `runs_on`, and so has that many digits and no fewer.
pub(super) fn running<'t>(
    rest: &'t str,
    digits: usize,
    field: &str,
    runs_on: bool,
) -> Read<(i64, &'t str)> {
    if !runs_on || digits == usize::MAX {
        return number(rest, usize::MAX, field);
    }
    let start: String = rest.chars().take(digits).collect();
    let there = start.chars().count();
    if there < digits {
        return Err(wrong(format!(
            "source string too short for \"{field}\" formatting field: Field requires {digits} characters, but only {there} remain."
        )));
    }
    let (value, after) = number(rest, digits, field)?;
    if rest.len() - after.len() < digits {
        return Err(wrong(format!("invalid value \"{start}\" for \"{field}\"")));
    }
    Ok((value, after))
}

/// The start of a text, for messages.
pub(super) fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| !c.is_whitespace())
        .take(20)
        .collect()
}
