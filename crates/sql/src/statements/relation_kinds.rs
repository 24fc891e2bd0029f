//! What the words of `alter table`, `alter view` and their kin mean: one is of all kinds, the others of their own.

use syntax::schemas::Kind;
use table::Tables;

use crate::error::Error;

/// Whether there is something of this name that the words of a statement mean.
pub(crate) fn has(tables: &Tables, kind: Kind, name: &str) -> bool {
    let materialized = tables.materialized(name).is_some();
    match kind {
        Kind::Table => {
            tables.get(name).is_some()
                || tables.view(name).is_some()
                || tables.sequence(name).is_some()
        }
        Kind::View => tables.view(name).is_some(),
        Kind::MaterializedView => materialized,
        Kind::Sequence => tables.sequence(name).is_some(),
        Kind::Index => false,
    }
}

/// The error for something of another kind than a statement means.
pub(crate) fn wrong_kind(name: &str, kind: Kind) -> Error {
    let wanted = match kind {
        Kind::Table => "a table",
        Kind::View => "a view",
        Kind::MaterializedView => "a materialized view",
        Kind::Sequence => "a sequence",
        Kind::Index => "an index",
    };
    Error::coded("42809", format!("\"{name}\" is not {wanted}"))
}
