//! The lexer: names, numbers and signs of a statement.

use crate::error::{Checked, Span, wrong};

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// As written; `quoted` if it stood in double quotes.
    Name {
        text: String,
        quoted: bool,
    },
    /// Digits, perhaps a point and digits, perhaps an exponent; no sign.
    Number(String),
    /// What stood in single quotes.
    Text(String),
    Sign(&'static str),
    End,
}

/// Longer signs first.
const SIGNS: [&str; 26] = [
    "<=", ">=", "<>", "!=", "==", "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "=", "<", ">",
    "+", "-", "*", "/", "%", "^", "?", "@",
];

/// All tokens of `text`, the last one being [`Token::End`].
pub(crate) fn tokens(text: &str) -> Checked<Vec<(Token, Span)>> {
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        at = skip(text, at)?;
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            all.push((Token::End, Span { start: at, end: at }));
            return Ok(all);
        };
        let (token, length) = match first {
            '"' => {
                let (text, length) = quoted(rest, first, at)?;
                if text.is_empty() {
                    return wrong(span(at, length), "a name in quotes must not be empty");
                }
                (Token::Name { text, quoted: true }, length)
            }
            '\'' => {
                let (text, length) = quoted(rest, first, at)?;
                (Token::Text(text), length)
            }
            c if c.is_ascii_digit() => number(rest, at)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest, at)?,
            c if c.is_alphabetic() || c == '_' => {
                let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
                let text = rest[..length].to_owned();
                (
                    Token::Name {
                        text,
                        quoted: false,
                    },
                    length,
                )
            }
            other => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => {
                    let what = format!("{other:?} has no meaning here");
                    return wrong(span(at, other.len_utf8()), what);
                }
            },
        };
        all.push((token, span(at, length)));
        at += length;
    }
}

fn span(start: usize, length: usize) -> Span {
    Span {
        start,
        end: start + length,
    }
}

/// The place after white space and comments.
fn skip(text: &str, mut at: usize) -> Checked<usize> {
    loop {
        let rest = &text[at..];
        let bare = rest.trim_start();
        at += rest.len() - bare.len();
        if bare.starts_with("--") {
            at += bare.find('\n').unwrap_or(bare.len());
        } else if let Some(inside) = bare.strip_prefix("/*") {
            match inside.find("*/") {
                Some(end) => at += end + 4,
                None => return wrong(span(at, 2), "this comment has no end; close it with */"),
            }
        } else {
            return Ok(at);
        }
    }
}

/// What stands between quotes; the quote stands in it twice.
fn quoted(rest: &str, quote: char, at: usize) -> Checked<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((place, c)) = chars.next() {
        if c != quote {
            text.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            text.push(quote);
        } else {
            return Ok((text, place + 1));
        }
    }
    wrong(span(at, 1), format!("this {quote} is never closed"))
}

/// Digits, perhaps a point and digits, perhaps an exponent.
fn number(rest: &str, at: usize) -> Checked<(Token, usize)> {
    let digits = |from: usize| {
        let count = rest[from..].bytes().take_while(u8::is_ascii_digit).count();
        from + count
    };
    let mut end = digits(0);
    if rest[end..].starts_with('.') && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        end = digits(end + 1);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let mut power = end + 1;
        if rest[power..].starts_with(['+', '-']) {
            power += 1;
        }
        if digits(power) > power {
            end = digits(power);
        }
    }
    if rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        let what = "a name must not begin with a digit; write \"...\" around it";
        return wrong(span(at, end + 1), what);
    }
    Ok((Token::Number(rest[..end].to_owned()), end))
}
