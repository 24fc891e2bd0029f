//! Constants and parameters that stand beside values of `char(n)`: the blanks at their ends say nothing there.
//!
//! A column of `char(n)` keeps no blanks at the end of its texts, and PostgreSQL takes what is compared with one for a `char`,
//! too: `c = 'ab   '` finds what `c = 'ab'` does.

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan, Operator};
use datafusion_functions::string::expr_fn::rtrim;
use datafusion_optimizer::AnalyzerRule;

use crate::functions::unknown::quoted;
use crate::run::modifiers::Chars;

/// The analyzer rule. It must come before type coercion.
#[derive(Debug)]
pub(super) struct Blanks;

impl AnalyzerRule for Blanks {
    fn name(&self) -> &str {
        "blanks"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_blanks(&plan)? {
            return Ok(plan);
        }
        Ok(plan.transform_up_with_subqueries(without)?.data)
    }
}

/// Whether an expression is a text in quotes that ends with a blank, or a value that may be one.
fn is_blank(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(_)) || quoted(expr).is_some_and(|text| text.ends_with(' '))
}

fn has_blanks(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found = found || expr.exists(|part| Ok(is_blank(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}

/// A node in whose comparisons such blanks are left out.
fn without(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut some = false;
    node.apply_expressions(|expr| {
        some = some || expr.exists(|part| Ok(is_blank(part)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !some {
        return Ok(Transformed::no(node));
    }
    let names = NamePreserver::new(&node);
    let mut chars = Chars::of_inputs(&node);
    node.map_expressions(|expr| {
        if let Expr::GroupingSet(_) = expr {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let changed = expr.transform_up(|part| Ok(compared(part, &mut chars)))?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}

/// A comparison without blanks at the ends of what stands beside a `char(n)`.
fn compared(expr: Expr, chars: &mut Chars) -> Transformed<Expr> {
    let mut changed = false;
    let mut cut = |side: &mut Expr| {
        if let Expr::Placeholder(_) = side {
            *side = rtrim(vec![std::mem::take(side)]);
            changed = true;
        } else if let Some(text) = quoted(side).filter(|text| text.ends_with(' ')) {
            let short = text.trim_end_matches(' ').to_owned();
            *side = Expr::Literal(ScalarValue::Utf8(Some(short)), None);
            changed = true;
        }
    };
    let expr = match expr {
        Expr::BinaryExpr(mut own) if compares(own.op) => {
            if is_blank(&own.right) && chars.has(&own.left) {
                cut(own.right.as_mut());
            } else if is_blank(&own.left) && chars.has(&own.right) {
                cut(own.left.as_mut());
            }
            Expr::BinaryExpr(own)
        }
        Expr::InList(mut own) => {
            if own.list.iter().any(is_blank) && chars.has(&own.expr) {
                own.list.iter_mut().for_each(cut);
            }
            Expr::InList(own)
        }
        Expr::Between(mut own) => {
            if (is_blank(&own.low) || is_blank(&own.high)) && chars.has(&own.expr) {
                cut(own.low.as_mut());
                cut(own.high.as_mut());
            }
            Expr::Between(own)
        }
        Expr::Case(mut own) => {
            if let Some(value) = &own.expr
                && chars.has(value)
            {
                let whens = own.when_then_expr.iter_mut();
                whens.for_each(|(when, _)| cut(when.as_mut()));
            }
            Expr::Case(own)
        }
        other => other,
    };
    if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    }
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
