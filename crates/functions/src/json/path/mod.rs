//! The language of paths through JSON: `jsonb_path_query(j, '$.a[*] ? (@.b > 1)')` and its kind, `@?` and `@@`.
//!
//! A path is parsed (`parse`) once for each text, and followed (`run`) through each value, which is cut where the path needs it.

mod item;
mod number;
mod parse;
mod run;
mod tokens;
mod tree;
mod truth;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, StringArray, StringViewArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, plan_err};
use messages::Error;
use table::{JsonKind, jsonb_type};

use crate::arguments::{TEXT, is_text, strings};
use crate::json::path::item::Item;
use crate::json::path::run::{Outcome, Run};
use crate::json::path::tree::Path;
use crate::json::value::{texts, values};
use crate::lists::types::list_of;
use crate::own::Own;
use crate::regular::Compiled;

/// The name of the function that a cast to `jsonpath` becomes.
pub const OF: &str = "jsonpath of";
/// The name of the function that the operator `@?` becomes.
pub const FOUND: &str = "jsonb path found";
/// The name of the function that the operator `@@` becomes.
pub const MATCHED: &str = "jsonb path matched";
/// The name of the function that gives the rows of `jsonb_path_query` as an array.
pub const QUERY: &str = "jsonb path items";

pub(super) fn all() -> Vec<Own> {
    let boolean = |_: &[DataType]| Ok(DataType::Boolean);
    let jsonb = |_: &[DataType]| Ok(jsonb_type());
    vec![
        Own::new(
            OF,
            |types| Ok(vec![DataType::Utf8; types.len()]),
            |_| Ok(TEXT),
            written,
        ),
        Own::new(FOUND, operands, boolean, |args, rows| {
            exists(args, rows, true)
        }),
        Own::new(MATCHED, operands, boolean, |args, rows| {
            matched(args, rows, true)
        }),
        Own::new("jsonb_path_exists", arguments, boolean, |args, rows| {
            exists(args, rows, false)
        })
        .or("jsonb_path_exists_tz"),
        Own::new("jsonb_path_match", arguments, boolean, |args, rows| {
            matched(args, rows, false)
        })
        .or("jsonb_path_match_tz"),
        Own::new("jsonb_path_query_array", arguments, jsonb, gathered)
            .or("jsonb_path_query_array_tz"),
        Own::new("jsonb_path_query_first", arguments, jsonb, first).or("jsonb_path_query_first_tz"),
        Own::new(QUERY, arguments, |_| Ok(list_of(jsonb_type())), queried),
    ]
}

/// JSON and a path.
fn operands(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [json, path] if (*json == jsonb_type() || is_text(json)) && is_text(path) => {
            Ok(vec![jsonb_type(), DataType::Utf8])
        }
        _ => plan_err!("operator does not exist: it takes a jsonb and a jsonpath"),
    }
}

/// JSON, a path, variables and whether errors are silent.
fn arguments(types: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |at: usize, ty: &DataType| match at {
        0 | 2 => *ty == jsonb_type() || is_text(ty),
        1 => is_text(ty),
        _ => matches!(ty, DataType::Boolean | DataType::Null),
    };
    let mut all = types.iter().enumerate();
    if !(2..=4).contains(&types.len()) || !all.all(|(at, ty)| fits(at, ty)) {
        return plan_err!(
            "the function does not take arguments of these types: jsonb, jsonpath, then variables as jsonb and a boolean"
        );
    }
    let wanted = [
        jsonb_type(),
        DataType::Utf8,
        jsonb_type(),
        DataType::Boolean,
    ];
    Ok(wanted[..types.len()].to_vec())
}

/// The arguments of a function, column by column.
struct Rows {
    json: StringViewArray,
    paths: StringArray,
    vars: Option<StringViewArray>,
    silent: Option<BooleanArray>,
    parsed: HashMap<String, Path>,
    patterns: Compiled,
}

/// What following a path found.
struct Found<'t> {
    items: Vec<Item<'t>>,
    failed: bool,
    silent: bool,
}

impl Rows {
    fn of(args: &[ArrayRef]) -> Result<Rows> {
        Ok(Rows {
            json: texts(&args[0]),
            paths: strings(&args[1])?,
            vars: args.get(2).map(texts),
            silent: args.get(3).map(|own| own.as_boolean().clone()),
            parsed: HashMap::new(),
            patterns: Compiled::default(),
        })
    }

