//! Errors for names that nothing has, with the names that come close.

use table::{Definition, Tables, titled};

use crate::error::Error;
use crate::near::nearest;

/// The error for a table that is not among `tables`.
pub(crate) fn unknown_table(name: &str, tables: &Tables) -> Error {
    let names = tables.names().into_iter().chain(tables.views());
    // Those of sessions are nobody else's.
    let names = names.filter(|name| !name.starts_with("pg_temp_"));
    let names = names.map(|name| titled(name).into_owned());
    Error::UnknownTable {
        name: name.to_string(),
        candidates: nearest(&titled(name), names),
        position: None,
    }
}

/// The error for a column that the table of `definition` does not have.
pub(crate) fn unknown_column(name: &str, definition: &Definition) -> Error {
    let names = definition.columns.iter().map(|c| c.name.clone());
    Error::UnknownColumn {
        name: name.to_string(),
        candidates: nearest(name, names),
        relation: definition
            .name
            .rsplit(table::WITHIN)
            .next()
            .map(String::from),
        position: None,
    }
}
