//! The types of the columns of `union`, `intersect` and `except`, which PostgreSQL finds for two sides at a time, from the left: a
//! constant in quotes, or a NULL, that a side selects is of the type of the other side's column, and a text beside another such.
//! Texts go with texts only, and arrays become of the type in which all of their items fit. What else there is, numbers and moments,
//! type coercion unites.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{
    Distinct, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, Union,
};
use syntax::names::INSERTED_ROWS;

use crate::functions::arguments::TEXT;
use crate::functions::convert::conversion;
use crate::functions::lists::types::{is_list, is_special, quoted_beside, together};
use crate::functions::object_kinds::gives_name;
use crate::functions::unknown::{quoted, read_beside};
use crate::messages::types::standard_name;
use crate::optimize::expressions::{cast, is_text};
use crate::optimize::multiset::is_set;

/// `plan` with such types.
///
/// # Errors
/// If two sides have columns that do not go together.
pub(crate) fn typed(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut differ = false;
    plan.apply_with_subqueries(|node| {
        differ |= match node {
            LogicalPlan::Union(union) => {
                let mut sides = union.inputs.iter().map(|input| types(input));
                let first = sides.next().unwrap_or_default();
                first.contains(&DataType::Null) || sides.any(|other| other != first)
            }
            LogicalPlan::Join(join) if is_set(join) => {
                let left = types(&join.left);
                left.contains(&DataType::Null) || left != types(&join.right)
            }
            _ => false,
        };
        Ok(if differ {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    if !differ {
        return Ok(plan);
    }
    Ok(plan.rewrite_with_subqueries(&mut Sides)?.data)
}

fn types(plan: &LogicalPlan) -> Vec<DataType> {
    let fields = plan.schema().fields().iter();
    fields.map(|field| field.data_type().clone()).collect()
}

struct Sides;

impl TreeNodeRewriter for Sides {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        // Rows that are inserted get the types of the table, each by itself.
        let inserted = matches!(&node, LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == INSERTED_ROWS);
        let next = if inserted {
            TreeNodeRecursion::Jump
        } else {
            TreeNodeRecursion::Continue
        };
        Ok(Transformed::new(node, false, next))
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        Ok(Transformed::yes(match node {
            LogicalPlan::Union(union) => of_union(union)?,
            LogicalPlan::Join(join) if is_set(&join) => LogicalPlan::Join(of_join(join)?),
            // Nodes above a changed column must learn its type.
            node => node.recompute_schema()?,
        }))
    }
}

fn of_union(union: Union) -> Result<LogicalPlan> {
    let [left, right] = &union.inputs[..] else {
        return Ok(LogicalPlan::Union(union));
    };
    let (left, right) = agreed(left.as_ref().clone(), right.as_ref().clone(), "UNION")?;
    let inputs = vec![Arc::new(left), Arc::new(right)];
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

fn of_join(join: Join) -> Result<Join> {
    let clause = match join.join_type {
        JoinType::LeftAnti => "EXCEPT",
        _ => "INTERSECT",
    };
    let left = Arc::unwrap_or_clone(join.left);
    let right = Arc::unwrap_or_clone(join.right);
    // That the rows of the left side are distinct is part of these, unless they are of `all`.
    let (left, right) = match left {
        LogicalPlan::Distinct(Distinct::All(rows)) => {
            let (rows, right) = agreed(Arc::unwrap_or_clone(rows), right, clause)?;
            let left = LogicalPlan::Distinct(Distinct::All(Arc::new(rows)));
            (left, right)
        }
        left => agreed(left, right, clause)?,
    };
    Join::try_new(
        Arc::new(left),
        Arc::new(right),
        join.on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )
}

/// Both sides, with columns of types that go together.
fn agreed(
    mut left: LogicalPlan,
    mut right: LogicalPlan,
    clause: &str,
) -> Result<(LogicalPlan, LogicalPlan)> {
    let both = types(&left).into_iter().zip(types(&right));
    for (at, (l, r)) in both.enumerate() {
        let is_null = |ty: &DataType| *ty == DataType::Null;
        if l == r && !is_null(&l) {
            continue;
        }
        match (is_open(&left, at), is_open(&right, at)) {
            // What has no type on either side is a text.
            (true, true) if l == r => {
                left = with_type(left, at, &TEXT)?;
                right = with_type(right, at, &TEXT)?;
            }
            // The type of a NULL is that of a text beside it.
            (true, false) if !is_null(&r) => left = with_type(left, at, &r)?,
            (false, true) if !is_null(&l) => right = with_type(right, at, &l)?,
            (true, true) if is_null(&l) => left = with_type(left, at, &r)?,
            (true, true) if is_null(&r) => right = with_type(right, at, &l)?,
            (false, false) if is_list(&l) && is_list(&r) => {
                let to = together(&[l, r])?;
                left = as_list(left, at, &to)?;
                right = as_list(right, at, &to)?;
            }
            // The number of something is a number, but its name is shown, and so are the numbers beside it.
            (false, false) if is_name(&left, at) || is_name(&right, at) => {
                left = as_text(left, at, &l)?;
                right = as_text(right, at, &r)?;
            }
            (false, false) if is_text(&l) != is_text(&r) && !is_null(&l) && !is_null(&r) => {
                return plan_err!(
                    "{clause} types {} and {} cannot be matched",
                    standard_name(&l),
                    standard_name(&r)
                );
            }
            _ => {}
        }
    }
    Ok((left, right))
}

/// Whether a side selects a constant in quotes, or NULL, as a column: its type is open. Of distinct rows and groups it is not.
fn is_open(plan: &LogicalPlan, at: usize) -> bool {
    selected(plan, at).is_some_and(|expr| {
        let is_null =
            matches!(&expr, Expr::Literal(value, _) if value.data_type() == DataType::Null);
        is_null || quoted(&expr).is_some()
    })
}

/// Whether a side selects the name of a table, of a type or of another such thing.
fn is_name(plan: &LogicalPlan, at: usize) -> bool {
    let mut expr = selected(plan, at);
    loop {
        expr = match expr {
            // Which type the name is shown as.
            Some(Expr::Alias(alias)) => Some(*alias.expr),
            Some(Expr::Cast(cast)) => Some(*cast.expr),
            Some(Expr::ScalarFunction(call)) => return gives_name(call.name()),
            _ => return false,
        }
    }
}

/// What a side selects as a column, without its name.
fn selected(plan: &LogicalPlan, at: usize) -> Option<Expr> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(at)?.clone();
            Some(expr.unalias_nested().data)
        }
        LogicalPlan::Limit(limit) => selected(&limit.input, at),
        LogicalPlan::Sort(sort) => selected(&sort.input, at),
        // The planner gives sides of the same table other names.
        LogicalPlan::SubqueryAlias(alias) => selected(&alias.input, at),
        _ => None,
    }
}

/// The side with its open column `at` of the type `to`, or of one that goes with it.
fn with_type(plan: LogicalPlan, at: usize, to: &DataType) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let (table, field) = projection.schema.qualified_field(at);
            let (table, name) = (table.cloned(), field.name().clone());
            let mut exprs = projection.expr;
            if let Some(expr) = exprs.get_mut(at) {
                let bare = std::mem::take(expr).unalias_nested().data;
                *expr = read(bare, to)?.alias_qualified(table, name);
            }
            Projection::try_new(exprs, projection.input).map(LogicalPlan::Projection)
        }
        plan => {
            let inner = |child: LogicalPlan| Ok(Transformed::yes(with_type(child, at, to)?));
            plan.map_children(inner)?.data.recompute_schema()
        }
    }
}

