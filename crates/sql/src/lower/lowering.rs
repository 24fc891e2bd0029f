//! The state of lowering one plan.

use std::collections::HashMap;
use std::sync::Arc;

use crate::planner::Planner;
use datafusion_execution::TaskContext;
use engine::{Error, Expr, Query, Rel, Result, Var};

use crate::lower::outside::Outside;
use crate::lower::recursion::Recursion;
use crate::lower::source::Source;
use crate::lower::subplans::Common;
use crate::scan::files::external::Files;

/// Lowers one plan. Its methods are in [`rel`](super::rel), [`join`](super::join), [`aggregate`](super::aggregate),
/// [`grouping_sets`](super::grouping_sets), [`window`](super::window), [`shared`](super::shared),
/// [`unnest`](super::unnest), [`each_time`](super::each_time) and [`expr`](super::expr).
pub(crate) struct Lowering<'a> {
    pub(super) planner: &'a Planner,
    /// By the address of their scan in the plan, which stays in place while the plan is borrowed.
    pub(super) sources: &'a HashMap<usize, Arc<Source>>,
    /// External scans, by the same address.
    pub(super) files: &'a HashMap<usize, Arc<Files>>,
    /// What other code makes the rows of, by the same address.
    pub(super) outside: &'a HashMap<usize, Arc<Outside>>,
    /// Recursive queries, by their addresses.
    pub(super) recursions: &'a HashMap<usize, Arc<Recursion>>,
    /// What that code, and functions, run with.
    pub(super) task: &'a Arc<TaskContext>,
    /// The column of such a scan that a vector is.
    pub(super) external: HashMap<Var, (Arc<Files>, usize)>,
    /// What the plan has more than once.
    pub(super) common: Common<'a>,
    /// What of it is lowered, by its position there.
    pub(super) shared: HashMap<usize, Shared>,
    pub(super) query: Query,
}

/// A relation, and the vector of each column of the plan's schema.
pub(super) type Lowered = (Rel, Vec<Var>);

/// A relation that is read several times, and the vector of each of its columns.
pub(super) type Shared = (Arc<Rel>, Vec<Var>);

/// The refusal of `what`.
pub(super) fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Unsupported(what.into()))
}

/// Each vector once.
pub(super) fn once(vars: &[Var]) -> Vec<Var> {
    let mut all: Vec<Var> = Vec::with_capacity(vars.len());
    for var in vars {
        if !all.contains(var) {
            all.push(*var);
        }
    }
    all
}

/// The rows of `rel` for which `predicate` is true.
pub(super) fn filtered(rel: Rel, predicate: Expr) -> Rel {
    Rel::Filter {
        input: Box::new(rel),
        predicate,
    }
}

/// `rel` with the vectors that `exprs` compute, if there are any.
pub(super) fn mapped(rel: Rel, exprs: Vec<(Var, Expr)>) -> Rel {
    if exprs.is_empty() {
        rel
    } else {
        Rel::Map {
            input: Box::new(rel),
            exprs,
        }
    }
}
