//! Clauses rewritten as others of the same meaning.

use std::collections::HashMap;
use std::ops::ControlFlow;

use messages::Error;
use messages::error::Position;
use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Fetch, Function, GroupByExpr, Ident, LimitClause,
    NamedWindowDefinition, NamedWindowExpr, Offset, OrderBy, OrderByExpr, OrderByKind, Query,
    Select, SelectFlavor, SelectItem, SetExpr, SetOperator, TableFactor, UnaryOperator, Value,
    VisitorMut, WildcardAdditionalOptions, WindowSpec, WindowType,
};
use sqlparser::tokenizer::Span;

use crate::flow::{flow, outcome};
use crate::names::column_name;
use crate::outside::seen_outside_queries;
use crate::returning::plain_query;
use crate::rewrite::fetched::IN_LIMIT;
use crate::rewrite::framed;
use crate::rewrite::leftmost::leftmost;
use crate::walk::WalkMut;

/// `from t` becomes `select * from t`, `fetch first 3 rows only` becomes `limit 3`, `order by all`
/// becomes `order by 1, 2`, `minus` becomes `except`, `exists (select from t)` has a column, and windows that have a name stand where they are used.
pub(super) struct Shape;

impl VisitorMut for Shape {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        if let Expr::Exists { subquery, .. } = expr {
            with_columns(&mut subquery.body);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        body(&mut query.body);
        if let Err(e) = ties(query) {
            return ControlFlow::Break(Box::new(e));
        }
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

/// Gives a query that returns rows without columns, as in `exists (select from t)`, one: only whether there are rows matters.
fn with_columns(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select)
            if select.projection.is_empty() && select.flavor == SelectFlavor::Standard =>
        {
            let one = Expr::value(Value::Number("1".into(), false));
            select.projection = vec![SelectItem::UnnamedExpr(one)];
        }
        SetExpr::Query(query) => with_columns(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            with_columns(left);
            with_columns(right);
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

/// Sort keys of a query as keys of a window over its rows: names and numbers of output columns stand for what they are.
fn ranked(select: &Select, keys: Vec<OrderByExpr>) -> Option<Vec<OrderByExpr>> {
    let mut ranked = Vec::with_capacity(keys.len());
    for mut key in keys {
        let output = match &key.expr {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => number.parse::<usize>().ok().and_then(|number| {
                    match select.projection.get(number.checked_sub(1)?)? {
                        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                            Some(expr.clone())
                        }
                        _ => None,
                    }
                }),
                _ => None,
            },
            Expr::Identifier(ident) => {
                let mut items = select.projection.iter();
                let named = items.find_map(|item| match item {
                    SelectItem::ExprWithAlias { expr, alias }
                        if column_name(alias) == column_name(ident) =>
                    {
                        Some(expr.clone())
                    }
                    _ => None,
                });
                named.or_else(|| Some(key.expr.clone()))
            }
            other => Some(other.clone()),
        };
        match output {
            Some(expr) => key.expr = expr,
            None => return None,
        }
        ranked.push(key);
    }
    Some(ranked)
}

/// Whether the number of rows of a `fetch` stands in the limit.
fn is_in_limit(quantity: Option<&Expr>) -> bool {
    match quantity {
        Some(Expr::Value(value)) => {
            matches!(&value.value, Value::SingleQuotedString(text) if text == IN_LIMIT)
        }
        _ => false,
    }
}

/// That the number of rows before the ties is none that can be seen to be none.
///
/// # Errors
/// For NULL, less than nothing, and columns.
fn check_ties(quantity: Option<&Expr>) -> Result<(), Error> {
    let is_name = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let named = quantity.map(|quantity| {
        seen_outside_queries(quantity, |_, e| {
            if is_name(e) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
    });
    if named.is_some_and(|named| named.is_break()) {
        let message = "argument of LIMIT must not contain variables";
        return Err(Error::coded("42P10", message));
    }
    let message = match quantity {
        Some(Expr::Nested(inner)) => return check_ties(Some(inner)),
        Some(Expr::Value(value)) if value.value == Value::Null => {
            "row count cannot be null in FETCH FIRST ... WITH TIES clause"
        }
        Some(Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        }) if matches!(**expr, Expr::Value(_)) => "LIMIT must not be negative",
        _ => return Ok(()),
    };
    Err(Error::coded("2201W", message))
}

/// Whether rows are ordered by output columns alone, of a union or of distinct rows: these have a rank once they are made.
fn is_of_outputs(body: &SetExpr, keys: &[OrderByExpr]) -> bool {
    let is_made = match body {
        SetExpr::Select(select) => matches!(select.distinct, Some(Distinct::Distinct)),
        SetExpr::SetOperation { .. } => true,
        _ => false,
    };
    is_made
        && keys
            .iter()
            .all(|key| matches!(key.expr, Expr::Identifier(_)))
}

/// Makes `select * from (body)` of a body.
fn put_into_from(body: &mut SetExpr) -> Result<(), Error> {
    let mut outer = plain_query("select * from (select 1) as __tied")?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        std::mem::swap(subquery.body.as_mut(), body);
        std::mem::swap(outer.body.as_mut(), body);
    }
    Ok(())
}

/// `fetch first 2 rows with ties`: the rows whose rank in the order is among the first.
///
/// # Errors
/// Without an order, and for queries whose rows have no rank.
fn ties(query: &mut Query) -> Result<(), Error> {
    let Some(Fetch {
        with_ties: true,
        percent: false,
        quantity,
    }) = &query.fetch
    else {
        return Ok(());
    };
    let mut quantity = quantity.clone();
    if is_in_limit(quantity.as_ref())
        && let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause
    {
        quantity = limit.take();
        if offset.is_none() {
            query.limit_clause = None;
        }
    }
    check_ties(quantity.as_ref())?;
    let keys = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(keys)) => keys.clone(),
        Some(OrderByKind::All(_)) => return Ok(()),
        None => {
            return Err(Error::coded(
                "42601",
                "WITH TIES cannot be specified without ORDER BY clause",
            ));
        }
    };
    let refused = || {
        Err(Error::unsupported(
            "`fetch ... with ties` is supported for a `select`, and by names of columns for unions and `distinct`: put the query into `from`",
        ))
    };
    if is_of_outputs(&query.body, &keys) {
        put_into_from(&mut query.body)?;
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return refused();
    };
    if select.distinct.is_some() || select.qualify.is_some() {
        return refused();
    }
    let Some(ranked) = ranked(select, keys) else {
        return refused();
    };
    let one = || Expr::value(Value::Number("1".into(), false));
    let rows = quantity.unwrap_or_else(one);
    let most = match &query.limit_clause {
        None => rows,
        Some(LimitClause::LimitOffset {
            limit: None,
            offset: Some(Offset { value, .. }),
            ..
        }) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(value.clone()))),
            op: BinaryOperator::Plus,
            right: Box::new(Expr::Nested(Box::new(rows))),
        },
        Some(_) => return refused(),
    };
    select.qualify = Some(Expr::BinaryOp {
        left: Box::new(rank_by(ranked)),
        op: BinaryOperator::LtEq,
        right: Box::new(most),
    });
    query.fetch = None;
    Ok(())
}

/// `rank() over (order by keys)`.
fn rank_by(keys: Vec<OrderByExpr>) -> Expr {
    let mut rank = crate::call::call("rank", vec![]);
    if let Expr::Function(function) = &mut rank {
        function.over = Some(WindowType::WindowSpec(WindowSpec {
            window_name: None,
            partition_by: vec![],
            order_by: keys,
            window_frame: None,
        }));
    }
    rank
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
    outcome(select.walk_mut(&mut over))?;
    match order_by {
        Some(order_by) => outcome(order_by.walk_mut(&mut over)),
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
    // A frame that the parser does not know is the last key.
    let frame = spec.order_by.pop_if(|key| framed::is_mark(key));
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return twice("`order by`");
    }
    if base.window_frame.is_some() || base.order_by.last().is_some_and(framed::is_mark) {
        return twice("frame");
    }
    spec.partition_by = base.partition_by.clone();
    if spec.order_by.is_empty() {
        spec.order_by = base.order_by.clone();
    }
    spec.order_by.extend(frame);
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
