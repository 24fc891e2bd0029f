//! Values of `jsonb` where a plan compares, sorts, groups or joins them: [texts](order) that are in their order stand for them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::{AggregateFunction, InSubquery};
use datafusion_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
    Operator, Projection, SortExpr,
};
use datafusion_functions_aggregate::first_last::first_value;
use table::{JsonKind, json_kind};

use crate::error::Error;
use crate::functions::json_key;
use crate::messages::types::type_name;
use crate::optimize::expressions::rewritten;

/// `plan` with keys in the place of values.
///
/// # Errors
/// Those of making other plans.
pub(super) fn keyed(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = rewritten(plan, compared)?;
    Ok(plan.transform_up_with_subqueries(node)?.data)
}

/// Whether a value is a `jsonb`.
fn is_one(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| is_jsonb(&ty))
}

/// Whether this is `jsonb`.
pub(super) fn is_jsonb(ty: &DataType) -> bool {
    json_kind(ty) == Some(JsonKind::Normal)
}

/// Puts the key in the place of a value, if that is a `jsonb`; whether it is.
fn by_key(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let found = is_one(expr, schema);
    if found {
        *expr = json_key(std::mem::take(expr))?;
    }
    Ok(found)
}

fn sorted(keys: &mut [SortExpr], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for key in keys {
        changed |= by_key(&mut key.expr, schema)?;
    }
    Ok(changed)
}

fn all_by_key<'e>(
    exprs: impl IntoIterator<Item = &'e mut Expr>,
    schema: &DFSchema,
) -> Result<bool> {
    let mut changed = false;
    for expr in exprs {
        changed |= by_key(expr, schema)?;
    }
    Ok(changed)
}

fn told<T>(value: T, changed: bool) -> Transformed<T> {
    if changed {
        Transformed::yes(value)
    } else {
        Transformed::no(value)
    }
}

/// Expressions that compare values.
fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr {
            mut left,
            op: op @ (Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom),
            mut right,
        }) => {
            // One that is none is NULL, or refused later.
            let both = is_one(&left, schema) && is_one(&right, schema);
            let changed = both && all_by_key([&mut *left, &mut *right], schema)?;
            told(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed)
        }
        Expr::InList(mut list) if is_one(&list.expr, schema) => {
            let all = std::iter::once(&mut *list.expr).chain(&mut list.list);
            let changed = all_by_key(all, schema)?;
            told(Expr::InList(list), changed)
        }
        Expr::Between(mut own) if is_one(&own.expr, schema) => {
            let all = [&mut *own.expr, &mut *own.low, &mut *own.high];
            let changed = all_by_key(all, schema)?;
            told(Expr::Between(own), changed)
        }
        Expr::InSubquery(own) => member(own, schema)?,
        Expr::WindowFunction(mut function) => {
            let params = &mut function.params;
            let changed = sorted(&mut params.order_by, schema)?
                | all_by_key(&mut params.partition_by, schema)?;
            told(Expr::WindowFunction(function), changed)
        }
        Expr::AggregateFunction(mut function) => {
            extremes(&function, schema)?;
            let counts = function.params.distinct && function.func.name() == "count";
            let params = &mut function.params;
            let mut changed = false;
            if counts {
                changed |= all_by_key(&mut params.args, schema)?;
            }
            // What sorts distinct values sorts its arguments.
            if !params.distinct {
                changed |= sorted(&mut params.order_by, schema)?;
            }
            told(Expr::AggregateFunction(function), changed)
        }
        // Values that it compares were made to be of one type.
        Expr::Case(mut case) if case.expr.as_ref().is_some_and(|own| is_one(own, schema)) => {
            let tests = case.when_then_expr.iter_mut().map(|(test, _)| &mut **test);
            let all = case.expr.iter_mut().map(|own| &mut **own).chain(tests);
            let changed = all_by_key(all, schema)?;
            told(Expr::Case(case), changed)
        }
        expr => Transformed::no(expr),
    })
}

/// Refuses the least and the greatest JSON, which PostgreSQL does not have.
fn extremes(function: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    let name = function.func.name();
    let args = function.params.args.iter();
    let mut types = args.filter_map(|arg| arg.get_type(schema).ok());
    match types.find(|ty| json_kind(ty).is_some()) {
        Some(ty) if matches!(name, "min" | "max") => {
            let message = format!("function {name}({}) does not exist", type_name(&ty));
            Err(Error::coded("42883", message).into())
        }
        _ => Ok(()),
    }
}

