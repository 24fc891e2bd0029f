//! What is known of the tables of a plan before it is lowered.

use std::collections::HashMap;
use std::sync::Arc;

use crate::planner::Planner;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::{Expr, LogicalPlan, RecursiveQuery, TableScan};
use engine::{Error, Result};
use table::{Dictionary, Filter, Form};

use crate::lower::call::failed;
use crate::lower::subplans::Common;
use crate::scan::provider::Provider;

/// The table of a scan, with what can only be found by reading it.
pub(crate) struct Source {
    pub provider: Provider,
    /// The filters that the scan tests itself.
    pub filters: Vec<Filter>,
    /// The same filters as `explain` shows them.
    pub shown: Vec<String>,
    /// The other filters, each as it is in the plan and as the scan would test it.
    pub tests: Vec<(Expr, Vec<Filter>)>,
    /// Estimated number of rows that pass `filters`.
    pub expected: f64,
    /// Dictionaries of coded columns, by column.
    pub labels: HashMap<usize, Arc<Dictionary>>,
}

/// What a plan reads: a table, or the rows of a recursive query.
pub(super) enum Leaf {
    Scan(TableScan),
    Recursion(RecursiveQuery),
}

/// All that a plan reads, also in subqueries, with the addresses of its scans and recursive queries; but not what is computed
/// elsewhere.
pub(super) fn leaves(plan: &LogicalPlan, common: &Common<'_>) -> Result<Vec<(usize, Leaf)>> {
    let mut found = Vec::new();
    let mut visit = |plan: &LogicalPlan| {
        if common.is_elsewhere(plan) {
            return Ok(TreeNodeRecursion::Jump);
        }
        match plan {
            LogicalPlan::TableScan(scan) => {
                let address = std::ptr::from_ref(scan) as usize;
                found.push((address, Leaf::Scan(scan.clone())));
            }
            LogicalPlan::RecursiveQuery(query) => {
                let address = std::ptr::from_ref(query) as usize;
                found.push((address, Leaf::Recursion(query.clone())));
                return Ok(TreeNodeRecursion::Jump);
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    };
    plan.apply_with_subqueries(&mut visit).map_err(failed)?;
    for plan in common.made() {
        plan.apply_with_subqueries(&mut visit).map_err(failed)?;
    }
    Ok(found)
}

/// Compiles the filters of `scan` and reads the dictionaries of its table.
///
/// # Errors
/// [`Error::Unsupported`] if the table is not in the store; those of reading.
pub(super) async fn source(planner: &Planner, scan: &TableScan) -> Result<Source> {
    let Some(provider) = scan.source.downcast_ref::<Provider>() else {
        return Err(Error::Unsupported(
            "tables that are not in the store".into(),
        ));
    };
    let provider = provider.by_key(&scan.filters).await;
    let provider = provider.map_err(|e| Error::Call(Box::new(e)))?;
    let (mut kept, mut tests) = (Vec::new(), Vec::new());
    for filter in &scan.filters {
        let compiled = provider
            .compile(planner, std::slice::from_ref(filter))
            .map_err(failed)?;
        // What has no encoded form is tested on decoded values anyway: kernels do that faster.
        if compiled.iter().all(|f| matches!(f.form, Form::Any)) {
            tests.push((filter.clone(), compiled))
        } else {
            kept.push(filter.clone())
        }
    }
    let filters = provider.compile(planner, &kept).map_err(failed)?;
    let expected = provider
        .expected(&filters)
        .await
        .map_err(|e| Error::Call(Box::new(e)))?;
    let mut labels = HashMap::new();
    let table = provider.table();
    for column in read(scan, &provider) {
        if table.is_coded(column)
            && let Some(dictionary) = table.dictionary(column).await?
        {
            labels.insert(column, dictionary);
        }
    }
    let mut shown: Vec<String> = kept.iter().map(ToString::to_string).collect();
    if let Some((key, rows)) = provider.table().chosen() {
        shown.insert(0, format!("index {key} ({rows} rows)"));
    }
    Ok(Source {
        provider,
        filters,
        shown,
        tests,
        expected,
        labels,
    })
}

/// The columns of its table that a scan delivers or tests.
fn read(scan: &TableScan, provider: &Provider) -> Vec<usize> {
    let all = 0..provider.table().definition().columns.len();
    let Some(projection) = &scan.projection else {
        return all.collect();
    };
    let schema = provider.table().schema();
    let tested = scan.filters.iter().flat_map(Expr::column_refs);
    let tested: Vec<_> = tested
        .filter_map(|own| schema.index_of(&own.name).ok())
        .collect();
    all.filter(|column| projection.contains(column) || tested.contains(column))
        .collect()
}
