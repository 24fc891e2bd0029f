//! Expressions that tables keep, as the catalog tells of them.

use arrow::datatypes::DataType;
use messages::Result;
use messages::numbers::{type_number, type_title};
use syntax::deparse::Type;
use syntax::names::{self, quoted};
use syntax::views::{of_text, query_text};
use syntax::{deparse, fixed};
use table::{Column, Definition, Tables, enum_name, json_kind};

use crate::pg_catalog::types::typed;
use crate::search_path::SearchPath;

/// A function that is called without parentheses, as PostgreSQL writes it: in capitals. None of other expressions.
fn word_of(text: &str) -> Option<String> {
    const WORDS: [&str; 9] = [
        "current_catalog",
        "current_date",
        "current_role",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
    ];
    let text = text.trim();
    let (name, digits) = text.split_once('(').unwrap_or((text, ")"));
    let digits = digits.strip_suffix(')')?;
    let is_one = WORDS
        .iter()
        .any(|own| own.eq_ignore_ascii_case(name.trim_end()));
    let is_number = digits.bytes().all(|own| own.is_ascii_digit());
    (is_one && is_number).then(|| text.to_uppercase())
}

/// The default of a column. A string literal is told with the type of the column, as PostgreSQL keeps it, but for a number, a
/// truth value, and a row.
pub fn default(all: &Tables, table: &Definition, column: &Column) -> Option<String> {
    let text = column.default.as_deref()?;
    if let Some(word) = word_of(text) {
        return Some(word);
    }
    let literal = text
        .strip_prefix('\'')
        .and_then(|own| own.strip_suffix('\''));
    let literal = literal.filter(|own| !own.replace("\'\'", "").contains('\''));
    let is_row = matches!(column.data_type, DataType::Struct(_))
        && json_kind(&column.data_type).is_none()
        && enum_name(&column.data_type).is_none();
    let plain = !is_row && !column.data_type.is_numeric() && column.data_type != DataType::Boolean;
    if let (Some(_), Some(name)) = (literal, enum_name(&column.data_type)) {
        return Some(format!("{text}::{}", quoted(&names::exact(name))));
    }
    if literal.is_none() || !plain {
        // The types of casts have PostgreSQL's names.
        return Some(deparse::kept(text, &|_| None).unwrap_or_else(|| text.to_owned()));
    }
    let number = match &column.domain {
        Some(_) => i64::from(type_number(&column.data_type)),
        None => typed(all, table, column).0,
    };
    Some(match number {
        1042 => format!("{text}::bpchar"),
        number => match type_title(number, -1) {
            Some(title) => format!("{text}::{title}"),
            None => text.to_owned(),
        },
    })
}

/// The expression that makes the values of a column.
pub fn generated(all: &Tables, table: &Definition, column: &Column) -> Option<String> {
    let text = column.expression()?;
    Some(over_columns(all, table, text).unwrap_or_else(|| text.to_owned()))
}

/// An expression over the columns of a table as PostgreSQL writes it, with all parentheses; none of what is not known here.
pub(crate) fn over_columns(all: &Tables, table: &Definition, text: &str) -> Option<String> {
    let columns = typed_columns(all, table);
    let of = |name: &str| {
        let (_, own) = columns.iter().find(|(own, _)| own == name)?;
        Some(*own)
    };
    deparse::kept(text, &of)
}

/// The columns of a table or view with their types, as texts of expressions need them.
pub(crate) fn typed_columns(all: &Tables, table: &Definition) -> Vec<(String, Type)> {
    let columns = table.columns.iter();
    let own = columns.map(|column| {
        let (number, _) = typed(all, table, column);
        (column.name.clone(), Type::of_number(number))
    });
    own.collect()
}

/// The query of a view, a clause to a line as PostgreSQL writes it, or else as it was written. `name_of` says which table a name
/// means.
fn view_definition(all: &Tables, text: &str, name_of: &dyn Fn(&str) -> String) -> String {
    let query = query_text(text);
    let table = |written: &str| {
        let table = all.get(&name_of(written))?;
        Some(typed_columns(all, table.definition()))
    };
    let columns = of_text(text).map(|view| view.columns);
    let laid_out = columns
        .ok()
        .and_then(|columns| deparse::view(&query, &columns, &table));
    laid_out.unwrap_or(query)
}

/// The same as a statement with this path calls the tables in it: with their schema only where they are not found without.
pub fn seen_view(all: &Tables, path: &SearchPath, text: &str) -> String {
    let seen = fixed::view(text, &|written| Ok(shown(all, path, written)));
    let seen = seen.unwrap_or_else(|_| text.to_owned());
    view_definition(all, &seen, &|written| path.resolve(all, written))
}

/// What a statement with this path calls the table, view or sequence that a kept text names so; none if it is called that, or
/// if there is none.
fn shown(all: &Tables, path: &SearchPath, written: &str) -> Option<String> {
    let name = names::known(written);
    let there =
        all.get(&name).is_some() || all.view(&name).is_some() || all.sequence(&name).is_some();
    let shown = there.then(|| path.shown(all, &name))?;
    (shown != quoted(written)).then_some(shown)
}

/// The same of a type.
fn shown_type(all: &Tables, path: &SearchPath, written: &str) -> Option<String> {
    let name = names::known(written);
    let shown = all.has_type(&name).then(|| path.shown_type(all, &name))?;
    (shown != quoted(written)).then_some(shown)
}

/// An expression that a table keeps, in which sequences and types are called as a statement with this path calls them.
pub fn seen_expression(all: &Tables, path: &SearchPath, text: &str) -> String {
    let relation = |written: &str| -> Result<Option<String>> { Ok(shown(all, path, written)) };
    let type_of = |written: &str| shown_type(all, path, written);
    match fixed::seen(text, &relation, &type_of) {
        // The parser's word.
        Ok(shown) => shown.replace("::REGCLASS", "::regclass"),
        Err(_) => text.to_owned(),
    }
}
