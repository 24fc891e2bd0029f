//! `regexp_split_to_array`, `regexp_matches`: arrays of what a regular expression finds.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewArray, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use messages::Error;

use crate::arguments::{TEXT, is_text};
use crate::lists::names::{FIRST_MATCH, MATCHES};
use crate::lists::types::{count, list_of};
use crate::own::Own;
use crate::regular::{Compiled, Known, Matches};

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
        Own::new(
            FIRST_MATCH,
            |types| texts("regexp_match", types),
            |_| Ok(list_of(TEXT)),
            first_match,
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

/// An array of texts for each row, which `find` appends, and says whether there is one; NULL of what is NULL.
fn arrays(
    name: &str,
    (args, rows): (&[ArrayRef], usize),
    find: impl Fn(&mut Known, &str, &mut StringViewBuilder) -> Result<bool>,
) -> Result<ArrayRef> {
    let texts = views(args);
    let mut compiled = Compiled::default();
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows {
        let there = match row_of(&texts, row) {
            None => false,
            Some((text, pattern, options)) => {
                let regex = compiled.of(pattern, options)?;
                if regex.all() {
                    return Err(Error::coded(
                        "22023",
                        format!("{name}() does not support the \"global\" option"),
                    )
                    .into());
                }
                find(regex, text, out.values())?
            }
        };
        out.append(there);
    }
    Ok(Arc::new(out.finish()))
}

/// The parts of a text between matches. One of no letters does not count at the ends of the text and behind another.
fn split(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    arrays("regexp_split_to_array", (args, rows), |regex, text, out| {
        let (mut from, mut last) = (0, 0);
        let mut found = regex.spans(text, Some(0));
        while found.advance()? {
            let (start, end) = found.whole();
            if start < text.len() && end > last {
                out.append_value(&text[from..start]);
                from = end;
            }
            last = end;
        }
        out.append_value(&text[from..]);
        Ok(true)
    })
}

/// For each match an array of what its groups found, or of the whole match where there are none.
fn matches(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = views(args);
    let mut compiled = Compiled::default();
    let mut out = ListBuilder::new(ListBuilder::new(StringViewBuilder::new()));
    for row in 0..rows {
        if let Some((text, pattern, options)) = row_of(&texts, row) {
            let regex = compiled.of(pattern, options)?;
            let all = regex.all();
            let mut found = regex.matches(text, Some(0));
            while found.advance()? {
                groups(&found, out.values().values());
                out.values().append(true);
                if !all {
                    break;
                }
            }
        }
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}

/// Appends what the groups of a match have found, or the match where there are no groups.
fn groups(found: &Matches<'_, '_>, out: &mut StringViewBuilder) {
    for text in found.texts() {
        out.append_option(text);
    }
}

/// The groups of the first match; NULL where there is none.
fn first_match(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    arrays("regexp_match", (args, rows), |regex, text, out| {
        let mut found = regex.matches(text, Some(0));
        let there = found.advance()?;
        if there {
            groups(&found, out);
        }
        Ok(there)
    })
}
