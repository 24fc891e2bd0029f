//! Materialised rows: the result of a stage, or rows given in the query.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::vector::value::{Var, Vector};

/// Rows held whole in memory.
#[derive(Debug)]
pub(crate) struct Materialized {
    pub columns: BTreeMap<Var, Vector>,
    pub rows: usize,
}

impl Materialized {
    /// The rows `run`.
    pub fn part(&self, run: Range<usize>) -> Materialized {
        let columns = self.columns.iter();
        Materialized {
            columns: columns
                .map(|(var, vector)| (*var, vector.run(run.clone())))
                .collect(),
            rows: run.len(),
        }
    }
}
