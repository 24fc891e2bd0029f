//! Expressions that are told apart by their casts alone: `group by at::date, at`, `max(x), max(x::int)`.
//!
//! The planner names columns of groups, aggregates and windows after their expressions, and leaves casts out of the names: two
//! such columns would have one. Where a `select` has them, its casts are put into calls of a [function](functions::same)
//! that says their type, returns what it gets, and goes when the plan is simplified.

use std::collections::HashMap;
use std::ops::ControlFlow;

use functions::same::SAME;
use sqlparser::ast::{
    CastKind, Distinct, Expr, Function, GroupByExpr, NamedWindowDefinition, NamedWindowExpr,
    OrderBy, Query, Select, SelectItem, SetExpr, Statement as Sql, Value, Visit, VisitMut,
    VisitorMut, WindowType,
};

use crate::call::call;
use crate::names::column_name;
use crate::outside::{Pass, outside_queries, seen_outside_queries};
use crate::walk::WalkMut;

/// Tells such expressions apart in all queries of a statement.
pub fn tell(statement: &mut Sql) {
    let _ = statement.walk_mut(&mut Queries);
}

struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        match &mut *query.body {
            SetExpr::Select(select) => {
                if let Some(casts) = needed(select, query.order_by.as_ref()) {
                    let mut put = |expr: &mut Expr| called(expr, casts);
                    parts(select, |part| part.change(&mut put));
                    if let Some(order) = &mut query.order_by {
                        order.change(&mut put);
                    }
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
        SetExpr::Select(select) => {
            if let Some(casts) = needed(select, None) {
                let mut put = |expr: &mut Expr| called(expr, casts);
                parts(select, |part| part.change(&mut put));
            }
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
    fn change(&mut self, change: &mut dyn FnMut(&mut Expr));
}

impl<T: VisitMut> Part for T {
    fn change(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        outside_queries(self, change);
    }
}

/// Which casts are put into calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Casts {
    /// Those of anything but constants: some functions take constants alone.
    Computed,
    /// These, too.
    All,
}

impl Casts {
    fn has(self, expr: &Expr) -> bool {
        match self {
            Casts::Computed => is_cast(expr) && !is_cast_constant(expr),
            Casts::All => is_cast(expr),
        }
    }
}

/// The casts that must be put into calls: expressions of a `select` that the planner names columns after differ in them alone.
fn needed(select: &Select, order: Option<&OrderBy>) -> Option<Casts> {
    let named = named(select, order);
    if !named.has_casts {
        return None;
    }
    let differ = |wanted: fn(&Expr) -> bool| {
        let mut known: HashMap<String, &str> = HashMap::new();
        named.exprs.iter().any(|(expr, written)| {
            let mut bare = expr.clone();
            let _ = bare.walk_mut(&mut Bare(wanted));
            *known.entry(bare.to_string()).or_insert(written) != written
        })
    };
    // Such as differ in their constants stay so where only other casts are in calls.
    if differ(is_cast_constant) {
        Some(Casts::All)
    } else {
        differ(is_cast).then_some(Casts::Computed)
    }
}

/// What the planner names columns after, each with its text.
#[derive(Default)]
struct Named {
    exprs: Vec<(Expr, String)>,
    has_casts: bool,
}

impl Named {
    /// Takes the calls and the keys of `group by` in a part of a `select`, outside of subqueries.
    fn take(&mut self, part: &impl Visit, windows: &[NamedWindowDefinition]) {
        let _ = seen_outside_queries::<()>(part, |pass, expr| {
            match expr {
                _ if pass == Pass::Out => {}
                Expr::Function(function) => self.push(Expr::Function(whole(function, windows))),
                Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                    sets.iter().flatten().for_each(|key| self.push(key.clone()));
                }
                expr => self.has_casts |= is_cast(expr),
            }
            ControlFlow::Continue(())
        });
    }

    fn push(&mut self, mut expr: Expr) {
        // Parentheses tell nothing apart.
        let _ = expr.walk_mut(&mut Bare(|_| false));
        let written = expr.to_string();
        self.exprs.push((expr, written));
    }
}

/// A call over a named window with what that window is.
fn whole(function: &Function, windows: &[NamedWindowDefinition]) -> Function {
    let mut function = function.clone();
    if let Some(WindowType::NamedWindow(name)) = &function.over {
        let mut found = windows.iter().filter_map(|own| match own {
            NamedWindowDefinition(called, NamedWindowExpr::WindowSpec(spec)) => {
                (column_name(called) == column_name(name)).then_some(spec)
            }
            NamedWindowDefinition(..) => None,
        });
        if let Some(spec) = found.next() {
            function.over = Some(WindowType::WindowSpec(spec.clone()));
        }
    }
    function
}

fn named(select: &Select, order: Option<&OrderBy>) -> Named {
    let mut named = Named::default();
    let windows = &select.named_window;
    let keys = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys.as_slice(),
        GroupByExpr::All(_) => &[],
    };
    for item in &select.projection {
        named.take(item, windows);
        // It may be a key, by its place or its name.
        if let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }, [_, ..]) =
            (item, keys)
        {
            named.push(expr.clone());
        }
    }
    named.take(&keys.to_vec(), windows);
    named.take(windows, windows);
    named.take(&select.having, windows);
    named.take(&select.qualify, windows);
    if let Some(order) = order {
        named.take(order, windows);
    }
    keys.iter().for_each(|key| named.push(key.clone()));
    if let Some(Distinct::On(keys)) = &select.distinct {
        named.take(keys, windows);
        keys.iter().for_each(|key| named.push(key.clone()));
    }
    named
}

