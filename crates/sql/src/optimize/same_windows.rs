//! Windows that are equal once the casts in them are simplified, such as `sum(i) over w` and `sum(i::bigint) over w`: one of
//! them, whose column stands for all.

use std::sync::Arc;

use datafusion_common::{Column, Result};
use datafusion_expr::expr_rewriter::unalias;
use datafusion_expr::{Expr, LogicalPlan, Projection, Window};

use crate::optimize::each_node::EachNode;

/// What the rule is called.
pub(crate) const NAME: &str = "same_windows";

/// The optimizer rule.
pub(crate) const RULE: EachNode = EachNode {
    name: NAME,
    rewritten: |plan| match plan {
        LogicalPlan::Window(window) => merged(window),
        _ => Ok(None),
    },
};

/// The windows of a node with their columns.
fn computed(window: &Window) -> impl Iterator<Item = (Expr, Column)> {
    let before = window.input.schema().fields().len();
    let columns = window.schema.iter().skip(before).map(Column::from);
    let exprs = window.window_expr.iter().cloned().map(unalias);
    exprs.zip(columns)
}

/// The node without windows that it, or one right below it, has already; `None` if there are none.
fn merged(window: &Window) -> Result<Option<LogicalPlan>> {
    let mut known: Vec<(Expr, Column)> = Vec::new();
    let mut below = &window.input;
    while let LogicalPlan::Window(next) = below.as_ref() {
        known.extend(computed(next));
        below = &next.input;
    }
    let mut kept = Vec::new();
    // For each window the column that stands for it, if that is another.
    let mut others = Vec::new();
    for ((expr, column), own) in computed(window).zip(&window.window_expr) {
        let same = known.iter().find(|(other, _)| *other == expr);
        match same.filter(|_| !expr.is_volatile()) {
            Some((_, other)) => others.push(Some(other.clone())),
            None => {
                kept.push(own.clone());
                known.push((expr, column));
                others.push(None);
            }
        }
    }
    if kept.len() == window.window_expr.len() {
        return Ok(None);
    }
    let before = window.input.schema().fields().len();
    let fields = window.schema.iter().enumerate().map(|(at, field)| {
        let other = at.checked_sub(before).and_then(|at| others.get(at));
        match other {
            Some(Some(other)) => {
                Expr::Column(other.clone()).alias_qualified(field.0.cloned(), field.1.name())
            }
            _ => Expr::Column(Column::from(field)),
        }
    });
    let fields: Vec<Expr> = fields.collect();
    let input = if kept.is_empty() {
        Arc::clone(&window.input)
    } else {
        let rest = Window::try_new(kept, Arc::clone(&window.input))?;
        Arc::new(LogicalPlan::Window(rest))
    };
    let projection = Projection::try_new(fields, input)?;
    Ok(Some(LogicalPlan::Projection(projection)))
}
