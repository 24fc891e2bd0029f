//! Lines of text and CSV that a client sends, one by one: where they end, their fields, and what is wrong with them.

use std::cmp::Ordering;

use memchr::{memchr2, memchr3};

/// Whether fields between such delimiters can be looked for in texts: it is a character of its own, and no other mark.
pub(super) fn is_plain(delimiter: u8) -> bool {
    delimiter.is_ascii() && !matches!(delimiter, 0 | b'\n' | b'\r' | b'\\')
}

/// Where the line of the text format ends that `bytes` begin with.
pub(super) fn text_end(bytes: &[u8]) -> usize {
    let mut from = 0;
    while let Some(at) = memchr2(b'\\', b'\n', bytes.get(from..).unwrap_or_default()) {
        if bytes[from + at] == b'\n' {
            return from + at;
        }
        from += at + 2;
    }
    bytes.len()
}

/// Where the line of CSV ends that `bytes` begin with.
///
/// # Errors
/// If they end within quotes.
pub(super) fn csv_end(bytes: &[u8], quote: u8, escape: u8) -> Result<usize, String> {
    let (mut from, mut quoted) = (0, false);
    while let Some(at) = memchr3(quote, escape, b'\n', bytes.get(from..).unwrap_or_default()) {
        let at = from + at;
        from = at + 1;
        let byte = bytes[at];
        if quoted && byte == escape && escape != quote {
            // What it stands before ends nothing.
            from += 1;
        } else if byte == quote {
            // A doubled one ends the quotes and begins them again, which comes to the same.
            quoted = !quoted;
        } else if byte == b'\n' && !quoted {
            return Ok(at);
        }
    }
    if quoted {
        return Err("unterminated CSV quoted field".into());
    }
    Ok(bytes.len())
}

/// A line without the carriage return before its end.
pub(super) fn without_return(line: &[u8]) -> &[u8] {
    match line {
        [.., b'\\', b'\r'] => line,
        [start @ .., b'\r'] => start,
        _ => line,
    }
}

/// That a line has as many fields as there are columns.
///
/// # Errors
/// If it has not.
pub(super) fn counted(found: usize, columns: usize) -> Result<(), String> {
    match found.cmp(&columns) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(format!(
            "missing data: {found} fields for {columns} columns"
        )),
        Ordering::Greater => Err(format!(
            "extra data after last expected column: {found} fields for {columns} columns"
        )),
    }
}

/// The text of these bytes.
///
/// # Errors
/// If they are none.
pub(super) fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| "invalid byte sequence for encoding \"UTF8\"".to_string())?;
    if text.contains('\0') {
        return Err("invalid byte sequence for encoding \"UTF8\": 0x00".to_string());
    }
    Ok(text)
}

/// The fields of a line of the text format, of this many columns if that is known.
///
/// # Errors
/// If there are more or fewer than columns, or one is no text.
pub(super) fn text_fields(
    line: &[u8],
    delimiter: u8,
    null: &str,
    columns: Option<usize>,
) -> Result<Vec<Option<String>>, String> {
    let mut fields = Vec::with_capacity(columns.unwrap_or(0));
    let mut start = 0;
    let mut at = 0;
    loop {
        match line.get(at) {
            Some(b'\\') => at += 2,
            Some(byte) if *byte != delimiter => at += 1,
            found => {
                let raw = &line[start..at.min(line.len())];
                fields.push(if raw == null.as_bytes() {
                    None
                } else {
                    Some(utf8(unescaped(raw))?)
                });
                if found.is_none() {
                    // A table without columns has rows without fields.
                    if columns == Some(0) && line.is_empty() {
                        fields.clear();
                    }
                    if let Some(columns) = columns {
                        counted(fields.len(), columns)?;
                    }
                    return Ok(fields);
                }
                at += 1;
                start = at;
            }
        }
    }
}

/// The fields of a line of CSV, of this many columns if that is known; with delimiter, quote and escape.
///
/// # Errors
/// If there are more or fewer than columns, or one is no text.
pub(super) fn csv_fields(
    line: &[u8],
    (delimiter, quote, escape): (u8, u8, u8),
    null: &str,
    columns: Option<usize>,
) -> Result<Vec<Option<String>>, String> {
    let mut fields = Vec::with_capacity(columns.unwrap_or(0));
    let mut at = 0;
    loop {
        let (mut value, mut within, mut had_quotes) = (Vec::new(), false, false);
        while let Some(byte) = line.get(at) {
            let next = line.get(at + 1);
            if within {
                if *byte == escape && next.is_some_and(|next| *next == quote || *next == escape) {
                    value.extend(next);
                    at += 2;
                    continue;
                }
                if *byte == quote {
                    within = false;
                } else {
                    value.push(*byte);
                }
            } else if *byte == quote {
                within = true;
                had_quotes = true;
            } else if *byte == delimiter {
                break;
            } else {
                value.push(*byte);
            }
            at += 1;
        }
        if within {
            return Err("unterminated CSV quoted field".to_string());
        }
        fields.push(if !had_quotes && value == null.as_bytes() {
            None
        } else {
            Some(utf8(value)?)
        });
        if line.get(at).is_none() {
            if let Some(columns) = columns {
                counted(fields.len(), columns)?;
            }
            return Ok(fields);
        }
        at += 1;
    }
}

/// A field of the text format without its backslashes.
pub(super) fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            None => plain.push(b'\\'),
            Some(b'b') => plain.push(8),
            Some(b'f') => plain.push(12),
            Some(b'n') => plain.push(b'\n'),
            Some(b'r') => plain.push(b'\r'),
            Some(b't') => plain.push(b'\t'),
            Some(b'v') => plain.push(11),
            Some(b'x') => {
                let mut code = None;
                for _ in 0..2 {
                    let digit = bytes.next_if(u8::is_ascii_hexdigit);
                    let digit = digit.and_then(|digit| char::from(digit).to_digit(16));
                    code = digit.map(|digit| code.unwrap_or(0) * 16 + digit).or(code);
                }
                plain.push(code.map_or(b'x', |code| code as u8));
            }
            Some(first @ b'0'..=b'7') => {
                let mut code = u32::from(first - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        code = code * 8 + u32::from(digit - b'0');
                    }
                }
                plain.push(code as u8);
            }
            Some(other) => plain.push(other),
        }
    }
    plain
}
