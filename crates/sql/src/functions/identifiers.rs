//! `parse_ident`: the parts of a name as SQL writes it.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListBuilder, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};

use crate::error::Error;
use crate::functions::arguments::TEXT;
use crate::functions::lists::types::list_of;
use crate::functions::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        "parse_ident",
        |types| match types.len() {
            1 => Ok(vec![DataType::Utf8]),
            2 => Ok(vec![DataType::Utf8, DataType::Boolean]),
            _ => plan_err!("parse_ident takes a name, and whether nothing may stand behind it"),
        },
        |_| Ok(list_of(TEXT)),
        parsed,
    )]
}

fn parsed(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    for (row, name) in args[0].as_string::<i32>().iter().enumerate() {
        let strict = args
            .get(1)
            .is_none_or(|flags| flags.as_boolean().value(row));
        let Some(name) = name else {
            lists.append(false);
            continue;
        };
        let parts = parts(name, strict).ok_or_else(|| {
            let message = format!("string is not a valid identifier: \"{name}\"");
            Error::coded("22023", message)
        })?;
        for part in parts {
            lists.values().append_value(part);
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// The parts of a name, in lower case where they have no quotes; none if it is no name, or if something stands behind it
/// and is not allowed to.
fn parts(name: &str, strict: bool) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let (part, behind) = match rest.strip_prefix('"') {
            Some(inner) => quoted(inner)?,
            None => plain(rest)?,
        };
        parts.push(part);
        match behind.trim_start().strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None => return (behind.trim().is_empty() || !strict).then_some(parts),
        }
    }
}

/// A name up to its closing quote, and what stands behind it.
fn quoted(inner: &str) -> Option<(String, &str)> {
    let (mut part, mut rest) = (String::new(), inner);
    loop {
        let (own, behind) = rest.split_once('"')?;
        part.push_str(own);
        match behind.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None => return (!part.is_empty()).then_some((part, behind)),
        }
    }
}

/// A name without quotes, and what stands behind it.
fn plain(text: &str) -> Option<(String, &str)> {
    let inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let end = text.find(|c| !inner(c)).unwrap_or(text.len());
    let (part, behind) = text.split_at(end);
    let begins = part.starts_with(|c: char| c.is_alphabetic() || c == '_');
    begins.then(|| (part.to_lowercase(), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_parts() {
        let of = |name: &str| parts(name, true).map(|parts| parts.join("|"));
        assert_eq!(of("Sea . reef").as_deref(), Some("sea|reef"));
        assert_eq!(of(r#""A.""b".c$1"#).as_deref(), Some(r#"A."b|c$1"#));
        for wrong in ["", "a.", ".a", "1a", "a b", "a()", "\"a", "\"\""] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(parts("f(int)", false), Some(vec!["f".into()]));
    }
}
