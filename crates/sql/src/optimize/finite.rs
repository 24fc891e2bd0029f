//! Where decimals of more than 38 digits may be NaN or infinite, what knows of these and what does not.
//!
//! To Arrow and DataFusion they are [numbers](table::NotFinite), and so a function that computes with one would give a wrong
//! answer. Functions that are known to be right with them are listed here; `sum`, `avg`, `abs` and those that round are replaced
//! by ones that are; and whatever an argument of another function holds is [checked](only_finite) before it runs.

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::{
    AggregateFunction, BinaryExpr, HigherOrderFunction, ScalarFunction, WindowFunction,
};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, Operator, WindowFunctionDefinition};
use datafusion_optimizer::AnalyzerRule;
use table::is_wide;

use crate::functions::convert::target;
use crate::functions::decimals::arithmetic::NEGATIVE;
use crate::functions::decimals::casts::{self, CAST, cast_of};
use crate::functions::decimals::operators::QUOTIENT;
use crate::functions::decimals::through::passing;
use crate::functions::decimals::totals::total;
use crate::functions::decimals::{FINITE, only_finite};
use crate::functions::lists::is_quantified;
use crate::functions::lists::names::{
    ASSIGN, ASSIGN_SLICE, FIELD, MAKE, ORDINALS, SERIES, SLICE, STRUCT, SUBSCRIPT, VALUES,
};
use crate::functions::same::SAME;
use crate::optimize::checked::operands;
use crate::optimize::expressions::rewritten;

/// The analyzer rule; it must come after all that adds casts and functions.
#[derive(Debug)]
pub(crate) struct OnlyFinite;

impl AnalyzerRule for OnlyFinite {
    fn name(&self) -> &str {
        "only_finite"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_wide(&plan)? {
            return Ok(plan);
        }
        rewritten(plan, guarded)
    }
}

/// Scalar functions that take such values as they are, and compare them at most, or know what they are.
const SCALARS: &[&str] = &[
    ASSIGN,
    ASSIGN_SLICE,
    CAST,
    FIELD,
    FINITE,
    MAKE,
    NEGATIVE,
    ORDINALS,
    QUOTIENT,
    SAME,
    SERIES,
    SLICE,
    STRUCT,
    SUBSCRIPT,
    VALUES,
    "array eq",
    "array ge",
    "array gt",
    "array le",
    "array lt",
    "array ne",
    "array_append",
    "array_cat",
    "array_length",
    "array_prepend",
    "array_to_json",
    "array_to_string",
    "cardinality",
    "coalesce",
    "concat",
    "concat_ws",
    "convert",
    "div",
    "gcd",
    "greatest",
    "json_agg of",
    "json_build_array",
    "json_build_object",
    "jsonb_agg of",
    "jsonb_build_array",
    "jsonb_build_object",
    "lcm",
    "least",
    "min_scale",
    "nullif",
    "num_nonnulls",
    "num_nulls",
    "pg_typeof",
    "row_to_json",
    "scale",
    "to_json",
    "to_jsonb",
    "typeof",
    "width_bucket",
];

/// Aggregates and window functions that do.
const AGGREGATES: &[&str] = &[
    "any_value",
    "arg_max",
    "arg_min",
    "array_agg",
    "count",
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "mode",
    "nth_value",
    "percent_rank",
    "rank",
];

/// Whether there may be such values in a plan: most have none. They come from columns, and from constants and casts.
fn has_wide(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    let go_on = |found: bool| {
        if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        }
    };
    plan.apply_with_subqueries(|node| {
        let fields = node.schema().fields().iter();
        found |= fields.map(|field| field.data_type()).any(is_wide);
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                found |= brings_wide(expr);
                Ok(go_on(found))
            })
        })?;
        Ok(go_on(found))
    })?;
    Ok(found)
}

fn brings_wide(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => is_wide(&value.data_type()),
        Expr::Cast(cast) => is_wide(cast.field.data_type()),
        Expr::TryCast(cast) => is_wide(cast.field.data_type()),
        Expr::ScalarFunction(_) => {
            let to = casts::target(expr).or_else(|| target(expr));
            to.is_some_and(is_wide)
        }
        _ => false,
    }
}

/// Whether a value may be such a one, as it may if nothing is known of its type.
fn wide(expr: &Expr, schema: &DFSchema) -> bool {
    match expr.get_type(schema) {
        Ok(own) => is_wide(&own),
        #[expect(deprecated, reason = "`count(*)` has one")]
        Err(_) => !matches!(expr, Expr::Wildcard { .. } | Expr::Lambda(_)),
    }
}