    /// What the path of a row finds; none if an argument is NULL.
    fn follow(&mut self, row: usize, operator: bool) -> Result<Option<Found<'_>>> {
        let vars_null = self.vars.as_ref().is_some_and(|own| own.is_null(row));
        let silent_null = self.silent.as_ref().is_some_and(|own| own.is_null(row));
        if self.json.is_null(row) || self.paths.is_null(row) || vars_null || silent_null {
            return Ok(None);
        }
        let silent = operator || self.silent.as_ref().is_some_and(|own| own.value(row));
        let text = self.paths.value(row);
        if !self.parsed.contains_key(text) {
            self.parsed.insert(text.to_string(), parse::parse(text)?);
        }
        let path = &self.parsed[text];
        let vars = match &self.vars {
            Some(vars) => match Item::of(vars.value(row))? {
                own @ Item::Object(_) => Some(own),
                _ => {
                    return Err(Error::coded("22023", "\"vars\" argument is not an object").into());
                }
            },
            None => None,
        };
        let root = Item::of(self.json.value(row))?;
        let mut items = Vec::new();
        let mut run = Run::new(path, root, vars, !silent, &mut self.patterns);
        let failed = run.all(&mut items)? == Outcome::Failed;
        Ok(Some(Found {
            items,
            failed,
            silent,
        }))
    }
}

fn written(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let texts = strings(&args[0])?;
    let mut found = Vec::with_capacity(texts.len());
    for text in &texts {
        found.push(match text {
            Some(text) => Some(write::write(&parse::parse(text)?)?),
            None => None,
        });
    }
    Ok(Arc::new(StringViewArray::from_iter(found)))
}

fn exists(args: &[ArrayRef], rows: usize, operator: bool) -> Result<ArrayRef> {
    let mut all = Rows::of(args)?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let own = all.follow(row, operator)?;
        // Where a lax path finds something before it fails, that is enough.
        found.push(
            own.and_then(|own| match (own.failed, own.items.is_empty()) {
                (true, _) => None,
                (false, empty) => Some(!empty),
            }),
        );
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

fn matched(args: &[ArrayRef], rows: usize, operator: bool) -> Result<ArrayRef> {
    let mut all = Rows::of(args)?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(match all.follow(row, operator)? {
            None => None,
            Some(own) => match &own.items[..] {
                [Item::Boolean(truth)] => Some(*truth),
                [Item::Null] => None,
                _ if own.silent => None,
                _ => return Err(Error::coded("22038", "single boolean result is expected").into()),
            },
        });
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

fn gathered(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut all = Rows::of(args)?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(all.follow(row, false)?.map(|own| {
            let items: Vec<String> = own.items.iter().map(Item::text).collect();
            format!("[{}]", items.join(", "))
        }));
    }
    values(JsonKind::Normal, found)
}

fn first(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut all = Rows::of(args)?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let own = all.follow(row, false)?;
        found.push(own.and_then(|own| own.items.first().map(Item::text)));
    }
    values(JsonKind::Normal, found)
}

