//! Rows of a stored table as a relation.

use std::sync::Arc;

use table::{DocumentPart, Filter, Table};

use crate::expr::Call;
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
    /// Parts of documents that it reads instead of these. The planner finds them: there are none before.
    pub parts: Vec<ScannedPart>,
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

/// A part of documents that a scan reads.
#[derive(Clone, Debug)]
pub struct ScannedPart {
    /// The vector of what the function gives.
    pub var: Var,
    /// The part that it takes.
    pub part: DocumentPart,
    /// The function, which is computed of the part, or of the document where that is not kept apart.
    pub call: Arc<dyn Call>,
}

impl Scan {
    /// Calls `f` with each vector that it reads.
    pub(crate) fn each_var(&self, f: &mut dyn FnMut(Var)) {
        let columns = self.columns.iter().map(|(var, _)| *var);
        let parts = self.parts.iter().map(|part| part.var);
        columns.chain(parts).chain(self.row_ids).for_each(f);
    }
}
