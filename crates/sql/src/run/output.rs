//! The columns of a result under the names that people see.

use std::collections::HashSet;
use std::sync::Arc;

use crate::resources::stream::RowStream;
use arrow::datatypes::{Field, FieldRef, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_expr::{Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder};
use futures::StreamExt;

use crate::error::{Error, Result};
use crate::messages::tags::shown;

/// `rows` with columns under the names that people see; two of them may have the same name.
pub(crate) fn named(rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = rows.schema();
    if schema.fields().iter().all(|f| shown(f.name()) == f.name()) {
        return rows;
    }
    let plain = |field: &FieldRef| field.as_ref().clone().with_name(shown(field.name()));
    let fields: Vec<Field> = schema.fields().iter().map(plain).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let of = Arc::clone(&schema);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&of),
            columns,
            &options,
        )?)
    });
    Box::pin(RowStream::new(schema, rows))
}

/// `plan` with columns under the names that people see, for files, where names must differ.
///
/// # Errors
///
/// If two columns have the same name.
pub(crate) fn distinctly_named(plan: LogicalPlan) -> Result<LogicalPlan> {
    let fields = plan.schema().fields();
    let mut taken = HashSet::new();
    if let Some(twice) = fields.iter().find(|f| !taken.insert(shown(f.name()))) {
        return Err(Error::duplicate_column(shown(twice.name())));
    }
    if fields.iter().all(|f| shown(f.name()) == f.name()) {
        return Ok(plan);
    }
    let columns = plan
        .schema()
        .iter()
        .map(|(table, field)| PlanExpr::from((table, field)).alias(shown(field.name())));
    let columns: Vec<PlanExpr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}
