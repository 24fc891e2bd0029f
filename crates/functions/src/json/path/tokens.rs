//! The words and signs of a path.

use std::iter::Peekable;
use std::str::Chars;

use messages::{Error, Result};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word without quotes.
    Word(String),
    /// A string in quotes.
    Text(String),
    Number(String),
    Variable(String),
    Sign(&'static str),
}

const SIGNS: [&str; 29] = [
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "<", ">", "=", "!", "(", ")", "[", "]", "{",
    "}", ".", ",", "*", "/", "%", "+", "-", "?", "@", "$", ":",
];

/// The error for what stands where it must not.
pub(super) fn syntax(near: &str) -> Error {
    let message = if near.is_empty() {
        "syntax error at end of jsonpath input".to_string()
    } else {
        format!("syntax error at or near \"{near}\" of jsonpath input")
    };
    Error::coded("42601", message)
}

fn is_letter(letter: char) -> bool {
    letter == '_' || letter == '$' || letter.is_alphanumeric() || !letter.is_ascii()
}

/// The words and signs of a text.
///
/// # Errors
/// For what is none.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let Some(first) = rest.chars().next() else {
            return Ok(found);
        };
        if let Some(after) = rest.strip_prefix("/*") {
            let Some(end) = after.find("*/") else {
                return Err(Error::coded(
                    "42601",
                    "unexpected end of comment in jsonpath input",
                ));
            };
            rest = &after[end + 2..];
        } else if first == '"' {
            let (string, after) = quoted(rest)?;
            found.push(Token::Text(string));
            rest = after;
        } else if first.is_ascii_digit() || first == '.' && starts_fraction(rest, &found) {
            let (number, after) = number(rest)?;
            found.push(Token::Number(number.to_string()));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('$') {
            if after.starts_with('"') {
                let (name, after) = quoted(after)?;
                found.push(Token::Variable(name));
                rest = after;
                continue;
            }
            let end = after.find(|letter| !is_letter(letter));
            let (name, after) = after.split_at(end.unwrap_or(after.len()));
            found.push(if name.is_empty() {
                Token::Sign("$")
            } else {
                Token::Variable(name.to_string())
            });
            rest = after;
        } else if is_letter(first) || first == '\\' {
            let (word, after) = word(rest)?;
            found.push(Token::Word(word));
            rest = after;
        } else {
            let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
                return Err(syntax(&first.to_string()));
            };
            found.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        }
    }
}

/// Whether a point begins a number: not behind a value, whose member it would name.
fn starts_fraction(rest: &str, before: &[Token]) -> bool {
    let digit = rest[1..].starts_with(|next: char| next.is_ascii_digit());
    let value = matches!(
        before.last(),
        Some(Token::Word(_) | Token::Text(_) | Token::Number(_) | Token::Variable(_))
            | Some(Token::Sign(")" | "]" | "}" | "$" | "@" | "*"))
    );
    digit && !value
}

fn number(text: &str) -> Result<(&str, &str)> {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut end = digits(text);
    let mut whole = true;
    if text[end..].starts_with('.') {
        let behind = digits(&text[end + 1..]);
        // `1.type()` names a method.
        if behind > 0 || !text[end + 1..].starts_with(is_letter) {
            end += 1 + behind;
            whole = false;
        }
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let behind = digits(&text[end + 1 + sign..]);
        if behind == 0 {
            return Err(trailing(text));
        }
        end += 1 + sign + behind;
        whole = false;
    }
    let (number, rest) = text.split_at(end);
    if rest.starts_with(is_letter) {
        return Err(trailing(text));
    }
    if whole && number.len() > 1 && number.starts_with('0') {
        return Err(trailing(text));
    }
    Ok((number, rest))
}

fn trailing(text: &str) -> Error {
    let near: String = text
        .chars()
        .take_while(|letter| is_letter(*letter) || *letter == '.')
        .collect();
    Error::coded(
        "42601",
        format!("trailing junk after numeric literal at or near \"{near}\" of jsonpath input"),
    )
}

fn word(text: &str) -> Result<(String, &str)> {
    let mut word = String::new();
    let mut letters = text.chars().peekable();
    let mut taken = 0;
    while let Some(&letter) = letters.peek() {
        if letter == '\\' {
            let before = letters.clone().collect::<String>().len();
            letters.next();
            escape(&mut letters, &mut word)?;
            taken += before - letters.clone().collect::<String>().len();
        } else if is_letter(letter) {
            word.push(letter);
            letters.next();
            taken += letter.len_utf8();
        } else {
            break;
        }
    }
    Ok((word, &text[taken..]))
}

/// The string at the beginning of a text, and what stands behind it.
fn quoted(text: &str) -> Result<(String, &str)> {
    let mut string = String::new();
    let mut letters = text[1..].chars().peekable();
    loop {
        match letters.next() {
            None => {
                return Err(Error::coded(
                    "42601",
                    "unterminated quoted string at end of jsonpath input",
                ));
            }
            Some('"') => break,
            Some('\\') => escape(&mut letters, &mut string)?,
            Some(letter) => string.push(letter),
        }
    }
    let left: usize = letters.map(char::len_utf8).sum();
    Ok((string, &text[text.len() - left..]))
}

fn escape(letters: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<()> {
    let invalid = || Error::coded("42601", "invalid escape sequence in jsonpath input");
    let letter = match letters.next().ok_or_else(invalid)? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        'x' => {
            let code = hex(letters, 2)?;
            char::from_u32(code).ok_or_else(invalid)?
        }
        'u' => {
            let code = unicode(letters)?;
            let code = if (0xd800..0xdc00).contains(&code) {
                if letters.next() != Some('\\') || letters.next() != Some('u') {
                    return Err(invalid());
                }
                let low = unicode(letters)?;
                if !(0xdc00..0xe000).contains(&low) {
                    return Err(invalid());
                }
                0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
            } else {
                code
            };
            match char::from_u32(code) {
                Some('\0') | None => {
                    return Err(Error::coded("22P05", "unsupported Unicode escape sequence"));
                }
                Some(letter) => letter,
            }
        }
        other => other,
    };
    out.push(letter);
    Ok(())
}

fn unicode(letters: &mut Peekable<Chars<'_>>) -> Result<u32> {
    if letters.next_if_eq(&'{').is_none() {
        return hex(letters, 4);
    }
    let mut code = 0u32;
    for _ in 0..6 {
        if letters.peek() == Some(&'}') {
            break;
        }
        code = code * 16 + hex(letters, 1)?;
    }
    match letters.next() {
        Some('}') => Ok(code),
        _ => Err(Error::coded("42601", "invalid Unicode escape sequence")),
    }
}

fn hex(letters: &mut Peekable<Chars<'_>>, count: usize) -> Result<u32> {
    let mut code = 0;
    for _ in 0..count {
        let digit = letters.next().and_then(|letter| letter.to_digit(16));
        let Some(digit) = digit else {
            return Err(Error::coded(
                "42601",
                "invalid hexadecimal character sequence",
            ));
        };
        code = code * 16 + digit;
    }
    Ok(code)
}
