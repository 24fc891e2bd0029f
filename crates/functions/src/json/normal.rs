//! The form of `jsonb`.

use std::borrow::Cow;

use datafusion_common::{Result, exec_err};
use documents::{Walk, inner};
use messages::Error;
use serde::de::IgnoredAny;

use crate::json::cut::{self, Kind};
use crate::json::wrong;
use crate::present;

/// The deepest nesting of a `jsonb`.
const DEEPEST: usize = 1000;
/// Where less of the stack is left, values that are nested deeper get another of [`STACK`] bytes: threads of tests have little.
const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;

/// How the error of a text that is no JSON begins.
pub const SYNTAX: &str = "invalid input syntax for type json";

/// That a text is JSON.
///
/// # Errors
/// If it is none.
pub(crate) fn check(text: &str) -> Result<()> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(e) => {
            let why = wrong::told(text).unwrap_or_else(|| format!("{e} of {}", shortened(text)));
            Err(Error::Execution {
                code: "22P02",
                message: format!("{SYNTAX}: {why}"),
            }
            .into())
        }
    }
}

/// A text as messages show it.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("\"{}...\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}

/// A text in the form of `jsonb`.
///
/// # Errors
/// If it is no JSON, or none that `jsonb` can hold.
pub(super) fn of(text: &str) -> Result<String> {
    check(text)?;
    let mut out = String::with_capacity(text.len());
    let mut reader = Reader {
        text,
        at: 0,
        values: 0,
        digits: 0,
    };
    reader.value(DEEPEST, &mut out)?;
    Ok(out)
}

/// Reads a text that is JSON once, from its beginning to its end.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// How many values were read.
    values: usize,
    /// How many bytes of numbers were written: exponents may make them very long.
    digits: usize,
}

impl<'t> Reader<'t> {
    /// What comes next that is no blank, which stays there.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Whether a mark comes next, which is passed then.
    fn eat(&mut self, mark: u8) -> bool {
        let comes = self.peek() == Some(mark);
        self.at += usize::from(comes);
        comes
    }

    /// The string or the scalar that comes next, as it is written, and whether there are escapes in it.
    fn token(&mut self) -> (&'t str, bool) {
        self.peek();
        let mut walk = Walk::new(&self.text[self.at..]);
        let token = match walk.peek() {
            Some(b'"') => walk.string(),
            _ => walk.value().map(|scalar| (scalar, false)),
        };
        let Some((token, escaped)) = token else {
            self.at = self.text.len();
            return ("", false);
        };
        self.at += token.len();
        (token, escaped)
    }

    /// The characters of the string that comes next.
    fn string(&mut self) -> Result<Cow<'t, str>> {
        match self.token() {
            (string, false) => Ok(Cow::Borrowed(inner(string))),
            (string, true) => held(cut::characters(string)?).map(Cow::Owned),
        }
    }

    /// Appends the value that comes next.
    fn value(&mut self, depth: usize, out: &mut String) -> Result<()> {
        /// Some milliseconds' worth of values.
        const CHECKED: usize = 1 << 14;
        if depth == 0 {
            return exec_err!(
                "stack depth limit exceeded: JSON that is nested more than {DEEPEST} levels deep"
            );
        }
        self.values += 1;
        if self.values.is_multiple_of(CHECKED) {
            present::check()?;
        }
        match self.peek() {
            Some(b'{') => stacker::maybe_grow(RED_ZONE, STACK, || self.object(depth - 1, out)),
            Some(b'[') => stacker::maybe_grow(RED_ZONE, STACK, || self.array(depth - 1, out)),
            Some(b'"') => {
                quote(&self.string()?, out);
                Ok(())
            }
            _ => {
                let (token, _) = self.token();
                if Kind::of(token) != Kind::Number {
                    out.push_str(token);
                    return Ok(());
                }
                let before = out.len();
                number(token, out)?;
                self.digits += out.len() - before;
                present::fits(self.digits)
            }
        }
    }

    fn object(&mut self, depth: usize, out: &mut String) -> Result<()> {
        let (mut members, mut values) = (Vec::new(), String::new());
        self.eat(b'{');
        while !self.eat(b'}') && self.peek().is_some() {
            let key = self.string()?;
            self.eat(b':');
            let start = values.len();
            self.value(depth, &mut values)?;
            members.push((key, start..values.len()));
            self.eat(b',');
        }
        // Of equal keys the last one stays, and a stable order leaves it last.
        members.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        members.reverse();
        members.dedup_by(|later, earlier| later.0 == earlier.0);
        members.reverse();
        out.push('{');
        for (at, (key, value)) in members.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            quote(key, out);
            out.push_str(": ");
            out.push_str(&values[value.clone()]);
        }
        out.push('}');
        Ok(())
    }

    fn array(&mut self, depth: usize, out: &mut String) -> Result<()> {
        self.eat(b'[');
        out.push('[');
        let mut first = true;
        while !self.eat(b']') && self.peek().is_some() {
            out.push_str(if first { "" } else { ", " });
            first = false;
            self.value(depth, out)?;
            self.eat(b',');
        }
        out.push(']');
        Ok(())
    }
}

