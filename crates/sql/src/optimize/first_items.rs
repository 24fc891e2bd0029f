//! `(array_agg(x order by t))[1]`: the value of the first row, which an aggregate finds without gathering all.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result, ScalarValue};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Aggregate, Expr, ExprSchemable, Filter, LogicalPlan, Projection};
use datafusion_functions_aggregate::first_last::first_value_udaf;

use crate::functions::lists::names::SUBSCRIPT;
use crate::functions::lists::types::is_list;

/// `plan` with the first values of groups where only these are wanted of what they gather.
pub(super) fn first_items(plan: LogicalPlan) -> Result<LogicalPlan> {
    let first = |plan| match plan {
        LogicalPlan::Projection(projection) => Ok(match items(&projection)? {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(LogicalPlan::Projection(projection)),
        }),
        plan => Ok(Transformed::no(plan)),
    };
    Ok(plan.transform_up_with_subqueries(first)?.data)
}

/// The projection of groups, or of those that pass a filter, with first values; `None` if it has none.
fn items(projection: &Projection) -> Result<Option<LogicalPlan>> {
    let (filter, below) = match projection.input.as_ref() {
        LogicalPlan::Filter(filter) => (Some(filter), filter.input.as_ref()),
        other => (None, other),
    };
    let LogicalPlan::Aggregate(aggregate) = below else {
        return Ok(None);
    };
    // The columns of what can be found so, and the aggregates that do.
    let mut firsts: HashMap<Column, Expr> = HashMap::new();
    let before = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    for (at, expr) in aggregate.aggr_expr.iter().enumerate() {
        if let Some(first) = first_value(expr, aggregate)? {
            let column = Column::from(aggregate.schema.qualified_field(before + at));
            firsts.insert(column, first);
        }
    }
    let filters = filter.map(|filter| &filter.predicate);
    for expr in projection.expr.iter().chain(filters) {
        retain_items(expr, &mut firsts)?;
    }
    if firsts.is_empty() {
        return Ok(None);
    }
    let mut places: HashMap<Column, Column> = HashMap::new();
    let mut made = Vec::with_capacity(aggregate.aggr_expr.len());
    for (at, expr) in aggregate.aggr_expr.iter().enumerate() {
        let column = Column::from(aggregate.schema.qualified_field(before + at));
        match firsts.remove(&column) {
            Some(first) => {
                let name = format!("first {at}");
                places.insert(column, Column::new_unqualified(&name));
                made.push(first.alias(name));
            }
            None => made.push(expr.clone()),
        }
    }
    let input = Arc::clone(&aggregate.input);
    let grouped = Aggregate::try_new(input, aggregate.group_expr.clone(), made)?;
    let mut input = LogicalPlan::Aggregate(grouped);
    if let Some(filter) = filter {
        let predicate = replaced(filter.predicate.clone(), &places)?;
        input = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?);
    }
    let names = NamePreserver::new_for_projection();
    let exprs = projection.expr.iter().map(|expr| {
        let name = names.save(expr);
        Ok(name.restore(replaced(expr.clone(), &places)?))
    });
    let exprs = exprs.collect::<Result<Vec<Expr>>>()?;
    let projection = Projection::try_new(exprs, Arc::new(input))?;
    Ok(Some(LogicalPlan::Projection(projection)))
}

/// The aggregate for the first item of what `expr` gathers. Arrays of arrays have no first item.
fn first_value(expr: &Expr, aggregate: &Aggregate) -> Result<Option<Expr>> {
    let function = match expr {
        Expr::Alias(alias) => return first_value(&alias.expr, aggregate),
        Expr::AggregateFunction(function) => function,
        _ => return Ok(None),
    };
    let params = &function.params;
    let ([value], "array_agg") = (&params.args[..], function.func.name()) else {
        return Ok(None);
    };
    let is_plain =
        !params.order_by.is_empty() && !params.distinct && params.null_treatment.is_none();
    if !is_plain || is_list(&value.get_type(aggregate.input.schema())?) {
        return Ok(None);
    }
    Ok(Some(Expr::AggregateFunction(AggregateFunction::new_udf(
        first_value_udaf(),
        vec![value.clone()],
        false,
        params.filter.clone(),
        params.order_by.clone(),
        None,
    ))))
}

/// Drops the columns of which `expr` reads more than the first item.
fn retain_items(expr: &Expr, firsts: &mut HashMap<Column, Expr>) -> Result<()> {
    expr.apply(|expr| {
        if first_item(expr).is_some() {
            return Ok(TreeNodeRecursion::Jump);
        }
        if let Expr::Column(column) = expr {
            firsts.remove(column);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The expression with columns of first values for the first items of others.
fn replaced(expr: Expr, places: &HashMap<Column, Column>) -> Result<Expr> {
    let done = expr.transform_up(|expr| {
        let place = first_item(&expr).and_then(|column| places.get(column));
        Ok(match place {
            Some(place) => Transformed::yes(Expr::Column(place.clone())),
            None => Transformed::no(expr),
        })
    })?;
    Ok(done.data)
}

/// The column whose first item an expression is.
fn first_item(expr: &Expr) -> Option<&Column> {
    let Expr::ScalarFunction(function) = expr else {
        return None;
    };
    match (function.func.name(), &function.args[..]) {
        (SUBSCRIPT, [Expr::Column(column), at]) if is_one(at) => Some(column),
        _ => None,
    }
}

fn is_one(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(1)) | ScalarValue::Int32(Some(1)), _) => true,
        Expr::Cast(cast) => cast.field.data_type().is_integer() && is_one(&cast.expr),
        _ => false,
    }
}
