//! Functions that make any number of rows of each row: `unnest`, series beside tables, and values that differ each time.

use std::fmt;

use arrow::array::ArrayRef;

/// What functions of rows give.
pub type Made<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A function that makes any number of rows of each row.
pub trait RowFunction: Send + Sync + fmt::Debug {
    /// Starts with some rows, of which each of `args` has `rows` values. The pieces come in the order of these rows, and no piece
    /// has more than `most` rows.
    ///
    /// # Errors
    /// Whatever the function gives.
    fn call(&self, args: &[ArrayRef], rows: usize, most: usize) -> Made<RowPieces>;

    /// Whether it may give something else each time: then it is called once for each row that reaches it, whatever runs above it.
    fn is_volatile(&self) -> bool;

    /// Whether it must be called with all rows in the order of the relation below, one call after the other, as what counts or changes
    /// something is. Such a function is volatile, too.
    fn is_serial(&self) -> bool {
        false
    }

    /// Its name in `explain`.
    fn name(&self) -> String;
}

/// The rows that a function makes, piece by piece.
pub type RowPieces = Box<dyn Iterator<Item = Made<MadeRows>> + Send>;

/// Rows that a function has made.
#[derive(Debug)]
pub struct MadeRows {
    /// Of which row each is made; they ascend.
    pub of: Vec<u32>,
    /// The columns that the function adds, each as long.
    pub columns: Vec<ArrayRef>,
}
