//! Aggregates that a plan has more than once, such as a common table expression that is read twice. They are computed
//! once: common sub-expression elimination for relations.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Aggregate, LogicalPlan};
use engine::{Rel, Result, Var};

use crate::lower::call::failed;
use crate::lower::lowering::{Lowered, Lowering, Shared};

/// The aggregates that `plan` has more than once, each with a place for what it becomes. Aggregates that may differ
/// each time, such as those of `random()`, are not lowered at all.
pub(super) fn repeated(plan: &LogicalPlan) -> Result<HashMap<LogicalPlan, Option<Shared>>> {
    let mut aggregates = Vec::new();
    plan.apply_with_subqueries(|node| {
        if matches!(node, LogicalPlan::Aggregate(_)) {
            aggregates.push(node.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(failed)?;
    let mut seen: HashMap<LogicalPlan, usize> = HashMap::new();
    if aggregates.len() > 1 {
        for aggregate in aggregates {
            *seen.entry(aggregate).or_default() += 1;
        }
    }
    let mut repeated = HashMap::new();
    for (aggregate, times) in seen {
        if times > 1 {
            repeated.insert(aggregate, None);
        }
    }
    Ok(repeated)
}

impl Lowering<'_> {
    /// A new vector with the name and type of `var`.
    pub(super) fn again(&mut self, var: Var) -> Var {
        let like = self.query.vars[var].clone();
        self.query.add(like.name, like.ty)
    }

    /// Lowers `aggregate`, which is the node `plan`; shared if the plan has it more than once.
    pub(super) fn groups(&mut self, plan: &LogicalPlan, aggregate: &Aggregate) -> Result<Lowered> {
        if self.shared.is_empty() || !self.shared.contains_key(plan) {
            return self.aggregate(aggregate);
        }
        let known = self.shared.get(plan).cloned().flatten();
        let (rel, columns) = match known {
            Some(known) => known,
            None => {
                let (rel, columns) = self.aggregate(aggregate)?;
                let shared = (Arc::new(rel), columns);
                self.shared.insert(plan.clone(), Some(shared.clone()));
                shared
            }
        };
        // Vectors of its own for each reader: two of them may meet in a join.
        let mut vars: Vec<(Var, Var)> = Vec::new();
        let mut out = Vec::with_capacity(columns.len());
        for column in columns {
            let known = vars.iter().find(|(from, _)| *from == column);
            let var = match known {
                Some((_, var)) => *var,
                None => {
                    let var = self.again(column);
                    vars.push((column, var));
                    var
                }
            };
            out.push(var);
        }
        Ok((Rel::Shared { input: rel, vars }, out))
    }
}
