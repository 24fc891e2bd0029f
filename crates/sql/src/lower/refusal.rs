//! What can be told of a plan at first sight: which of its subplans the engine refuses whatever their tables hold, and
//! which are worth to be run by it. Nothing is read from tables for that.

use std::collections::{HashMap, HashSet};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use crate::lower::outside::is_readable;
use crate::lower::subplans::address;

/// What is known of the subplans of a plan, by their addresses.
#[derive(Default)]
pub(super) struct FirstSight {
    /// Those that the engine refuses, and why.
    refused: HashMap<usize, String>,
    /// Those in which more is to be done than to read a table.
    worthwhile: HashSet<usize>,
}

impl FirstSight {
    pub fn of(plan: &LogicalPlan) -> Result<FirstSight> {
        let mut sight = FirstSight::default();
        sight.look(plan)?;
        Ok(sight)
    }

    /// Why the engine refuses a subplan, if it does.
    pub fn refusal(&self, plan: &LogicalPlan) -> Option<&str> {
        self.refused.get(&address(plan)).map(String::as_str)
    }

    pub fn is_worthwhile(&self, plan: &LogicalPlan) -> bool {
        self.worthwhile.contains(&address(plan))
    }

    fn look(&mut self, plan: &LogicalPlan) -> Result<()> {
        let mut why = why_refused(plan)?;
        let mut is_worthwhile = matches!(
            plan,
            LogicalPlan::Join(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Window(_)
        );
        // The rounds of a recursive query are computed by themselves.
        let is_recursion = matches!(plan, LogicalPlan::RecursiveQuery(_));
        for input in plan.inputs() {
            self.look(input)?;
            if is_recursion {
                continue;
            }
            is_worthwhile |= self.is_worthwhile(input);
            why = why.or_else(|| self.refusal(input).map(str::to_owned));
        }
        plan.apply_subqueries(|subquery| {
            for input in subquery.inputs() {
                self.look(input)?;
                why = why
                    .take()
                    .or_else(|| self.refusal(input).map(str::to_owned));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if let Some(why) = why {
            self.refused.insert(address(plan), why);
        }
        if is_worthwhile {
            self.worthwhile.insert(address(plan));
        }
        Ok(())
    }
}

/// Why the engine has nothing that does what `plan` does with its inputs; `None` if it has.
fn why_refused(plan: &LogicalPlan) -> Result<Option<String>> {
    let unknown = match plan {
        LogicalPlan::Extension(extension) => Some(extension.node.name().to_owned()),
        LogicalPlan::Distinct(Distinct::On(_)) => Some("`distinct on`".to_owned()),
        // A scan has filters that it can test.
        LogicalPlan::TableScan(scan) => {
            let table = source_as_provider(&scan.source);
            let is_readable = table.is_ok_and(|table| is_readable(&table));
            return Ok((!is_readable).then(|| {
                format!(
                    "rows that are there only once ({})",
                    scan.table_name.table()
                )
            }));
        }
        _ => None,
    };
    if unknown.is_some() {
        return Ok(unknown);
    }
    // They compute what differs each time once for each row.
    let is_of_rows = matches!(
        plan,
        LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Aggregate(_)
    );
    let mut found = None;
    plan.apply_expressions(|e| {
        e.apply(|e| {
            let is_unknown = match e {
                Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..) => true,
                Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
                e if e.is_volatile_node() && !is_of_rows => {
                    found = Some(format!("a value that differs each time ({e})"));
                    return Ok(TreeNodeRecursion::Stop);
                }
                _ => return Ok(TreeNodeRecursion::Continue),
            };
            if is_unknown {
                found = Some("a subquery that reads the rows outside".to_owned());
                return Ok(TreeNodeRecursion::Stop);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}
