//! `intersect` and `except`: the types of their columns, and how often a row occurs.
//!
//! Columns must have the types that a union of both sides would have ([`SidesAgree`]). DataFusion leaves them those of
//! the left side, which changes the result of a later division.
//!
//! DataFusion plans `intersect all` and `except all` as semi and anti joins, which keep or drop a row of the left side
//! if the right side has an equal one, however often either has it. A row that occurs three times on the left and
//! twice on the right must be kept twice by `intersect all` and once by `except all`. So [`Multisets`] numbers equal
//! rows on both sides and adds the number to the keys of the join: the third row on the left finds no third on the
//! right.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{Column, NullEquality, Result, plan_err};
use datafusion_expr::type_coercion::binary::type_union_coercion;
use datafusion_expr::{
    Cast, Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};
use datafusion_functions_window::expr_fn::row_number;
use datafusion_optimizer::AnalyzerRule;

use crate::functions::number_types::united;

/// Names of the columns with the number of a row among its equals, on the left and on the right.
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

/// Whether `join` is an `intersect` or `except`. Before plans are optimised no other join takes NULL as equal to NULL.
pub(super) fn is_set(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
}

/// Whether `join` is an `intersect` or `except` whose left side may have equal rows.
fn counts(join: &Join) -> bool {
    is_set(join) && !matches!(*join.left, LogicalPlan::Distinct(Distinct::All(_)))
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

/// The rows of `input` with a last column `name`: the number of each row among those with the same `keys`.
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

/// The analyzer rule that gives both sides of `intersect` and `except` the same types. It must come before types are
/// made to agree in expressions, which may be of these columns.
#[derive(Debug)]
pub(crate) struct SidesAgree;

impl AnalyzerRule for SidesAgree {
    fn name(&self) -> &str {
        "sides_agree"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut differ = false;
        plan.apply_with_subqueries(|plan| {
            differ |= matches!(plan, LogicalPlan::Join(join) if is_set(join) && sides_differ(join));
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !differ {
            return Ok(plan);
        }
        // Nodes above a changed column must learn its type.
        let node = |plan: LogicalPlan| match plan {
            LogicalPlan::Join(join) if is_set(&join) && sides_differ(&join) => {
                Ok(Transformed::yes(LogicalPlan::Join(agreed(join)?)))
            }
            plan => Ok(Transformed::yes(plan.recompute_schema()?)),
        };
        Ok(plan.transform_up_with_subqueries(node)?.data)
    }
}

fn sides_differ(join: &Join) -> bool {
    types(&join.left) != types(&join.right)
}

/// The types of the columns of `plan`, also of unions whose sides have not been made to agree yet.
fn types(plan: &LogicalPlan) -> Vec<DataType> {
    let plain = || {
        let fields = plan.schema().fields().iter();
        fields.map(|field| field.data_type().clone()).collect()
    };
    match plan {
        LogicalPlan::Union(union) => union
            .inputs
            .iter()
            .map(|input| types(input))
            .reduce(|left, right| common(&left, &right).unwrap_or(left))
            .unwrap_or_else(plain),
        LogicalPlan::Distinct(Distinct::All(input)) => types(input),
        LogicalPlan::SubqueryAlias(alias) => types(&alias.input),
        _ => plain(),
    }
}

/// The types that hold the values of both sides, if there are any.
fn common(left: &[DataType], right: &[DataType]) -> Option<Vec<DataType>> {
    let pairs = left.iter().zip(right);
    pairs.map(|(l, r)| of_both(l, r)).collect()
}

fn of_both(left: &DataType, right: &DataType) -> Option<DataType> {
    united([left, right]).or_else(|| type_union_coercion(left, right))
}

fn agreed(join: Join) -> Result<Join> {
    let (left, right) = (types(&join.left), types(&join.right));
    let Some(types) = common(&left, &right) else {
        let differ = left.iter().zip(&right);
        let mut differ = differ.filter(|(l, r)| of_both(l, r).is_none());
        return match differ.next() {
            Some((l, r)) => plan_err!("`intersect` and `except` cannot compare {l} with {r}"),
            None => Ok(join),
        };
    };
    Join::try_new(
        Arc::new(with_types(&join.left, &types)?),
        Arc::new(with_types(&join.right, &types)?),
        join.on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )
}

/// `plan` with its columns cast to `types`, below a `distinct` if there is one.
fn with_types(plan: &LogicalPlan, types: &[DataType]) -> Result<LogicalPlan> {
    if let LogicalPlan::Distinct(Distinct::All(input)) = plan {
        let input = Arc::new(with_types(input, types)?);
        return Ok(LogicalPlan::Distinct(Distinct::All(input)));
    }
    let columns = plan.schema().iter().zip(types).map(|((of, field), to)| {
        let column = Expr::from((of, field));
        if field.data_type() == to {
            column
        } else {
            Expr::Cast(Cast::new(Box::new(column), to.clone()))
                .alias_qualified(of.cloned(), field.name())
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan.clone())
        .project(columns)?
        .build()
}
