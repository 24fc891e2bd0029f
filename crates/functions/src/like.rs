//! Patterns of `like` with an escape character of their own.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::DataType;
use datafusion_common::Result;
use messages::Error;

use crate::arguments::TEXT;
use crate::own::Own;

/// The name of the function that writes a pattern with backslashes, which a computed one is put through.
pub const PATTERN: &str = "like pattern";

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        PATTERN,
        |_| Ok(vec![DataType::Utf8; 2]),
        |_| Ok(TEXT),
        patterns,
    )]
}

fn patterns(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let [patterns, escapes] = [0, 1].map(|at| args[at].as_string::<i32>());
    let both = patterns.iter().zip(escapes);
    let written = both.map(|(pattern, escape)| -> Result<Option<String>> {
        let (Some(pattern), Some(escape)) = (pattern, escape) else {
            return Ok(None);
        };
        match escaped(pattern, escape.chars().next()) {
            Some(pattern) => Ok(Some(pattern)),
            None => {
                Err(Error::coded("22025", "LIKE pattern must not end with escape character").into())
            }
        }
    });
    Ok(Arc::new(written.collect::<Result<StringViewArray>>()?))
}

/// A pattern with backslashes in the place of its escape character; none if it ends with that.
pub fn escaped(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let plain = Some(c) == escape;
        let c = if plain { rest.next()? } else { c };
        if c == '\\' || plain && matches!(c, '%' | '_') {
            text.push('\\');
        }
        text.push(c);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backslash_takes_the_place_of_others() {
        for (pattern, escape, wanted) in [
            ("a#%b", Some('#'), Some("a\\%b")),
            ("a##_", Some('#'), Some("a#_")),
            ("a\\b%", Some('#'), Some("a\\\\b%")),
            ("%%x", Some('%'), Some("\\%x")),
            ("a\\%", None, Some("a\\\\%")),
            ("a#", Some('#'), None),
        ] {
            assert_eq!(escaped(pattern, escape).as_deref(), wanted, "{pattern}");
        }
    }
}
