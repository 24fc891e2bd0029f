//! `like` with an escape character of its own: the planner knows the backslash only; and texts with escapes of Unicode.

use functions::like::{PATTERN, escaped};
use sqlparser::ast::{Expr, Value, ValueWithSpan};

use crate::call::call;

/// Writes a pattern with backslashes in the place of another escape character, or of none (`escape ''`): a constant here,
/// and one that is computed when it is. A constant that ends with the escape character is left as it is.
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
    if escape == Some('\\') {
        return;
    }
    match pattern.as_mut() {
        Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text),
            ..
        }) => {
            if let Some(other) = escaped(text, escape) {
                *text = other;
                *escape_char = None;
            }
        }
        computed => {
            let escape = escape.map_or_else(String::new, String::from);
            let escape = Expr::value(Value::SingleQuotedString(escape));
            let inner = std::mem::replace(computed, Expr::value(Value::Null));
            *computed = call(PATTERN, vec![inner, escape]);
            *escape_char = None;
        }
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
