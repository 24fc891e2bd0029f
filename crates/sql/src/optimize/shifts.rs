//! `lag` and `lead` have the type that what they shift and their default have in common, as in PostgreSQL: DataFusion
//! casts the default to the type of the other, so that `lag(1, 1, 0.5)` were 0.

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::binary::type_union_coercion;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion_optimizer::AnalyzerRule;

use crate::messages::types::type_name;
use crate::optimize::expressions::{cast, is_text, rewritten};

/// The analyzer rule for `lag` and `lead`.
#[derive(Debug)]
pub(crate) struct Shifts;

impl AnalyzerRule for Shifts {
    fn name(&self) -> &str {
        "shifts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, widen)
    }
}

fn widen(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut window) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_shift = matches!(window.fun.name(), "lag" | "lead");
    if is_shift && let [value, _, default] = &mut window.params.args[..] {
        let shifted = value.get_type(schema)?;
        let other = default.get_type(schema)?;
        if let Some(both) = wider(&shifted, &other)? {
            *value = cast(value.clone(), both);
            return Ok(Transformed::yes(Expr::WindowFunction(window)));
        }
    }
    Ok(Transformed::no(Expr::WindowFunction(window)))
}

/// The type that what is shifted has to be cast to; none if it has the common type already. A text is read as the other's
/// type, as any constant in quotes.
fn wider(shifted: &DataType, other: &DataType) -> Result<Option<DataType>> {
    let as_it_is = shifted == other || other.is_null() || shifted.is_null() || is_text(other);
    if as_it_is {
        return Ok(None);
    }
    match type_union_coercion(shifted, other) {
        Some(both) => Ok((both != *shifted).then_some(both)),
        None => plan_err!(
            "lag and lead: types {} and {} cannot be matched",
            type_name(shifted),
            type_name(other)
        ),
    }
}
