//! Rows of a stored table as a relation.

use std::sync::Arc;

use table::{Filter, Table};

use crate::vector::value::Var;

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// Its name in the query.
    pub alias: String,
    /// Vectors and the positions of their columns in the table.
    pub columns: Vec<(Var, usize)>,
    /// The vector of the row ids, the values of [`table::ROW_COLUMN`], by which rows are found again to be changed;
    /// `None` if nobody asks for them. Its type is one of [`Type::of_row_ids`](crate::Type::of_row_ids).
    pub row_ids: Option<Var>,
    /// Predicates on stored values. A row must pass all.
    pub filters: Vec<Filter>,
    /// The predicates in readable form.
    pub shown: Vec<String>,
    /// Estimated number of rows that pass.
    pub expected: f64,
}

impl Scan {
    /// Calls `f` with each vector that it reads.
    pub(crate) fn each_var(&self, f: &mut dyn FnMut(Var)) {
        let columns = self.columns.iter().map(|(var, _)| *var);
        columns.chain(self.row_ids).for_each(f);
    }
}
