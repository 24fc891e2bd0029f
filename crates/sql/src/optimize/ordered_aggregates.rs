//! `array_agg` and `string_agg` of one group that want their rows in several orders.
//!
//! DataFusion sorts the rows of a group once, in an order that suits all its aggregates, or reverses what they have gathered. It
//! refuses orders of which none is a part of another, and reverses what is distinct twice. Where aggregates with an order are not
//! all alike in it, and where values are distinct, each gathers in any order, and [sorts](crate::functions::lists::ordered) what
//! it has: values with keys beside them, or distinct values, which are their own keys. Distinct values without an order are sorted,
//! too, as PostgreSQL sorts them to find out which are. Before that, arrays of which only the first
//! item is read become [first values](super::first_items).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::{
    Aggregate, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, SortExpr, lit,
};
use datafusion_functions_aggregate::array_agg::array_agg_udaf;
use datafusion_optimizer::AnalyzerRule;

use crate::optimize::each_node::any_node;

use crate::functions::lists::names::STRUCT;
use crate::functions::lists::ordered::{ITEMS, TEXT, TEXTS, VALUES, spelled};
use crate::functions::special;
use crate::optimize::first_items::first_items;

/// The analyzer rule. It must come after types have been made to agree.
#[derive(Debug)]
pub(crate) struct OrderedAggregates;

impl AnalyzerRule for OrderedAggregates {
    fn name(&self) -> &str {
        "ordered_aggregates"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_gathering(&plan)? {
            return Ok(plan);
        }
        let plan = first_items(plan)?;
        let grouped = |plan| match plan {
            LogicalPlan::Aggregate(aggregate) => apart(aggregate),
            plan => Ok(Transformed::no(plan)),
        };
        Ok(plan.transform_up_with_subqueries(grouped)?.data)
    }
}

/// Whether the plan has such aggregates: most have none.
fn has_gathering(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| match node {
        LogicalPlan::Aggregate(aggregate) => {
            Ok(aggregate.aggr_expr.iter().any(|e| gathering(e).is_some()))
        }
        _ => Ok(false),
    })
}

/// The aggregate that an expression of a group is, if it gathers values in an order, distinct ones, or with other texts between
/// them.
fn gathering(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::Alias(alias) => gathering(&alias.expr),
        Expr::AggregateFunction(function)
            if matches!(function.func.name(), "array_agg" | "string_agg")
                && (!function.params.order_by.is_empty()
                    || function.params.distinct
                    || is_varied(function)) =>
        {
            Some(function)
        }
        _ => None,
    }
}

/// Whether what stands between texts is no constant.
fn is_varied(function: &AggregateFunction) -> bool {
    match (&function.params.args[..], function.func.name()) {
        ([_, between], "string_agg") => !is_constant(between),
        _ => false,
    }
}

fn apart(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut orders: Vec<&[SortExpr]> = Vec::new();
    let mut alone = false;
    for function in aggregate.aggr_expr.iter().filter_map(gathering) {
        alone |= function.params.distinct || is_varied(function);
        if !orders.contains(&&function.params.order_by[..]) {
            orders.push(&function.params.order_by);
        }
    }
    if orders.is_empty() || orders.len() < 2 && !alone {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let schema = Arc::clone(aggregate.input.schema());
    // What each expression gathers, and what becomes of that.
    let mut made = Vec::with_capacity(aggregate.aggr_expr.len());
    let mut after = Vec::with_capacity(aggregate.aggr_expr.len());
    for expr in &aggregate.aggr_expr {
        let sorted = match gathering(expr) {
            Some(function) => sorted(function, &schema)?,
            None => None,
        };
        match sorted {
            Some(sorted) => {
                made.push(sorted.gathered.alias(format!("gathered {}", made.len())));
                after.push(Some((sorted.call, expr.get_type(schema.as_ref())?)));
            }
            None => {
                made.push(expr.clone());
                after.push(None);
            }
        }
    }
    let groups = aggregate.group_expr.clone();
    let before = aggregate.schema.columns();
    let grouped = Aggregate::try_new(Arc::clone(&aggregate.input), groups, made)?;
    let columns = grouped.schema.columns();
    let first = columns.len() - after.len();
    let projected = columns.iter().zip(&before).enumerate();
    let projected = projected.map(|(at, (own, old))| {
        let column = Expr::Column(own.clone());
        let call = at.checked_sub(first).and_then(|at| after[at].as_ref());
        Ok(match call {
            Some((call, ty)) => {
                let value = Box::new(call.over(column)?);
                Expr::Cast(Cast::new(value, ty.clone())).alias(old.name.clone())
            }
            None if own == old => column,
            None => column.alias(old.name.clone()),
        })
    });
    let projected = projected.collect::<Result<Vec<Expr>>>()?;
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(grouped));
    Ok(Transformed::yes(plan.project(projected)?.build()?))
}

