//! Output columns in expressions of `order by`.
//!
//! A name alone is the output column of that name; within an expression PostgreSQL takes it for a column of the input, as the
//! standard does. The planner would take the output column first. So output columns whose names stand in such expressions have
//! [tags](crate::messages::tags), and the planner finds the input's. Where the input has none of that name, PostgreSQL fails;
//! other databases take the output column, and many queries (TPC-DS has some) count on it: then the name gets the tag, too.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, Visitor, VisitorMut,
};

use crate::error::Position;
use crate::frontend::walk::{Walk, WalkMut};
use crate::messages::tags::shown;
use crate::names::column_name;

/// Whether a key of `order by` is the name of a column, or of an output column.
pub(crate) fn is_name(key: &Expr) -> bool {
    matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Has the name at this position mean the output column, if it stands in an expression of an `order by` whose query has
/// such a column. False if it does not.
pub(crate) fn take_output(statement: &mut Statement, at: Position) -> bool {
    statement.walk_mut(&mut Outputs(at)).is_break()
}

struct Outputs(Position);

impl VisitorMut for Outputs {
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
        let mut found = keys.iter().filter_map(|key| self.named(key));
        let Some(name) = found.next() else {
            return ControlFlow::Continue(());
        };
        match output(select, &name) {
            None => ControlFlow::Continue(()),
            Some(output) => {
                for key in keys {
                    let _ = key.walk_mut(&mut Renamed(&name, &output));
                }
                ControlFlow::Break(())
            }
        }
    }
}

impl Outputs {
    /// The name at the position, if it stands in this expression.
    fn named(&self, expr: &Expr) -> Option<String> {
        struct At(Position);
        impl Visitor for At {
            type Break = String;

            fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
                match expr {
                    Expr::Identifier(ident)
                        if (ident.span.start.line, ident.span.start.column)
                            == (self.0.line, self.0.column) =>
                    {
                        ControlFlow::Break(column_name(ident))
                    }
                    _ => ControlFlow::Continue(()),
                }
            }
        }
        expr.walk(&mut At(self.0)).break_value()
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
