//! What can be told of a plan at first sight: which of its subplans the engine refuses whatever their tables hold, and
//! which are worth to be run by it. Nothing is read from tables for that.

use std::collections::HashSet;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use crate::functions::single::of_single;
use crate::lower::aggregate::aggregate_function;
use crate::lower::first_rows::takes_first_row;
use crate::lower::source::is_readable;
use crate::lower::subplans::address;

/// What is known of the subplans of a plan, by their addresses.
#[derive(Default)]
pub(super) struct FirstSight {
    /// Those that the engine refuses.
    refused: HashSet<usize>,
    /// Those in which more is to be done than to read a table.
    worthwhile: HashSet<usize>,
}

impl FirstSight {
    pub fn of(plan: &LogicalPlan) -> Result<FirstSight> {
        let mut sight = FirstSight::default();
        sight.look(plan)?;
        Ok(sight)
    }

    pub fn is_refused(&self, plan: &LogicalPlan) -> bool {
        self.refused.contains(&address(plan))
    }

    pub fn is_worthwhile(&self, plan: &LogicalPlan) -> bool {
        self.worthwhile.contains(&address(plan))
    }

    fn look(&mut self, plan: &LogicalPlan) -> Result<()> {
        let mut is_refused = is_refused(plan)?;
        let mut is_worthwhile = matches!(
            plan,
            LogicalPlan::Join(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Window(_)
        );
        for input in plan.inputs() {
            self.look(input)?;
            is_refused |= self.is_refused(input);
            is_worthwhile |= self.is_worthwhile(input);
        }
        plan.apply_subqueries(|subquery| {
            for input in subquery.inputs() {
                self.look(input)?;
                is_refused |= self.is_refused(input);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if is_refused {
            self.refused.insert(address(plan));
        }
        if is_worthwhile {
            self.worthwhile.insert(address(plan));
        }
        Ok(())
    }
}

/// Whether the engine has nothing that does what `plan` does with its inputs.
fn is_refused(plan: &LogicalPlan) -> Result<bool> {
    let is_unknown = match plan {
        LogicalPlan::RecursiveQuery(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::Extension(_)
        | LogicalPlan::Distinct(Distinct::On(_)) => true,
        LogicalPlan::Join(join) => join.join_type == JoinType::RightMark,
        LogicalPlan::TableScan(scan) => {
            let table = source_as_provider(&scan.source);
            !table.is_ok_and(|table| is_readable(&table))
        }
        _ => false,
    };
    // A scan has filters that it can test.
    if is_unknown || matches!(plan, LogicalPlan::TableScan(_)) {
        return Ok(is_unknown);
    }
    let mut found = false;
    plan.apply_expressions(|e| {
        e.apply(|e| {
            found |= match e {
                Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..) => true,
                Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
                // As the value of a subquery the only row is found without an aggregate.
                Expr::AggregateFunction(call) => {
                    matches!(plan, LogicalPlan::Aggregate(_))
                        && aggregate_function(call.func.name()).is_none()
                        && !takes_first_row(call.func.name())
                        && of_single(e).is_none()
                }
                e => e.is_volatile_node(),
            };
            Ok(if found {
                TreeNodeRecursion::Stop
            } else {
                TreeNodeRecursion::Continue
            })
        })
    })?;
    Ok(found)
}
