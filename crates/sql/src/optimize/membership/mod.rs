//! `in`, `exists`, `any` and `all` over subqueries, in three-valued logic and wherever an expression may stand, and
//! subqueries as values that depend on the row outside.
//!
//! DataFusion turns `in` and `exists` into joins where they filter rows. Used as values it takes NULL for false, and in
//! other places it does not support them; nor does it all subqueries that [depend](crate::optimize::unnest) on rows
//! outside. [`Memberships`] turns all others into joins before DataFusion sees them. A
//! comparison with `any` row of a set is
//!
//! * true if it is true for at least one row,
//! * otherwise NULL if it is NULL for at least one row: the left side is NULL and there are rows, or a row is NULL,
//! * otherwise false; so also for a NULL and a set without rows.
//!
//! A comparison with `all` rows is the negation of the opposite comparison with `any`. For a set that does not depend
//! on the row outside it suffices to know how many rows it has, how many of them are not NULL, the least and the
//! greatest; for `=` the value is looked up. For a set that does, two mark joins find the rows for which the
//! comparison is true, and for which it is NULL, at least once.

mod below;
mod find;
mod set;

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Column, JoinType};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    Expr, Join, LogicalPlan, LogicalPlanBuilder, Projection, Sort, SortExpr, lit,
};
use datafusion_optimizer::AnalyzerRule;

use crate::optimize::as_of::written;
use crate::optimize::correlated;
use crate::optimize::correlated::Place;
use crate::optimize::membership::below::Below;
use crate::optimize::membership::find::{has_dependent, has_member, has_subquery};
use crate::optimize::membership::set::{only, unsupported};
use crate::optimize::outer;
use crate::optimize::unnest::lateral;

/// The analyzer rule; it must come after type coercion, which makes both sides of a comparison of one type.
#[derive(Debug)]
pub(crate) struct Memberships;

impl AnalyzerRule for Memberships {
    fn name(&self) -> &str {
        "memberships"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let names = AliasGenerator::new();
        let plan = plan.transform_down_with_subqueries(lateral::filtered_before)?;
        plan.data
            .transform_up_with_subqueries(|node| rewritten(node, &names))
            .data()
    }
}

/// `node` with the first row of a subquery that stands for a value in place of its rows: NULL if there is none, and an
/// error if there is a second. DataFusion takes a value that is never NULL in a row for one that is never NULL.
fn with_single_rows(node: LogicalPlan) -> Result<LogicalPlan> {
    let is_sound = |plan: &LogicalPlan| {
        let may_be_null = plan.schema().field(0).is_nullable();
        correlated::is_one_row(plan) || correlated::is_single(plan) && may_be_null
    };
    let is_loose = |plan: &LogicalPlan| !outer::depends(plan) && !is_sound(plan);
    let single = node.map_expressions(|expr| {
        expr.transform(|e| match e {
            Expr::ScalarSubquery(subquery) if is_loose(&subquery.subquery) => Ok(Transformed::yes(
                Expr::ScalarSubquery(set::only_row(subquery)?),
            )),
            e => Ok(Transformed::no(e)),
        })
    })?;
    if single.transformed {
        single.data.recompute_schema()
    } else {
        Ok(single.data)
    }
}

