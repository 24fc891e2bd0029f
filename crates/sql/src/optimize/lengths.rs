//! Intervals, and arrays of them, where rows are ordered, grouped and told apart: by their lengths, in which a month has 30
//! days and a day 24 hours. Arrow would order them by months, then days, then time.
//!
//! A group of intervals is shown as the first of them. `min` and `max` are the values that are least and greatest, `sum`
//! is computed part by part.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::expr::{AggregateFunction, Case, Sort as SortKey, WindowFunction};
use datafusion_expr::{
    Aggregate, AggregateUDF, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan,
    LogicalPlanBuilder, Sort, lit,
};
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_functions_aggregate::first_last::first_value_udaf;
use datafusion_optimizer::AnalyzerRule;

use crate::functions::aggregates::extreme_of as extreme;
use crate::functions::intervals::{PART, WHOLE, call, has_length, span};
use crate::functions::sum::sum;
use crate::optimize::expressions::rewritten_node;

/// The analyzer rule. It must come before type coercion.
#[derive(Debug)]
pub(crate) struct Lengths;

impl AnalyzerRule for Lengths {
    fn name(&self) -> &str {
        "lengths"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_intervals(&plan)? {
            return Ok(plan);
        }
        Ok(plan.transform_up_with_subqueries(of_node)?.data)
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| is_type(&ty))
}

fn keyed(expr: Expr, schema: &DFSchema) -> Expr {
    if is_interval(&expr, schema) {
        span(expr)
    } else {
        expr
    }
}

fn sorted(keys: Vec<SortKey>, schema: &DFSchema) -> Vec<SortKey> {
    let keys = keys.into_iter();
    keys.map(|key| SortKey {
        expr: keyed(key.expr, schema),
        ..key
    })
    .collect()
}

fn of_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Sort(sort) if has_interval(&sort) => {
            let schema = Arc::clone(sort.input.schema());
            Ok(Transformed::yes(LogicalPlan::Sort(Sort {
                expr: sorted(sort.expr, &schema),
                ..sort
            })))
        }
        LogicalPlan::Aggregate(aggregate) => aggregate_of(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let schema = input.schema();
            if !schema
                .fields()
                .iter()
                .any(|field| is_type(field.data_type()))
            {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(input))));
            }
            let columns = schema.iter().map(Expr::from).collect();
            let groups = Aggregate::try_new(input, columns, vec![])?;
            let groups = aggregate_of(groups)?;
            Ok(Transformed::yes(groups.data))
        }
        LogicalPlan::Distinct(Distinct::On(on)) => {
            let schema = Arc::clone(on.input.schema());
            if !on.on_expr.iter().any(|expr| is_interval(expr, &schema)) {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::On(on))));
            }
            let keys = on.on_expr.into_iter().map(|expr| keyed(expr, &schema));
            Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(
                DistinctOn {
                    on_expr: keys.collect(),
                    sort_expr: on.sort_expr.map(|keys| sorted(keys, &schema)),
                    ..on
                },
            ))))
        }
        LogicalPlan::Join(mut join) => {
            let left = Arc::clone(join.left.schema());
            let right = Arc::clone(join.right.schema());
            let odd = join
                .on
                .iter()
                .any(|(l, r)| is_interval(l, &left) || is_interval(r, &right));
            if !odd {
                return expressions(LogicalPlan::Join(join));
            }
            let on = join.on.into_iter();
            join.on = on
                .map(|(l, r)| (keyed(l, &left), keyed(r, &right)))
                .collect();
            let node = expressions(LogicalPlan::Join(join))?;
            Ok(Transformed::yes(node.data))
        }
        node => expressions(node),
    }
}

/// What stands within expressions: windows, and `case` of an interval.
fn expressions(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    rewritten_node(node, &within)
}

