//! `regexp_split_to_array`, `regexp_matches`: arrays of what a regular expression finds.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewArray, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use regex::{Regex, RegexBuilder};

use crate::error::Error;
use crate::functions::arguments::{TEXT, is_text};
use crate::functions::lists::names::MATCHES;
use crate::functions::lists::types::{count, list_of};
use crate::functions::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "regexp_split_to_array",
            |types| texts("regexp_split_to_array", types),
            |_| Ok(list_of(TEXT)),
            split,
        ),
        Own::new(
            MATCHES,
            |types| texts("regexp_matches", types),
            |_| Ok(list_of(list_of(TEXT))),
            matches,
        ),
    ]
}

fn texts(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    count(name, types, 2..=3)?;
    if types.iter().all(is_text) {
        Ok(vec![TEXT; types.len()])
    } else {
        plan_err!("function {name} takes texts")
    }
}

/// Regular expressions, each compiled once, and whether all of their matches are wanted.
#[derive(Default)]
pub(crate) struct Compiled(HashMap<(String, String), (Regex, bool)>);

impl Compiled {
    /// The expression of `pattern` with PostgreSQL's options.
    ///
    /// # Errors
    /// For an option that there is not, and for what is no regular expression.
    pub(crate) fn of(&mut self, pattern: &str, options: &str) -> Result<&(Regex, bool)> {
        let key = (pattern.to_string(), options.to_string());
        if !self.0.contains_key(&key) {
            let compiled = compiled(pattern, options)?;
            self.0.insert(key.clone(), compiled);
        }
        Ok(&self.0[&key])
    }
}

fn compiled(pattern: &str, options: &str) -> Result<(Regex, bool)> {
    let mut all = false;
    // A point takes a line's end, too, as in PostgreSQL.
    let quoted = options.contains('q');
    let source = if quoted {
        regex::escape(pattern)
    } else {
        pattern.to_string()
    };
    let mut builder = RegexBuilder::new(&source);
    builder.dot_matches_new_line(true);
    for option in options.chars() {
        match option {
            'g' => all = true,
            'i' => _ = builder.case_insensitive(true),
            'c' => _ = builder.case_insensitive(false),
            'x' => _ = builder.ignore_whitespace(true),
            's' => _ = builder.dot_matches_new_line(true).multi_line(false),
            'q' | 't' => {}
            // What is none of some letters is no end of a line there, where a point is none.
            'm' | 'n' | 'p' if pattern.contains("[^") && !quoted => {
                return Err(Error::unsupported(format!(
                    "the regular expression option \"{option}\" is not supported with [^...]"
                ))
                .into());
            }
            'm' | 'n' => _ = builder.dot_matches_new_line(false).multi_line(true),
            'p' => _ = builder.dot_matches_new_line(false).multi_line(false),
            'w' => _ = builder.dot_matches_new_line(true).multi_line(true),
            'b' | 'e' => {
                return Err(Error::unsupported(format!(
                    "the regular expression option \"{option}\" is not supported: there are c, g, i, m, n, p, q, s, w and x"
                ))
                .into());
            }
            other => {
                return Err(Error::coded(
                    "22023",
                    format!("invalid regular expression option: \"{other}\""),
                )
                .into());
            }
        }
    }
    match builder.build() {
        Ok(regex) => Ok((regex, all)),
        Err(e) => {
            let text = e.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            Err(Error::coded(
                "2201B",
                format!("invalid regular expression '{pattern}': {reason}"),
            )
            .into())
        }
    }
}

/// A row's text, pattern and options; none if one of them is NULL.
fn row_of<'a>(texts: &[&'a StringViewArray], row: usize) -> Option<(&'a str, &'a str, &'a str)> {
    if texts.iter().any(|text| text.is_null(row)) {
        return None;
    }
    let options = texts.get(2).map_or("", |options| options.value(row));
    Some((texts[0].value(row), texts[1].value(row), options))
}

fn views(args: &[ArrayRef]) -> Vec<&StringViewArray> {
    args.iter().map(|arg| arg.as_string_view()).collect()
}

/// The parts of a text between matches. One of no letters does not count at the ends of the text and behind another.
fn split(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = views(args);
    let mut compiled = Compiled::default();
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows {
        let Some((text, pattern, options)) = row_of(&texts, row) else {
            out.append_null();
            continue;
        };
        let (regex, all) = compiled.of(pattern, options)?;
        if *all {
            return Err(Error::coded(
                "22023",
                "regexp_split_to_array() does not support the \"global\" option",
            )
            .into());
        }
        let mut from = 0;
        for found in regex.find_iter(text) {
            let nothing = found.is_empty();
            if nothing && (found.start() == from || found.end() == text.len()) {
                continue;
            }
            out.values().append_value(&text[from..found.start()]);
            from = found.end();
        }
        out.values().append_value(&text[from..]);
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}

/// For each match an array of what its groups found, or of the whole match where there are none.
fn matches(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = views(args);
    let mut compiled = Compiled::default();
    let mut out = ListBuilder::new(ListBuilder::new(StringViewBuilder::new()));
    for row in 0..rows {
        if let Some((text, pattern, options)) = row_of(&texts, row) {
            let (regex, all) = compiled.of(pattern, options)?;
            let first = usize::from(regex.captures_len() > 1);
            let most = if *all { usize::MAX } else { 1 };
            // A match of no letters counts right behind another, which an iterator of the library passes over.
            let mut from = 0;
            for _ in 0..most {
                let Some(found) = regex.captures_at(text, from) else {
                    break;
                };
                for group in found.iter().skip(first) {
                    let item = group.map(|group| group.as_str());
                    out.values().values().append_option(item);
                }
                out.values().append(true);
                let Some(whole) = found.get(0) else {
                    break;
                };
                from = whole.end();
                if whole.is_empty() {
                    let Some(next) = text[from..].chars().next() else {
                        break;
                    };
                    from += next.len_utf8();
                }
            }
        }
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_postgresql() {
        assert!(compiled("A", "i").unwrap().0.is_match("a"));
        assert!(!compiled("A", "ic").unwrap().0.is_match("a"));
        assert!(compiled("a.b", "").unwrap().0.is_match("a\nb"));
        assert!(compiled("a", "g").unwrap().1);
        let message = |options: &str| Error::from(compiled("a", options).unwrap_err()).to_string();
        assert_eq!(message("z"), "invalid regular expression option: \"z\"");
        assert!(message("b").contains("not supported"));
        assert!(!compiled("a.b", "n").unwrap().0.is_match("a\nb"));
        assert!(compiled("^b", "m").unwrap().0.is_match("a\nb"));
        assert!(compiled("a.b", "w").unwrap().0.is_match("a\nb"));
        assert!(!compiled("a.b", "q").unwrap().0.is_match("axb"));
        let e = Error::from(compiled("(", "").unwrap_err()).to_string();
        assert!(e.starts_with("invalid regular expression '('"), "{e}");
    }
}
