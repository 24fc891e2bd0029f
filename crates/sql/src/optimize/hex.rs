//! Casts of bytes to text, which PostgreSQL writes as `\x00ff`. Type coercion also adds such casts, of bytes that are UTF-8,
//! for functions of texts: so this comes before it.

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::{Cast, Expr, ExprSchemable, LogicalPlan};
use datafusion_optimizer::AnalyzerRule;

use crate::functions::arguments::is_bytea;
use crate::functions::convert::written;
use crate::optimize::expressions::{is_text, rewritten};

/// The analyzer rule for casts of bytes to text. It must come before type coercion.
#[derive(Debug)]
pub(crate) struct BytesAsText;

impl AnalyzerRule for BytesAsText {
    fn name(&self) -> &str {
        "bytes_as_text"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, |expr, schema| {
            let Expr::Cast(Cast { expr: value, field }) = &expr else {
                return Ok(Transformed::no(expr));
            };
            let to = field.data_type();
            let of_bytes = value.get_type(schema).is_ok_and(|from| is_bytea(&from));
            if !of_bytes || !is_text(to) {
                return Ok(Transformed::no(expr));
            }
            let text = written((**value).clone(), to);
            Ok(Transformed::yes(text))
        })
    }
}
