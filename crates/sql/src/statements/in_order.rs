//! Rows of tables that were created with `order by`: those that are written together are brought in order, so that the zones of
//! their blocks are narrow.

use std::pin::Pin;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::DataType;
use datafusion_expr::Expr;
use datafusion_expr::{LogicalPlan, LogicalPlanBuilder, SortExpr};
use futures::{Stream, StreamExt};
use memory::Budget;
use table::{Definition, Keys};

use crate::error::Result;
use crate::statements::larger::larger;

/// `plan`, which delivers all rows that an `insert` writes, with the columns of its table, in the order of the table.
///
/// # Errors
/// Those of the planner.
pub(crate) fn planned(plan: LogicalPlan, definition: &Definition) -> Result<LogicalPlan> {
    let own = definition.columns.len();
    let columns = plan.schema().columns();
    let plain = |at: &usize| !matches!(definition.columns[*at].data_type, DataType::Struct(_));
    if definition.order.is_empty() || columns.len() != own || !definition.order.iter().all(plain) {
        return Ok(plan);
    }
    let keys = definition.order.iter();
    let keys = keys.map(|at| SortExpr::new(Expr::Column(columns[*at].clone()), true, false));
    let keys: Vec<SortExpr> = keys.collect();
    Ok(LogicalPlanBuilder::from(plan).sort(keys)?.build()?)
}

/// Rows of a stream.
pub(crate) type Rows<'s> = Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send + 's>>;

/// The `rows`, which are written to the table of `definition`: if it has an order, as many at once in this order as `budget` has
/// room for.
pub(crate) fn sorted<'s>(
    rows: impl Stream<Item = Result<RecordBatch>> + Send + 's,
    definition: &'s Definition,
    budget: &Arc<Budget>,
) -> Rows<'s> {
    if definition.order.is_empty() {
        return Box::pin(rows);
    }
    let own = |batch: Result<RecordBatch>| -> Result<RecordBatch> {
        Ok(table::normalise(&batch?, definition)?)
    };
    let rows = larger(rows.map(own), Arc::clone(budget));
    Box::pin(rows.map(|batch| batch_in_order(batch?, &definition.order)))
}

/// The rows of a batch in the order of some of its columns; those with a NULL in one of them are the last.
fn batch_in_order(batch: RecordBatch, order: &[usize]) -> Result<RecordBatch> {
    let columns: Vec<_> = order.iter().map(|at| batch.column(*at).clone()).collect();
    let keys = Keys::of(&columns)?;
    let of = |row: u32| {
        let key = keys.get(row as usize);
        (key.is_none(), key)
    };
    let rows = 0..batch.num_rows() as u32;
    if rows.clone().is_sorted_by_key(of) {
        return Ok(batch);
    }
    let mut rows: Vec<u32> = rows.collect();
    rows.sort_by_key(|row| of(*row));
    Ok(take_record_batch(&batch, &UInt32Array::from(rows))?)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
    use arrow::datatypes::Int64Type;
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn rows_that_come_together_are_in_order() {
        let batch = |a: Vec<Option<i64>>| {
            let texts: StringViewArray = a.iter().map(|a| a.map(|a| (a % 3).to_string())).collect();
            let (a, b): (ArrayRef, ArrayRef) = (Arc::new(Int64Array::from(a)), Arc::new(texts));
            RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, true)]).unwrap()
        };
        let rows = vec![Some(7), None, Some(-2), Some(4)];
        let batches = [batch(rows), batch(vec![Some(3), Some(2)])];
        let mut definition = Definition::from_schema("t", &batches[0].schema()).unwrap();
        for (order, wanted) in [
            (vec![], [Some(7), None, Some(-2), Some(4), Some(3), Some(2)]),
            (
                vec![0],
                [Some(-2), Some(2), Some(3), Some(4), Some(7), None],
            ),
            (
                vec![1, 0],
                [Some(-2), Some(3), Some(4), Some(7), Some(2), None],
            ),
        ] {
            definition.order = order;
            let rows = stream::iter(batches.clone().map(Ok));
            let budget = Budget::new(1 << 30);
            let found: Vec<_> = sorted(rows, &definition, &budget).collect().await;
            let found = found.into_iter().flat_map(|batch| {
                let batch = batch.unwrap();
                batch
                    .column(0)
                    .as_primitive::<Int64Type>()
                    .iter()
                    .collect::<Vec<_>>()
            });
            assert_eq!(found.collect::<Vec<_>>(), wanted, "{:?}", definition.order);
        }
    }
}