fn aggregate_of(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(aggregate.input.schema());
    let odd = |expr: &Expr| is_interval(expr, &schema);
    let groups = aggregate.group_expr.iter().any(|expr| match expr {
        Expr::GroupingSet(sets) => sets.distinct_expr().into_iter().any(odd),
        expr => odd(expr),
    });
    let aggregates = aggregate
        .aggr_expr
        .iter()
        .any(|expr| of_intervals(expr, &schema));
    if !groups && !aggregates {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    if aggregate
        .group_expr
        .iter()
        .any(|expr| matches!(expr, Expr::GroupingSet(_)))
    {
        return plan_err!("not supported: grouping sets of intervals");
    }
    let before = aggregate.schema.columns();
    let count = aggregate.group_expr.len();
    // The groups, what is computed of them, and what is shown of both: each column of before in terms of those after.
    let mut keys = Vec::new();
    let mut computed = Vec::new();
    let mut shown: Vec<Expr> = Vec::new();
    for expr in &aggregate.group_expr {
        if odd(expr) {
            keys.push(span(expr.clone()));
            let first = first_value_udaf().call(vec![expr.clone()]);
            computed.push(first.clone());
            shown.push(first);
        } else {
            keys.push(expr.clone());
            shown.push(expr.clone());
        }
    }
    for expr in &aggregate.aggr_expr {
        shown.push(aggregated(expr, &schema, &mut computed)?);
    }
    let made = Aggregate::try_new(aggregate.input, keys, dedup(computed))?;
    let above = Arc::clone(&made.schema);
    debug_assert!(before.len() >= count, "groups are columns");
    let columns = shown.into_iter().zip(&before).map(|(expr, old)| {
        let expr = above_groups(expr, &above)?;
        Ok(expr.alias_qualified(old.relation.clone(), old.name.clone()))
    });
    let columns = columns.collect::<Result<Vec<Expr>>>()?;
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(made));
    Ok(Transformed::yes(plan.project(columns)?.build()?))
}

/// What an aggregate of intervals is in terms of others, which are added to `computed`.
fn aggregated(expr: &Expr, schema: &DFSchema, computed: &mut Vec<Expr>) -> Result<Expr> {
    let bare = expr.clone().unalias_nested().data;
    let Expr::AggregateFunction(function) = bare else {
        computed.push(expr.clone());
        return Ok(expr.clone());
    };
    if !of_intervals(expr, schema) {
        computed.push(expr.clone());
        return Ok(expr.clone());
    }
    let name = function.func.name().to_string();
    let mut params = function.params;
    params.order_by = sorted(params.order_by, schema);
    let Some(first) = params.args.first().cloned() else {
        computed.push(expr.clone());
        return Ok(expr.clone());
    };
    let mut put = |func: &Arc<AggregateUDF>, args: Vec<Expr>, distinct: bool| {
        let mut own = params.clone();
        own.args = args;
        own.distinct = distinct;
        let made = Expr::AggregateFunction(AggregateFunction {
            func: Arc::clone(func),
            params: own,
        });
        computed.push(made.clone());
        made
    };
    let interval = is_interval(&first, schema);
    match name.as_str() {
        "min" if interval => Ok(put(
            &extreme("arg_min")?,
            vec![first.clone(), span(first)],
            false,
        )),
        "max" if interval => Ok(put(
            &extreme("arg_max")?,
            vec![first.clone(), span(first)],
            false,
        )),
        "count" if interval => {
            let distinct = params.distinct;
            let value = if distinct { span(first) } else { first };
            Ok(put(&count_udaf(), vec![value], distinct))
        }
        "sum" if interval && !params.distinct => {
            let part = |which: i64| call(PART, vec![first.clone(), lit(which)]);
            let mut parts = Vec::new();
            for which in 0..3 {
                parts.push(put(&sum(), vec![part(which)?], false));
            }
            call(WHOLE, parts)
        }
        "arg_min" | "arg_max" => {
            let mut args = params.args.clone();
            if let Some(key) = args.get_mut(1) {
                *key = keyed(key.clone(), schema);
            }
            Ok(put(&function.func, args, params.distinct))
        }
        "array_agg" | "first_value" | "last_value" if !params.distinct => {
            Ok(put(&function.func, params.args.clone(), false))
        }
        _ if !interval => Ok(put(&function.func, params.args.clone(), params.distinct)),
        _ => plan_err!("not supported: {name} of intervals"),
    }
}

