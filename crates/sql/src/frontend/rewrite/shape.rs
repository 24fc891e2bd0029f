//! Clauses rewritten as others of the same meaning.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Fetch, Function, GroupByExpr, Ident, LimitClause, NamedWindowDefinition, NamedWindowExpr,
    Offset, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr,
    SetOperator, Value, VisitMut, VisitorMut, WildcardAdditionalOptions, WindowSpec, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::error::{Error, Position};
use crate::frontend::flow::{flow, outcome};
use crate::names::column_name;

/// `from t` becomes `select * from t`, `fetch first 3 rows only` becomes `limit 3`, `order by all`
/// becomes `order by 1, 2`, `minus` becomes `except`, and windows that have a name stand where they are used.
pub(super) struct Shape;

impl VisitorMut for Shape {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        body(&mut query.body);
        fetch(query);
        if let Some(order_by) = &mut query.order_by {
            order_by_all(order_by, &query.body);
        }
        let windowed = match query.body.as_mut() {
            SetExpr::Select(select) => windows(select, query.order_by.as_mut()),
            body => windows_of_all(body),
        };
        flow(windowed)
    }
}

fn body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
                select.projection = vec![everything()];
            }
            select.flavor = SelectFlavor::Standard;
            if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
                *keys = std::mem::take(keys)
                    .into_iter()
                    .flat_map(group_keys)
                    .collect();
            }
        }
        SetExpr::SetOperation {
            left, right, op, ..
        } => {
            if *op == SetOperator::Minus {
                *op = SetOperator::Except;
            }
            self::body(left);
            self::body(right);
        }
        _ => {}
    }
}

fn everything() -> SelectItem {
    SelectItem::Wildcard(WildcardAdditionalOptions::default())
}

fn fetch(query: &mut Query) {
    let Some(Fetch {
        with_ties: false,
        percent: false,
        quantity,
    }) = &query.fetch
    else {
        return;
    };
    let rows = quantity
        .clone()
        .unwrap_or_else(|| Expr::value(Value::Number("1".into(), false)));
    match &mut query.limit_clause {
        none @ None => {
            *none = Some(LimitClause::LimitOffset {
                limit: Some(rows),
                offset: None,
                limit_by: vec![],
            });
        }
        Some(LimitClause::LimitOffset {
            limit: limit @ None,
            offset: Some(Offset { .. }),
            limit_by: _,
        }) => *limit = Some(rows),
        _ => return,
    }
    query.fetch = None;
}

/// Replaces `order by all` by the numbers of all columns, unless `*` hides how many there are.
fn order_by_all(order_by: &mut OrderBy, body: &SetExpr) {
    let OrderByKind::All(options) = order_by.kind else {
        return;
    };
    let Some(select) = leftmost(body) else {
        return;
    };
    let plain = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    if select.projection.iter().all(plain) {
        let keys = (1..=select.projection.len()).map(|number| OrderByExpr {
            expr: Expr::value(Value::Number(number.to_string(), false)),
            options,
            with_fill: None,
        });
        order_by.kind = OrderByKind::Expressions(keys.collect());
    }
}

/// The `select` from which a query's columns get their names.
pub(super) fn leftmost(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => leftmost(&query.body),
        SetExpr::SetOperation { left, .. } => leftmost(left),
        _ => None,
    }
}

/// `group by (a, b)` groups by both.
fn group_keys(key: Expr) -> Vec<Expr> {
    match key {
        Expr::Tuple(keys) if !keys.is_empty() => keys,
        key => vec![key],
    }
}

/// Replaces named windows in each `select` of a set operation.
fn windows_of_all(body: &mut SetExpr) -> Result<(), Error> {
    match body {
        SetExpr::Select(select) => windows(select, None),
        SetExpr::SetOperation { left, right, .. } => {
            windows_of_all(left)?;
            windows_of_all(right)
        }
        _ => Ok(()),
    }
}

/// Puts the windows that `window w as (...)` defines where `over w` and `over (w ...)` are.
fn windows(select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<(), Error> {
    let mut known: HashMap<String, WindowSpec> = HashMap::new();
    for NamedWindowDefinition(name, expr) in &select.named_window {
        let spec = match expr {
            NamedWindowExpr::NamedWindow(other) => known
                .get(&column_name(other))
                .cloned()
                .ok_or_else(|| unknown(other))?,
            NamedWindowExpr::WindowSpec(spec) => resolved(spec.clone(), &known)?,
        };
        if known.insert(column_name(name), spec).is_some() {
            return Err(Error::coded(
                "42P20",
                format!("the window {name} is defined twice"),
            ));
        }
    }
    // Also where none is defined: whatever still has a name is unknown.
    let mut over = Over {
        known: &known,
        depth: 0,
    };
    select.named_window.clear();
    outcome(select.visit(&mut over))?;
    match order_by {
        Some(order_by) => outcome(order_by.visit(&mut over)),
        None => Ok(()),
    }
}

struct Over<'k> {
    known: &'k HashMap<String, WindowSpec>,
    /// Queries inside have windows of their own.
    depth: usize,
}

impl VisitorMut for Over<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Box<Error>> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Box<Error>> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        match expr {
            Expr::Function(Function {
                over: Some(over), ..
            }) if self.depth == 0 => flow(replaced(over, self.known)),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn replaced(over: &mut WindowType, known: &HashMap<String, WindowSpec>) -> Result<(), Error> {
    let spec = match over {
        WindowType::NamedWindow(name) => known
            .get(&column_name(name))
            .cloned()
            .ok_or_else(|| unknown(name))?,
        WindowType::WindowSpec(spec) => resolved(spec.clone(), known)?,
    };
    *over = WindowType::WindowSpec(spec);
    Ok(())
}

/// `(w order by a)`: the parts of `w` with those that it leaves open.
fn resolved(
    mut spec: WindowSpec,
    known: &HashMap<String, WindowSpec>,
) -> Result<WindowSpec, Error> {
    let Some(name) = spec.window_name.take() else {
        return Ok(spec);
    };
    let base = known
        .get(&column_name(&name))
        .ok_or_else(|| unknown(&name))?;
    let twice = |what: &str| {
        Err(Error::coded(
            "42P20",
            format!("the {what} of the window {name} cannot be changed where it is used"),
        ))
    };
    if !spec.partition_by.is_empty() {
        return twice("`partition by`");
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return twice("`order by`");
    }
    if base.window_frame.is_some() {
        return twice("frame");
    }
    spec.partition_by = base.partition_by.clone();
    if spec.order_by.is_empty() {
        spec.order_by = base.order_by.clone();
    }
    Ok(spec)
}

fn unknown(name: &Ident) -> Error {
    let start = name.span.start;
    let place = (name.span != Span::empty()).then_some(Position {
        line: start.line,
        column: start.column,
    });
    Error::coded("42704", format!("there is no window {name}")).at(place)
}
