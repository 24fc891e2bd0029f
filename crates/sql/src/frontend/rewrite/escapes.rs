//! `like` with an escape character of its own: the planner knows the backslash only; and texts with escapes of Unicode.

use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan};

/// Writes a constant pattern with backslashes in the place of another escape character, or of none (`escape ''`). A
/// pattern that is computed, or ends with the escape character, is left as it is.
pub(super) fn with_backslashes(expr: &mut Expr) {
    let (Expr::Like {
        pattern,
        escape_char,
        ..
    }
    | Expr::ILike {
        pattern,
        escape_char,
        ..
    }) = expr
    else {
        return;
    };
    let escape = match escape_char.as_ref().map(|escape| &escape.value) {
        Some(Value::SingleQuotedString(text)) if text.chars().count() <= 1 => text.chars().next(),
        _ => return,
    };
    if let Expr::Value(ValueWithSpan {
        value: Value::SingleQuotedString(text),
        ..
    }) = pattern.as_mut()
        && escape != Some('\\')
        && let Some(other) = escaped(text, escape)
    {
        *text = other;
        *escape_char = None;
    }
}

/// `U&'d\0061t'` as the text that it is.
pub(super) fn plain(expr: &mut Expr) {
    if let Expr::Value(ValueWithSpan { value, .. }) = expr
        && let Value::UnicodeStringLiteral(text) = value
    {
        *value = Value::SingleQuotedString(std::mem::take(text));
    }
}

fn escaped(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let plain = Some(c) == escape;
        let c = if plain { rest.next()? } else { c };
        if c == '\\' || plain && matches!(c, '%' | '_') {
            text.push('\\');
        }
        text.push(c);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backslash_takes_the_place_of_others() {
        for (pattern, escape, wanted) in [
            ("a#%b", Some('#'), Some("a\\%b")),
            ("a##_", Some('#'), Some("a#_")),
            ("a\\b%", Some('#'), Some("a\\\\b%")),
            ("%%x", Some('%'), Some("\\%x")),
            ("a\\%", None, Some("a\\\\%")),
            ("a#", Some('#'), None),
        ] {
            assert_eq!(escaped(pattern, escape).as_deref(), wanted, "{pattern}");
        }
    }
}
