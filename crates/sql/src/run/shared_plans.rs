//! Parts of a plan that stand in several places: common table expressions and views that are read more than once.
//!
//! The planner copies the plan of such a part to each place that reads it, and optimises each copy by what is around it, which
//! is what makes queries fast. But parts of parts of parts are copied as many times as there are ways to them: twelve levels,
//! each of which reads the one below twice, are four thousand copies. Such plans are as large as a number says that is found
//! without walking through them: equal parts are found by the pointers to them, and each is looked at once. Where the number is
//! large, the parts that are copied are computed once, as PostgreSQL computes common table expressions, the innermost first.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::ptr;
use std::sync::Arc;

use datafusion_common::Result as DataFusionResult;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::TableSource;
use datafusion_expr::{LogicalPlan, LogicalPlanBuilder};
use syntax::ctes::ONCE;

use crate::error::{Error, Result};
use crate::scan::rows::RowTable;

/// Plans with so many nodes have their copied parts computed once. Those of TPC-DS have 300 at most.
const LARGE: u64 = 1_000;
/// A part that is computed once has at least so many nodes.
const PART: u64 = 16;
/// Plans with more nodes are refused: what walks through them would not end.
const LARGEST: u64 = 50_000;

/// A node, which all nodes that are equal to it stand for.
type Id = usize;

/// Where a node lies in memory.
fn address(plan: &LogicalPlan) -> usize {
    ptr::from_ref(plan).addr()
}

/// What is known of a node.
struct Node {
    /// Nodes in it and below it, each as often as there are ways to it.
    size: u64,
    children: Vec<Id>,
    /// Whether a subquery in `from` has it as its plan.
    is_read: bool,
    /// Whether its rows depend on a query around it.
    depends: bool,
}

/// A part that is computed once.
pub(super) struct Part {
    pub id: usize,
    pub plan: LogicalPlan,
}

/// The nodes of a plan, each once. Children come before those that they are of.
#[derive(Default)]
pub(super) struct Parts {
    nodes: Vec<Node>,
    plans: Vec<LogicalPlan>,
    /// Nodes with these children.
    equal: HashMap<(Discriminant<LogicalPlan>, Vec<Id>), Vec<Id>>,
    /// Where nodes lie in memory.
    known: HashMap<usize, Id>,
}

/// Refuses a plan that nothing could walk through.
///
/// # Errors
/// [`Error::TooComplex`].
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    if !is_large(plan)? {
        return Ok(());
    }
    let mut parts = Parts::default();
    let root = parts.add(plan)?;
    if parts.nodes[root].size <= LARGEST {
        return Ok(());
    }
    Err(Error::TooComplex {
        message: "common table expressions or views read each other so often that the whole query is too large: put the rows of some of them into tables".into(),
    })
}

/// The nodes of `plan`, and those parts of it that are computed once, each after those in it; no parts of one that is not
/// large.
///
/// # Errors
/// None that a statement could cause.
pub(super) fn of(plan: &LogicalPlan) -> Result<(Parts, Vec<Part>)> {
    let mut parts = Parts::default();
    if !is_large(plan)? {
        return Ok((parts, Vec::new()));
    }
    let root = parts.add(plan)?;
    let apart = parts.apart(root);
    Ok((parts, apart))
}

