//! Subqueries that depend on the row outside, at any depth and below any node, as joins.
//!
//! Neumann and Kemper, "Unnesting arbitrary queries" (BTW 2015): a subquery that names columns of the query around it
//! is a function of their values. Its *domain* is the table of those values, each once. The *dependent join* of the
//! domain with the subquery, which holds the rows of the subquery for each of its rows, is pushed down through the
//! nodes of the subquery ([`push`]) until nothing below depends on it, where it is a cross join. What is left is a
//! plain table, which is joined to the rows outside by the values that it was made for.
//!
//! DataFusion turns the simple cases into joins without a domain, which is cheaper;
//! [`correlated`](crate::optimize::correlated) tells which they are. Where a subquery in `from` makes its rows of the row outside
//! alone, that row [takes the place](of_each_row) of the domain's.

pub(crate) mod lateral;
mod limit;
mod push;

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::{Column, DFSchema, ExprSchema};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit};

use crate::error::Error;
use crate::optimize::correlated;
use crate::optimize::outer::outer_columns;

/// A subquery for all rows of its outer query at once: its rows, each with the values of the outer columns that it
/// was made for.
#[derive(Debug)]
pub(crate) struct Unnested {
    pub plan: LogicalPlan,
    /// The columns of the outer query that the subquery names.
    pub outer: Vec<Column>,
    /// Their values in `plan`, in the same order.
    pub values: Vec<Column>,
}

/// The rows of `subquery` for all rows of `outer`. Columns of queries further outside stay as they are.
///
/// # Errors
/// If `outer` may have other rows each time it runs, or for a node that is not pushed through.
pub(crate) fn unnested(
    subquery: &LogicalPlan,
    outer: &LogicalPlan,
    names: &AliasGenerator,
) -> Result<Unnested> {
    let mut columns = outer_columns(subquery);
    columns.retain(|column| outer.schema().has_column(column));
    if columns.is_empty() {
        // It depends on rows further outside only: there is one set for all rows here.
        return Ok(Unnested {
            plan: subquery.clone(),
            outer: columns,
            values: Vec::new(),
        });
    }
    if !correlated::is_repeatable(outer) {
        return Err(Error::unsupported(
            "not supported: a subquery that depends on rows which may be others each time (a `limit` without order, `random()`)",
        )
        .into());
    }
    let domain = Domain {
        plan: distinct(outer.clone(), &columns)?,
        outer: columns,
        names,
    };
    let pushed = domain.push(subquery)?;
    Ok(Unnested {
        plan: pushed.plan,
        outer: domain.outer,
        values: pushed.values,
    })
}

/// The rows of `subquery` for each row of `outer`, with all columns of `outer` as their values: of a subquery that makes them of
/// that row alone, as `unnest` of an array in it does. There is neither a domain nor a join then, and what is asked of the rows of
/// `outer` is asked before. None of other subqueries.
///
/// # Errors
/// Those of building plans.
pub(crate) fn of_each_row(
    subquery: &LogicalPlan,
    outer: &LogicalPlan,
    names: &AliasGenerator,
) -> Result<Option<Unnested>> {
    let named = outer_columns(subquery);
    let depends = named.iter().any(|c| outer.schema().has_column(c));
    if !depends || !makes_rows(subquery) {
        return Ok(None);
    }
    let domain = Domain {
        plan: outer.clone(),
        outer: outer.schema().columns(),
        names,
    };
    let pushed = domain.push(subquery)?;
    Ok(Some(Unnested {
        plan: pushed.plan,
        outer: domain.outer,
        values: pushed.values,
    }))
}

/// Whether a plan makes its rows of one row without columns, each for itself.
fn makes_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::EmptyRelation(empty) => {
            empty.produce_one_row && empty.schema.fields().is_empty()
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Unnest(_) => plan.inputs().into_iter().all(makes_rows),
        _ => false,
    }
}

fn distinct(outer: LogicalPlan, columns: &[Column]) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(outer)
        .project(columns.iter().cloned().map(Expr::Column))?
        .distinct()?
        .build()
}

impl Unnested {
    /// The condition that a row outside and a row of `plan`, of which a table `name` was made, belong together.
    pub(crate) fn belongs(&self, outer: &DFSchema, name: &str) -> Result<Expr> {
        let mut conditions = Vec::with_capacity(self.outer.len());
        for (column, value) in self.outer.iter().zip(&self.values) {
            let value = Column::new(Some(name), value.name.as_str());
            let nullable = outer.field_from_column(column)?.is_nullable();
            conditions.push(same(column.clone(), value, nullable));
        }
        Ok(conjunction(conditions).unwrap_or(lit(true)))
    }
}

/// Whether two columns have the same value, NULL included.
fn same(left: Column, right: Column, nullable: bool) -> Expr {
    let equal = if nullable {
        Operator::IsNotDistinctFrom
    } else {
        Operator::Eq
    };
    binary_expr(Expr::Column(left), equal, Expr::Column(right))
}

/// The values of outer columns that a subquery is made for.
struct Domain<'n> {
    /// Each combination of the values of `outer` once.
    plan: LogicalPlan,
    outer: Vec<Column>,
    names: &'n AliasGenerator,
}

/// A node with the domain's values beside its own columns.
struct Pushed {
    plan: LogicalPlan,
    values: Vec<Column>,
}

impl Domain<'_> {
    /// The domain under names that no other plan has.
    fn fresh(&self) -> Result<Pushed> {
        let name = self.names.next("__domain");
        let columns = self.outer.iter().enumerate();
        let renamed = columns.map(|(i, c)| Expr::Column(c.clone()).alias(format!("{name}_{i}")));
        let plan = LogicalPlanBuilder::from(self.plan.clone())
            .project(renamed)?
            .alias(name.as_str())?
            .build()?;
        let values = plan.schema().columns();
        Ok(Pushed { plan, values })
    }

    /// The domain beside `plan`, which does not depend on it.
    fn beside(&self, plan: &LogicalPlan) -> Result<Pushed> {
        let Pushed {
            plan: domain,
            values,
        } = self.fresh()?;
        let plan = LogicalPlanBuilder::from(domain)
            .cross_join(plan.clone())?
            .build()?;
        Ok(Pushed { plan, values })
    }

    fn depends(&self, plan: &LogicalPlan) -> bool {
        outer_columns(plan).iter().any(|c| self.outer.contains(c))
    }
}

/// `plan` with an additional constant column, which is NULL where an outer join finds nothing.
fn marked(plan: LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let mut columns: Vec<Expr> = plan
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    columns.push(lit(true).alias(name));
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn shared(plan: LogicalPlan) -> Arc<LogicalPlan> {
    Arc::new(plan)
}
