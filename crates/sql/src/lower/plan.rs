//! From an optimised logical plan to a program of Atoll's own engine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, RecursiveQuery};
use engine::{Error, Output, Prepared, Query, Result};
use futures::future::{BoxFuture, FutureExt};

use crate::lower::call::failed;
use crate::lower::lowering::Lowering;
use crate::lower::outside::Outside;
use crate::lower::recursion::{Recursion, Term};
use crate::lower::refusal::FirstSight;
use crate::lower::series::Series;
use crate::lower::source::{Leaf, Source, leaves, source};
use crate::lower::subplans::{Common, Subplans};
use crate::optimize::working_table::WorkTable;
use crate::scan::files::external::Files;
use crate::scan::files::table::FileTable;
use crate::scan::provider::Provider;

/// What has been found out of a plan, all or parts of which are lowered.
pub(crate) struct Findings<'p> {
    sight: FirstSight,
    /// Which of its subplans are equal.
    pub(super) subplans: Subplans<'p>,
    /// The scans that a part needed so far, by their addresses in the plan.
    sources: HashMap<usize, Arc<Source>>,
    files: HashMap<usize, Arc<Files>>,
    /// What other code makes the rows of, by the same addresses.
    outside: HashMap<usize, Arc<Outside>>,
    recursions: HashMap<usize, Arc<Recursion>>,
    /// What that code, and functions, run with.
    task: Arc<TaskContext>,
}

impl<'p> Findings<'p> {
    /// Looks through `plan`, but at no table. What DataFusion runs for the engine runs with `task`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if DataFusion must run all of it.
    pub(crate) fn of(plan: &'p LogicalPlan, task: Arc<TaskContext>) -> Result<Findings<'p>> {
        Ok(Findings {
            sight: FirstSight::of(plan).map_err(failed)?,
            // What cannot be compared is computed each time.
            subplans: Subplans::of(plan).unwrap_or_default(),
            sources: HashMap::new(),
            files: HashMap::new(),
            outside: HashMap::new(),
            recursions: HashMap::new(),
            task,
        })
    }

    /// Whether more is to be done in a subplan than to read a table.
    pub(super) fn is_worthwhile(&self, plan: &LogicalPlan) -> bool {
        self.sight.is_worthwhile(plan)
    }

    /// Whether `plan` reads anything but stored tables.
    async fn reads_others(&mut self, state: &SessionState, plan: &LogicalPlan) -> Result<bool> {
        if let Some(why) = self.sight.refusal(plan) {
            return Err(Error::Unsupported(why.into()));
        }
        let common = self.subplans.common(plan);
        self.prepare(state, plan, &common).await
    }

    /// Compiles the filters of those scans of `plan` that no part needed before, and reads what has to be known of their
    /// tables. Returns whether one is of anything but a stored table.
    async fn prepare(
        &mut self,
        state: &SessionState,
        plan: &LogicalPlan,
        common: &Common<'_>,
    ) -> Result<bool> {
        let mut reads_others = false;
        for (address, leaf) in leaves(plan, common)? {
            let scan = match leaf {
                Leaf::Scan(scan) => scan,
                Leaf::Recursion(query) => {
                    reads_others = true;
                    if let Entry::Vacant(place) = self.recursions.entry(address) {
                        let own = recursion(state, &query, &self.task).await?;
                        place.insert(Arc::new(own));
                    }
                    continue;
                }
            };
            let provider = source_as_provider(&scan.source).map_err(failed)?;
            if let Some(table) = provider.downcast_ref::<FileTable>() {
                reads_others = true;
                if let Entry::Vacant(place) = self.files.entry(address) {
                    let files = Files::of(state, &scan, table).map_err(failed)?;
                    place.insert(Arc::new(files));
                }
            } else if Series::of(&provider).is_some()
                || provider.downcast_ref::<WorkTable>().is_some()
            {
                reads_others = true;
            } else if provider.downcast_ref::<Provider>().is_none() {
                reads_others = true;
                if let Entry::Vacant(place) = self.outside.entry(address) {
                    let own = Outside::of_scan(state, &scan, &provider, &self.task).await?;
                    place.insert(Arc::new(own));
                }
            } else if let Entry::Vacant(place) = self.sources.entry(address) {
                place.insert(Arc::new(source(state, &scan).await?));
            }
        }
        Ok(reads_others)
    }
}

/// The plan, or a part of the plan that `findings` are of, as a program of Atoll's own engine.
///
/// # Errors
/// [`Error::Unsupported`] if DataFusion must run it.
pub(crate) async fn lower(
    state: &SessionState,
    plan: &LogicalPlan,
    findings: &mut Findings<'_>,
) -> Result<Prepared> {
    let reads_others = is_only_read(plan) && findings.reads_others(state, plan).await?;
    if reads_others {
        return Err(Error::Unsupported(
            "rows that are all that is wanted: they are delivered as they are read".into(),
        ));
    }
    program(state, plan, findings).await
}

/// Like [`lower`], but also if the plan only delivers rows as they are read.
///
/// # Errors
/// Those of [`lower`].
async fn program(
    state: &SessionState,
    plan: &LogicalPlan,
    findings: &mut Findings<'_>,
) -> Result<Prepared> {
    if let Some(why) = findings.sight.refusal(plan) {
        return Err(Error::Unsupported(why.into()));
    }
    let common = findings.subplans.common(plan);
    findings.prepare(state, plan, &common).await?;
    let (mut query, root, output) = {
        let mut lowering = Lowering {
            state,
            sources: &findings.sources,
            files: &findings.files,
            outside: &findings.outside,
            recursions: &findings.recursions,
            task: &findings.task,
            external: HashMap::new(),
            common,
            shared: HashMap::new(),
            query: Query::default(),
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
    state: &'a SessionState,
    query: &'a RecursiveQuery,
    task: &'a Arc<TaskContext>,
) -> BoxFuture<'a, Result<Recursion>> {
    async move {
        let (term, number) = Term::direct(state, query)?;
        let term = match term {
            Some(direct) => direct,
            None => Term::Program(whole(state, &query.recursive_term, task).await?, number),
        };
        let first = whole(state, &query.static_term, task).await?;
        Ok(Recursion::new(query, first, term, task))
    }
    .boxed()
}

/// A whole plan as a program.
async fn whole(
    state: &SessionState,
    plan: &LogicalPlan,
    task: &Arc<TaskContext>,
) -> Result<Prepared> {
    let mut findings = Findings::of(plan, Arc::clone(task))?;
    program(state, plan, &mut findings).await
}

/// Whether the plan only delivers rows, or some of them, as they are read.
fn is_only_read(plan: &LogicalPlan) -> bool {
    fn streams(plan: &LogicalPlan, limited: bool) -> bool {
        match plan {
            LogicalPlan::TableScan(_) => true,
            LogicalPlan::Projection(p) => streams(&p.input, limited),
            LogicalPlan::SubqueryAlias(a) => streams(&a.input, limited),
            LogicalPlan::Limit(l) => streams(&l.input, true),
            LogicalPlan::Filter(f) => limited && streams(&f.input, limited),
            LogicalPlan::Union(u) => u.inputs.iter().all(|input| streams(input, limited)),
            _ => false,
        }
    }
    streams(plan, false)
}
