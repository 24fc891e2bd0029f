//! Several sums of one number plus different constants, from a single sum: `sum(a + 3)` is `sum(a) + 3 * count(a)`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{Column, Result, ScalarValue};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection, lit};
use datafusion_functions_aggregate::expr_fn::count;

use crate::functions::sum::sum_of;
use crate::optimize::checked::operands;
use crate::optimize::each_node::EachNode;

/// What the rule is called.
pub(crate) const NAME: &str = "sums_of_one";

/// The optimizer rule.
pub(crate) const RULE: EachNode = EachNode {
    name: NAME,
    rewritten: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => rewritten(aggregate),
        _ => Ok(None),
    },
};

/// Bound on constants: with it, sums and products for 32-bit numbers of as many rows as a table can have fit 64 bits.
const MOST: i64 = 1 << 31;

/// `a` and `c`, if `expr` is `sum(a + c)` where `a` is a number of at most 32 bits, cast to 64 bits.
fn shifted<'e>(expr: &'e Expr, aggregate: &Aggregate) -> Option<(&'e Expr, i64)> {
    let expr = match expr {
        // An alias keeps the name that it had before its arithmetic was checked.
        Expr::Alias(alias) => &alias.expr,
        expr => expr,
    };
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else {
        return None;
    };
    let plain = !params.distinct && params.filter.is_none() && params.order_by.is_empty();
    let ([arg], "sum", true) = (&params.args[..], func.name(), plain) else {
        return None;
    };
    let (number, constant) = match operands(arg) {
        Some(("+", a, Expr::Literal(ScalarValue::Int64(Some(c)), _)))
        | Some(("+", Expr::Literal(ScalarValue::Int64(Some(c)), _), a)) => (a, *c),
        Some(("-", a, Expr::Literal(ScalarValue::Int64(Some(c)), _))) => (a, c.checked_neg()?),
        Some(_) => return None,
        None => (arg, 0),
    };
    let Expr::Cast(cast) = number else {
        return None;
    };
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
    let from = cast.expr.get_type(aggregate.input.schema()).ok()?;
    let narrow = matches!(from, Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32);
    let wide = number.get_type(aggregate.input.schema()).ok()? == Int64;
    (narrow && wide && (-MOST..MOST).contains(&constant)).then_some((number, constant))
}

/// The name of an aggregate from which others are computed.
fn part(place: usize) -> String {
    format!("part {place} of sums")
}

/// `aggregate` with fewer sums and a projection above it; `None` if no two sums share a number.
fn rewritten(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let found: Vec<_> = aggregate
        .aggr_expr
        .iter()
        .map(|e| shifted(e, aggregate))
        .collect();
    let mut times: HashMap<&Expr, (usize, bool)> = HashMap::new();
    for (number, constant) in found.iter().flatten() {
        let (times, shifts) = times.entry(*number).or_default();
        *times += 1;
        *shifts |= *constant != 0;
    }
    let gains = |number: &Expr| {
        times
            .get(number)
            .is_some_and(|(times, shifts)| *times > 1 && *shifts)
    };
    if !found.iter().flatten().any(|(number, _)| gains(number)) {
        return Ok(None);
    }
    let mut left: Vec<Expr> = vec![];
    // Adds an aggregate unless it is there already; returns its column. Compares expressions because names leave casts
    // out.
    let mut column = |expr: Expr| {
        let known = left.iter().position(|other| *other == expr);
        let place = known.unwrap_or(left.len());
        if known.is_none() {
            left.push(expr);
        }
        Expr::Column(Column::new_unqualified(part(place)))
    };
    let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let fields = aggregate.schema.iter().map(Column::from).map(Expr::Column);
    let mut given: Vec<Expr> = fields.take(groups).collect();
    for (position, (expr, found)) in aggregate.aggr_expr.iter().zip(&found).enumerate() {
        let name = aggregate.schema.field(groups + position).name();
        given.push(match found {
            Some((number, constant)) if gains(number) => {
                let all = column(sum_of((*number).clone()));
                let counted = match number {
                    Expr::Cast(cast) => (*cast.expr).clone(),
                    number => (*number).clone(),
                };
                let sum = match constant {
                    0 => all,
                    _ => all + lit(*constant) * column(count(counted)),
                };
                sum.alias(name)
            }
            _ => column(expr.clone().unalias()).alias(name),
        });
    }
    let input = aggregate.input.clone();
    let left = left.into_iter().enumerate();
    let left = left.map(|(place, expr)| expr.alias(part(place))).collect();
    let inner = Aggregate::try_new(input, aggregate.group_expr.clone(), left)?;
    let inner = Arc::new(LogicalPlan::Aggregate(inner));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(
        given, inner,
    )?)))
}
