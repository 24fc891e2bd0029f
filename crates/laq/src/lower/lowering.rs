//! The state of lowering, and where the vectors of a relation are.

use std::collections::HashMap;

use engine::{Query, Var};

use crate::catalog::Catalog;
use crate::space::{FoldId, InstanceId};
use crate::term::Terms;

pub(crate) struct Lowering<'p> {
    pub catalog: &'p Catalog<'p>,
    pub terms: &'p Terms,
    pub query: Query,
    /// The scalar subquery that computes each number of a fold without groups.
    pub parameters: HashMap<(FoldId, usize), usize>,
}

/// Where the vectors of one relation are.
#[derive(Default)]
pub(crate) struct Frame {
    pub columns: HashMap<(InstanceId, usize), Var>,
    pub aggregates: HashMap<(InstanceId, usize), Var>,
    pub labels: Vec<Var>,
    /// Of each outer lookup a vector that is NULL just where it found nothing.
    pub exists: HashMap<InstanceId, Var>,
    pub scalars: HashMap<(FoldId, usize), Var>,
}