/// Whether intervals are in a plan: most have none.
fn has_intervals(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let fields = node.schema().fields().iter();
        found |= fields.map(|field| field.data_type()).any(is_type);
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                found |= matches!(expr, Expr::Literal(value, _) if is_type(&value.data_type()))
                    || matches!(expr, Expr::Cast(cast) if is_type(cast.field.data_type()))
                    || matches!(expr, Expr::ScalarFunction(_))
                        && node
                            .inputs()
                            .iter()
                            .any(|input| is_interval(expr, input.schema()));
                Ok(if found {
                    TreeNodeRecursion::Stop
                } else {
                    TreeNodeRecursion::Continue
                })
            })
        })?;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}

fn is_type(ty: &DataType) -> bool {
    has_length(ty)
}

fn has_interval(sort: &Sort) -> bool {
    let schema = sort.input.schema();
    sort.expr.iter().any(|key| is_interval(&key.expr, schema))
}

/// Whether an aggregate has intervals among its arguments or keys.
fn of_intervals(expr: &Expr, schema: &DFSchema) -> bool {
    let bare = expr.clone().unalias_nested().data;
    let Expr::AggregateFunction(function) = &bare else {
        return false;
    };
    let params = &function.params;
    let keys = params.order_by.iter().map(|key| &key.expr);
    params
        .args
        .iter()
        .chain(keys)
        .any(|arg| is_interval(arg, schema))
}

fn dedup(exprs: Vec<Expr>) -> Vec<Expr> {
    let mut kept: Vec<Expr> = Vec::with_capacity(exprs.len());
    for expr in exprs {
        if !kept.contains(&expr) {
            kept.push(expr);
        }
    }
    kept
}

/// An expression over groups and aggregates as one over their columns.
fn above_groups(expr: Expr, above: &DFSchema) -> Result<Expr> {
    let changed = expr.transform_down(|expr| {
        let name = expr.schema_name().to_string();
        let column = match &expr {
            Expr::Literal(_, _) => None,
            Expr::Column(column) => above.maybe_index_of_column(column),
            _ => above
                .fields()
                .iter()
                .position(|field| *field.name() == name),
        };
        Ok(match column {
            Some(at) => {
                let column = above.columns().swap_remove(at);
                Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump)
            }
            None => Transformed::no(expr),
        })
    })?;
    Ok(changed.data)
}

/// Windows over intervals, and `case` of one.
fn within(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::WindowFunction(window) => {
            let WindowFunction { fun, mut params } = *window;
            let odd = |expr: &Expr| is_interval(expr, schema);
            let orders = matches!(fun.name(), "min" | "max" | "sum" | "avg" | "mode");
            if orders && params.args.iter().any(odd) {
                return plan_err!("not supported: {} of intervals over a window", fun.name());
            }
            let keys = params.order_by.iter().map(|key| &key.expr);
            let changed = params.partition_by.iter().chain(keys).any(odd);
            let parts = params.partition_by.into_iter();
            params.partition_by = parts.map(|expr| keyed(expr, schema)).collect();
            params.order_by = sorted(params.order_by, schema);
            let window = Expr::WindowFunction(Box::new(WindowFunction { fun, params }));
            Ok(if changed {
                Transformed::yes(window)
            } else {
                Transformed::no(window)
            })
        }
        Expr::Case(case) if case.expr.as_ref().is_some_and(|of| is_interval(of, schema)) => {
            let Case {
                expr,
                when_then_expr,
                else_expr,
            } = case;
            let tests = when_then_expr
                .into_iter()
                .map(|(test, value)| (Box::new(keyed(*test, schema)), value));
            Ok(Transformed::yes(Expr::Case(Case {
                expr: expr.map(|of| Box::new(keyed(*of, schema))),
                when_then_expr: tests.collect(),
                else_expr,
            })))
        }
        Expr::InSubquery(subquery) if is_interval(&subquery.expr, schema) => {
            plan_err!("not supported: an interval in a subquery: write `exists`")
        }
        Expr::SetComparison(comparison) if is_interval(&comparison.expr, schema) => {
            plan_err!("not supported: an interval that is compared with a subquery's rows")
        }
        other => Ok(Transformed::no(other)),
    }
}
