//! From an optimised logical plan to a program of Atoll's own engine.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use engine::{Error, Output, Prepared, Query, Result};

use crate::lower::call::failed;
use crate::lower::lowering::Lowering;
use crate::lower::shared;
use crate::lower::source::{scans, source};
use crate::scan::files::external::Files;
use crate::scan::files::table::FileTable;

/// The plan as a program of Atoll's own engine.
///
/// # Errors
/// [`Error::Unsupported`] if DataFusion must run it.
pub(crate) async fn lower(state: &SessionState, plan: &LogicalPlan) -> Result<Prepared> {
    let mut sources = HashMap::new();
    let mut files = HashMap::new();
    for (address, scan) in scans(plan)? {
        let provider = source_as_provider(&scan.source).map_err(failed)?;
        match provider.downcast_ref::<FileTable>() {
            Some(table) => {
                files.insert(address, Files::of(state, &scan, table).map_err(failed)?);
            }
            None => {
                sources.insert(address, source(state, &scan).await?);
            }
        }
    }
    if !files.is_empty() && is_only_read(plan) {
        return Err(Error::Unsupported(
            "files whose rows are all that is wanted: they are delivered as they are read".into(),
        ));
    }
    let mut lowering = Lowering {
        state,
        sources,
        files,
        external: HashMap::new(),
        shared: shared::repeated(plan)?,
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
