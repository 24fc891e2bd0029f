//! Comparisons of constants with decimals that a cast has rounded.
//!
//! The planner takes the cast off the column and casts the constant instead, which finds other rows where the cast loses digits:
//! `a::numeric(10, 2) = 1.23` is true of 1.234, and `a::int = 1` of 1.4. So such casts are [functions](losing) there.

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{Expr, ExprSchemable, Operator};

use crate::functions::decimals::casts::losing;

/// A comparison whose casts stay; none of what has no such casts.
///
/// # Errors
/// None of its own.
pub(super) fn kept(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let is_cast = |side: &Expr| matches!(side, Expr::Cast(_) | Expr::TryCast(_));
    let found = match expr {
        Expr::BinaryExpr(own) if compares(own.op) => is_cast(&own.left) || is_cast(&own.right),
        Expr::InList(own) => is_cast(&own.expr),
        Expr::Between(own) => is_cast(&own.expr),
        Expr::Case(own) => own.expr.as_deref().is_some_and(is_cast),
        _ => false,
    };
    if !found {
        return Ok(None);
    }
    // Whatever is done with one side, the others follow.
    let parts = expr.clone().map_children(|part| {
        let part = by_function(part, schema)?;
        let go_on = TreeNodeRecursion::Continue;
        Ok(Transformed::new(part.data, part.transformed, go_on))
    })?;
    Ok(parts.transformed.then_some(parts.data))
}

fn compares(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// A value under casts, of which those that lose digits are functions.
fn by_function(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_down(|part| {
        let (inner, to, strict) = match &part {
            Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), true),
            Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), false),
            _ => return Ok(Transformed::new(part, false, TreeNodeRecursion::Stop)),
        };
        let found = match inner.get_type(schema) {
            Ok(from) => losing(inner, &from, to, strict),
            Err(_) => None,
        };
        Ok(match found {
            Some(call) => Transformed::new(call, true, TreeNodeRecursion::Stop),
            None => Transformed::no(part),
        })
    })
}
