//! What an `insert` puts into columns that it does not name.

use std::collections::HashMap;

use datafusion_expr::Expr;

/// The defaults of a table that a statement inserts into; of no table where it does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    /// The table.
    pub table: String,
    /// By column.
    pub columns: HashMap<String, Expr>,
}
