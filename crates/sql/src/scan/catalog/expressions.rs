//! Expressions that tables keep, as the catalog tells of them.

use arrow::datatypes::DataType;
use table::{Column, Definition, Tables};

use crate::error::Result;
use crate::frontend::deparse::Type;
use crate::frontend::views::{of_text, query_text};
use crate::frontend::{deparse, fixed};
use crate::messages::numbers::type_title;
use crate::names::{self, base, quoted};
use crate::scan::catalog::types::typed;
use crate::search_path::SearchPath;

/// The default of a column. A string literal is told with the type of the column, as PostgreSQL keeps it, but for a number, a
/// truth value, and a type that people have made.
pub(crate) fn default(all: &Tables, table: &Definition, column: &Column) -> Option<String> {
    let text = column.default.as_deref()?;
    let literal = text
        .strip_prefix('\'')
        .and_then(|own| own.strip_suffix('\''));
    let literal = literal.filter(|own| !own.replace("\'\'", "").contains('\''));
    let plain = column.domain.is_none()
        && !column.data_type.is_numeric()
        && column.data_type != DataType::Boolean;
    if literal.is_none() || !plain {
        // The types of casts have PostgreSQL's names.
        return Some(deparse::kept(text, &|_| None).unwrap_or_else(|| text.to_owned()));
    }
    Some(match typed(all, table, column).0 {
        1042 => format!("{text}::bpchar"),
        number => match type_title(number, -1) {
            Some(title) => format!("{text}::{title}"),
            None => text.to_owned(),
        },
    })
}

/// The expression that makes the values of a column.
pub(crate) fn generated(all: &Tables, table: &Definition, column: &Column) -> Option<String> {
    let text = column.expression()?;
    let columns = typed_columns(all, table);
    let of = |name: &str| {
        let (_, own) = columns.iter().find(|(own, _)| own == name)?;
        Some(*own)
    };
    Some(deparse::kept(text, &of).unwrap_or_else(|| text.to_owned()))
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
pub(crate) fn view_definition(
    all: &Tables,
    text: &str,
    name_of: &dyn Fn(&str) -> String,
) -> String {
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

/// An expression that a table keeps, in which sequences are called as a statement with this path calls them.
pub(crate) fn seen_expression(all: &Tables, path: &SearchPath, text: &str) -> String {
    let kinds = [all.names(), all.views(), all.sequences()];
    let shown = |written: &str| -> Result<Option<String>> {
        let name = names::known(written);
        let there = kinds.iter().flatten().any(|own| *own == name);
        if !there {
            return Ok(None);
        }
        let seen = path.sees(all, &name);
        Ok(if !seen {
            Some(quoted(&names::exact(&name)))
        } else if written == base(&name) {
            None
        } else {
            Some(quoted(base(&name)))
        })
    };
    match fixed::expression(text, &shown) {
        // The parser's word.
        Ok(shown) => shown.replace("::REGCLASS", "::regclass"),
        Err(_) => text.to_owned(),
    }
}
