//! Functions of strings.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, exec_err, plan_err};
use md5::{Digest, Md5};
use messages::Error;
use messages::keywords::identifier;
use regex::Regex;

use crate::arguments::{TEXT, is_bytea, is_text, strings, texts};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "strlen",
            |types| texts("strlen", types, 1..=1),
            |_| Ok(DataType::Int64),
            strlen,
        ),
        Own::new(
            "unistr",
            |types| texts("unistr", types, 1..=1),
            |_| Ok(TEXT),
            |args, _| {
                let texts = shown(&args[0])?;
                let found = texts.iter().map(|text| text.map(unistr).transpose());
                Ok(Arc::new(found.collect::<Result<StringArray>>()?))
            },
        ),
        Own::new("md5", bytes, |_| Ok(TEXT), md5),
        Own::new("regexp_extract", extraction, |_| Ok(TEXT), extract),
        Own::new(
            "quote_literal",
            one_value,
            |_| Ok(TEXT),
            |args, _| {
                let texts = shown(&args[0])?;
                let found: StringArray = texts.iter().map(|text| text.map(literal)).collect();
                Ok(Arc::new(found))
            },
        ),
        Own::new(
            "quote_nullable",
            one_value,
            |_| Ok(TEXT),
            |args, _| {
                let texts = shown(&args[0])?;
                let found = texts
                    .iter()
                    .map(|text| text.map_or_else(|| "NULL".into(), literal));
                Ok(Arc::new(found.map(Some).collect::<StringArray>()))
            },
        ),
        Own::new(
            "quote_ident",
            |types| texts("quote_ident", types, 1..=1),
            |_| Ok(TEXT),
            |args, _| mapped(&args[0], identifier),
        ),
    ]
}

fn mapped(texts: &ArrayRef, of: impl Fn(&str) -> String) -> Result<ArrayRef> {
    let found: StringArray = strings(texts)?.iter().map(|text| text.map(&of)).collect();
    Ok(Arc::new(found))
}

/// `text` between quotes; quotes in it are doubled.
pub(super) fn quoted(text: &str, quote: char) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(quote);
    for c in text.chars() {
        quoted.push(c);
        if c == quote {
            quoted.push(c);
        }
    }
    quoted.push(quote);
    quoted
}

fn one_value(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_bytea(ty) => Ok(vec![DataType::Binary]),
        [_] => Ok(vec![DataType::Utf8]),
        _ => plan_err!("quote_literal and quote_nullable take one value"),
    }
}

/// Values as texts: bytes as PostgreSQL writes them, which casts of Arrow's read as texts.
pub(super) fn shown(values: &ArrayRef) -> Result<StringArray> {
    if *values.data_type() != DataType::Binary {
        return strings(values);
    }
    let hex = |bytes: &[u8]| {
        let mut text = String::with_capacity(2 + 2 * bytes.len());
        text.push_str("\\x");
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    };
    let bytes = values.as_binary::<i32>();
    Ok(bytes.iter().map(|value| value.map(hex)).collect())
}

/// `text` as a constant. Backslashes are doubled, behind an `E` that says so.
pub(super) fn literal(text: &str) -> String {
    if text.contains('\\') {
        return format!("E{}", quoted(&text.replace('\\', "\\\\"), '\''));
    }
    quoted(text, '\'')
}

