//! The order of arrays and structs: a NULL in them is greater than other values, wherever those stand that are NULL
//! themselves.
//!
//! DataFusion takes `nulls first` for what is in them, too. So where they do not stand at the end where the greatest values
//! are, a key of its own says which values are NULL.
//!
//! Doubles and reals, too, are compared by their bits there: -0.0 is before 0.0, and NaN of several kinds are apart. Where keys
//! come after them, and where rows of the same keys belong together, they are keys by [their one zero and one
//! NaN](crate::functions::one_zero).

use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, SortExpr};

use crate::functions::lists::types::{is_list, is_struct};
use crate::functions::{one_zero, special};
use crate::optimize::expressions::rewritten;

/// `plan` with these keys, in sorts and in the arguments of functions.
pub(super) fn ordered(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(sort)?.data;
    rewritten(plan, function)
}

fn sort(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Sort(mut sort) = plan else {
        return Ok(Transformed::no(plan));
    };
    let schema = Arc::clone(sort.input.schema());
    let changed = spell(&mut sort.expr, &schema)? | levelled(&mut sort.expr, &schema, false);
    Ok(told(LogicalPlan::Sort(sort), changed))
}

fn function(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::AggregateFunction(mut function) => {
            let keys = &mut function.params.order_by;
            let changed = spell(keys, schema)? | levelled(keys, schema, false);
            told(Expr::AggregateFunction(function), changed)
        }
        Expr::WindowFunction(mut function) => {
            let params = &mut function.params;
            let mut changed =
                spell(&mut params.order_by, schema)? || guarded(&mut params.order_by, schema)?;
            let before: Vec<Expr> = params.order_by.iter().map(|key| key.expr.clone()).collect();
            changed |= levelled(&mut params.order_by, schema, true);
            // Functions that find their frames themselves get the keys as arguments, too.
            for arg in params.args.iter_mut().filter(|arg| before.contains(arg)) {
                changed |= level(arg, schema);
            }
            for key in &mut params.partition_by {
                changed |= level(key, schema);
            }
            told(Expr::WindowFunction(function), changed)
        }
        expr => Transformed::no(expr),
    })
}

fn told<T>(value: T, changed: bool) -> Transformed<T> {
    if changed {
        Transformed::yes(value)
    } else {
        Transformed::no(value)
    }
}

/// Gives keys that are floats one zero and one NaN, those that others come after or all; whether there are any.
fn levelled(keys: &mut [SortExpr], schema: &DFSchema, all: bool) -> bool {
    let count = if all {
        keys.len()
    } else {
        keys.len().saturating_sub(1)
    };
    let mut changed = false;
    for key in &mut keys[..count] {
        changed |= level(&mut key.expr, schema);
    }
    changed
}

fn level(key: &mut Expr, schema: &DFSchema) -> bool {
    let is_float = key.get_type(schema).is_ok_and(|ty| ty.is_floating());
    if !is_float || one_zero::is_level(key) {
        return false;
    }
    *key = one_zero::level(std::mem::take(key));
    true
}

/// Whether the first key of a window, a struct, got one before it: DataFusion has no frames of rows by a struct alone.
fn guarded(keys: &mut Vec<SortExpr>, schema: &DFSchema) -> Result<bool> {
    let is_first = |key: &SortExpr| key.expr.get_type(schema).is_ok_and(|ty| is_struct(&ty));
    let Some(first) = keys.first().filter(|key| is_first(key)) else {
        return Ok(false);
    };
    let is_null = special("no value")?.call(vec![first.expr.clone()]);
    let key = SortExpr::new(is_null, !first.nulls_first, false);
    keys.insert(0, key);
    Ok(true)
}

/// Adds the keys that are needed; whether there are any.
fn spell(keys: &mut Vec<SortExpr>, schema: &DFSchema) -> Result<bool> {
    let odd = |key: &SortExpr| {
        let ty = key.expr.get_type(schema);
        key.asc == key.nulls_first && ty.is_ok_and(|ty| is_list(&ty) || is_struct(&ty))
    };
    if !keys.iter().any(odd) {
        return Ok(false);
    }
    let mut all = Vec::with_capacity(keys.len() + 1);
    for mut key in std::mem::take(keys) {
        if odd(&key) {
            let is_null = special("no value")?.call(vec![key.expr.clone()]);
            all.push(SortExpr::new(is_null, !key.nulls_first, false));
            key.nulls_first = !key.asc;
        }
        all.push(key);
    }
    *keys = all;
    Ok(true)
}
