//! `parse_ident`: the names in a text such as `"s".t`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use messages::Error;

use crate::arguments::{TEXT, is_text, strings};
use crate::lists::types::list_of;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        "parse_ident",
        |types| match types {
            [text] if is_text(text) => Ok(vec![DataType::Utf8]),
            [text, strict]
                if is_text(text) && (*strict == DataType::Boolean || is_text(strict)) =>
            {
                Ok(vec![DataType::Utf8, DataType::Boolean])
            }
            _ => plan_err!("parse_ident takes a text, and whether it is to have nothing else"),
        },
        |_| Ok(list_of(TEXT)),
        parse_ident,
    )]
}

fn parse_ident(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = strings(&args[0])?;
    let strict = args.get(1).map(|strict| strict.as_boolean());
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows {
        if texts.is_null(row) || strict.is_some_and(|strict| strict.is_null(row)) {
            out.append_null();
            continue;
        }
        let strict = strict.is_none_or(|strict| strict.value(row));
        for name in names(texts.value(row), strict)? {
            out.values().append_value(name);
        }
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}

/// The names in `text`; what follows them is an error if `strict`.
fn names(text: &str, strict: bool) -> std::result::Result<Vec<String>, Error> {
    let wrong = |detail: &str| {
        let message = format!("string is not a valid identifier: \"{text}\"");
        Error::coded(
            "22023",
            if detail.is_empty() {
                message
            } else {
                format!("{message}: {detail}")
            },
        )
    };
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    let mut after_point = false;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (name, after) =
                unquoted(quoted).ok_or_else(|| wrong("String has unclosed double quotes."))?;
            if name.is_empty() {
                return Err(wrong("Quoted identifier must not be empty."));
            }
            found.push(name);
            rest = after;
        } else {
            let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
            if !rest.starts_with(begins) {
                return Err(wrong(if rest.starts_with('.') {
                    "No valid identifier before \".\"."
                } else if after_point {
                    "No valid identifier after \".\"."
                } else {
                    ""
                }));
            }
            let goes_on = |c: char| begins(c) || c.is_ascii_digit() || c == '$';
            let end = rest.find(|c: char| !goes_on(c)).unwrap_or(rest.len());
            found.push(rest[..end].to_ascii_lowercase());
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => {
                after_point = true;
                rest = after.trim_start();
            }
            None if rest.is_empty() || !strict => return Ok(found),
            None => return Err(wrong("")),
        }
    }
}

/// What stands before the closing quote, and what behind it; none if there is none.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != '"' {
            name.push(letter);
        } else if letters.next_if(|(_, next)| *next == '"').is_some() {
            name.push('"');
        } else {
            return Some((name, &text[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_those_of_postgresql() {
        let of = |text, strict| names(text, strict).ok();
        let some = |all: &[&str]| Some(all.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of("Schemax.Tabley", true), some(&["schemax", "tabley"]));
        assert_eq!(of(" \"A\"\"b\" . c ", true), some(&["A\"b", "c"]));
        assert_eq!(of("foo.boo[]", true), None);
        assert_eq!(of("foo.boo[]", false), some(&["foo", "boo"]));
        for text in ["", " ", ".a", "a.", "a..b", "\"a", "\"\"", "1a"] {
            assert_eq!(of(text, true), None, "{text}");
        }
    }
}