/// Whether an expression is a cast.
fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { kind, .. } => matches!(
            kind,
            CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast
        ),
        Expr::TypedString(_) => true,
        _ => false,
    }
}

/// Whether an expression is a cast of a constant.
fn is_cast_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { expr: inner, .. } => is_cast(expr) && is_constant(inner),
        Expr::TypedString(_) => true,
        _ => false,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_constant(inner),
        Expr::Cast { .. } | Expr::TypedString(_) => is_cast_constant(expr),
        Expr::UnaryOp { expr, .. } => is_constant(expr),
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
        _ => false,
    }
}

/// Takes such casts away.
struct Bare(fn(&Expr) -> bool);

impl VisitorMut for Bare {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.0(expr) || matches!(expr, Expr::Nested(_)) {
            let own = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = match own {
                Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => *inner,
                Expr::TypedString(typed) => Expr::Value(typed.value),
                other => other,
            };
        }
        ControlFlow::Continue(())
    }
}

/// Puts a cast into a call.
fn called(expr: &mut Expr, casts: Casts) {
    if !casts.has(expr) {
        return;
    }
    let own = std::mem::replace(expr, Expr::value(Value::Null));
    let to = match &own {
        Expr::Cast { data_type, .. } => data_type.to_string().to_lowercase(),
        Expr::TypedString(typed) => typed.data_type.to_string().to_lowercase(),
        _ => String::new(),
    };
    let to = Expr::value(Value::SingleQuotedString(to));
    *expr = call(SAME, vec![own, to]);
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

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
            "SELECT 1::INT, 1::BIGINT FROM o",
            "SELECT lag(x, 1::INT), max(1::INT) FROM o",
        ] {
            assert_eq!(told(text), text);
        }
        assert_eq!(
            told("SELECT max(x), max(x::INT) FROM o ORDER BY max(x::INT)"),
            "SELECT max(x), max(\"same value\"(x::INT, 'int')) FROM o ORDER BY max(\"same value\"(x::INT, 'int'))"
        );
        assert_eq!(
            told("SELECT max(1::INT), max(1::BIGINT) FROM o"),
            "SELECT max(\"same value\"(1::INT, 'int')), max(\"same value\"(1::BIGINT, 'bigint')) FROM o"
        );
        assert_eq!(
            told(
                "SELECT rank() OVER w, rank() OVER (ORDER BY x) FROM o WINDOW w AS (ORDER BY x::INT)"
            ),
            "SELECT rank() OVER w, rank() OVER (ORDER BY x) FROM o WINDOW w AS (ORDER BY \"same value\"(x::INT, 'int'))"
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