fn rewritten(node: LogicalPlan, names: &AliasGenerator) -> Result<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::Join(join) if is_lateral_for_us(&join)? => {
            let node = lateral::unnested(join, names)?;
            return Ok(Transformed::yes(node));
        }
        LogicalPlan::Join(join) => match written::joined(&join, names)? {
            Some(node) => return Ok(Transformed::yes(node)),
            None => LogicalPlan::Join(join),
        },
        node => node,
    };
    if !has_subquery(&node) {
        return Ok(Transformed::no(node));
    }
    let node = with_single_rows(node)?;
    let exprs = node.expressions();
    if !exprs.iter().any(|e| has_member(e) || has_dependent(e)) {
        return Ok(Transformed::no(node));
    }
    if let LogicalPlan::Sort(sort) = &node
        && let LogicalPlan::Projection(projection) = sort.input.as_ref()
        && exprs.iter().any(has_dependent)
    {
        return Ok(Transformed::yes(sorted(sort, projection, names)?));
    }
    if let LogicalPlan::Filter(filter) = node {
        let input = Arc::unwrap_or_clone(filter.input);
        return chosen(filter.predicate, input, names);
    }
    if let LogicalPlan::Join(mut join) = node {
        if join.join_type != JoinType::Inner {
            return Err(unsupported("in the condition of an outer join").into());
        }
        // An inner join keeps the pairs for which its condition is true.
        let condition = join.filter.take();
        let plan = LogicalPlan::Join(join);
        return chosen(condition.unwrap_or(lit(true)), plan, names);
    }
    let [input] = node.inputs()[..] else {
        return Err(unsupported("in this place").into());
    };
    let mut below = Below::new(input.clone(), names);
    below.values_are_left = matches!(node, LogicalPlan::Projection(_));
    if below.values_are_left && !exprs.iter().any(has_member) && below.leaves(&exprs)? {
        return Ok(Transformed::no(node));
    }
    let preserver = NamePreserver::new(&node);
    let mut values = Vec::with_capacity(exprs.len());
    for expr in exprs {
        let name = preserver.save(&expr);
        values.push(name.restore(below.value(expr)?));
    }
    let columns = node.schema().columns();
    let above = node.with_new_exprs(values, vec![below.input])?;
    if above.schema().fields().len() == columns.len() {
        Ok(Transformed::yes(above))
    } else {
        Ok(Transformed::yes(only(above, columns)?))
    }
}

/// `sort`, whose keys have subqueries that may depend on columns which `projection` below leaves out: they become
/// columns of it.
fn sorted(sort: &Sort, projection: &Projection, names: &AliasGenerator) -> Result<LogicalPlan> {
    let columns = projection.schema.columns();
    let mut exprs = projection.expr.clone();
    let mut keys = Vec::with_capacity(sort.expr.len());
    for key in &sort.expr {
        let expr = key.expr.clone().transform(|e| {
            if !matches!(e, Expr::ScalarSubquery(_)) {
                return Ok(Transformed::no(e));
            }
            let name = names.next("__key");
            exprs.push(e.alias(name.as_str()));
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(
                name,
            ))))
        });
        keys.push(SortExpr::new(expr.data()?, key.asc, key.nulls_first));
    }
    let below = Projection::try_new(exprs, Arc::clone(&projection.input))?;
    let below = rewritten(LogicalPlan::Projection(below), names)?.data;
    let sorted = LogicalPlan::Sort(Sort {
        expr: keys,
        input: Arc::new(below),
        fetch: sort.fetch,
    });
    only(rewritten(sorted, names)?.data, columns)
}

/// Whether `join` has a lateral subquery that DataFusion does not make a join of.
fn is_lateral_for_us(join: &Join) -> Result<bool> {
    let Some((subquery, _)) = outer::lateral(&join.right) else {
        return Ok(false);
    };
    Ok(!correlated::is_join(
        subquery,
        Place::Scalar,
        join.left.schema(),
    )?)
}

/// The rows of `input` for which `predicate` is true.
fn chosen(
    predicate: Expr,
    input: LogicalPlan,
    names: &AliasGenerator,
) -> Result<Transformed<LogicalPlan>> {
    let columns = input.schema().columns();
    let mut below = Below::new(input, names);
    below.values_are_left = true;
    let (mut plain, mut left, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for part in split_conjunction_owned(predicate.clone()) {
        if !has_member(&part) && !has_dependent(&part) && !part.is_volatile() {
            plain.push(part);
        } else if below.is_for_datafusion(&part)? {
            left.push(part);
        } else {
            ours.push(part);
        }
    }
    if ours.is_empty() {
        let plan = LogicalPlanBuilder::from(below.input)
            .filter(predicate)?
            .build()?;
        return Ok(Transformed::no(plan));
    }
    // First what needs no subquery: these are made for fewer rows then.
    if let Some(plain) = conjunction(plain) {
        let plan = LogicalPlanBuilder::from(below.input)
            .filter(plain)?
            .build()?;
        below = Below::new(plan, names);
        below.values_are_left = true;
    }
    for part in ours {
        left.push(below.value(part)?);
    }
    let plan = LogicalPlanBuilder::from(below.input);
    let plan = match conjunction(left) {
        Some(predicate) => plan.filter(predicate)?.build()?,
        None => plan.build()?,
    };
    Ok(Transformed::yes(only(plan, columns)?))
}
