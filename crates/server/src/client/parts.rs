//! The parts of a statement about the session: words, texts and signs.

/// Part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// In lower case, unless it has quotes.
    Word(String),
    Text(String),
    Sign(char),
    /// What is read no further.
    Rest(&'t str),
}

/// Most parts that a statement about the session has.
const MOST: usize = 24;

/// The first parts of a statement.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix("--") {
            rest = after.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        if let Some(after) = rest.strip_prefix("/*") {
            rest = after.split_once("*/").map_or("", |(_, after)| after);
            continue;
        }
        let Some(first) = rest.chars().next() else {
            break;
        };
        if parts.len() == MOST {
            parts.push(Part::Rest(rest));
            break;
        }
        match first {
            '\'' | '"' => {
                let (value, after) = quoted(&rest[1..], first);
                rest = after;
                parts.push(if first == '"' {
                    Part::Word(value)
                } else {
                    Part::Text(value)
                });
            }
            c if c.is_alphanumeric() || c == '_' => {
                let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
                let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
                parts.push(Part::Word(rest[..end].to_lowercase()));
                rest = &rest[end..];
            }
            sign => {
                rest = &rest[sign.len_utf8()..];
                // At the end it says nothing.
                if sign != ';' || !rest.trim().is_empty() {
                    parts.push(Part::Sign(sign));
                }
            }
        }
    }
    parts
}

/// The same with names of two parts, `my.own`, as one.
pub(super) fn joined(parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    let mut joined: Vec<Part<'_>> = Vec::with_capacity(parts.len());
    for part in parts {
        let part = match (part, &joined[..]) {
            (Part::Word(end), [.., Part::Word(start), Part::Sign('.')]) => {
                let whole = Part::Word(format!("{start}.{end}"));
                joined.truncate(joined.len() - 2);
                whole
            }
            (part, _) => part,
        };
        joined.push(part);
    }
    joined
}

/// What stands before the quote that ends it, and what comes after that.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut value = String::new();
    let mut rest = text;
    while let Some(end) = rest.find(quote) {
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(after) => {
                value.push(quote);
                rest = after;
            }
            None => return (value, rest),
        }
    }
    value.push_str(rest);
    (value, "")
}
