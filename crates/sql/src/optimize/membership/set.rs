//! Sets that subqueries are, with the names of their columns.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, Subquery, lit, when};
use datafusion_optimizer::decorrelate::PullUpCorrelatedExpr;

use crate::error::Error;
use crate::functions::single::single;
use crate::optimize::correlated::Place;
use crate::optimize::outer;

/// Names of the only column of a subquery, and of aggregates over its values.
pub(super) const VALUE: &str = "value of the set";
pub(super) const ROWS: &str = "rows of the set";
pub(super) const KNOWN: &str = "known values of the set";
pub(super) const LEAST: &str = "least of the set";
pub(super) const GREATEST: &str = "greatest of the set";
pub(super) const TRUE: &str = "values it is true of";

/// The values of `subquery`, and its conditions that name columns outside. The set is to be `name`d.
pub(super) fn pulled_up(
    subquery: &Subquery,
    place: Place,
    name: &str,
) -> Result<(LogicalPlan, Vec<Expr>)> {
    let set = values(subquery)?;
    if !outer::depends(&set) {
        return Ok((set, Vec::new()));
    }
    let mut pull = PullUpCorrelatedExpr::new().with_exists_sub_query(place == Place::Exists);
    let set = set.rewrite(&mut pull).data()?;
    let own = |c: &Column| {
        let mut columns = pull.correlated_subquery_cols_map.values();
        columns.any(|columns| columns.contains(c))
    };
    let conditions = pull.join_filters.iter();
    let conditions = conditions.map(|filter| renamed(filter.clone(), &own, name));
    Ok((set, conditions.collect::<Result<_>>()?))
}

/// A relation without columns, of one row or none.
pub(super) fn nothing(produce_one_row: bool) -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation {
        produce_one_row,
        schema: Arc::new(DFSchema::empty()),
    })
}

pub(super) fn column(table: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(table), name))
}

/// The value of a row of a set.
pub(super) fn value() -> Expr {
    Expr::Column(Column::new_unqualified(VALUE))
}

/// `expr` with the columns that are `own` as columns of the table `name`.
pub(super) fn renamed(expr: Expr, own: &dyn Fn(&Column) -> bool, name: &str) -> Result<Expr> {
    expr.transform(|e| match e {
        Expr::Column(c) if own(&c) => Ok(Transformed::yes(column(name, &c.name))),
        e => Ok(Transformed::no(e)),
    })
    .data()
}

/// The rows of a subquery with their only column named [`VALUE`].
pub(super) fn values(subquery: &Subquery) -> Result<LogicalPlan> {
    let plan = subquery.subquery.as_ref().clone();
    let first = Column::from(plan.schema().qualified_field(0));
    LogicalPlanBuilder::from(plan)
        .project([Expr::Column(first).alias(VALUE)])?
        .build()
}

/// True where `found`; otherwise false for a set without rows, NULL if `mine` or a value of the set is NULL, else
/// false.
pub(super) fn three_valued(found: Expr, mine: Expr, name: &str) -> Result<Expr> {
    let unknown = mine
        .is_null()
        .or(column(name, KNOWN).lt(column(name, ROWS)));
    when(found, lit(true))
        .when(column(name, ROWS).eq(lit(0i64)), lit(false))
        .when(unknown, lit(ScalarValue::Boolean(None)))
        .otherwise(lit(false))
}

/// `subquery` with its only row; NULL if it has none, and an error if it has more.
pub(super) fn only_row(subquery: Subquery) -> Result<Subquery> {
    let plan = subquery.subquery.as_ref().clone();
    let (qualifier, field) = plan.schema().qualified_field(0);
    let name = field.name().clone();
    let value = Expr::Column(Column::from((qualifier, field)));
    let plan = LogicalPlanBuilder::from(plan)
        .aggregate(Vec::<Expr>::new(), [single(value).alias(name)])?
        .build()?;
    Ok(Subquery {
        subquery: Arc::new(plan),
        ..subquery
    })
}

/// These columns of `plan`.
pub(super) fn only(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    let columns = columns.into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The error for a subquery in a place that is not done.
pub(super) fn unsupported(what: &str) -> Error {
    Error::unsupported(format!(
        "not supported: `in`, `exists`, `any` or `all` over a subquery {what}"
    ))
}
