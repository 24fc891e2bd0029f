//! Materialised rows: the result of a stage, or rows given in the query.

use std::collections::BTreeMap;

use crate::vector::value::{Var, Vector};

/// Rows held whole in memory.
#[derive(Debug)]
pub(crate) struct Materialized {
    pub columns: BTreeMap<Var, Vector>,
    pub rows: usize,
}