/// A string that `jsonb` can hold.
fn held(text: String) -> Result<String> {
    if text.contains('\0') {
        return exec_err!(
            "unsupported Unicode escape sequence: \\u0000 cannot be converted to text"
        );
    }
    Ok(text)
}

/// Appends a string as PostgreSQL writes it.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    let is_plain = |byte: u8| (byte >= b' ') & (byte != b'"') & (byte != b'\\');
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The most digits before the point of a number, and behind it: PostgreSQL's.
const MOST_WHOLE: i64 = 131_072;
const MOST_BEHIND: i64 = 16_383;

/// Appends a number without its exponent, with all its digits.
fn number(text: &str, out: &mut String) -> Result<()> {
    /// Digits that fit on either side of the point.
    const FEW: usize = 1_000;
    let is_nonzero = |byte: &u8| matches!(byte, b'1'..=b'9');
    let is_zero = || !text.as_bytes().iter().any(is_nonzero);
    let negative_zero = text.starts_with('-') && is_zero();
    if text.len() <= FEW && !text.contains(['e', 'E']) && !negative_zero {
        out.push_str(text);
        return Ok(());
    }
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let all: String = [whole, behind].concat();
    let zero = all.bytes().all(|digit| digit == b'0');
    let out_of_range = || exec_err!("value overflows numeric format: {text}");
    let Ok(exponent) = exponent.parse::<i64>() else {
        return out_of_range();
    };
    let point = (whole.len() as i64).saturating_add(exponent);
    let scale = (behind.len() as i64).saturating_sub(exponent).max(0);
    if scale > MOST_BEHIND || !zero && point > MOST_WHOLE {
        return out_of_range();
    }
    if zero {
        out.push('0');
        if scale > 0 {
            out.push('.');
            out.extend(std::iter::repeat_n('0', scale as usize));
        }
        return Ok(());
    }
    if negative {
        out.push('-');
    }
    let digit = |at: i64| {
        let at = usize::try_from(at).ok();
        at.and_then(|at| all.as_bytes().get(at))
            .map_or('0', |digit| char::from(*digit))
    };
    let before: String = (0..point).map(digit).collect();
    let before = before.trim_start_matches('0');
    out.push_str(if before.is_empty() { "0" } else { before });
    if scale > 0 {
        out.push('.');
        out.extend((point..point + scale).map(digit));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_all_their_digits_and_no_exponent() {
        for (text, wanted) in [
            ("1", "1"),
            ("1.0", "1.0"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("1e2", "100"),
            ("1.5e1", "15"),
            ("1.20e1", "12.0"),
            ("1E-3", "0.001"),
            ("-12.34e-1", "-1.234"),
            (
                "123456789012345678901234567890.5",
                "123456789012345678901234567890.5",
            ),
            ("0e5", "0"),
            ("0.10e1", "1.0"),
            ("12e-5", "0.00012"),
        ] {
            assert_eq!(of(text).unwrap(), wanted, "{text}");
        }
        assert!(of("1e200000").is_err());
        assert!(of("1e99999999999999999999").is_err());
    }

    #[test]
    fn keys_come_once_and_in_order() {
        let text = r#" { "bb":1 , "a" : [ true,{"z":null}], "bb":"x\u00e9\n", "c":{} , "":[ ]} "#;
        let wanted = "{\"\": [], \"a\": [true, {\"z\": null}], \"c\": {}, \"bb\": \"xé\\n\"}";
        assert_eq!(of(text).unwrap(), wanted);
        assert_eq!(of(wanted).unwrap(), wanted);
        assert_eq!(of(r#"{"a":1,"a":2,"a":3}"#).unwrap(), r#"{"a": 3}"#);
        assert_eq!(
            of(r#"["[,]","\"{","\\"]"#).unwrap(),
            r#"["[,]", "\"{", "\\"]"#
        );
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "", "{", "{'a':1}", "[1,]", "01", "nul", "\"\n\"", "\"\\x\"", "1 2", "NaN",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
        assert!(of(r#""\u0000""#).is_err());
        assert!(check(r#""\u0000""#).is_ok());
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        // Each level is read once.
        let wide = format!(
            "{}{}1{}",
            "[".repeat(900),
            "1,".repeat(100_000),
            "]".repeat(900)
        );
        assert_eq!(of(&wide).unwrap().len(), wide.len() + 100_000);
        assert!(of(&deep(900)).is_ok());
        assert!(of(&deep(5000)).is_err());
        assert!(check(&deep(5000)).is_ok());
    }
}