/// A constant in quotes, or a NULL, as it is read beside values of a type.
fn read(constant: Expr, to: &DataType) -> Result<Expr> {
    if quoted(&constant).is_none() {
        return Ok(cast(constant, to.clone()));
    }
    if !is_special(to) {
        return Ok(read_beside(constant, to));
    }
    let converted = conversion(constant.clone(), &DataType::Utf8, &quoted_beside(to), true)?;
    Ok(converted.unwrap_or(constant))
}

/// A side with texts as its column `at`, which is of the type `from`.
fn as_text(plan: LogicalPlan, at: usize, from: &DataType) -> Result<LogicalPlan> {
    if is_text(from) {
        return Ok(plan);
    }
    let columns = plan
        .schema()
        .iter()
        .enumerate()
        .map(|(own, (table, field))| {
            let column = Expr::from((table, field));
            if own != at {
                return column;
            }
            cast(column, DataType::Utf8View).alias_qualified(table.cloned(), field.name())
        });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// A side with arrays of the type `to` as its column `at`.
fn as_list(plan: LogicalPlan, at: usize, to: &DataType) -> Result<LogicalPlan> {
    let columns = plan
        .schema()
        .iter()
        .enumerate()
        .map(|(own, (table, field))| {
            let column = Expr::from((table, field));
            if own != at || field.data_type() == to {
                return Ok(column);
            }
            let converted = conversion(column.clone(), field.data_type(), to, true)?;
            let list = converted.unwrap_or(column);
            Ok(list.alias_qualified(table.cloned(), field.name()))
        });
    let columns = columns.collect::<Result<Vec<Expr>>>()?;
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
