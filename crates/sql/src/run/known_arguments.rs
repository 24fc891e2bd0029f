//! Arguments that must be known before a query is lowered, as in `rows (select 2) preceding` or
//! `percentile_cont((select 0.9)) within group (order by x)`: single values of subqueries that depend on no row are computed before the
//! query that they stand in, and are constants in its plan.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use datafusion_common::Result as Planned;
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan};

use crate::error::Result;
use crate::optimize::known_arguments::{is_alone, is_wanted, known};
use crate::run::context::StatementContext;

/// What was computed.
type Values = HashMap<Expr, ScalarValue>;

impl StatementContext {
    /// `plan` with numbers for all that its limits compute, and constants for such arguments.
    ///
    /// # Errors
    /// Those of computing them; for what is no number of rows.
    pub(crate) async fn with_known<'p>(
        &mut self,
        plan: &'p LogicalPlan,
    ) -> Result<Cow<'p, LogicalPlan>> {
        let plan = self.with_counts(plan).await?;
        let mut values = Values::new();
        for subquery in wanted(&plan)? {
            if let Entry::Vacant(place) = values.entry(subquery) {
                let value = self.value_of(place.key()).await?;
                place.insert(value);
            }
        }
        if values.is_empty() {
            return Ok(plan);
        }
        Ok(Cow::Owned(in_place(plan.into_owned(), &values)?))
    }
}

/// The subqueries whose values are to be computed.
fn wanted(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Window(_) | LogicalPlan::Aggregate(_)) {
            return Ok(TreeNodeRecursion::Continue);
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if is_wanted(expr)? {
                    for arg in known(&mut expr.clone()) {
                        arg.apply(|e| {
                            if is_alone(e) {
                                found.push(e.clone());
                            }
                            Ok(TreeNodeRecursion::Continue)
                        })?;
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// `plan` with these values in the places of the subqueries. Its columns keep their names.
fn in_place(plan: LogicalPlan, values: &Values) -> Result<LogicalPlan> {
    let replaced = plan.transform_down_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Window(_) | LogicalPlan::Aggregate(_)) {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        let changed = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_down(|expr| argument_values(expr, values))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        changed.map_data(LogicalPlan::recompute_schema)
    });
    Ok(replaced?.data)
}

/// `expr` with constants for its arguments that were computed.
fn argument_values(mut expr: Expr, values: &Values) -> Planned<Transformed<Expr>> {
    let mut any = false;
    for arg in known(&mut expr) {
        let own = std::mem::take(arg).transform_down(|e| match values.get(&e) {
            Some(value) => Ok(Transformed::yes(Expr::Literal(value.clone(), None))),
            None => Ok(Transformed::no(e)),
        })?;
        any |= own.transformed;
        *arg = own.data;
    }
    Ok(Transformed::new_transformed(expr, any))
}
