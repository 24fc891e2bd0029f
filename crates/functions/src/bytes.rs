//! `encode` and `decode`: bytes as texts; and texts that are cast to `bytea`.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::{Expr, ScalarUDF};

use crate::arguments::{TEXT, is_text, strings};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new("encode", bytes_and_format, |_| Ok(TEXT), encode),
        Own::new("decode", text_and_format, |_| Ok(DataType::Binary), decode),
    ]
}

static READ: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        "bytea",
        |types| Ok(vec![DataType::Utf8; types.len()]),
        |_| Ok(DataType::Binary),
        |args, _| of_texts(&strings(&args[0])?),
    );
    Arc::new(own.into())
});

/// A text as a `bytea`: `\x0aff`, or the bytes of the text, in which `\\` and `\012` stand for bytes.
pub fn read_bytes(text: Expr) -> Expr {
    READ.call(vec![text])
}

/// The bytes that texts say, as [`read_bytes`] reads them.
///
/// # Errors
/// For a text that says none.
pub(super) fn of_texts(texts: &StringArray) -> Result<ArrayRef> {
    let found = texts.iter().map(|text| text.map(read).transpose());
    let found = found.collect::<Result<Vec<Option<Vec<u8>>>>>()?;
    Ok(Arc::new(
        found.iter().map(Option::as_deref).collect::<BinaryArray>(),
    ))
}

fn read(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(digits) => from_hex(digits),
        None => from_escape(text),
    }
}

fn bytes_and_format(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [bytes, format] if (bytes.is_binary() || is_text(bytes)) && is_text(format) => {
            Ok(vec![DataType::Binary, DataType::Utf8])
        }
        _ => plan_err!("encode takes a bytea, and 'hex', 'base64' or 'escape'"),
    }
}

fn text_and_format(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, format] if is_text(text) && is_text(format) => Ok(vec![DataType::Utf8; 2]),
        _ => plan_err!("decode takes a text, and 'hex', 'base64' or 'escape'"),
    }
}

/// How bytes are written.
#[derive(Clone, Copy)]
enum Format {
    Hex,
    Base64,
    Escape,
}

fn format(name: &str) -> Result<Format> {
    match name.to_ascii_lowercase().as_str() {
        "hex" => Ok(Format::Hex),
        "base64" => Ok(Format::Base64),
        "escape" => Ok(Format::Escape),
        _ => exec_err!("unrecognized encoding: \"{name}\""),
    }
}

fn encode(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let bytes: &BinaryArray = args[0].as_binary();
    let formats: &StringArray = args[1].as_string();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if bytes.is_null(row) || formats.is_null(row) {
            found.push(None);
            continue;
        }
        let own = bytes.value(row);
        found.push(Some(match format(formats.value(row))? {
            Format::Hex => hex(own),
            Format::Base64 => base64(own),
            Format::Escape => escape(own),
        }));
    }
    Ok(Arc::new(StringArray::from(found)))
}

fn decode(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts: &StringArray = args[0].as_string();
    let formats: &StringArray = args[1].as_string();
    let mut found: Vec<Option<Vec<u8>>> = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || formats.is_null(row) {
            found.push(None);
            continue;
        }
        let text = texts.value(row);
        found.push(Some(match format(formats.value(row))? {
            Format::Hex => from_hex(text)?,
            Format::Base64 => from_base64(text)?,
            Format::Escape => from_escape(text)?,
        }));
    }
    Ok(Arc::new(
        found.iter().map(Option::as_deref).collect::<BinaryArray>(),
    ))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // A String takes all that is written.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let digit = |c: char| match c.to_digit(16) {
        Some(digit) => Ok(digit as u8),
        None => exec_err!("invalid hexadecimal digit: \"{c}\""),
    };
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    for pair in digits.chunks(2) {
        match pair {
            [high, low] => bytes.push(digit(*high)? << 4 | digit(*low)?),
            [single] => {
                digit(*single)?;
                return exec_err!("invalid hexadecimal data: odd number of digits");
            }
            _ => {}
        }
    }
    Ok(bytes)
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The most letters of a line.
const LINE: usize = 76;

fn base64(bytes: &[u8]) -> String {
    let mut letters = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let at = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for letter in 0..4 {
            letters.push(if letter <= part.len() {
                char::from(LETTERS[(bits >> (18 - 6 * letter) & 63) as usize])
            } else {
                '='
            });
        }
    }
    let lines: Vec<String> = letters
        .chunks(LINE)
        .map(|line| line.iter().collect())
        .collect();
    lines.join("\n")
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let (mut bits, mut count, mut ends) = (0u32, 0, 0);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for c in text
        .chars()
        .filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r'))
    {
        let value = if c == '=' {
            if count < 2 {
                return exec_err!("unexpected \"=\" while decoding base64 sequence");
            }
            ends += 1;
            0
        } else {
            let found = u8::try_from(c).ok();
            let found = found.and_then(|c| LETTERS.iter().position(|letter| *letter == c));
            match found.filter(|_| ends == 0) {
                Some(value) => value as u32,
                None => {
                    return exec_err!(
                        "invalid symbol \"{c}\" found while decoding base64 sequence"
                    );
                }
            }
        };
        bits = bits << 6 | value;
        count += 1;
        if count == 4 {
            let all = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
            bytes.extend(&all[..3 - ends.min(2)]);
            (bits, count) = (0, 0);
        }
    }
    if count != 0 {
        return exec_err!("invalid base64 end sequence");
    }
    Ok(bytes)
}

/// Zero bytes and those above 127 as three octal digits behind a backslash, which is doubled itself.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0 | 128.. => {
                let _ = write!(text, "\\{byte:03o}");
            }
            plain => text.push(char::from(*plain)),
        }
    }
    text
}

fn from_escape(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match rest {
            [b'\\', behind @ ..] => {
                bytes.push(b'\\');
                rest = behind;
            }
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                behind @ ..,
            ] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = behind;
            }
            _ => return exec_err!("invalid input syntax for type bytea"),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let all: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 2, 3, 57, 58, 256] {
            let bytes = &all[..length];
            assert_eq!(from_hex(&hex(bytes)).unwrap(), bytes);
            assert_eq!(from_base64(&base64(bytes)).unwrap(), bytes);
            assert_eq!(from_escape(&escape(bytes)).unwrap(), bytes);
        }
        assert_eq!(base64(b"abcd"), "YWJjZA==");
        assert_eq!(escape(b"a\0\\\xff"), "a\\000\\\\\\377");
        for wrong in ["a", "zz"] {
            assert!(from_hex(wrong).is_err(), "{wrong}");
        }
        for wrong in ["YWJ", "=", "YW=j", "YWJj!"] {
            assert!(from_base64(wrong).is_err(), "{wrong}");
        }
        assert!(from_escape("\\9").is_err());
    }
}
