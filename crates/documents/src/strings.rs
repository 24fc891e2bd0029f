//! Strings as they are written, and their characters.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use crate::walk::Walk;

/// A string with an escape that stands for no character: half of a surrogate pair.
#[derive(Debug)]
pub struct BadEscape {
    /// The string, with its quotes.
    pub string: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadEscape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadEscape { string, why } = self;
        write!(f, "unsupported Unicode escape sequence in {string}: {why}")
    }
}

impl std::error::Error for BadEscape {}

/// The characters of a string, which stands in quotes.
///
/// # Errors
/// For escapes that stand for no character.
pub fn characters(string: &str) -> Result<String, BadEscape> {
    serde_json::from_str::<String>(string).map_err(|e| BadEscape {
        string: string.trim().to_string(),
        why: e.to_string(),
    })
}

/// What `->>` gives of a value, which has no blanks around it: the characters of a string, `None` of `null`, and others as they are
/// written.
///
/// # Errors
/// For escapes that stand for no character.
pub fn text_of(value: &str) -> Result<Option<Cow<'_, str>>, BadEscape> {
    match value.as_bytes() {
        [b'"', .., b'"'] => match memchr(b'\\', value.as_bytes()) {
            None => Ok(Some(Cow::Borrowed(inner(value)))),
            Some(_) => Ok(Some(Cow::Owned(characters(value)?))),
        },
        [b'n', ..] => Ok(None),
        _ => Ok(Some(Cow::Borrowed(value))),
    }
}

/// What stands between the quotes of a string.
pub fn inner(string: &str) -> &str {
    let last = string.len().saturating_sub(1);
    string.get(1..last).unwrap_or_default()
}

/// The characters of a string, if there are no escapes in it: they are as they are written. `None` of other values, too.
pub fn unescaped(text: &str) -> Option<&str> {
    let mut walk = Walk::new(text);
    if walk.peek()? != b'"' {
        return None;
    }
    match walk.string()? {
        (own, false) => Some(inner(own)),
        _ => None,
    }
}