fn queried(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut all = Rows::of(args)?;
    let (mut items, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let own = all.follow(row, false)?;
        valid.push(own.is_some());
        let before = items.len();
        items.extend(
            own.iter()
                .flat_map(|own| &own.items)
                .map(|item| Some(item.text())),
        );
        lengths.push(items.len() - before);
    }
    let items = values(JsonKind::Normal, items)?;
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = Some(NullBuffer::from(valid));
    Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use messages::Result as Own;

    fn query(json: &str, path: &str) -> Own<Vec<String>> {
        let path = parse::parse(path)?;
        let mut patterns = Compiled::default();
        let mut found = Vec::new();
        Run::new(&path, Item::of(json)?, None, true, &mut patterns).all(&mut found)?;
        Ok(found.iter().map(Item::text).collect())
    }

    #[test]
    fn paths_find_what_they_find_in_postgresql() {
        for (json, path, wanted) in [
            (r#"{"a": 12}"#, "$.a", &["12"][..]),
            (r#"{"a": {"a": 12}}"#, "$.a.a", &["12"]),
            (r#"{"b": {"a": 12}}"#, "lax $.a", &[]),
            (r#"[1, 2, 3]"#, "$[*] ? (@ > 1)", &["2", "3"]),
            (r#"[1, 2, 3]"#, "$[last]", &["3"]),
            (r#"[1, 2, 3]"#, "$[0 to 1, 2]", &["1", "2", "3"]),
            (r#"{"a": [{"b": 1}, {"b": 2}]}"#, "$.a.b", &["1", "2"]),
            (r#"{"a": [1, 2], "b": "x"}"#, "$.*", &["[1, 2]", "\"x\""]),
            (r#"{"a": {"b": 1}}"#, "$.**.b", &["1"]),
            (r#"{"a": {"b": 1}}"#, "$.**{2}", &["1"]),
            (
                r#"[1, "x", null]"#,
                "$[*].type()",
                &["\"number\"", "\"string\"", "\"null\""],
            ),
            (r#"[1, 2]"#, "$.size()", &["2"]),
            (r#"[-1.5, 2]"#, "$[*].abs()", &["1.5", "2"]),
            (r#"{"a": 2}"#, "$.a * 3 - 1", &["5"]),
            (
                r#"["ab", "b"]"#,
                r#"$[*] ? (@ like_regex "^A" flag "i")"#,
                &["\"ab\""],
            ),
            (
                r#"["ab", "b"]"#,
                r#"$[*] ? (@ starts with "a")"#,
                &["\"ab\""],
            ),
            (
                r#"[{"a": 1}, {"b": 1}]"#,
                "$[*] ? (exists (@.a))",
                &["{\"a\": 1}"],
            ),
            (r#"[1, "a"]"#, "$[*] ? ((@ > 0) is unknown)", &["\"a\""]),
            (r#"[1, 2]"#, "$[*] > 1", &["true"]),
            (r#"{"x": "y"}"#, "$.keyvalue().key", &["\"x\""]),
            (r#""1.5""#, "$.double()", &["1.5"]),
            (r#"[1, 2, 3]"#, "-$[*]", &["-1", "-2", "-3"]),
        ] {
            assert_eq!(query(json, path).unwrap(), wanted, "{json} {path}");
        }
    }

    #[test]
    fn strict_paths_tell_what_is_wrong() {
        for (json, path, code) in [
            (r#"{"a": 1}"#, "strict $.b", "2203A"),
            ("1", "strict $.b", "2203A"),
            ("1", "strict $[*]", "22039"),
            ("[1]", "strict $[1]", "22033"),
            (r#"{"a": "x"}"#, "$.a + 1", "22038"),
            ("[1]", "$[*].x()", "42601"),
            ("[1]", "@", "42601"),
            ("[1]", "last", "42601"),
            ("[1]", "", "22P02"),
            ("[1]", "$[*] ? (@ == 1) && true", "42601"),
            ("1", "$ / 0", "22012"),
            ("1", "1a", "42601"),
        ] {
            let error = query(json, path).unwrap_err();
            assert_eq!(error.sqlstate(), code, "{json} {path}: {error}");
        }
    }

    #[test]
    fn paths_are_written_as_postgresql_writes_them() {
        for (path, wanted) in [
            ("$", "$"),
            ("strict $", "strict $"),
            ("$.a.v", "$.\"a\".\"v\""),
            ("$.a[*]", "$.\"a\"[*]"),
            ("$.a[1,2, 3 to 16]", "$.\"a\"[1,2,3 to 16]"),
            ("$.a + 1", "($.\"a\" + 1)"),
            ("$.a.type()", "$.\"a\".type()"),
            ("$ ? (@.a > 1 && @.b < 2)", "$?(@.\"a\" > 1 && @.\"b\" < 2)"),
            ("$.**{2 to 5}", "$.**{2 to 5}"),
            ("1 + 2 * 3", "(1 + 2 * 3)"),
            ("(1 + 2) * 3", "((1 + 2) * 3)"),
            ("$ ? (!(@ == 1))", "$?(!(@ == 1))"),
            ("$ ? (exists (@.x))", "$?(exists (@.\"x\"))"),
        ] {
            let path = parse::parse(path).unwrap();
            assert_eq!(write::write(&path).unwrap(), wanted);
        }
    }
}