fn finite(args: Vec<Expr>, by: &str, schema: &DFSchema) -> Vec<Expr> {
    let own = |arg: Expr| {
        if wide(&arg, schema) {
            only_finite(arg, by)
        } else {
            arg
        }
    };
    args.into_iter().map(own).collect()
}

fn guarded(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::ScalarFunction(call) if call.args.iter().any(|arg| wide(arg, schema)) => {
            scalar(call, schema)
        }
        Expr::AggregateFunction(call) if call.params.args.iter().any(|arg| wide(arg, schema)) => {
            Transformed::yes(Expr::AggregateFunction(aggregate(call, schema)))
        }
        Expr::WindowFunction(call) if call.params.args.iter().any(|arg| wide(arg, schema)) => {
            Transformed::yes(Expr::WindowFunction(Box::new(window(*call, schema))))
        }
        Expr::HigherOrderFunction(call) if call.args.iter().any(|arg| wide(arg, schema)) => {
            let args = finite(call.args, call.func.name(), schema);
            Transformed::yes(Expr::HigherOrderFunction(HigherOrderFunction::new(
                call.func, args,
            )))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if !compares(op) && (wide(&left, schema) || wide(&right, schema)) =>
        {
            let mut sides = finite(vec![*left, *right], &op.to_string(), schema).into_iter();
            match (sides.next(), sides.next()) {
                (Some(left), Some(right)) => Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(left),
                    op,
                    Box::new(right),
                ))),
                _ => return datafusion_common::internal_err!("an operator has two sides"),
            }
        }
        Expr::Negative(inner) if wide(&inner, schema) => {
            let inner = only_finite(*inner, "-");
            Transformed::yes(Expr::Negative(Box::new(inner)))
        }
        Expr::Cast(_) | Expr::TryCast(_) => cast(expr, schema),
        other => Transformed::no(other),
    })
}

/// Whether an operator compares its sides, and does nothing else with them.
fn compares(op: Operator) -> bool {
    use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom | And | Or
    )
}

fn scalar(mut call: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let name = call.func.name();
    let known = SCALARS.contains(&name) || is_quantified(name);
    if !known && let Some(own) = passing(&call.func) {
        call.func = own;
        return Transformed::yes(Expr::ScalarFunction(call));
    }
    let expr = Expr::ScalarFunction(call);
    if known || operands(&expr).is_some() {
        return Transformed::no(expr);
    }
    let Expr::ScalarFunction(call) = expr else {
        return Transformed::no(expr);
    };
    let args = finite(call.args, call.func.name(), schema);
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
        call.func, args,
    )))
}

fn aggregate(mut call: AggregateFunction, schema: &DFSchema) -> AggregateFunction {
    if is_summed(&call.params.args, schema)
        && let Some(own) = total(&call.func)
    {
        call.func = own;
    } else if !AGGREGATES.contains(&call.func.name()) {
        call.params.args = finite(call.params.args, call.func.name(), schema);
    }
    call
}

/// Whether the one argument is a decimal itself, and no list of such.
fn is_summed(args: &[Expr], schema: &DFSchema) -> bool {
    let [arg] = args else {
        return false;
    };
    matches!(arg.get_type(schema), Ok(DataType::Decimal256(..)))
}

fn window(mut call: WindowFunction, schema: &DFSchema) -> WindowFunction {
    let name = call.fun.name().to_string();
    if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun
        && is_summed(&call.params.args, schema)
        && let Some(own) = total(function)
    {
        call.fun = WindowFunctionDefinition::AggregateUDF(own);
    } else if !AGGREGATES.contains(&name.split(' ').next().unwrap_or(&name)) {
        // One over frames of this crate has the frame behind its name.
        call.params.args = finite(call.params.args, &name, schema);
    }
    call
}

/// Casts that were not there when [others](crate::optimize::casts) were looked at.
fn cast(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (inner, to, strict) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), true),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), false),
        _ => return Transformed::no(expr),
    };
    let Ok(from) = inner.get_type(schema) else {
        return Transformed::no(expr);
    };
    if let Some(own) = cast_of(inner, &from, to, strict) {
        return Transformed::yes(own);
    }
    if from == *to || !is_wide(&from) {
        return Transformed::no(expr);
    }
    let guarded = |inner: Box<Expr>| Box::new(only_finite(*inner, "a cast"));
    match expr {
        Expr::Cast(mut cast) => {
            cast.expr = guarded(cast.expr);
            Transformed::yes(Expr::Cast(cast))
        }
        Expr::TryCast(mut cast) => {
            cast.expr = guarded(cast.expr);
            Transformed::yes(Expr::TryCast(cast))
        }
        other => Transformed::no(other),
    }
}
