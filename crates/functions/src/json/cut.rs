//! JSON cut into its parts. All texts here are valid: `serde_json` has read them.

use std::borrow::Cow;

use datafusion_common::Result;

use crate::json::walk;
use crate::present;

pub(super) use crate::json::walk::characters;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// That of a value.
    pub(crate) fn of(text: &str) -> Kind {
        match text.trim_start().as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::Text,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// As `json_typeof` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "boolean",
            Kind::Number => "number",
            Kind::Text => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }

    pub(super) fn is_scalar(self) -> bool {
        !matches!(self, Kind::Array | Kind::Object)
    }
}

/// The parts between commas of what stands between a pair of brackets, which `text` is.
fn parts(text: &str) -> Vec<&str> {
    /// What takes a good part of a millisecond to cut.
    const LONG: usize = 1 << 18;
    // Nobody sees what is found for a statement that was cancelled.
    if text.len() > LONG && present::check().is_err() {
        return Vec::new();
    }
    let text = text.trim();
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    let mut all = Vec::new();
    if inner.trim().is_empty() {
        return all;
    }
    let (mut depth, mut start) = (0usize, 0);
    let mut quoted = false;
    let mut bytes = inner.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if quoted => _ = bytes.next(),
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                all.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(inner[start..].trim());
    all
}

/// The items of an array.
pub(crate) fn items(text: &str) -> Vec<&str> {
    parts(text)
}

/// The members of an object: keys as they are written, and values.
pub(crate) fn members(text: &str) -> Vec<(&str, &str)> {
    let cut = |member| {
        let mut bytes = str::bytes(member).enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' => _ = bytes.next(),
                b'"' => {
                    let (key, rest) = member.split_at(at + 1);
                    let value = rest.trim_start().strip_prefix(':').unwrap_or(rest);
                    return (key, value.trim());
                }
                _ => {}
            }
        }
        (member, "null")
    };
    parts(text).into_iter().map(cut).collect()
}

/// What `->>` gives of a value: the characters of a string, NULL for `null`, otherwise the value.
///
/// # Errors
/// As [`characters`].
pub(crate) fn plain(text: &str) -> Result<Option<Cow<'_, str>>> {
    match Kind::of(text) {
        Kind::Null => Ok(None),
        Kind::Text => match walk::unescaped(text) {
            Some(own) => Ok(Some(Cow::Borrowed(own))),
            None => Ok(Some(Cow::Owned(characters(text)?))),
        },
        _ => Ok(Some(Cow::Borrowed(text))),
    }
}

/// The item of an array at a place, which counts from 0, and from -1 backwards.
pub(super) fn at(text: &str, place: i64) -> Option<&str> {
    if let Ok(place) = usize::try_from(place) {
        return walk::item(text, place);
    }
    let items = items(text);
    items.get(position(items.len(), place)?).copied()
}

/// A place that counts from 0, or from -1 backwards, among so many.
pub(super) fn position(count: usize, place: i64) -> Option<usize> {
    let place = if place < 0 {
        place.checked_add(count as i64)?
    } else {
        place
    };
    usize::try_from(place).ok().filter(|place| *place < count)
}
