//! Recursive terms that are computed without operators: projections and filters over the rows of the round before.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::optimize::recursion::work::Work;

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
pub(super) struct Direct(Vec<Step>);

impl Direct {
    /// `term` as steps; none if it needs operators.
    pub(super) fn of(term: &Arc<dyn ExecutionPlan>) -> Option<Direct> {
        let mut steps = Vec::new();
        let mut node = term;
        loop {
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                let exprs = projection.expr().iter();
                steps.push(Step::Project {
                    exprs: exprs.map(|own| Arc::clone(&own.expr)).collect(),
                    schema: projection.schema(),
                });
                node = projection.input();
            } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
                if filter.fetch().is_some() {
                    return None;
                }
                steps.extend(
                    filter
                        .projection()
                        .iter()
                        .map(|of| Step::Columns(of.to_vec())),
                );
                steps.push(Step::Filter(Arc::clone(filter.predicate())));
                node = filter.input();
            } else if let Some(cooperative) = node.downcast_ref::<CooperativeExec>() {
                node = cooperative.input();
            } else {
                let work = node.downcast_ref::<Work>()?;
                steps.extend(work.projection().map(|of| Step::Columns(of.to_vec())));
                break;
            }
        }
        steps.reverse();
        Some(Direct(steps))
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
