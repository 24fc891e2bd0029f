//! From an optimised logical plan to a program of Atoll's own engine.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::planner::Planner;
use datafusion_execution::TaskContext;
use datafusion_expr::{LogicalPlan, RecursiveQuery};
use engine::{Error, Output, Prepared, Query, Result};
use futures::future::{BoxFuture, FutureExt};

use crate::lower::lowering::Lowering;
use crate::lower::outside::Outside;
use crate::lower::recursion::{Recursion, Term};
use crate::lower::source::{Leaf, Source, leaves, source};
use crate::lower::subplans::{Common, Subplans};
use crate::optimize::working_table::WorkTable;
use crate::scan::files::external::Files;
use crate::scan::files::table::FileTable;
use crate::scan::provider::Provider;
use crate::scan::series::Series;

/// What has been found out of a plan before it is lowered.
struct Findings<'p> {
    /// Which of its subplans are equal.
    subplans: Subplans<'p>,
    /// The scans, by their addresses in the plan.
    sources: HashMap<usize, Arc<Source>>,
    files: HashMap<usize, Arc<Files>>,
    /// What other code makes the rows of, by the same addresses.
    outside: HashMap<usize, Arc<Outside>>,
    recursions: HashMap<usize, Arc<Recursion>>,
    /// What that code, and functions, run with.
    task: Arc<TaskContext>,
}

impl<'p> Findings<'p> {
    /// Looks through `plan`, but at no table. What other code makes rows of for the engine runs with `task`.
    fn of(plan: &'p LogicalPlan, task: Arc<TaskContext>) -> Findings<'p> {
        Findings {
            // What cannot be compared is computed each time.
            subplans: Subplans::of(plan).unwrap_or_default(),
            sources: HashMap::new(),
            files: HashMap::new(),
            outside: HashMap::new(),
            recursions: HashMap::new(),
            task,
        }
    }

    /// Compiles the filters of the scans of `plan`, and reads what has to be known of their tables.
    async fn prepare(
        &mut self,
        planner: &Planner,
        plan: &LogicalPlan,
        common: &Common<'_>,
        any_order: Option<u64>,
    ) -> Result<()> {
        let mut seen = HashSet::new();
        for (address, leaf) in leaves(plan, common)? {
            if !seen.insert(address) {
                continue;
            }
            let scan = match leaf {
                Leaf::Scan(scan) => scan,
                Leaf::Recursion(query) => {
                    let own = recursion(planner, &query, &self.task, any_order).await?;
                    self.recursions.insert(address, Arc::new(own));
                    continue;
                }
            };
            let table = &scan.source;
            if let Some(table) = table.downcast_ref::<FileTable>() {
                let files = Files::of(planner, &scan, table);
                let files = files.map_err(|e| Error::Call(Box::new(e)))?;
                self.files.insert(address, Arc::new(files));
            } else if table.is::<Provider>() {
                let own = source(planner, &scan).await?;
                self.sources.insert(address, Arc::new(own));
            } else if !table.is::<Series>() && !table.is::<WorkTable>() {
                let own = Outside::of_scan(&scan, &self.task)?;
                self.outside.insert(address, Arc::new(own));
            }
        }
        Ok(())
    }
}

/// A whole plan as a program of Atoll's own engine. What other code makes rows of for it runs with `task`. With a seed `any_order`
/// its joins get any order.
///
/// # Errors
/// [`Error::Unsupported`] for what the engine cannot run; those of reading tables.
pub(crate) async fn lower(
    planner: &Planner,
    plan: &LogicalPlan,
    task: &Arc<TaskContext>,
    any_order: Option<u64>,
) -> Result<Prepared> {
    let mut findings = Findings::of(plan, Arc::clone(task));
    let common = findings.subplans.common(plan);
    findings.prepare(planner, plan, &common, any_order).await?;
    let mut query = Query::default();
    query.any_order = any_order;
    let (mut query, root, output) = {
        let mut lowering = Lowering {
            planner,
            sources: &findings.sources,
            files: &findings.files,
            outside: &findings.outside,
            recursions: &findings.recursions,
            task: &findings.task,
            external: HashMap::new(),
            common,
            shared: HashMap::new(),
            query,
        };
        let (root, vars) = lowering.rel(plan)?;
        let output = Output {
            vars,
            schema: Arc::new(plan.schema().as_arrow().clone()),
        };
        (lowering.query, root, output)
    };
    engine::sample(&mut query, &root).await;
    engine::prepare(query, root, output)
}

/// A recursive query, whose terms are programs of their own.
///
/// Boxed: there may be others within it.
fn recursion<'a>(
    planner: &'a Planner,
    query: &'a RecursiveQuery,
    task: &'a Arc<TaskContext>,
    any_order: Option<u64>,
) -> BoxFuture<'a, Result<Recursion>> {
    async move {
        let (term, number) = Term::direct(planner, query)?;
        let term = match term {
            Some(direct) => direct,
            None => Term::Program(
                lower(planner, &query.recursive_term, task, any_order).await?,
                number,
            ),
        };
        let first = lower(planner, &query.static_term, task, any_order).await?;
        Ok(Recursion::new(query, first, term, task))
    }
    .boxed()
}
