//! The sum of a `real` is one, as in PostgreSQL: DataFusion's is a double. It is added up as a double, and narrowed above. Functions
//! that PostgreSQL has for doubles alone take a `real` as a double, and return one.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, Result};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{Aggregate, Cast, Expr, ExprSchemable, LogicalPlan, Projection, Window};

/// Functions of numbers that there are not for a `real`, by DataFusion's names. Those of a number of places look at its 6 digits.
const OF_DOUBLES: [&str; 27] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh",
    "cot", "degrees", "exp", "floor", "ln", "log", "log10", "radians", "round", "signum", "sin",
    "sinh", "sqrt", "tan", "tanh", "trunc",
];

/// Whether a call is of such a function.
pub(super) fn is_of_doubles(call: &ScalarFunction) -> bool {
    let name = call.func.name();
    let has_places = call.args.len() > 1 && matches!(name, "round" | "trunc");
    OF_DOUBLES.contains(&name) && !has_places
}

/// A call of such a function with each `real` as a double.
pub(super) fn as_doubles(mut call: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let mut changed = false;
    if is_of_doubles(&call) {
        for arg in &mut call.args {
            if arg.get_type(schema).is_ok_and(|ty| ty == DataType::Float32) {
                let wide = Cast::new(Box::new(std::mem::take(arg)), DataType::Float64);
                *arg = Expr::Cast(wide);
                changed = true;
            }
        }
    }
    Transformed::new_transformed(Expr::ScalarFunction(call), changed)
}

/// A node that has such sums, with a projection above it that makes each a `real`.
///
/// # Errors
/// Those of making the nodes.
pub(super) fn sums(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let (aggr_expr, found) = widened(&aggregate.aggr_expr, aggregate.input.schema());
            if !found.contains(&true) {
                return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
            }
            let wide = Aggregate::try_new(aggregate.input, aggregate.group_expr, aggr_expr)?;
            narrowed(LogicalPlan::Aggregate(wide), &found)
        }
        LogicalPlan::Window(window) => {
            let (window_expr, found) = widened(&window.window_expr, window.input.schema());
            if !found.contains(&true) {
                return Ok(Transformed::no(LogicalPlan::Window(window)));
            }
            let wide = Window::try_new(window_expr, window.input)?;
            narrowed(LogicalPlan::Window(wide), &found)
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The functions of a node, of which sums of a `real` add doubles; and which these are.
fn widened(exprs: &[Expr], schema: &DFSchema) -> (Vec<Expr>, Vec<bool>) {
    let each = exprs.iter().map(|expr| match of_real(expr, schema) {
        Some(wide) => (wide, true),
        None => (expr.clone(), false),
    });
    each.unzip()
}

fn of_real(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let mut wide = expr.clone();
    let mut function = &mut wide;
    while let Expr::Alias(alias) = function {
        function = &mut alias.expr;
    }
    let (name, args) = match function {
        Expr::AggregateFunction(call) => (call.func.name().to_string(), &mut call.params.args),
        Expr::WindowFunction(call) => (call.fun.name().to_string(), &mut call.params.args),
        _ => return None,
    };
    let [arg] = args.as_mut_slice() else {
        return None;
    };
    if name != "sum" || arg.get_type(schema).ok()? != DataType::Float32 {
        return None;
    }
    // A cast changes no name.
    *arg = Expr::Cast(Cast::new(Box::new(std::mem::take(arg)), DataType::Float64));
    Some(wide)
}

/// The columns of a node, the last of which are its functions: a `real` where one was found.
fn narrowed(plan: LogicalPlan, found: &[bool]) -> Result<Transformed<LogicalPlan>> {
    let width = plan.schema().fields().len();
    let first = width.saturating_sub(found.len());
    let exprs = plan.schema().iter().enumerate().map(|(at, column)| {
        let own = Expr::Column(Column::from(column));
        let is_one = at.checked_sub(first).and_then(|at| found.get(at));
        if is_one == Some(&true) {
            let (table, field) = column;
            Expr::Cast(Cast::new(Box::new(own), DataType::Float32))
                .alias_qualified(table.cloned(), field.name())
        } else {
            own
        }
    });
    let exprs: Vec<Expr> = exprs.collect();
    let projection = Projection::try_new(exprs, Arc::new(plan))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}
