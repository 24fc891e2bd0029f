//! `lateral` subqueries in `from`.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, ExprSchema, JoinType};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit,
};

use crate::error::Error;
use crate::optimize::as_of::{AsOf, right_columns};
use crate::optimize::outer;
use crate::optimize::unnest::{self, Unnested};

/// `join`, whose right side is a lateral subquery, as a join with a plain table.
///
/// # Errors
/// If it is an outer join that keeps rows of the subquery, or the subquery cannot be unnested.
pub(crate) fn unnested(join: Join, names: &AliasGenerator) -> Result<LogicalPlan> {
    let Some((subquery, alias)) = outer::lateral(&join.right) else {
        return Ok(LogicalPlan::Join(join));
    };
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Err(Error::coded(
            "42P10",
            "the combining join type must be INNER or LEFT for a LATERAL reference",
        )
        .into());
    }
    if join.join_type == JoinType::Inner
        && let Some(made) = unnest::of_each_row(&subquery.subquery, &join.left, names)?
    {
        let own = subquery.subquery.schema().columns();
        return each_row(&join, made, &own);
    }
    let is_plain = join.on.is_empty() && join.filter.iter().all(|e| *e == lit(true));
    if is_plain && let Some(found) = AsOf::of(&subquery.subquery, join.left.schema(), names)? {
        let left = join.left.as_ref().clone();
        return found.joined(left, join.join_type, &right_columns(&join));
    }
    let columns = join.schema.columns();
    let own = subquery.subquery.schema().columns();
    let made = unnest::unnested(&subquery.subquery, &join.left, names)?;
    let name = names.next("__lateral");
    let (mut exprs, mut conditions) = (Vec::new(), Vec::new());
    for (i, value) in made.values.iter().enumerate() {
        exprs.push(Expr::Column(value.clone()).alias(format!("{name}_{i}")));
    }
    exprs.extend(own.into_iter().map(Expr::Column));
    let right = LogicalPlanBuilder::from(made.plan).project(exprs)?;
    let right = match alias {
        Some(alias) => right.alias(alias.clone())?.build()?,
        None => right.build()?,
    };
    for (i, column) in made.outer.iter().enumerate() {
        let value = Column::new(alias.cloned(), format!("{name}_{i}"));
        let nullable = join.left.schema().field_from_column(column)?.is_nullable();
        conditions.push(unnest::same(column.clone(), value, nullable));
    }
    let on = join.on.into_iter();
    conditions.extend(on.map(|(l, r)| binary_expr(l, Operator::Eq, r)));
    conditions.extend(join.filter);
    LogicalPlanBuilder::from(join.left.as_ref().clone())
        .join_on(right, join.join_type, conditions)?
        .project(columns.into_iter().map(Expr::Column))?
        .build()
}

/// The inner `join` with a subquery that was `made` of each row of its left side, and has these columns of its `own`.
fn each_row(join: &Join, made: Unnested, own: &[Column]) -> Result<LogicalPlan> {
    let made_of = made.values.iter().chain(own);
    let named = join.schema.columns().into_iter().zip(made_of);
    let columns = named.map(|(wanted, column)| {
        Expr::Column(column.clone()).alias_qualified(wanted.relation, wanted.name)
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(made.plan).project(columns)?;
    let on = join.on.iter().cloned();
    let mut conditions: Vec<Expr> = on.map(|(l, r)| binary_expr(l, Operator::Eq, r)).collect();
    conditions.extend(join.filter.clone());
    match conjunction(conditions) {
        Some(condition) => plan.filter(condition)?.build(),
        None => plan.build(),
    }
}

/// `node` with the conditions of a filter on a join with a lateral subquery below the join, where they are of rows of the other
/// side alone: the subquery is unnested for the rows that are left, and filters do not get there later.
///
/// # Errors
/// None: the conditions are of columns that are there.
pub(crate) fn filtered_before(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &node else {
        return Ok(Transformed::no(node));
    };
    let LogicalPlan::Join(join) = filter.input.as_ref() else {
        return Ok(Transformed::no(node));
    };
    let is_lateral = outer::lateral(&join.right).is_some();
    if !is_lateral || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Ok(Transformed::no(node));
    }
    let all = split_conjunction_owned(filter.predicate.clone());
    let (own, others): (Vec<Expr>, Vec<Expr>) = all
        .into_iter()
        .partition(|condition| is_of(condition, join.left.schema()));
    let Some(own) = conjunction(own) else {
        return Ok(Transformed::no(node));
    };
    let mut join = join.clone();
    let left = Filter::try_new(own, join.left)?;
    join.left = Arc::new(LogicalPlan::Filter(left));
    let join = LogicalPlan::Join(join);
    Ok(Transformed::yes(match conjunction(others) {
        Some(others) => LogicalPlan::Filter(Filter::try_new(others, Arc::new(join))?),
        None => join,
    }))
}

/// Whether a condition reads nothing but columns of a side of a join.
fn is_of(condition: &Expr, side: &DFSchema) -> bool {
    let is_other = |e: &Expr| {
        Ok(match e {
            Expr::Column(column) => !side.has_column(column),
            Expr::OuterReferenceColumn(..)
            | Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_) => true,
            e => e.is_volatile_node(),
        })
    };
    // The closure does not fail.
    !condition.exists(is_other).unwrap_or(true)
}
