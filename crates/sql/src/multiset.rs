//! `intersect all` and `except all`, which count how often a row comes.
//!
//! DataFusion plans both as joins that keep a row of the left side, or drop it, if there is an equal one on the right,
//! however often either has it. A row that comes three times on the left and twice on the right is to be kept twice by
//! `intersect all` and once by `except all`. So equal rows are numbered on both sides, and the joins get the number as
//! one key more: the third of the left finds no third on the right.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};
use datafusion::optimizer::AnalyzerRule;

/// The number of a row among those equal to it, on either side.
const MINE: &str = "number of the row";
const THEIRS: &str = "number of the other row";

/// The analyzer rule; it must see the joins as the planner made them.
#[derive(Debug)]
pub(crate) struct Multisets;

impl AnalyzerRule for Multisets {
    fn name(&self) -> &str {
        "multisets"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(numbered)?.data)
    }
}

fn numbered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if counts(&join) => Ok(Transformed::yes(by_number(join)?)),
        plan => Ok(Transformed::no(plan)),
    }
}

/// Whether `join` is an `intersect` or `except` whose left side may have equal rows. No other join takes NULL for
/// equal to NULL before plans are optimised.
fn counts(join: &Join) -> bool {
    let set = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull;
    set && !matches!(*join.left, LogicalPlan::Distinct(Distinct::All(_)))
}

fn by_number(join: Join) -> Result<LogicalPlan> {
    let schema = Arc::clone(join.left.schema());
    let (mine, theirs): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let left = with_number(&join.left, mine, MINE)?;
    let right = with_number(&join.right, theirs, THEIRS)?;
    let mut on = join.on.clone();
    on.push((
        Expr::Column(Column::new_unqualified(MINE)),
        Expr::Column(Column::new_unqualified(THEIRS)),
    ));
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    // Without the number.
    let columns = schema.columns().into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(LogicalPlan::Join(join))
        .project(columns)?
        .build()
}

/// The rows of `input` and, as the column `name`, the how manyeth each is of those that are equal in `keys`.
fn with_number(input: &LogicalPlan, keys: Vec<Expr>, name: &str) -> Result<LogicalPlan> {
    let number = row_number().partition_by(keys).build()?;
    let given = input.schema().columns();
    let windowed = LogicalPlanBuilder::from(input.clone())
        .window(vec![number])?
        .build()?;
    let last = windowed.schema().fields().len() - 1;
    let (qualifier, field) = windowed.schema().qualified_field(last);
    let number = Expr::Column(Column::from((qualifier, field))).alias(name);
    let columns = given.into_iter().map(Expr::Column).chain([number]);
    LogicalPlanBuilder::from(windowed).project(columns)?.build()
}
