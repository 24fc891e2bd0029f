//! One walk over the expressions of a plan, for the analyzer rules that rewrite them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Cast, Expr, ExprSchemable, LogicalPlan};

use crate::functions::convert::conversion;
use crate::functions::lists::types::{is_list, is_map, is_struct, quoted_beside, special_together};
use crate::functions::unknown::quoted;
use crate::messages::types::type_name;
use crate::optimize::stoppable::check;

/// `plan` with `rewrite` applied to every expression in it and its subqueries, from the leaves up. `rewrite` also gets
/// the columns that the expression sees.
pub(crate) fn rewritten(
    plan: LogicalPlan,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let node = |plan: LogicalPlan| rewritten_node(plan, &rewrite);
    // To look for subqueries takes less than to put every expression together again.
    let rewritten = if has_subqueries(&plan)? {
        plan.transform_up_with_subqueries(node)
    } else {
        plan.transform_up(node)
    };
    Ok(rewritten?.data)
}

/// Whether there are subqueries in the expressions of a plan.
fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        let mut found = false;
        node.apply_subqueries(|_| {
            found = true;
            Ok(TreeNodeRecursion::Stop)
        })?;
        Ok(found)
    })
}

/// The same of the expressions of one node. Its columns keep their names.
pub(super) fn rewritten_node(
    plan: LogicalPlan,
    rewrite: &impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let mut has_expressions = false;
    plan.apply_expressions(|_| {
        has_expressions = true;
        Ok(TreeNodeRecursion::Stop)
    })?;
    if !has_expressions {
        return Ok(Transformed::no(plan));
    }
    let schema = seen(&plan)?;
    let names = NamePreserver::new(&plan);
    let whole = |expr: Expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| {
            check()?;
            rewrite(expr, &schema)
        })?;
        // A name takes long to find out.
        Ok(if changed.transformed {
            changed.update_data(|expr| name.restore(expr))
        } else {
            changed
        })
    };
    plan.map_expressions(|expr| match expr {
        // Its columns are those of the keys in it, which have names of their own.
        Expr::GroupingSet(_) => expr.map_children(whole),
        expr => whole(expr),
    })
}

/// The columns that the expressions of a node see.
fn seen(plan: &LogicalPlan) -> Result<Arc<DFSchema>> {
    if let LogicalPlan::TableScan(scan) = plan {
        let name = scan.table_name.clone();
        let schema = DFSchema::try_from_qualified_schema(name, &scan.source.schema())?;
        return Ok(Arc::new(schema));
    }
    let inputs = plan.inputs();
    Ok(match inputs[..] {
        [input] => Arc::clone(input.schema()),
        _ => Arc::new(merge_schema(&inputs)),
    })
}

pub(crate) fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

pub(crate) fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

/// The special type that these expressions are read as together, if one of them has such a type.
///
/// # Errors
/// If arrays among them do not go together.
pub(super) fn special_of<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Result<Option<DataType>> {
    let (mut types, mut is_quoted) = (Vec::new(), false);
    for expr in exprs {
        types.extend(expr.get_type(schema).ok());
        is_quoted |= quoted(expr).is_some();
    }
    let found = special_together(&types)?;
    Ok(if is_quoted {
        found.map(|ty| quoted_beside(&ty))
    } else {
        found
    })
}

/// [`fitted`], with a NULL without a type as one of type `to`: Arrow's kernels compare no others, and give values of the type of
/// the first.
///
/// # Errors
/// As there.
pub(super) fn compared_with(expr: Expr, to: &DataType, schema: &DFSchema) -> Result<Expr> {
    match expr.get_type(schema) {
        Ok(DataType::Null) => Ok(cast(expr, to.clone())),
        _ => fitted(expr, to, schema),
    }
}

/// Whether `expr`, of type `from`, can be read as one of type `to`: as a constant in quotes, or another array, struct or map.
pub(super) fn fits(expr: &Expr, from: &DataType, to: &DataType) -> bool {
    let open = is_text(from) && matches!(expr, Expr::Literal(_, _));
    open || is_list(from) && is_list(to)
        || is_struct(from) && is_struct(to)
        || is_map(from) && is_map(to)
}

/// `expr` as one of type `to`.
///
/// # Errors
/// If it is of another type, and no constant.
pub(super) fn fitted(expr: Expr, to: &DataType, schema: &DFSchema) -> Result<Expr> {
    let Ok(from) = expr.get_type(schema) else {
        return Ok(expr);
    };
    if from == *to || from == DataType::Null {
        return Ok(expr);
    }
    if fits(&expr, &from, to) {
        let cast = conversion(expr.clone(), &from, to, true)?;
        return Ok(cast.unwrap_or(expr));
    }
    plan_err!(
        "types {} and {} cannot be matched: cast one",
        type_name(to),
        type_name(&from)
    )
}

/// Whether there is a subquery in `expr`.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    let inner = |e: &Expr| {
        Ok(matches!(
            e,
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)
        ))
    };
    // The closure does not fail.
    expr.exists(inner).unwrap_or(true)
}
