//! `select id, unnest(a) from t order by id`: the rows that a function gives for one row of `t` stay in their order, as in
//! PostgreSQL, which calls such functions behind the sort.
//!
//! The numbers of these rows become the last sort key, in a query around.

use std::ops::ControlFlow;

use functions::lists::names::{ORDINALS, VALUES};
use messages::tags::shown;
use messages::{Error, Result};
use sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByExpr, OrderByKind, OrderByOptions, Query, SelectItem, SetExpr,
    TableFactor, Value, Visit, VisitorMut,
};

use crate::call::call;
use crate::flow::flow;
use crate::names::column_name;
use crate::outside::{Pass, seen_outside_queries};
use crate::returning::plain_query;
use crate::rewrite::sets;

/// Puts queries with such functions and an order into others.
pub(super) struct Expanded;

impl VisitorMut for Expanded {
    type Break = Box<Error>;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        flow(expanded(query))
    }
}

/// The values of the functions that give several rows, outside of subqueries.
#[derive(Default)]
struct Sets {
    found: Vec<Expr>,
    /// Whether one stands in another, whose rows have no numbers of their own.
    nested: bool,
}

/// The array whose items a call gives as rows.
fn values(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else {
        return None;
    };
    if function.over.is_some() {
        return None;
    }
    sets::values(function)
}

fn found_in(tree: &impl Visit) -> Sets {
    let mut sets = Sets::default();
    // How many of them stand around.
    let mut within = 0_usize;
    let _ = seen_outside_queries::<()>(tree, |pass, expr| {
        if let Some(values) = values(expr) {
            match pass {
                Pass::In => {
                    sets.nested |= within > 0;
                    within += 1;
                    sets.found.push(values);
                }
                Pass::Out => within = within.saturating_sub(1),
            }
        }
        ControlFlow::Continue(())
    });
    sets
}

/// The expressions of a select list of expressions alone, and what their columns are called.
fn items(projection: &[SelectItem]) -> Option<Vec<(Expr, Ident)>> {
    let one = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((expr.clone(), alias.clone())),
        SelectItem::UnnamedExpr(expr) => {
            let name = match expr {
                Expr::Identifier(ident) => ident.clone(),
                Expr::CompoundIdentifier(parts) => parts.last()?.clone(),
                _ => return None,
            };
            Some((expr.clone(), name))
        }
        _ => None,
    };
    projection.iter().map(one).collect()
}

fn column(prefix: &str, at: usize) -> Ident {
    Ident::with_quote('"', format!("__{prefix}{at}"))
}

fn item(expr: &Expr, alias: Ident) -> SelectItem {
    SelectItem::ExprWithAlias {
        expr: expr.clone(),
        alias,
    }
}

/// Sort keys as columns of a query within, which gets those that it does not have; none for names and numbers that say no
/// column.
fn sorted(
    keys: &[OrderByExpr],
    items: &[(Expr, Ident)],
    inner: &mut Vec<SelectItem>,
) -> Option<Vec<OrderByExpr>> {
    let mut sorts = Vec::with_capacity(keys.len() + 1);
    for (at, key) in keys.iter().enumerate() {
        let place = match &key.expr {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => Some(number.parse::<usize>().ok()?.checked_sub(1)?),
                _ => return None,
            },
            Expr::Identifier(ident) => {
                let name = column_name(ident);
                let is_own = |(_, own): &(Expr, Ident)| shown(&column_name(own)) == name;
                if items.iter().filter(|item| is_own(item)).count() > 1 {
                    return None;
                }
                items.iter().position(is_own)
            }
            other => items.iter().position(|(expr, _)| expr == other),
        };
        let name = match place {
            Some(place) if place < items.len() => column("item", place),
            Some(_) => return None,
            None => {
                inner.push(item(&key.expr, column("key", at)));
                column("key", at)
            }
        };
        sorts.push(OrderByExpr {
            expr: Expr::Identifier(name),
            ..key.clone()
        });
    }
    Some(sorts)
}

fn expanded(query: &mut Query) -> Result<()> {
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order| &order.kind)
    else {
        return Ok(());
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Ok(());
    };
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
    };
    let sets = found_in(&select.projection);
    let plain = !grouped && select.distinct.is_none() && select.having.is_none();
    if sets.found.is_empty() || sets.nested || !plain || !found_in(keys).found.is_empty() {
        return Ok(());
    }
    let Some(items) = items(&select.projection) else {
        return Ok(());
    };
    let mut inner: Vec<SelectItem> = Vec::new();
    for (at, (expr, _)) in items.iter().enumerate() {
        inner.push(item(expr, column("item", at)));
    }
    let Some(mut sorts) = sorted(keys, &items, &mut inner) else {
        return Ok(());
    };
    let numbers = call(VALUES, vec![call(ORDINALS, sets.found)]);
    inner.push(item(&call("unnest", vec![numbers]), column("place", 0)));
    sorts.push(OrderByExpr {
        expr: Expr::Identifier(column("place", 0)),
        options: OrderByOptions {
            asc: None,
            nulls_first: None,
        },
        with_fill: None,
    });
    let named = items.into_iter().enumerate();
    let outer = named.map(|(at, (_, name))| SelectItem::ExprWithAlias {
        expr: Expr::Identifier(column("item", at)),
        alias: name,
    });
    let outer = outer.collect();
    select.projection = inner;
    around(query, outer, sorts)
}

/// Puts the body of a query into another, which sorts its rows.
fn around(query: &mut Query, items: Vec<SelectItem>, sorts: Vec<OrderByExpr>) -> Result<()> {
    let mut made = plain_query("select 1 from (select 1) as __expanded")?;
    std::mem::swap(&mut made.body, &mut query.body);
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        subquery.body = made.body;
        select.projection = items;
    }
    if let Some(order_by) = &mut query.order_by {
        order_by.kind = OrderByKind::Expressions(sorts);
    }
    Ok(())
}