/// A text with `\0061`, `\+000061`, `\u0061` and `\U00000061` for characters, and `\\` for a backslash.
fn unistr(text: &str) -> Result<String> {
    let wrong = |message: &str| -> Result<String> { Err(Error::coded("42601", message).into()) };
    let mut out = String::with_capacity(text.len());
    // The first of two surrogates.
    let mut first: Option<u32> = None;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let is_escape = letter == '\\' && !rest.starts_with('\\');
        if !is_escape {
            if first.is_some() {
                return wrong("invalid Unicode surrogate pair");
            }
            rest = rest
                .strip_prefix('\\')
                .filter(|_| letter == '\\')
                .unwrap_or(rest);
            out.push(letter);
            continue;
        }
        let (skipped, digits) = match rest.chars().next() {
            Some('u') => (1, 4),
            Some('+') => (1, 6),
            Some('U') => (1, 8),
            _ => (0, 4),
        };
        let code = rest.get(skipped..skipped + digits);
        let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = code.and_then(|code| u32::from_str_radix(code, 16).ok()) else {
            return wrong("invalid Unicode escape");
        };
        rest = &rest[skipped + digits..];
        let code = match (first.take(), code) {
            (None, 0xD800..=0xDBFF) => {
                first = Some(code);
                continue;
            }
            (Some(high), 0xDC00..=0xDFFF) => 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00),
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => {
                return wrong("invalid Unicode surrogate pair");
            }
            (None, code) => code,
        };
        match char::from_u32(code) {
            Some(letter) if code != 0 => out.push(letter),
            _ => return wrong(&format!("invalid Unicode code point: {code:04X}")),
        }
    }
    if first.is_some() {
        return wrong("invalid Unicode surrogate pair");
    }
    Ok(out)
}

/// The length of strings in bytes.
fn strlen(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let lengths: Int64Array = strings(&args[0])?
        .iter()
        .map(|text| text.map(|text| text.len() as i64))
        .collect();
    Ok(Arc::new(lengths))
}

fn bytes(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_text(ty) => Ok(vec![DataType::Utf8]),
        [DataType::Binary | DataType::BinaryView | DataType::LargeBinary] => {
            Ok(vec![DataType::Binary])
        }
        _ => plan_err!("md5 takes one text or one bytea"),
    }
}

/// The MD5 digest as 32 hexadecimal digits.
fn md5(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let bytes = cast(&args[0], &DataType::Binary)?;
    let bytes: &BinaryArray = bytes.as_binary();
    let digest = |bytes: &[u8]| {
        let mut text = String::with_capacity(32);
        for byte in Md5::digest(bytes) {
            // A String takes all that is written.
            let _ = write!(text, "{byte:02x}");
        }
        text
    };
    let found: StringArray = bytes.iter().map(|bytes| bytes.map(digest)).collect();
    Ok(Arc::new(found))
}

fn extraction(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, pattern] if is_text(text) && is_text(pattern) => Ok(vec![DataType::Utf8; 2]),
        [text, pattern, group]
            if is_text(text) && is_text(pattern) && (group.is_integer() || group.is_null()) =>
        {
            Ok(vec![DataType::Utf8, DataType::Utf8, DataType::Int64])
        }
        _ => plan_err!("regexp_extract takes a text, a pattern, and the number of a group"),
    }
}

/// The text of a group in the first match, where group 0 is the whole match; an empty string if nothing matches.
fn extract(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (texts, patterns) = (strings(&args[0])?, strings(&args[1])?);
    let groups = args.get(2).map(|groups| groups.as_primitive::<Int64Type>());
    let mut known: HashMap<String, Regex> = HashMap::new();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let group = match groups {
            Some(groups) if groups.is_null(row) => None,
            Some(groups) => Some(groups.value(row)),
            None => Some(0),
        };
        let (Some(group), false, false) = (group, texts.is_null(row), patterns.is_null(row)) else {
            found.push(None);
            continue;
        };
        let pattern = patterns.value(row);
        if !known.contains_key(pattern) {
            let regex = match Regex::new(pattern) {
                Ok(regex) => regex,
                Err(_) => return exec_err!("'{pattern}' is not a regular expression"),
            };
            known.insert(pattern.to_string(), regex);
        }
        let regex = &known[pattern];
        let Some(group) = usize::try_from(group)
            .ok()
            .filter(|g| *g < regex.captures_len())
        else {
            return exec_err!(
                "regexp_extract: '{pattern}' has {} groups, there is no group {group}",
                regex.captures_len() - 1
            );
        };
        let part = regex
            .captures(texts.value(row))
            .and_then(|captures| Some(captures.get(group)?.as_str().to_string()));
        found.push(Some(part.unwrap_or_default()));
    }
    Ok(Arc::new(StringArray::from(found)))
}
