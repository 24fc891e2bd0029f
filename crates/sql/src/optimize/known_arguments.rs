//! Arguments of functions over several rows that must be known before a query is lowered.

use datafusion_common::Result as Planned;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::Expr;

/// The arguments of a function over several rows that must be known: those of a window function behind its value, such as the distances of
/// its frame, and all of `ntile`; of an aggregate all but for those that the engine computes of any value.
pub(crate) fn known(expr: &mut Expr) -> &mut [Expr] {
    let (args, of_value) = match expr {
        Expr::WindowFunction(window) => {
            let of_value = window.fun.name() != "ntile";
            (&mut window.params.args, of_value)
        }
        Expr::AggregateFunction(aggregate) => match aggregate.func.name() {
            "count" | "sum" | "avg" | "min" | "max" => return &mut [],
            _ => (&mut aggregate.params.args, false),
        },
        _ => return &mut [],
    };
    args.get_mut(usize::from(of_value)..).unwrap_or_default()
}

/// Whether `e` is a subquery that depends on no row.
pub(crate) fn is_alone(e: &Expr) -> bool {
    matches!(e, Expr::ScalarSubquery(subquery) if subquery.outer_ref_columns.is_empty())
}

/// Whether there is a subquery among the arguments of `expr` that must be known.
///
/// # Errors
/// Of no expression that there is.
pub(crate) fn is_wanted(expr: &Expr) -> Planned<bool> {
    if !matches!(expr, Expr::WindowFunction(_) | Expr::AggregateFunction(_)) {
        return Ok(false);
    }
    let mut expr = expr.clone();
    for arg in known(&mut expr) {
        if arg.exists(|e| Ok(is_alone(e)))? {
            return Ok(true);
        }
    }
    Ok(false)
}
