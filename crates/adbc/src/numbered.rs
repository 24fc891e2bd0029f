//! Statements whose parameters are `?`, as ones whose parameters are `$1`, `$2` and so on.

use adbc_core::error::Result;

use crate::error::invalid;

/// A statement with numbers for its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    /// The text, in which each `?` is a `$1`, `$2` and so on.
    pub(crate) text: String,
    /// How many parameters there are: the highest of their numbers.
    pub(crate) parameters: usize,
    /// Where numbers stand in it that came for a `?`: line and character, counted from 1, and how many characters longer
    /// the number is.
    grown: Vec<(u64, u64, u64)>,
}

/// The statement `text` with numbers for its parameters. Texts, quoted names and comments stay as they are.
///
/// # Errors
/// If it has parameters of both kinds.
pub(crate) fn numbered(text: &str) -> Result<Numbered> {
    let (mut out, mut grown) = (String::with_capacity(text.len()), Vec::new());
    let (mut count, mut given) = (0, 0);
    let (mut line, mut column) = (1, 1);
    let mut at = 0;
    let mut before = ' ';
    while at < text.len() {
        let length = part(&text[at..], before);
        let piece = &text[at..at + length];
        at += length;
        if piece == "?" {
            count += 1;
            let number = format!("${count}");
            let longer = number.len() as u64 - 1;
            grown.push((line, column, longer));
            column += longer + 1;
            out.push_str(&number);
            before = '?';
            continue;
        }
        if piece == "$" && !is_word(before) {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_ascii_digit());
            let number = rest[..end.unwrap_or(rest.len())].parse().unwrap_or(0);
            given = given.max(number);
        }
        for c in piece.chars() {
            (line, column) = match c {
                '\n' => (line + 1, 1),
                _ => (line, column + 1),
            };
        }
        out.push_str(piece);
        before = piece.chars().next_back().unwrap_or(' ');
    }
    if given > 0 && count > 0 {
        return Err(invalid(
            "the statement has parameters ? and $1: write all of them in one way",
        ));
    }
    Ok(Numbered {
        text: out,
        parameters: count.max(given),
        grown,
    })
}

impl Numbered {
    /// An error of the statement with its place in the text that was given.
    pub(crate) fn placed(&self, error: atoll::Error) -> atoll::Error {
        use sql::Error;
        let atoll::Error::Sql(mut told) = error else {
            return error;
        };
        if let Error::Syntax { position, .. }
        | Error::UnknownTable { position, .. }
        | Error::UnknownColumn { position, .. }
        | Error::Invalid { position, .. } = &mut told
            && let Some(place) = position
        {
            let before = self.grown.iter();
            let before =
                before.filter(|(line, column, _)| *line == place.line && *column < place.column);
            let longer: u64 = before.map(|(_, _, longer)| longer).sum();
            place.column = place.column.saturating_sub(longer).max(1);
        }
        atoll::Error::Sql(told)
    }
}

/// The bytes of what begins there: a text, a quoted name, a comment, or one character. `before` is the character in front.
fn part(text: &str, before: char) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let until = |end: Option<usize>| end.unwrap_or(text.len());
    if text.starts_with("--") {
        return until(text.find('\n'));
    }
    if text.starts_with("/*") {
        return comment(text);
    }
    match text.as_bytes()[0] {
        b'"' => quoted(text, '"', false),
        b'\'' => quoted(text, '\'', false),
        // `e'...'`, in which a backslash escapes the next character.
        b'e' | b'E' if !is_word(before) && text[1..].starts_with('\'') => {
            1 + quoted(&text[1..], '\'', true)
        }
        b'$' if !is_word(before) => match tag(text) {
            Some(tag) => until(text[tag.len()..].find(tag).map(|end| end + 2 * tag.len())),
            None => 1,
        },
        _ => first,
    }
}

/// Whether `c` may be part of a name.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut rest = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = rest.next() {
        if escapes && c == '\\' {
            rest.next();
        } else if c == quote && rest.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The `$tag$` at the start of `text`, if there is one.
fn tag(text: &str) -> Option<&str> {
    let name = text[1..].split('$').next()?;
    let word = name.chars().all(is_word);
    let named = word && !name.starts_with(|c: char| c.is_ascii_digit());
    (named && text.len() > name.len() + 1).then(|| &text[..name.len() + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(given: &str) -> String {
        numbered(given).unwrap().text
    }

    #[test]
    fn question_marks_get_numbers_where_they_are_parameters() {
        assert_eq!(text("select ?, ? + 1"), "select $1, $2 + 1");
        for same in [
            "select $1",
            "select '?', '''?', \"?\", \"\"\"?\"",
            "select 1 -- ?",
            "select /* ? /* ? */ ? */ 1",
            "select $$ ? $$, $a$ ? $b$ ? $a$",
            "select e'\\'?'",
            "select 'open ?",
            "/* open ?",
            "ä",
            "",
        ] {
            assert_eq!(text(same), same);
        }
        assert_eq!(text("select 'a'?"), "select 'a'$1");
        assert_eq!(text("select name'\\'?"), "select name'\\'$1");
        assert_eq!(text("-- ?\n?"), "-- ?\n$1");
        assert_eq!(text("'é' ? /*é*/ ?"), "'é' $1 /*é*/ $2");
        let many = text(&"?,".repeat(12));
        assert!(many.ends_with("$11,$12,"), "{many}");
    }

    #[test]
    fn parameters_are_counted() {
        for (text, wanted) in [
            ("select 1", 0),
            ("select ?, ?", 2),
            ("select $3, $1", 3),
            ("select '$3', $$ $4 $$, \"$5\", a$6", 0),
            ("select $12", 12),
        ] {
            assert_eq!(numbered(text).unwrap().parameters, wanted, "{text}");
        }
    }

    #[test]
    fn parameters_of_both_kinds_are_refused() {
        assert!(numbered("select $1, ?").is_err());
        assert!(numbered("select $1, '?'").is_ok());
        assert!(numbered("select '$1', ?").is_ok());
    }

    #[test]
    fn places_are_those_of_the_text_that_was_given() {
        let read = numbered("select ?,\n?, nothing, ?, more").unwrap();
        let at = |column| {
            read.placed(atoll::Error::Sql(sql::Error::UnknownColumn {
                name: "n".into(),
                candidates: vec![],
                relation: None,
                position: Some(sql::Position { line: 2, column }),
            }))
        };
        let place = |error: atoll::Error| match error {
            atoll::Error::Sql(error) => error.position().unwrap().column,
            _ => 0,
        };
        // "$2, nothing, $3, more"
        assert_eq!(place(at(5)), 4);
        assert_eq!(place(at(18)), 16);
    }
}
