//! From an optimised logical plan to a program of Atoll's own engine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use engine::{Error, Output, Prepared, Query, Result};

use crate::lower::call::failed;
use crate::lower::lowering::Lowering;
use crate::lower::refusal::FirstSight;
use crate::lower::series::Series;
use crate::lower::source::{Source, scans, source};
use crate::lower::subplans::{Common, Subplans};
use crate::scan::files::external::Files;
use crate::scan::files::table::FileTable;

/// What has been found out of a plan, all or parts of which are lowered.
pub(crate) struct Findings<'p> {
    sight: FirstSight,
    /// Which of its subplans are equal.
    pub(super) subplans: Subplans<'p>,
    /// The scans that a part needed so far, by their addresses in the plan.
    sources: HashMap<usize, Arc<Source>>,
    files: HashMap<usize, Arc<Files>>,
}

impl<'p> Findings<'p> {
    /// Looks through `plan`, but at no table.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if DataFusion must run all of it.
    pub(crate) fn of(plan: &'p LogicalPlan) -> Result<Findings<'p>> {
        Ok(Findings {
            sight: FirstSight::of(plan).map_err(failed)?,
            // What cannot be compared is computed each time.
            subplans: Subplans::of(plan).unwrap_or_default(),
            sources: HashMap::new(),
            files: HashMap::new(),
        })
    }

    /// Whether more is to be done in a subplan than to read a table.
    pub(super) fn is_worthwhile(&self, plan: &LogicalPlan) -> bool {
        self.sight.is_worthwhile(plan)
    }

    /// Compiles the filters of those scans of `plan` that no part needed before, and reads what has to be known of their
    /// tables. Returns whether one is of files, or a series.
    async fn prepare(
        &mut self,
        state: &SessionState,
        plan: &LogicalPlan,
        common: &Common<'_>,
    ) -> Result<bool> {
        let mut reads_files = false;
        for (address, scan) in scans(plan, common)? {
            let provider = source_as_provider(&scan.source).map_err(failed)?;
            match provider.downcast_ref::<FileTable>() {
                Some(table) => {
                    reads_files = true;
                    if let Entry::Vacant(place) = self.files.entry(address) {
                        let files = Files::of(state, &scan, table).map_err(failed)?;
                        place.insert(Arc::new(files));
                    }
                }
                None if Series::of(&provider).is_some() => reads_files = true,
                None if self.sources.contains_key(&address) => {}
                None => {
                    let source = source(state, &scan).await?;
                    self.sources.insert(address, Arc::new(source));
                }
            }
        }
        Ok(reads_files)
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
    if let Some(why) = findings.sight.refusal(plan) {
        return Err(Error::Unsupported(why.into()));
    }
    let common = findings.subplans.common(plan);
    let reads_files = findings.prepare(state, plan, &common).await?;
    if reads_files && is_only_read(plan) {
        return Err(Error::Unsupported(
            "files whose rows are all that is wanted: they are delivered as they are read".into(),
        ));
    }
    let mut lowering = Lowering {
        state,
        sources: &findings.sources,
        files: &findings.files,
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
    engine::prepare(lowering.query, root, output)
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