/// Whether a plan has more than [`LARGE`] nodes, which a walk finds that ends there.
fn is_large(plan: &LogicalPlan) -> Result<bool> {
    let mut nodes = 0;
    plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(if nodes > LARGE {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(nodes > LARGE)
}

/// Whether parts of `plan` are computed once.
///
/// # Errors
/// None that a statement could cause.
pub(crate) fn has_parts(plan: &LogicalPlan) -> Result<bool> {
    Ok(!of(plan)?.1.is_empty())
}

/// `plan` with tables without rows in the places of parts that are computed once: for what looks at its columns, or shows it.
///
/// # Errors
/// None that a statement could cause.
pub(crate) fn in_brief(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (parts, apart) = of(&plan)?;
    if apart.is_empty() {
        return Ok(plan);
    }
    let mut tables = HashMap::new();
    for (number, part) in apart.into_iter().enumerate() {
        let schema = Arc::clone(part.plan.schema().inner());
        let rows = RowTable::in_memory(schema, vec![]);
        tables.insert(part.id, scan(number, Arc::new(rows))?);
    }
    Ok(parts.in_place(plan, &tables)?)
}

/// A plan that reads the rows of a part.
///
/// # Errors
/// None that a statement could cause.
pub(super) fn scan(number: usize, rows: Arc<dyn TableSource>) -> Result<LogicalPlan> {
    let name = format!("{ONCE}part {number}");
    let scan = LogicalPlanBuilder::scan(name, rows, None)?;
    Ok(scan.build()?)
}

impl Parts {
    fn add(&mut self, plan: &LogicalPlan) -> Result<Id> {
        let mut children = Vec::new();
        for input in plan.inputs() {
            children.push(self.child(input)?);
        }
        let mut failed = None;
        plan.apply_subqueries(|subquery| {
            match self.add(subquery) {
                Ok(id) => children.push(id),
                Err(e) => failed = Some(e),
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let key = (discriminant(plan), children);
        if let Some(equal) = self.equal.get(&key)
            && let Some(id) = equal.iter().find(|id| self.plans[**id] == *plan)
        {
            return Ok(*id);
        }
        let id = self.nodes.len();
        let node = self.node(plan, key.1.clone())?;
        if let (LogicalPlan::SubqueryAlias(_), [read]) = (plan, &node.children[..]) {
            self.nodes[*read].is_read = true;
        }
        self.nodes.push(node);
        self.plans.push(plan.clone());
        self.equal.entry(key).or_default().push(id);
        Ok(id)
    }

    fn node(&self, plan: &LogicalPlan, children: Vec<Id>) -> Result<Node> {
        let mut depends = false;
        plan.apply_expressions(|expr| {
            depends |= expr.contains_outer();
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut size = 1u64;
        for child in &children {
            size = size.saturating_add(self.nodes[*child].size);
            depends |= self.nodes[*child].depends;
        }
        Ok(Node {
            size,
            children,
            is_read: false,
            depends,
        })
    }

    fn child(&mut self, plan: &LogicalPlan) -> Result<Id> {
        if let Some(id) = self.known.get(&address(plan)) {
            return Ok(*id);
        }
        let id = self.add(plan)?;
        // What it is an input of is kept, so that nothing else comes to lie there.
        self.known.insert(address(plan), id);
        Ok(id)
    }

    /// The parts that are copied, of those that are not copied themselves.
    fn apart(&self, root: Id) -> Vec<Part> {
        let mut copies = vec![0u64; self.nodes.len()];
        copies[root] = 1;
        let mut apart = Vec::new();
        for id in (0..=root).rev() {
            let node = &self.nodes[id];
            let is_part = node.is_read && !node.depends && node.size >= PART && copies[id] > 1;
            if is_part {
                copies[id] = 1;
                let plan = self.plans[id].clone();
                apart.push(Part { id, plan });
            }
            for child in &node.children {
                copies[*child] = copies[*child].saturating_add(copies[id]);
            }
        }
        apart.reverse();
        apart
    }

    /// `plan` with `tables`, scans of the rows of parts, in their places.
    ///
    /// # Errors
    /// None that a statement could cause.
    pub(super) fn in_place(
        &self,
        plan: LogicalPlan,
        tables: &HashMap<Id, LogicalPlan>,
    ) -> DataFusionResult<LogicalPlan> {
        let inputs: Vec<Option<Id>> = plan
            .inputs()
            .into_iter()
            .map(|input| self.known.get(&address(input)).copied())
            .collect();
        let is_read = matches!(plan, LogicalPlan::SubqueryAlias(_));
        let mut inputs = inputs.into_iter();
        let plan = plan.map_children(|child| {
            let table = inputs.next().flatten().and_then(|id| tables.get(&id));
            match table.filter(|_| is_read) {
                Some(table) => Ok(Transformed::yes(table.clone())),
                None => Ok(Transformed::yes(self.in_place(child, tables)?)),
            }
        })?;
        let plan = plan
            .data
            .map_subqueries(|subquery| Ok(Transformed::yes(self.in_place(subquery, tables)?)))?;
        Ok(plan.data)
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::{SubqueryAlias, lit};

    use super::*;

    /// `levels` subqueries, each of which reads the one below twice.
    fn doubled(levels: usize) -> LogicalPlan {
        let mut plan = LogicalPlanBuilder::empty(true)
            .project([lit(1).alias("a")])
            .unwrap()
            .build()
            .unwrap();
        for _ in 0..levels {
            let input = Arc::new(plan);
            let read = |name: &str| {
                LogicalPlan::SubqueryAlias(
                    SubqueryAlias::try_new(Arc::clone(&input), name).unwrap(),
                )
            };
            plan = LogicalPlanBuilder::from(read("x"))
                .cross_join(read("y"))
                .unwrap()
                .project([lit(1).alias("a")])
                .unwrap()
                .build()
                .unwrap();
        }
        plan
    }

    #[test]
    fn a_plan_is_counted_without_walking_through_it() {
        assert!(check(&doubled(10)).is_ok());
        let refused = check(&doubled(60)).unwrap_err();
        assert!(matches!(refused, Error::TooComplex { .. }));
    }

    #[test]
    fn parts_of_large_plans_alone_are_computed_once() {
        assert!(of(&doubled(4)).unwrap().1.is_empty());
        let (_, parts) = of(&doubled(12)).unwrap();
        assert!((3..12).contains(&parts.len()), "{}", parts.len());
    }
}
