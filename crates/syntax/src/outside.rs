//! The expressions of a part of a statement but those of queries within it, which have tables of their own.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, Visit, VisitMut, Visitor, VisitorMut};

use crate::walk::{Walk, WalkMut};

/// Which way a walk passes an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Before its parts.
    In,
    /// After them.
    Out,
}

/// Shows each such expression, once before its parts and once after them, until `see` breaks off.
pub(crate) fn seen_outside_queries<B>(
    tree: &impl Visit,
    see: impl FnMut(Pass, &Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    tree.walk(&mut Seen {
        see,
        depth: 0,
        broken: PhantomData,
    })
}

struct Seen<F, B> {
    see: F,
    /// How many queries stand around.
    depth: usize,
    broken: PhantomData<B>,
}

impl<B, F: FnMut(Pass, &Expr) -> ControlFlow<B>> Visitor for Seen<F, B> {
    type Break = B;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        match self.depth {
            0 => (self.see)(Pass::In, expr),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        match self.depth {
            0 => (self.see)(Pass::Out, expr),
            _ => ControlFlow::Continue(()),
        }
    }
}

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