/// An aggregate without an order, and the call that brings it about.
struct Sorted {
    gathered: Expr,
    call: Call,
}

struct Call {
    name: &'static str,
    keys: String,
    /// What stands between texts.
    between: Option<Expr>,
}

impl Call {
    fn over(&self, column: Expr) -> Result<Expr> {
        let mut args = vec![column, lit(self.keys.as_str())];
        args.extend(self.between.clone());
        Ok(special(self.name)?.call(args))
    }
}

/// What gathers the values of `function`; none if it has arguments of which nothing is known.
fn sorted(function: &AggregateFunction, schema: &DFSchema) -> Result<Option<Sorted>> {
    let params = &function.params;
    let (value, between) = match (&params.args[..], function.func.name()) {
        ([value], "array_agg") => (value, None),
        ([value, between], "string_agg") => (value, Some(between)),
        _ => return Ok(None),
    };
    let of_itself = [SortExpr::new(value.clone(), true, false)];
    let is_sorted = params.distinct && params.order_by.is_empty() && has_order(value, schema)?;
    let order_by = if is_sorted {
        &of_itself[..]
    } else {
        &params.order_by[..]
    };
    let keys = spelled(order_by);
    let (argument, call) = if params.distinct {
        // They are sorted by themselves, as nothing else is known of each.
        let is_own = match order_by {
            [key] => bare(&key.expr, schema) == bare(value, schema),
            _ => false,
        };
        if !is_own || between.is_some_and(|between| !is_constant(between)) {
            return Ok(None);
        }
        let name = if between.is_some() { TEXTS } else { VALUES };
        let between = between.cloned();
        let call = Call {
            name,
            keys,
            between,
        };
        (value.clone(), call)
    } else {
        let name = if between.is_some() { TEXT } else { ITEMS };
        let parts = [Some(value), between].into_iter().flatten();
        let parts = parts.chain(params.order_by.iter().map(|key| &key.expr));
        let mut named = Vec::new();
        for (at, part) in parts.enumerate() {
            named.extend([lit(format!("c{at}")), part.clone()]);
        }
        let call = Call {
            name,
            keys,
            between: None,
        };
        (special(STRUCT)?.call(named), call)
    };
    // It is of a type that the function knows.
    argument.get_type(schema)?;
    let gathered = Expr::AggregateFunction(AggregateFunction::new_udf(
        array_agg_udaf(),
        vec![argument],
        params.distinct,
        params.filter.clone(),
        Vec::new(),
        params.null_treatment,
    ));
    Ok(Some(Sorted { gathered, call }))
}

/// Whether a value is of a type whose arrays are sorted.
fn has_order(value: &Expr, schema: &DFSchema) -> Result<bool> {
    use DataType::{Boolean, Date32, FixedSizeBinary, Time32, Time64, Timestamp};
    let ty = value.get_type(schema)?;
    let is_moment = matches!(ty, Date32 | Time32(_) | Time64(_) | Timestamp(..));
    let is_other = matches!(ty, Boolean | FixedSizeBinary(_));
    Ok(ty.is_numeric() || ty.is_string() || is_moment || is_other)
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_constant(&cast.expr),
        expr => matches!(expr, Expr::Literal(..)),
    }
}

/// A value without casts from texts to texts, which only change how they lie in memory.
fn bare<'e>(expr: &'e Expr, schema: &DFSchema) -> &'e Expr {
    match expr {
        Expr::Cast(cast)
            if cast.field.data_type().is_string()
                && cast.expr.get_type(schema).is_ok_and(|ty| ty.is_string()) =>
        {
            bare(&cast.expr, schema)
        }
        expr => expr,
    }
}
