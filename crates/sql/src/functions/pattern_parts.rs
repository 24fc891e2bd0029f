//! Numbers and words at the start of a text that is [read by a pattern](crate::functions::read_pattern), and what is wrong with
//! them.

use crate::error::Error;

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

/// The start of a text, for messages.
pub(super) fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| !c.is_whitespace())
        .take(20)
        .collect()
}
