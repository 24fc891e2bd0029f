//! Arguments of aggregates with a filter: `sum(10 / x) filter (where x <> 0)`.
//!
//! DataFusion computes the arguments of a group's aggregate for all rows, and only then asks the filter. An argument that can
//! fail is therefore put into a `case` of the filter, which computes it for the rows that count.

use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::{Case, Expr, ExprSchemable, Operator};

/// The aggregate `expr`, or the one of a window, with such arguments.
pub(super) fn guarded(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (args, filter, is_free) = match &mut expr {
        Expr::AggregateFunction(call) => {
            let params = &mut call.params;
            let gathers = matches!(call.func.name(), "array_agg" | "string_agg");
            let is_free = params.order_by.is_empty() || gathers && !params.distinct;
            (&mut params.args, &params.filter, is_free)
        }
        Expr::WindowFunction(call) => (&mut call.params.args, &call.params.filter, true),
        _ => return Transformed::no(expr),
    };
    // Others than these want the keys of their order among their arguments.
    let filter = filter.as_deref().filter(|_| is_free);
    let Some(filter) = filter.filter(|filter| is_plain(filter)) else {
        return Transformed::no(expr);
    };
    let mut changed = false;
    for arg in args {
        if !may_fail(arg, schema) || !is_plain(arg) || is_guarded(arg, filter) {
            continue;
        }
        let value = std::mem::take(arg);
        let branch = (Box::new(filter.clone()), Box::new(value));
        *arg = Expr::Case(Case::new(None, vec![branch], None));
        changed = true;
    }
    if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    }
}

/// Whether `arg` is a `case` of `filter`, which gives nothing else.
pub(crate) fn is_guarded(arg: &Expr, filter: &Expr) -> bool {
    match arg {
        Expr::Alias(alias) => is_guarded(&alias.expr, filter),
        Expr::Case(case) => match &case.when_then_expr[..] {
            [(when, _)] => **when == *filter && case.expr.is_none() && case.else_expr.is_none(),
            _ => false,
        },
        _ => false,
    }
}

/// Whether `expr` may be evaluated twice, and stand where it is evaluated for some rows only.
fn is_plain(expr: &Expr) -> bool {
    let is_query = |inner: &Expr| {
        Ok(matches!(
            inner,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::Unnest(_)
        ))
    };
    // The closure does not fail.
    !expr.is_volatile() && !expr.exists(is_query).unwrap_or(true)
}

/// Whether computing `expr` may fail for some row. Constants are computed while planning.
fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    expr.any_column_refs() && fails(expr, schema)
}

fn fails(expr: &Expr, schema: &DFSchema) -> bool {
    let ty = |expr: &Expr| expr.get_type(schema).ok();
    match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Literal(..) => false,
        Expr::Alias(alias) => fails(&alias.expr, schema),
        Expr::Not(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner) => fails(inner, schema),
        Expr::BinaryExpr(binary) => {
            let is_safe = match binary.op {
                Operator::And
                | Operator::Or
                | Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom => true,
                // Of decimals that could overflow, a function stands here.
                Operator::Plus | Operator::Minus | Operator::Multiply => {
                    matches!(ty(expr), Some(DataType::Decimal128(..) | DataType::Float64))
                }
                _ => false,
            };
            !is_safe || fails(&binary.left, schema) || fails(&binary.right, schema)
        }
        Expr::Between(between) => {
            let (low, high) = (&between.low, &between.high);
            fails(&between.expr, schema) || fails(low, schema) || fails(high, schema)
        }
        Expr::InList(list) => {
            fails(&list.expr, schema) || list.list.iter().any(|item| fails(item, schema))
        }
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter();
            let operand = case.expr.iter().chain(&case.else_expr);
            branches
                .flat_map(|(when, then)| [when, then])
                .chain(operand)
                .any(|part| fails(part, schema))
        }
        Expr::Cast(cast) => {
            let widens = match (ty(&cast.expr), ty(expr)) {
                (Some(from), Some(DataType::Float64)) => from.is_numeric(),
                (Some(from), Some(DataType::Int64)) => {
                    from.is_integer() && from != DataType::UInt64
                }
                _ => false,
            };
            !widens || fails(&cast.expr, schema)
        }
        _ => true,
    }
}
