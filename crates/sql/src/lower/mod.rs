//! From DataFusion's optimised logical plans to relations of our engine.
//!
//! What has no counterpart is refused with [`engine::Error::Unsupported`], and DataFusion runs the statement.
//! Functions without a kernel are no reason to refuse: they are called on Arrow arrays, once per label where they
//! read one coded text.

mod call;
mod expr;
pub(crate) mod hybrid;
mod join;
mod rel;
mod shared;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use engine::{Error, Output, Prepared, Query, Result};
use table::{Dictionary, Filter, Form};

use crate::scan::files::{FileTable, Files};
use crate::scan::provider::Provider;

pub(crate) use crate::scan::failure::failed;

/// A scan's table, and what can only be found by reading.
pub(crate) struct Source {
    pub provider: Provider,
    /// Those of the scan's filters that the scan tests itself, and how it is to show them.
    pub filters: Vec<Filter>,
    pub shown: Vec<String>,
    /// The others, each as it is in the plan and as the scan would test it.
    pub tests: Vec<(Expr, Vec<Filter>)>,
    pub expected: f64,
    /// By column.
    pub labels: HashMap<usize, Arc<Dictionary>>,
}

/// The plan as a program of our engine.
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
                files.insert(address, Files::of(state, &scan, table)?);
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

pub(crate) struct Lowering<'a> {
    state: &'a SessionState,
    /// By the address of the scan, which stays where it is while the plan is borrowed.
    sources: HashMap<usize, Source>,
    /// The same for files.
    files: HashMap<usize, Files>,
    /// Aggregates that the plan has more than once, and what the first became.
    shared: HashMap<LogicalPlan, Option<shared::Shared>>,
    query: Query,
}

/// Whether rows are delivered, or some of them, as they are read.
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

/// All scans of a plan, those of subqueries included, and their addresses.
fn scans(plan: &LogicalPlan) -> Result<Vec<(usize, TableScan)>> {
    let mut found = Vec::new();
    let visit = |plan: &LogicalPlan| {
        if let LogicalPlan::TableScan(scan) = plan {
            found.push((std::ptr::from_ref(scan) as usize, scan.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    };
    plan.apply_with_subqueries(visit).map_err(failed)?;
    Ok(found)
}

async fn source(state: &SessionState, scan: &TableScan) -> Result<Source> {
    let provider = source_as_provider(&scan.source).map_err(failed)?;
    let Some(provider) = provider.downcast_ref::<Provider>() else {
        return Err(Error::Unsupported(
            "tables that are not in the store".into(),
        ));
    };
    let provider = provider.clone();
    let (mut kept, mut tests) = (Vec::new(), Vec::new());
    for filter in &scan.filters {
        let compiled = provider
            .compile(state, std::slice::from_ref(filter))
            .map_err(failed)?;
        // What has no encoded form is tested on decoded values anyway: kernels do that faster.
        match compiled.iter().all(|f| matches!(f.form, Form::Any)) {
            true => tests.push((filter.clone(), compiled)),
            false => kept.push(filter.clone()),
        }
    }
    let filters = provider.compile(state, &kept).map_err(failed)?;
    let expected = provider
        .expected(&filters)
        .await
        .map_err(|e| Error::Call(Box::new(e)))?;
    let mut labels = HashMap::new();
    let table = provider.table();
    for column in 0..table.definition().columns.len() {
        if table.is_coded(column)
            && let Some(dictionary) = table.dictionary(column).await?
        {
            labels.insert(column, dictionary);
        }
    }
    Ok(Source {
        provider,
        filters,
        shown: kept.iter().map(ToString::to_string).collect(),
        tests,
        expected,
        labels,
    })
}
