//! Columns of a query in its own `limit` and `offset`, which PostgreSQL refuses otherwise than names that there are not.

use std::ops::ControlFlow;

use messages::error::Position;
use sqlparser::ast::{
    Expr, GroupByExpr, LimitClause, Query, SelectItem, SetExpr, Statement, Visitor,
};

use crate::outside::seen_outside_queries;
use crate::walk::Walk;

/// If the name at this place stands in the `limit` or `offset` of a query: which of the two, and a statement that can be planned
/// if the tables of that query have such a column.
pub fn at(statement: &Statement, place: Position) -> Option<(&'static str, Statement)> {
    match statement.walk(&mut Limits { place }) {
        ControlFlow::Break((clause, query)) => Some((clause, Statement::Query(query))),
        ControlFlow::Continue(()) => None,
    }
}

struct Limits {
    place: Position,
}

impl Visitor for Limits {
    type Break = (&'static str, Box<Query>);

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let (limit, offset) = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
            None => return ControlFlow::Continue(()),
        };
        for (clause, expr) in [("LIMIT", limit), ("OFFSET", offset)] {
            if let Some(name) = expr.and_then(|expr| self.name(expr))
                && let Some(query) = asking(query, name)
            {
                return ControlFlow::Break((clause, Box::new(query)));
            }
        }
        ControlFlow::Continue(())
    }
}

impl Limits {
    /// The name that stands at the place, if it is in this expression.
    fn name(&self, expr: &Expr) -> Option<Expr> {
        let found = seen_outside_queries(expr, |_, expr| {
            let first = match expr {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.first(),
                _ => None,
            };
            let start = first.map(|name| name.span.start);
            if start.is_some_and(|at| (at.line, at.column) == (self.place.line, self.place.column))
            {
                return ControlFlow::Break(expr.clone());
            }
            ControlFlow::Continue(())
        });
        found.break_value()
    }
}

/// A query for a column of the tables of another, before they are grouped. Rows of `values` and of `union` and its kin have none.
fn asking(query: &Query, name: Expr) -> Option<Query> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let mut select = select.clone();
    select.projection = vec![SelectItem::UnnamedExpr(name)];
    select.distinct = None;
    select.group_by = GroupByExpr::Expressions(vec![], vec![]);
    select.having = None;
    select.qualify = None;
    Some(Query {
        body: Box::new(SetExpr::Select(select)),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: vec![],
        ..query.clone()
    })
}
