//! A path as PostgreSQL writes it.

use std::fmt::Write;

use messages::Result;

use crate::json::normal::quote;
use crate::json::path::number;
use crate::json::path::tree::{Base, Chain, Comparison, Path, Predicate, Step};

/// The text of a path, which reads as the same path.
///
/// # Errors
/// For a number that is out of range.
pub(super) fn write(path: &Path) -> Result<String> {
    let mut out = String::new();
    if path.strict {
        out.push_str("strict ");
    }
    chain(&path.chain, true, &mut out)?;
    Ok(out)
}

/// How close operators bind.
fn binding(of: &Base) -> u8 {
    match of {
        Base::Predicate(predicate) => match predicate.as_ref() {
            Predicate::Or(..) => 0,
            Predicate::And(..) => 1,
            Predicate::Compare(..) | Predicate::StartsWith(..) => 2,
            _ => 6,
        },
        Base::Binary('+' | '-', ..) => 3,
        Base::Binary(..) => 4,
        Base::Signed(..) => 5,
        _ => 6,
    }
}

fn is_operation(base: &Base) -> bool {
    match base {
        Base::Signed(..) | Base::Binary(..) => true,
        Base::Predicate(predicate) => matches!(
            predicate.as_ref(),
            Predicate::Or(..)
                | Predicate::And(..)
                | Predicate::Compare(..)
                | Predicate::StartsWith(..)
                | Predicate::Like(..)
        ),
        _ => false,
    }
}

fn chain(own: &Chain, brackets: bool, out: &mut String) -> Result<()> {
    let closed = is_operation(&own.base) && (brackets || !own.steps.is_empty());
    if closed {
        out.push('(');
    }
    match &own.base {
        Base::Root => out.push('$'),
        Base::Current => out.push('@'),
        Base::Last => out.push_str("last"),
        Base::Null => out.push_str("null"),
        Base::Boolean(own) => out.push_str(if *own { "true" } else { "false" }),
        Base::Number(text) => {
            let text = number::normal(text)?;
            // A step would be read otherwise.
            if own.steps.is_empty() {
                out.push_str(&text);
            } else {
                let _ = write!(out, "({text})");
            }
        }
        Base::Text(text) => quote(text, out),
        Base::Variable(name) => {
            out.push('$');
            quote(name, out);
        }
        Base::Signed(sign, operand) => {
            out.push(*sign);
            chain(operand, binding(&operand.base) <= binding(&own.base), out)?;
        }
        Base::Binary(sign, left, right) => {
            chain(left, binding(&left.base) <= binding(&own.base), out)?;
            let _ = write!(out, " {sign} ");
            chain(right, binding(&right.base) <= binding(&own.base), out)?;
        }
        Base::Predicate(inner) => predicate(inner, out)?,
    }
    if closed {
        out.push(')');
    }
    own.steps.iter().try_for_each(|own| step(own, out))
}

fn step(own: &Step, out: &mut String) -> Result<()> {
    match own {
        Step::Key(key) => {
            out.push('.');
            quote(key, out);
        }
        Step::AnyKey => out.push_str(".*"),
        Step::AnyItem => out.push_str("[*]"),
        Step::Items(all) => {
            out.push('[');
            for (at, (first, last)) in all.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                chain(first, false, out)?;
                if let Some(last) = last {
                    out.push_str(" to ");
                    chain(last, false, out)?;
                }
            }
            out.push(']');
        }
        Step::Any(first, last) => {
            let level =
                |level: &Option<u32>| level.map_or("last".to_string(), |own| own.to_string());
            match (first, last) {
                (Some(0), None) => out.push_str(".**"),
                (first, last) if first == last => {
                    let _ = write!(out, ".**{{{}}}", level(first));
                }
                (first, last) => {
                    let _ = write!(out, ".**{{{} to {}}}", level(first), level(last));
                }
            }
        }
        Step::Method(method) => {
            let _ = write!(out, ".{}()", method.name());
        }
        Step::Filter(inner) => {
            out.push_str("?(");
            predicate(inner, out)?;
            out.push(')');
        }
    }
    Ok(())
}

/// How close predicates bind.
fn tie(of: &Predicate) -> u8 {
    match of {
        Predicate::Or(..) => 0,
        Predicate::And(..) => 1,
        Predicate::Compare(..) | Predicate::StartsWith(..) => 2,
        _ => 6,
    }
}

fn within(inner: &Predicate, outer: &Predicate, out: &mut String) -> Result<()> {
    let operation = matches!(
        inner,
        Predicate::Or(..)
            | Predicate::And(..)
            | Predicate::Compare(..)
            | Predicate::StartsWith(..)
            | Predicate::Like(..)
    );
    let closed = operation && tie(inner) <= tie(outer);
    out.push_str(if closed { "(" } else { "" });
    predicate(inner, out)?;
    out.push_str(if closed { ")" } else { "" });
    Ok(())
}

fn predicate(own: &Predicate, out: &mut String) -> Result<()> {
    match own {
        Predicate::And(left, right) => {
            within(left, own, out)?;
            out.push_str(" && ");
            within(right, own, out)
        }
        Predicate::Or(left, right) => {
            within(left, own, out)?;
            out.push_str(" || ");
            within(right, own, out)
        }
        Predicate::Not(inner) => {
            out.push_str("!(");
            predicate(inner, out)?;
            out.push(')');
            Ok(())
        }
        Predicate::IsUnknown(inner) => {
            out.push('(');
            predicate(inner, out)?;
            out.push_str(") is unknown");
            Ok(())
        }
        Predicate::Compare(comparison, left, right) => {
            let sign = match comparison {
                Comparison::Equal => "==",
                Comparison::NotEqual => "!=",
                Comparison::Less => "<",
                Comparison::LessOrEqual => "<=",
                Comparison::Greater => ">",
                Comparison::GreaterOrEqual => ">=",
            };
            chain(left, binding(&left.base) <= 2, out)?;
            let _ = write!(out, " {sign} ");
            chain(right, binding(&right.base) <= 2, out)
        }
        Predicate::StartsWith(whole, initial) => {
            chain(whole, binding(&whole.base) <= 2, out)?;
            out.push_str(" starts with ");
            chain(initial, false, out)
        }
        Predicate::Like(value, pattern, flags) => {
            chain(value, binding(&value.base) <= 2, out)?;
            out.push_str(" like_regex ");
            quote(pattern, out);
            let known: String = "ismxq"
                .chars()
                .filter(|flag| flags.contains(*flag))
                .collect();
            if !known.is_empty() {
                let _ = write!(out, " flag \"{known}\"");
            }
            Ok(())
        }
        Predicate::Exists(inner) => {
            out.push_str("exists (");
            chain(inner, false, out)?;
            out.push(')');
            Ok(())
        }
    }
}
