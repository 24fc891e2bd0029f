//! `asof join`, which statements write with a mark in the condition, or in the right side if columns are named by `using`.

use datafusion_common::JoinType;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::utils::split_conjunction_owned;
use datafusion_expr::{Expr, Join, LogicalPlan, Operator};

use crate::error::Error;
use crate::functions::lists::names::AS_OF;
use crate::optimize::as_of::{AsOf, Parts, Right, binary, compared, is_unfit, right_columns};

/// `join` as an as-of join, if it is written as one.
///
/// # Errors
/// If its condition is not of an as-of join.
pub(crate) fn joined(join: &Join, names: &AliasGenerator) -> Result<Option<LogicalPlan>> {
    let (right, conditions) = match condition(join) {
        Some(condition) => (
            join.right.as_ref().clone(),
            split_conjunction_owned(condition),
        ),
        None if is_marked(&join.right) => {
            let right = unmarked(&join.right)?;
            (right, by_columns(join))
        }
        None => return Ok(None),
    };
    let is_mixed = !join.on.is_empty() && condition(join).is_some();
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) || is_mixed {
        return Err(unfit("is `asof join` or `asof left join`"));
    }
    let own = Right::of(&right, names)?;
    let mut all = Vec::with_capacity(conditions.len());
    let mut sought = Vec::new();
    for condition in conditions {
        let condition = own.named(&condition)?;
        match compared(condition.clone(), &own) {
            Some((_, Operator::Eq, _)) if !is_unfit(&condition) => {}
            Some((_, _, theirs)) if !is_unfit(&condition) => sought.push(theirs),
            _ => {
                return Err(unfit(
                    "takes equalities and one of `>=`, `>`, `<=` and `<`, each of a value of one side with one of the other",
                ));
            }
        }
        all.push(condition);
    }
    let [of] = &sought[..] else {
        return Err(unfit(
            "takes exactly one of `>=`, `>`, `<=` and `<`, besides equalities",
        ));
    };
    let parts = Parts::of(all, &own, (of.clone(), None), join.left.schema())?;
    let Some(parts) = parts else {
        return Err(unfit(
            "compares numbers of up to 18 digits, dates or times by `>=`, `>`, `<=` or `<`, of one type on both sides",
        ));
    };
    let columns = right.schema().columns();
    let outputs = columns
        .into_iter()
        .map(|column| own.named(&Expr::Column(column)));
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    let made: AsOf = parts.with(own, Vec::new(), outputs)?;
    let left = join.left.as_ref().clone();
    made.joined(left, join.join_type, &right_columns(join))
        .map(Some)
}

fn unfit(what: &str) -> DataFusionError {
    Error::unsupported(format!("not supported: this `asof join`; one {what}")).into()
}

/// The condition of an as-of join without its mark.
fn condition(join: &Join) -> Option<Expr> {
    match join.filter.as_ref()? {
        Expr::ScalarFunction(call) if call.func.name() == AS_OF => call.args.first().cloned(),
        _ => None,
    }
}

/// The conditions of columns that are named by `using`: of the last, the left side has the greater value or the same.
fn by_columns(join: &Join) -> Vec<Expr> {
    let pairs = join.on.iter().cloned();
    let mut all: Vec<Expr> = pairs.map(|(a, b)| binary(a, Operator::Eq, b)).collect();
    all.extend(
        join.filter
            .clone()
            .into_iter()
            .flat_map(split_conjunction_owned),
    );
    if let Some(Expr::BinaryExpr(last)) = all.last_mut() {
        last.op = Operator::GtEq;
    }
    all
}

/// Whether the right side of a join has the mark of an as-of join. Below other relations it is the mark of another join.
fn is_marked(right: &LogicalPlan) -> bool {
    match right {
        LogicalPlan::Filter(filter) => is_mark(&filter.predicate),
        LogicalPlan::SubqueryAlias(alias) => is_marked(&alias.input),
        LogicalPlan::Projection(projection) => is_marked(&projection.input),
        _ => false,
    }
}

/// The right side of a join without its mark.
fn unmarked(right: &LogicalPlan) -> Result<LogicalPlan> {
    let plan = right.clone().transform_down(|node| {
        Ok(match node {
            LogicalPlan::Filter(filter) if is_mark(&filter.predicate) => {
                let input = filter.input.as_ref().clone();
                Transformed::new(input, true, TreeNodeRecursion::Stop)
            }
            node => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

fn is_mark(predicate: &Expr) -> bool {
    matches!(predicate, Expr::ScalarFunction(call) if call.func.name() == AS_OF)
}
