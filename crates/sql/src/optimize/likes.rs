//! `like` with a pattern that is computed or has many `%`, for which the planner's operator makes a regular expression of each
//! row, or one that takes a time beyond measure.

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion_optimizer::AnalyzerRule;

use crate::functions::like_parts::like;
use crate::functions::unknown::quoted;
use crate::optimize::expressions::{is_text, rewritten};

/// Most `%` of a pattern that is left to the planner's operator, which finds rows by the beginning of a text.
const FEW: usize = 8;

/// The analyzer rule. It must come before type coercion.
#[derive(Debug)]
pub(crate) struct Likes;

impl AnalyzerRule for Likes {
    fn name(&self) -> &str {
        "likes"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, by_parts)
    }
}

/// Whether a pattern is not left to the planner's operator.
pub(crate) fn is_odd(pattern: &str) -> bool {
    let count = pattern.bytes().filter(|byte| *byte == b'%').count();
    count > FEW || is_broken(pattern)
}

/// Whether a pattern ends with a backslash that escapes nothing, which is an error for what matches up to there.
fn is_broken(pattern: &str) -> bool {
    let escapes = pattern.bytes().rev().take_while(|byte| *byte == b'\\');
    escapes.count() % 2 == 1
}

fn by_parts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Like(own) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_simple = match &*own.pattern {
        // Generic plans take no value that is odd.
        Expr::Placeholder(_) => true,
        Expr::Cast(cast) if matches!(*cast.expr, Expr::Placeholder(_)) => true,
        pattern => {
            let text = quoted(pattern);
            matches!(pattern, Expr::Literal(..)) && !text.is_some_and(is_odd)
        }
    };
    let of_texts = |side: &Expr| side.get_type(schema).is_ok_and(|ty| is_text(&ty));
    if is_simple || own.escape_char.is_some() || !of_texts(&own.expr) || !of_texts(&own.pattern) {
        return Ok(Transformed::no(Expr::Like(own)));
    }
    let found = like(*own.expr, *own.pattern, own.case_insensitive);
    Ok(Transformed::yes(if own.negated {
        Expr::Not(Box::new(found))
    } else {
        found
    }))
}
