//! Walks over syntax trees, compiled once for all visitors.
//!
//! sqlparser's own walks are compiled anew for each type of visitor. With fifty visitors, they were a third of the program.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut,
};

/// A tree that visitors see.
pub trait Walk: Visit {
    /// Shows the parts of the tree to a visitor, until it breaks off.
    fn walk<B>(&self, visitor: &mut dyn Visitor<Break = B>) -> ControlFlow<B> {
        self.visit(&mut Seen(visitor))
    }
}

impl<T: Visit> Walk for T {}

/// A tree that visitors change.
pub trait WalkMut: VisitMut {
    /// Gives the parts of the tree to a visitor, until it breaks off.
    fn walk_mut<B>(&mut self, visitor: &mut dyn VisitorMut<Break = B>) -> ControlFlow<B> {
        self.visit(&mut Changed(visitor))
    }
}

impl<T: VisitMut> WalkMut for T {}

/// Any visitor.
struct Seen<'v, B>(&'v mut dyn Visitor<Break = B>);

/// Any visitor that changes the tree.
struct Changed<'v, B>(&'v mut dyn VisitorMut<Break = B>);

macro_rules! pass_on {
    ($($method:ident: $part:ty;)*) => {
        impl<B> Visitor for Seen<'_, B> {
            type Break = B;

            $(fn $method(&mut self, part: &$part) -> ControlFlow<B> {
                self.0.$method(part)
            })*
        }

        impl<B> VisitorMut for Changed<'_, B> {
            type Break = B;

            $(fn $method(&mut self, part: &mut $part) -> ControlFlow<B> {
                self.0.$method(part)
            })*
        }
    };
}

pass_on! {
    pre_visit_query: Query;
    post_visit_query: Query;
    pre_visit_select: Select;
    post_visit_select: Select;
    pre_visit_relation: ObjectName;
    post_visit_relation: ObjectName;
    pre_visit_table_factor: TableFactor;
    post_visit_table_factor: TableFactor;
    pre_visit_expr: Expr;
    post_visit_expr: Expr;
    pre_visit_statement: Statement;
    post_visit_statement: Statement;
    pre_visit_value: ValueWithSpan;
    post_visit_value: ValueWithSpan;
}
