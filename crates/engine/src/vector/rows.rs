//! Rows that are whole in memory: the result of a stage, or rows that were given.

use std::collections::BTreeMap;

use crate::vector::value::{Var, Vector};

/// Rows that a stage gave, or that were given.
#[derive(Debug)]
pub(crate) struct Materialized {
    pub columns: BTreeMap<Var, Vector>,
    pub rows: usize,
}
