//! Text as PostgreSQL's `copy` writes it: a backslash and what follows it stand for one character.

use memchr::{memchr, memchr3};

/// What stands for NULL in a record that was read. No text holds it: files with zero bytes are refused.
pub(crate) const NULL: &str = "\0";

/// Where the field that begins at `from` ends: at a delimiter or a line end that no backslash stands before, or the end of
/// the text; and whether there is a backslash in it.
pub(crate) fn field_end(bytes: &[u8], from: usize, delimiter: u8) -> (usize, bool) {
    let mut at = from;
    let mut escaped = false;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        // A carriage return ends a line as the line feed behind it does.
        let end = memchr3(delimiter, b'\n', b'\r', rest).unwrap_or(rest.len());
        match memchr(b'\\', &rest[..end]) {
            // The byte after it is no end, whatever it is; past the text's end there is none.
            Some(backslash) => (at, escaped) = ((at + backslash + 2).min(bytes.len()), true),
            None => return (at + end, escaped),
        }
    }
}

/// Appends what a field stands for. False if that is no UTF-8, or the field ends with a single backslash.
pub(crate) fn unescape(field: &str, out: &mut String) -> bool {
    let mut text = Vec::with_capacity(field.len());
    let mut bytes = field.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let Some(letter) = bytes.next() else {
            return false;
        };
        let mut number = |base: u32, most: usize, mut value: u32| {
            for _ in 0..most {
                let digit = bytes
                    .peek()
                    .and_then(|byte| char::from(*byte).to_digit(base));
                let Some(digit) = digit else { break };
                value = value * base + digit;
                bytes.next();
            }
            value.to_le_bytes()[0]
        };
        text.push(match letter {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => number(8, 2, u32::from(letter - b'0')),
            // Without digits it is the letter.
            b'x' => match number(16, 2, 0) {
                0 => b'x',
                byte => byte,
            },
            other => other,
        });
    }
    match String::from_utf8(text) {
        Ok(text) if !text.contains(NULL) => {
            out.push_str(&text);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(field: &str) -> Option<String> {
        let mut out = String::new();
        unescape(field, &mut out).then_some(out)
    }

    #[test]
    fn backslashes_stand_for_characters() {
        let all = "a\\tb\\n\\\\N\\x41\\x4a2\\101\\q\\,é\\xc3\\xa9\\xg";
        assert_eq!(meant(all).unwrap(), "a\tb\n\\NAJ2Aq,éé\u{78}g");
        for wrong in ["a\\", "\\xff", "\\000"] {
            assert_eq!(meant(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fields_end_where_no_backslash_stands_before() {
        let end = |text: &str| field_end(text.as_bytes(), 0, b',');
        assert_eq!(end("ab,c"), (2, false));
        assert_eq!(end("a\\,b,c"), (4, true));
        assert_eq!(end("a\\\\,b"), (3, true));
        assert_eq!(end("a\\\nb\r\n"), (4, true));
        assert_eq!(end("a\\"), (2, true));
        assert_eq!(end(""), (0, false));
    }
}
