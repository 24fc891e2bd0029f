//! Recursive terms that are computed without operators: projections and filters over the rows of the round before.

use std::sync::Arc;

use crate::planner::Planner;
use arrow::array::AsArray;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion_common::Result;
use datafusion_common::{DFSchema, internal_err};
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use crate::functions::sequences::calls;
use crate::optimize::expressions::has_subquery;
use crate::optimize::working_table::WorkTable;

/// What is done with a batch of rows.
#[derive(Debug)]
enum Step {
    /// Only these columns stay.
    Columns(Vec<usize>),
    /// Only rows for which this is true stay.
    Filter(Arc<dyn PhysicalExpr>),
    Project {
        exprs: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    },
}

/// A recursive term as steps, one behind the other.
#[derive(Debug)]
pub(in crate::lower) struct Direct(Vec<Step>);

impl Direct {
    /// `term` as steps over the working table of this number; none if it needs operators.
    ///
    /// # Errors
    /// Those of its expressions.
    pub(super) fn of(planner: &Planner, term: &LogicalPlan, number: u64) -> Result<Option<Direct>> {
        let mut steps = Vec::new();
        let mut node = term;
        loop {
            match node {
                LogicalPlan::SubqueryAlias(alias) => node = &alias.input,
                LogicalPlan::Projection(projection) => {
                    let Some(exprs) =
                        compiled(planner, &projection.expr, projection.input.schema())?
                    else {
                        return Ok(None);
                    };
                    let schema = Arc::clone(projection.schema.inner());
                    steps.push(Step::Project { exprs, schema });
                    node = &projection.input;
                }
                LogicalPlan::Filter(filter) => {
                    let predicate = std::slice::from_ref(&filter.predicate);
                    let Some(exprs) = compiled(planner, predicate, filter.input.schema())? else {
                        return Ok(None);
                    };
                    steps.extend(exprs.into_iter().map(Step::Filter));
                    node = &filter.input;
                }
                LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
                    match scan.source.downcast_ref::<WorkTable>() {
                        Some(table) if table.working.number() == number => {}
                        _ => return Ok(None),
                    }
                    steps.extend(scan.projection.clone().map(Step::Columns));
                    steps.reverse();
                    return Ok(Some(Direct(steps)));
                }
                _ => return Ok(None),
            }
        }
    }

    /// The steps, a line each.
    pub(super) fn explain(&self) -> Vec<String> {
        let step = |step: &Step| match step {
            Step::Columns(_) => None,
            Step::Filter(predicate) => Some(format!("filter {predicate}")),
            Step::Project { exprs, .. } => {
                let exprs: Vec<String> = exprs.iter().map(ToString::to_string).collect();
                Some(format!("project {}", exprs.join(", ")))
            }
        };
        let steps = self.0.iter().filter_map(step);
        std::iter::once("computed directly".to_owned())
            .chain(steps)
            .collect()
    }

    /// The rows that the term makes of these; none if there are none.
    ///
    /// # Errors
    /// Those of its expressions.
    pub(super) fn of_rows(&self, rows: &RecordBatch) -> Result<Option<RecordBatch>> {
        let mut rows = rows.clone();
        for step in &self.0 {
            if rows.num_rows() == 0 {
                return Ok(None);
            }
            rows = step.of_rows(rows)?;
        }
        Ok((rows.num_rows() > 0).then_some(rows))
    }
}

/// The expressions over rows of this schema; none if there are subqueries in them, or calls that see rows one by one.
fn compiled(
    planner: &Planner,
    exprs: &[Expr],
    schema: &DFSchema,
) -> Result<Option<Vec<Arc<dyn PhysicalExpr>>>> {
    let (props, context) = (
        planner.execution_props(),
        PhysicalPlanningContext::default(),
    );
    let mut all = Vec::with_capacity(exprs.len());
    for expr in exprs {
        if has_subquery(expr) || calls(expr)? > 0 {
            return Ok(None);
        }
        all.push(create_physical_expr(expr, schema, props, &context)?);
    }
    Ok(Some(all))
}

impl Step {
    fn of_rows(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let count = rows.num_rows();
        match self {
            Step::Columns(columns) => Ok(rows.project(columns)?),
            Step::Filter(predicate) => {
                let passing = predicate.evaluate(&rows)?.into_array(count)?;
                let Some(passing) = passing.as_boolean_opt() else {
                    return internal_err!("a condition is no boolean");
                };
                if passing.true_count() == count {
                    return Ok(rows);
                }
                Ok(filter_record_batch(&rows, passing)?)
            }
            Step::Project { exprs, schema } => {
                let mut columns = Vec::with_capacity(exprs.len());
                for expr in exprs {
                    columns.push(expr.evaluate(&rows)?.into_array(count)?);
                }
                let options = RecordBatchOptions::new().with_row_count(Some(count));
                let schema = Arc::clone(schema);
                Ok(RecordBatch::try_new_with_options(
                    schema, columns, &options,
                )?)
            }
        }
    }
}
