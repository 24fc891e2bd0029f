//! Values of enums where a plan compares or sorts them: they are in the order of their labels' places, which the type has,
//! so that numbers of 16 bits are compared in their stead.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::expr::{AggregateFunction, InSubquery, WindowFunction};
use datafusion_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, SortExpr,
};
use table::is_enum;

use crate::functions::enums::place;
use crate::messages::types::type_name;
use crate::optimize::expressions::fitted;

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// Whether one of the sides is a value of an enum.
pub(super) fn has_one(binary: &BinaryExpr, schema: &DFSchema) -> bool {
    let is_one = |side: &Expr| side.get_type(schema).is_ok_and(|ty| is_enum(&ty));
    is_one(&binary.left) || is_one(&binary.right)
}

/// The comparison of two values of which one may be of an enum.
///
/// # Errors
/// If the other is of another type, and no constant.
pub(super) fn compared(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let types = [&binary.left, &binary.right].map(|side| side.get_type(schema));
    let kind = types.iter().flatten().find(|ty| is_enum(ty)).cloned();
    let Some(kind) = kind.filter(|_| compares(binary.op)) else {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    };
    if let [Ok(left), Ok(right)] = &types
        && left != right
        && is_enum(left)
        && is_enum(right)
    {
        return plan_err!(
            "operator does not exist: {} {} {}",
            type_name(left),
            binary.op,
            type_name(right)
        );
    }
    let side = |expr: Expr| {
        Ok::<_, datafusion_common::DataFusionError>(place(fitted(expr, &kind, schema)?))
    };
    let left = side(*binary.left)?;
    let right = side(*binary.right)?;
    let compared = BinaryExpr::new(Box::new(left), binary.op, Box::new(right));
    Ok(Transformed::yes(Expr::BinaryExpr(compared)))
}

/// Whether a value is among those of a subquery.
///
/// # Errors
/// If they are of other types.
pub(super) fn member(mut own: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let inner = &own.subquery.subquery;
    let columns = inner.schema().columns();
    let (Ok(left), [column]) = (own.expr.get_type(schema), &columns[..]) else {
        return Ok(Transformed::no(Expr::InSubquery(own)));
    };
    let right = inner.schema().field(0).data_type().clone();
    if !is_enum(&left) && !is_enum(&right) {
        return Ok(Transformed::no(Expr::InSubquery(own)));
    }
    let kind = if is_enum(&right) { &right } else { &left };
    if right != *kind || is_enum(&left) && left != right {
        return plan_err!(
            "operator does not exist: {} = {}",
            type_name(&left),
            type_name(&right)
        );
    }
    let values = LogicalPlanBuilder::from(inner.as_ref().clone());
    let values = values.project([place(Expr::Column(column.clone()))])?;
    own.subquery.subquery = Arc::new(values.build()?);
    *own.expr = place(fitted(std::mem::take(&mut *own.expr), kind, schema)?);
    Ok(Transformed::yes(Expr::InSubquery(own)))
}

/// Keys by which rows are sorted; whether one is of an enum.
fn sorted(keys: &mut [SortExpr], schemas: &[&DFSchema]) -> bool {
    let mut changed = false;
    for key in keys {
        changed |= by_place(&mut key.expr, schemas);
    }
    changed
}

/// Puts the place in the stead of a value, if that is of an enum.
fn by_place(expr: &mut Expr, schemas: &[&DFSchema]) -> bool {
    let mut types = schemas.iter();
    let kind: Option<DataType> = types.find_map(|schema| expr.get_type(*schema).ok());
    let found = kind.is_some_and(|kind| is_enum(&kind));
    if found {
        *expr = place(std::mem::take(expr));
    }
    found
}

/// A window function.
///
/// # Errors
/// None.
pub(super) fn window(
    mut function: Box<WindowFunction>,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let mut changed = sorted(&mut function.params.order_by, &[schema]);
    for key in &mut function.params.partition_by {
        changed |= by_place(key, &[schema]);
    }
    Ok(told(Expr::WindowFunction(function), changed))
}

/// An aggregate function, which may sort its rows.
///
/// # Errors
/// None.
pub(super) fn aggregate(
    mut function: AggregateFunction,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    // What sorts distinct values sorts its arguments.
    let changed = !function.params.distinct && sorted(&mut function.params.order_by, &[schema]);
    Ok(told(Expr::AggregateFunction(function), changed))
}

fn told(expr: Expr, changed: bool) -> Transformed<Expr> {
    if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    }
}

/// `plan` in which rows are sorted and joined by places.
///
/// # Errors
/// Those of walking the plan.
pub(super) fn ordered(plan: LogicalPlan) -> Result<LogicalPlan> {
    let node = |plan: LogicalPlan| {
        Ok(match plan {
            LogicalPlan::Sort(mut sort) => {
                let changed = sorted(&mut sort.expr, &[sort.input.schema().as_ref()]);
                changed_plan(LogicalPlan::Sort(sort), changed)
            }
            LogicalPlan::Join(mut join) => {
                let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
                let schemas = [left.schema().as_ref(), right.schema().as_ref()];
                let mut changed = false;
                for (l, r) in &mut join.on {
                    changed |= by_place(l, &schemas);
                    changed |= by_place(r, &schemas);
                }
                changed_plan(LogicalPlan::Join(join), changed)
            }
            LogicalPlan::Distinct(Distinct::On(mut on)) => {
                let input = Arc::clone(&on.input);
                let keys = on.sort_expr.as_deref_mut().unwrap_or_default();
                let changed = sorted(keys, &[input.schema().as_ref()]);
                changed_plan(LogicalPlan::Distinct(Distinct::On(on)), changed)
            }
            plan => Transformed::no(plan),
        })
    };
    Ok(plan.transform_up_with_subqueries(node)?.data)
}

fn changed_plan(plan: LogicalPlan, changed: bool) -> Transformed<LogicalPlan> {
    if changed {
        Transformed::yes(plan)
    } else {
        Transformed::no(plan)
    }
}
