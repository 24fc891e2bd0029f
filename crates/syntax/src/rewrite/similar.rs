//! `similar to` with the standard's patterns, which DataFusion takes for regular expressions.

use messages::{Error, Result};
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, ValueWithSpan};

/// `a like any (array['x%', 'y%'])` is `a like 'x%' or a like 'y%'`; other arrays are left, and refused.
pub(super) fn like_any(expr: &mut Expr) {
    let (Expr::Like {
        any: true, pattern, ..
    }
    | Expr::ILike {
        any: true, pattern, ..
    }) = &*expr
    else {
        return;
    };
    let mut array = &**pattern;
    while let Expr::Nested(inner) = array {
        array = inner;
    }
    let Expr::Array(array) = array else {
        return;
    };
    let mut found: Option<Expr> = None;
    for item in &array.elem {
        let mut one = expr.clone();
        if let Expr::Like { any, pattern, .. } | Expr::ILike { any, pattern, .. } = &mut one {
            *any = false;
            **pattern = item.clone();
        }
        found = Some(match found {
            None => one,
            Some(before) => Expr::BinaryOp {
                left: Box::new(before),
                op: BinaryOperator::Or,
                right: Box::new(one),
            },
        });
    }
    if let Some(found) = found {
        *expr = Expr::Nested(Box::new(found));
    }
}

/// `value [not] similar to pattern [escape 'c']` as a match of a regular expression.
///
/// # Errors
/// If the pattern is not a constant, or not valid.
pub(super) fn matched(
    value: &Expr,
    pattern: &Expr,
    escape: Option<&Value>,
    negated: bool,
) -> Result<Expr> {
    let Expr::Value(ValueWithSpan {
        value: Value::SingleQuotedString(pattern),
        ..
    }) = pattern
    else {
        return Err(Error::unsupported(
            "`similar to` takes a pattern in quotes; use `~` for one that is computed",
        ));
    };
    let escape = match escape {
        None => Some('\\'),
        Some(Value::SingleQuotedString(text)) if text.chars().count() <= 1 => text.chars().next(),
        Some(other) => {
            return Err(Error::coded(
                "22025",
                format!("`escape` takes one character, found {other}"),
            ));
        }
    };
    let regex = regex(pattern, escape).ok_or_else(|| {
        Error::coded("2201B", format!(
            "'{pattern}' is not a valid pattern of `similar to`: it ends within brackets or after the escape character"
        ))
    })?;
    let found = Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(value.clone()),
        op: BinaryOperator::PGRegexMatch,
        right: Box::new(Expr::value(Value::SingleQuotedString(regex))),
    }));
    Ok(if negated {
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(found),
        }
    } else {
        found
    })
}

/// `%` is any text, `_` any character; `| * + ? { } ( )` and brackets mean what they do in a regular expression.
fn regex(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut regex = String::from("(?s)^(?:");
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            c if Some(c) == escape => literal(rest.next()?, &mut regex),
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '|' | '*' | '+' | '?' | '{' | '}' | '(' | ')' => regex.push(c),
            '[' => bracket(&mut rest, &mut regex)?,
            c => literal(c, &mut regex),
        }
    }
    regex.push_str(")$");
    Some(regex)
}

/// The rest of `[abc]`, `[^a-z]` or `[[:alpha:]]`.
fn bracket(rest: &mut std::str::Chars<'_>, regex: &mut String) -> Option<()> {
    regex.push('[');
    let mut first = true;
    loop {
        let c = rest.next()?;
        match c {
            '^' if first => {
                regex.push(c);
                continue;
            }
            ']' if !first => {
                regex.push(c);
                return Some(());
            }
            '[' if rest.as_str().starts_with(':') => {
                let class = rest.as_str();
                let end = class.find(":]")? + 2;
                regex.push('[');
                regex.push_str(&class[..end]);
                *rest = class[end..].chars();
            }
            '-' => regex.push(c),
            c => literal(c, regex),
        }
        first = false;
    }
}

/// The character itself, whatever it means in a regular expression.
fn literal(c: char, regex: &mut String) {
    if c.is_ascii_punctuation() {
        regex.push('\\');
    }
    regex.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_the_standard_says() {
        let matches = |text: &str, pattern: &str| {
            let regex = regex::Regex::new(&regex(pattern, Some('\\')).unwrap()).unwrap();
            regex.is_match(text)
        };
        for (text, pattern, wanted) in [
            ("abc", "abc", true),
            ("abc", "a", false),
            ("abc", "a%", true),
            ("abc", "_b_", true),
            ("abc", "%(b|d)%", true),
            ("abc", "(b|c)%", false),
            ("abc", "a.c", false),
            ("a.c", "a.c", true),
            ("aaa", "a+", true),
            ("aab", "a{2}b", true),
            ("a%", "a\\%", true),
            ("ab", "a\\%", false),
            ("x]", "x[]]", true),
            ("x^", "x[a^]", true),
            ("xb", "x[^a]", true),
            ("x5", "x[[:digit:]]", true),
            ("xm", "x[a-z]", true),
            ("a\nb", "a%b", true),
            ("^a$", "^a$", true),
        ] {
            assert_eq!(matches(text, pattern), wanted, "{text} {pattern}");
        }
        assert_eq!(regex("a[b", None), None);
        assert_eq!(regex("a\\", Some('\\')), None);
        assert_eq!(regex("a\\b", None).as_deref(), Some("(?s)^(?:a\\\\b)$"));
    }
}