/// Whether a value is among those of a subquery.
fn member(mut own: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let inner = &own.subquery.subquery;
    let columns = inner.schema().columns();
    let ([column], true) = (&columns[..], is_one(&own.expr, schema)) else {
        return Ok(Transformed::no(Expr::InSubquery(own)));
    };
    let column = Expr::Column(column.clone());
    if !is_one(&column, inner.schema()) {
        return Ok(Transformed::no(Expr::InSubquery(own)));
    }
    let values = LogicalPlanBuilder::from(inner.as_ref().clone());
    own.subquery.subquery = Arc::new(values.project([json_key(column)?])?.build()?);
    by_key(&mut own.expr, schema)?;
    Ok(Transformed::yes(Expr::InSubquery(own)))
}

/// Nodes that compare rows.
fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            let changed = sorted(&mut sort.expr, &Arc::clone(sort.input.schema()))?;
            told(LogicalPlan::Sort(sort), changed)
        }
        LogicalPlan::Join(mut join) => {
            let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
            let mut changed = false;
            for (l, r) in &mut join.on {
                if is_one(l, left.schema()) && is_one(r, right.schema()) {
                    changed |= by_key(l, left.schema())? | by_key(r, right.schema())?;
                }
            }
            told(LogicalPlan::Join(join), changed)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let schema = Arc::clone(on.input.schema());
            let changed = all_by_key(&mut on.on_expr, &schema)?
                | sorted(on.sort_expr.as_deref_mut().unwrap_or_default(), &schema)?;
            told(LogicalPlan::Distinct(Distinct::On(on)), changed)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let columns: Vec<Expr> = input
                .schema()
                .columns()
                .into_iter()
                .map(Expr::Column)
                .collect();
            if columns.iter().any(|column| is_one(column, input.schema())) {
                let groups = Aggregate::try_new(input, columns, Vec::new())?;
                Transformed::yes(grouped(groups)?)
            } else {
                Transformed::no(LogicalPlan::Distinct(Distinct::All(input)))
            }
        }
        LogicalPlan::Aggregate(aggregate) => {
            let schema = aggregate.input.schema();
            let mut keys = aggregate.group_expr.iter();
            if keys.any(|own| is_one(own, schema)) {
                Transformed::yes(grouped(aggregate)?)
            } else {
                Transformed::no(LogicalPlan::Aggregate(aggregate))
            }
        }
        plan => Transformed::no(plan),
    })
}

/// Groups by the keys of values, of which each group shows its first.
fn grouped(aggregate: Aggregate) -> Result<LogicalPlan> {
    let Aggregate {
        input,
        group_expr,
        mut aggr_expr,
        schema,
        ..
    } = aggregate;
    let (groups, own) = (group_expr.len(), aggr_expr.len());
    let mut keys = Vec::with_capacity(groups);
    // Where the columns stand among those that there are then.
    let mut places = Vec::with_capacity(groups + own);
    for expr in group_expr {
        if is_one(&expr, input.schema()) {
            let place = groups + aggr_expr.len();
            places.push(place);
            // Values may be among what is counted already.
            aggr_expr.push(first_value(expr.clone(), Vec::new()).alias(format!("jsonb {place}")));
            keys.push(json_key(expr)?.alias(format!("jsonb key {place}")));
        } else {
            places.push(keys.len());
            keys.push(expr);
        }
    }
    places.extend((0..own).map(|at| groups + at));
    let inner = Aggregate::try_new(input, keys, aggr_expr)?;
    let columns = inner.schema.columns();
    let mut shown = Vec::with_capacity(places.len());
    for ((qualifier, field), place) in schema.iter().zip(places) {
        if let Some(column) = columns.get(place) {
            let column = Expr::Column(column.clone());
            shown.push(column.alias_qualified(qualifier.cloned(), field.name()));
        }
    }
    let inner = Arc::new(LogicalPlan::Aggregate(inner));
    Ok(LogicalPlan::Projection(Projection::try_new(shown, inner)?))
}
