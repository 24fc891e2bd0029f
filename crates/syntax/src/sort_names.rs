//! Output columns in expressions of `order by`.
//!
//! A name alone is the output column of that name; within an expression PostgreSQL takes it for a column of the input, as the
//! standard does. The planner would take the output column first. So output columns whose names stand in such expressions have
//! [tags](messages::tags), and the planner finds the input's. Where the input has none of that name, PostgreSQL fails;
//! other databases take the output column, and many queries (TPC-DS has some) count on it: then the name gets the tag, too.

use std::ops::ControlFlow;

use messages::error::Position;
use messages::tags::shown;
use sqlparser::ast::{
    Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, Visitor, VisitorMut,
};

use crate::names::column_name;
use crate::walk::{Walk, WalkMut};

/// Whether a key of `order by` is the name of a column, or of an output column.
pub(crate) fn is_name(key: &Expr) -> bool {
    matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Has a name mean the output column, if it stands in an expression of an `order by` whose query has such a column: at this
/// position, or, if that is not known, in the first query of which it is so. False if there is none.
pub fn take_output(statement: &mut Statement, name: &str, at: Option<Position>) -> bool {
    statement.walk_mut(&mut Outputs { name, at }).is_break()
}

struct Outputs<'n> {
    name: &'n str,
    at: Option<Position>,
}

impl VisitorMut for Outputs<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let (Some(order_by), SetExpr::Select(select)) = (&mut query.order_by, query.body.as_ref())
        else {
            return ControlFlow::Continue(());
        };
        let OrderByKind::Expressions(keys) = &mut order_by.kind else {
            return ControlFlow::Continue(());
        };
        let mut keys: Vec<&mut Expr> = keys.iter_mut().map(|key| &mut key.expr).collect();
        keys.retain(|key| !is_name(key));
        if !keys.iter().any(|key| self.is_in(key)) {
            return ControlFlow::Continue(());
        }
        let name = self.name;
        match output(select, name) {
            None => ControlFlow::Continue(()),
            Some(output) => {
                for key in keys {
                    let _ = key.walk_mut(&mut Renamed(name, &output));
                }
                ControlFlow::Break(())
            }
        }
    }
}

impl Outputs<'_> {
    /// Whether the name stands in this expression, at the position if that is known.
    fn is_in(&self, expr: &Expr) -> bool {
        struct Found<'o>(&'o Outputs<'o>);
        impl Visitor for Found<'_> {
            type Break = ();

            fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
                let Expr::Identifier(ident) = expr else {
                    return ControlFlow::Continue(());
                };
                let start = ident.span.start;
                let is_there = |at: Position| (start.line, start.column) == (at.line, at.column);
                if column_name(ident) == self.0.name && self.0.at.is_none_or(is_there) {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            }
        }
        expr.walk(&mut Found(self)).is_break()
    }
}

/// The tagged name of the output column that people see as `name`.
fn output(select: &Select, name: &str) -> Option<Ident> {
    let mut items = select.projection.iter();
    items.find_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. }
            if alias.value != name && shown(&alias.value) == name =>
        {
            Some(alias.clone())
        }
        _ => None,
    })
}

/// Gives names in an expression, other than those in subqueries of it, another one.
struct Renamed<'n>(&'n str, &'n Ident);

impl VisitorMut for Renamed<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr
            && column_name(ident) == self.0
        {
            *ident = self.1.clone();
        }
        ControlFlow::Continue(())
    }
}
