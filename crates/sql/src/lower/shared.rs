//! Subplans that are computed once and read in several places.

use std::sync::Arc;

use datafusion_expr::LogicalPlan;
use engine::{Rel, Result, Var};

use crate::lower::lowering::{Lowered, Lowering, once, unsupported};
use crate::lower::subplans::SharedPlan;

impl Lowering<'_> {
    /// A new vector with the name and type of `var`.
    pub(super) fn again(&mut self, var: Var) -> Var {
        let like = self.query.vars[var].clone();
        self.query.add(like.name, like.ty)
    }

    /// Lowers `plan`: to its own relation, or to one that is shared if the plan has it more than once.
    pub fn rel(&mut self, plan: &LogicalPlan) -> Result<Lowered> {
        let Some(reading) = self.common.reading(plan).cloned() else {
            return self.own_rel(plan);
        };
        let known = self.shared.get(&reading.shared).cloned();
        let (rel, columns) = match known {
            Some(known) => known,
            None => {
                let SharedPlan { plan, distinct } = self.common.shared[reading.shared].clone();
                let (mut rel, columns) = self.own_rel(plan.plan())?;
                if distinct {
                    let keys = once(&columns);
                    rel = Rel::Fold {
                        input: Box::new(rel),
                        keys,
                        folds: vec![],
                    };
                }
                let shared = (Arc::new(rel), columns);
                self.shared.insert(reading.shared, shared.clone());
                shared
            }
        };
        // Vectors of its own for each reader: two of them may meet in a join.
        let mut vars: Vec<(Var, Var)> = Vec::new();
        let mut out = Vec::with_capacity(reading.columns.len());
        for position in reading.columns {
            let Some(column) = columns.get(position).copied() else {
                return unsupported("a shared subplan without its columns");
            };
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
