//! The first of the `select`s that a query is put together of.

use sqlparser::ast::{Select, SetExpr};

/// The `select` from which a query's columns get their names.
pub(super) fn leftmost(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => leftmost(&query.body),
        SetExpr::SetOperation { left, .. } => leftmost(left),
        _ => None,
    }
}
