//! Structs of SQL: what PostgreSQL calls rows and composite values, and DuckDB structs.
//!
//! They are structs of Arrow; JSON, which also is one, is none of them.

mod access;
mod columns;
mod make;
mod null;
pub(crate) mod text;

use std::sync::Arc;

use datafusion_expr::ScalarUDF;

use crate::own::Own;

pub use access::values;

pub(super) fn all() -> Vec<Own> {
    null::all()
}

/// Functions whose type follows from constants among their arguments.
pub(super) fn named() -> Vec<Arc<ScalarUDF>> {
    vec![make::function(), access::function(), columns::function()]
}
