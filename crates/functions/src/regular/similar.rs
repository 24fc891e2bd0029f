//! The patterns of the standard that `substring(text similar pattern escape c)` takes.

use messages::{Error, Result};

/// The regular expression of a pattern of the standard whose middle part is its only group.
///
/// # Errors
/// For an escape that is no character, or stands at the end, and for more than two separators.
pub(crate) fn between(pattern: &str, escape: &str) -> Result<String> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err(Error::coded("22025", "invalid escape string"));
    }
    let mut pieces = vec![String::new()];
    let mut rest = pattern.chars();
    let mut in_brackets = false;
    while let Some(letter) = rest.next() {
        let mut piece = pieces.pop().unwrap_or_default();
        let mut next = None;
        match letter {
            c if Some(c) == escape => match rest.next() {
                Some('"') => next = Some(String::new()),
                Some(c) => literal(c, &mut piece),
                None => return Err(Error::coded("22025", "invalid escape sequence")),
            },
            ']' if in_brackets => {
                in_brackets = false;
                piece.push(']');
            }
            '\\' if in_brackets => piece.push_str("\\\\"),
            c if in_brackets => piece.push(c),
            '[' => {
                in_brackets = true;
                piece.push('[');
            }
            '%' => piece.push_str(".*"),
            '_' => piece.push('.'),
            '(' => piece.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => piece.push(letter),
            c => literal(c, &mut piece),
        }
        pieces.push(piece);
        pieces.extend(next);
    }
    // What stands before the middle is as short as it can be.
    match &pieces[..] {
        [whole] => Ok(format!("^(?:{whole})$")),
        [before, middle, after] => Ok(format!(
            "^(?:{before}){{1,1}}?({middle}){{1,1}}(?:{after})$"
        )),
        [before, rest] => Ok(format!("^(?:{before}){{1,1}}?({rest})$")),
        _ => Err(Error::coded(
            "2200C",
            "SQL regular expression may not contain more than two escape-double-quote separators",
        )),
    }
}

/// Appends the character itself, whatever it means in a regular expression.
fn literal(letter: char, out: &mut String) {
    if letter.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(letter);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regular::Compiled;

    #[test]
    fn the_part_between_separators_is_found() {
        for (text, pattern, wanted) in [
            ("abcdefg", "a#\"(b_d)#\"%", Some("bcd")),
            ("abcdefg", "#\"(b_d)#\"%", None),
            ("abcdefg", "a#\"%#\"g", Some("bcdef")),
            ("abcdefg", "a#\"%|ab#\"g", Some("bcdef")),
            ("abcdefg", "a*#\"%#\"g*", Some("abcdefg")),
            ("abcdefg", "a%", Some("abcdefg")),
        ] {
            let mut compiled = Compiled::default();
            let regex = compiled.of(&between(pattern, "#").unwrap(), "").unwrap();
            let mut found = regex.matches(text, Some(0));
            let there = found.advance().unwrap();
            let found = found.texts().next().filter(|_| there).flatten();
            assert_eq!(found, wanted, "{pattern}");
        }
        assert!(between("a#\"b#\"c#\"d", "#").is_err());
    }
}
