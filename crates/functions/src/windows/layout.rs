//! What a function over frames computes, and how its arguments are laid out.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion_expr::AggregateUDF;

/// What is computed over a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// The value of the first row.
    First,
    /// That of the last.
    Last,
    /// That of the row with a number, which is the second argument.
    Nth,
    /// An aggregate of the rows.
    Aggregate(Arc<AggregateUDF>),
}

/// How the arguments of a [`Framed`](super::Framed) are laid out: those of the function, its filter, the sort keys, the distances.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// How many arguments the function has itself.
    pub own: usize,
    /// Whether the function has a filter, which is an argument behind its own.
    pub filtered: bool,
    /// The order of each sort key.
    pub keys: Vec<SortOptions>,
}

impl Layout {
    /// Where the sort keys begin.
    pub(super) fn first_key(&self) -> usize {
        self.own + usize::from(self.filtered)
    }

    /// Where the distances begin.
    pub fn first_offset(&self) -> usize {
        self.first_key() + self.keys.len()
    }
}
