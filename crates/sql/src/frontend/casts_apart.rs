//! Expressions that are told apart by their casts alone: `group by at::date, at`, `max(x), max(x::int)`.
//!
//! The planner names columns of groups, aggregates and windows after their expressions, and leaves casts out of the names: two
//! such columns would have one. Where a `select` has them, its casts are put into calls of a [function](crate::functions::same)
//! that says their type, returns what it gets, and goes when the plan is simplified.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, Distinct, Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, Statement as Sql,
    Value, VisitMut, Visitor, VisitorMut,
};

use crate::frontend::call::call;
use crate::frontend::walk::{Walk, WalkMut};
use crate::functions::same::SAME;

/// Tells such expressions apart in all queries of a statement.
pub(crate) fn tell(statement: &mut Sql) {
    let _ = statement.walk_mut(&mut Queries);
}

struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        match &mut *query.body {
            SetExpr::Select(select) if is_needed(select) => {
                parts(select, |part| _ = part.show(&mut Calls::default()));
                if let Some(order) = &mut query.order_by {
                    let _ = order.walk_mut(&mut Calls::default());
                }
            }
            SetExpr::SetOperation { .. } => operands(&mut query.body),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The queries of a union and the like.
fn operands(body: &mut SetExpr) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            operands(left);
            operands(right);
        }
        SetExpr::Select(select) if is_needed(select) => {
            parts(select, |part| _ = part.show(&mut Calls::default()));
        }
        _ => {}
    }
}

/// Does something with the parts of a `select` that groups, aggregates and windows are in.
fn parts(select: &mut Select, mut each: impl FnMut(&mut dyn Part)) {
    for item in &mut select.projection {
        each(item);
    }
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        for key in keys {
            each(key);
        }
    }
    each(&mut select.group_by);
    if let Some(having) = &mut select.having {
        each(having);
    }
    for window in &mut select.named_window {
        each(window);
    }
    if let Some(qualify) = &mut select.qualify {
        each(qualify);
    }
}

/// A part of a `select`.
trait Part {
    fn show(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()>;
}

impl<T: VisitMut> Part for T {
    fn show(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()> {
        self.walk_mut(visitor)
    }
}

/// Whether two expressions of a `select` that the planner names columns after differ in their casts alone.
fn is_needed(select: &Select) -> bool {
    let mut named = Named::default();
    let keys = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys.as_slice(),
        GroupByExpr::All(_) => &[],
    };
    for item in &select.projection {
        let _ = item.walk(&mut named);
        // It may be a key, by its place or its name.
        if let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }, [_, ..]) =
            (item, keys)
        {
            named.exprs.push(expr.clone());
        }
    }
    let _ = keys.to_vec().walk(&mut named);
    let _ = select.having.walk(&mut named);
    let _ = select.qualify.walk(&mut named);
    named.exprs.extend(keys.iter().cloned());
    if !named.has_casts {
        return false;
    }
    let mut known: HashMap<String, String> = HashMap::new();
    named.exprs.into_iter().any(|mut expr| {
        let written = expr.to_string();
        let _ = expr.walk_mut(&mut Bare);
        let before = known
            .entry(expr.to_string())
            .or_insert_with(|| written.clone());
        *before != written
    })
}

/// Gathers calls, outside of subqueries.
#[derive(Default)]
struct Named {
    exprs: Vec<Expr>,
    has_casts: bool,
    depth: usize,
}

impl Visitor for Named {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Function(_) => self.exprs.push(expr.clone()),
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                self.exprs.extend(sets.iter().flatten().cloned());
            }
            expr if is_cast(expr) => self.has_casts = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression is a cast of something other than a constant.
fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast,
            expr,
            ..
        } => !is_constant(expr),
        _ => false,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_constant(inner),
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
        _ => false,
    }
}

/// Takes casts away.
struct Bare;

impl VisitorMut for Bare {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if is_cast(expr) || matches!(expr, Expr::Nested(_)) {
            let own = std::mem::replace(expr, Expr::value(Value::Null));
            if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = own {
                *expr = *inner;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Puts casts into calls, outside of subqueries.
#[derive(Default)]
struct Calls {
    depth: usize,
}

impl VisitorMut for Calls {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0 && is_cast(expr) {
            let own = std::mem::replace(expr, Expr::value(Value::Null));
            let to = match &own {
                Expr::Cast { data_type, .. } => data_type.to_string().to_lowercase(),
                _ => String::new(),
            };
            let to = Expr::value(Value::SingleQuotedString(to));
            *expr = call(SAME, vec![own, to]);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn told(text: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        let mut statement = statements.pop().unwrap();
        tell(&mut statement);
        statement.to_string()
    }

    #[test]
    fn only_what_differs_in_casts_alone_is_told_apart() {
        for text in [
            "SELECT at::DATE FROM o GROUP BY at::DATE",
            "SELECT max(x), max(y::INT) FROM o",
            "SELECT x::INT, x FROM o",
            "SELECT max(x::INT), max(x::INT) FROM o",
            "SELECT max(x) FROM o WHERE x::INT > 1 UNION ALL SELECT max(x::INT) FROM o",
            "SELECT max(x), (SELECT max(x::INT) FROM p) FROM o",
        ] {
            assert_eq!(told(text), text);
        }
        assert_eq!(
            told("SELECT max(x), max(x::INT) FROM o ORDER BY max(x::INT)"),
            "SELECT max(x), max(\"same value\"(x::INT, 'int')) FROM o ORDER BY max(\"same value\"(x::INT, 'int'))"
        );
        assert_eq!(
            told("SELECT count(*) FROM o GROUP BY ROLLUP (at::DATE, at)"),
            "SELECT count(*) FROM o GROUP BY ROLLUP (\"same value\"(at::DATE, 'date'), at)"
        );
        assert_eq!(
            told("SELECT at::DATE FROM o GROUP BY at::DATE, at"),
            "SELECT \"same value\"(at::DATE, 'date') FROM o GROUP BY \"same value\"(at::DATE, 'date'), at"
        );
    }
}
