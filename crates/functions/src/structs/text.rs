//! Structs as texts: `(1,"x y",)`, as PostgreSQL reads and writes them.

use datafusion_common::{Result, exec_err};

/// Appends a field, in quotes where it would be read as something else. A field that is NULL is nothing.
pub(crate) fn quoted(text: &str, out: &mut String) {
    let odd = |c: char| matches!(c, '(' | ')' | ',' | '"' | '\\') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.contains(odd) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('"');
}

fn malformed<T>(text: &str, why: &str) -> Result<T> {
    exec_err!("invalid input syntax for a struct: malformed record literal: \"{text}\": {why}")
}

/// The texts of the `count` fields that a text says.
///
/// # Errors
/// For a text that is no struct of so many fields.
pub(crate) fn parse(text: &str, count: usize) -> Result<Vec<Option<String>>> {
    let Some(mut rest) = text.trim_start().strip_prefix('(') else {
        return malformed(text, "Missing left parenthesis.");
    };
    let mut fields = Vec::with_capacity(count);
    loop {
        let Some((field, after)) = field(rest) else {
            return malformed(text, "Unexpected end of input.");
        };
        fields.push(field);
        let mut after = after.chars();
        let end = after.next();
        rest = after.as_str();
        match end {
            Some(',') if fields.len() == count => return malformed(text, "Too many columns."),
            Some(',') => {}
            _ if fields.len() < count => return malformed(text, "Too few columns."),
            _ => break,
        }
    }
    if !rest.trim_start().is_empty() {
        return malformed(text, "Junk after right parenthesis.");
    }
    Ok(fields)
}

/// The field that begins here, and what is behind it: a comma or a parenthesis. `None` if there is neither.
fn field(text: &str) -> Option<(Option<String>, &str)> {
    if text.starts_with([',', ')']) {
        return Some((None, text));
    }
    let (mut value, mut inside) = (String::new(), false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ',' | ')' if !inside => return Some((Some(value), &text[at..])),
            '\\' => value.push(chars.next()?.1),
            '"' if inside && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                chars.next();
                value.push('"');
            }
            '"' => inside = !inside,
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut random = fastrand::Rng::with_seed(11);
        let letters = ['a', '(', ')', ',', '"', '\\', ' ', '{', 'é', '\n', '1'];
        for _ in 0..5_000 {
            let value = |random: &mut fastrand::Rng| {
                let length = random.usize(..6);
                let is_there = random.bool();
                let text = (0..length).map(|_| letters[random.usize(..letters.len())]);
                is_there.then(|| text.collect::<String>())
            };
            let count = random.usize(1..5);
            let fields: Vec<_> = (0..count).map(|_| value(&mut random)).collect();
            let mut text = "(".to_string();
            for (at, field) in fields.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                if let Some(field) = field {
                    quoted(field, &mut text);
                }
            }
            text.push(')');
            assert_eq!(parse(&text, count).unwrap(), fields, "{text}");
            assert!(parse(&text, count + 1).is_err(), "{text}");
            // Whatever the text: an error or fields.
            let cut: String = text
                .chars()
                .take(random.usize(..text.chars().count()))
                .collect();
            assert!(parse(&cut, count).is_err(), "{cut}");
        }
    }
}
