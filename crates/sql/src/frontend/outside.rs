//! The expressions of a part of a statement but those of queries within it, which have tables of their own.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, VisitMut, VisitorMut};

use crate::frontend::walk::WalkMut;

/// Changes each such expression, the parts before the whole.
pub(crate) fn outside_queries(tree: &mut impl VisitMut, change: impl FnMut(&mut Expr)) {
    let _ = tree.walk_mut(&mut Outside { change, depth: 0 });
}

struct Outside<F> {
    change: F,
    /// How many queries stand around.
    depth: usize,
}

impl<F: FnMut(&mut Expr)> VisitorMut for Outside<F> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if self.depth == 0 {
            (self.change)(expr);
        }
        ControlFlow::Continue(())
    }
}
