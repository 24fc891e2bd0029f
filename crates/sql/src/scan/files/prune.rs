//! Which row groups and files a query need not read.
//!
//! Statistics of floating-point columns are not used: Parquet's least and greatest values leave out NaN, which is
//! greater than all others.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use ingest::{Dataset, Wanted};

use crate::scan::predicate::unqualified;

/// The columns of a table of files.
pub(super) struct FileColumns<'a> {
    pub dataset: &'a Dataset,
    /// The dataset's column behind each column of the table.
    pub columns: &'a [Wanted],
    pub schema: &'a SchemaRef,
}

/// For each file, which of its row groups may have rows that pass all `filters`; `None` if all of them may.
pub(super) fn keep(
    state: &dyn Session,
    files: &FileColumns<'_>,
    filters: &[Expr],
) -> DataFusionResult<Option<Vec<Vec<bool>>>> {
    if files.dataset.is_batches() {
        return Ok(None);
    }
    let named = DFSchema::try_from(files.schema.as_ref().clone())?;
    let mut known = vec![];
    for filter in filters {
        let plain = unqualified(filter)?;
        // A filter that cannot be planned excludes nothing.
        if state.create_physical_expr(plain.clone(), &named).is_ok() {
            known.push(plain);
        }
    }
    let Some(all) = conjunction(known) else {
        return Ok(None);
    };
    let Ok(all) = state.create_physical_expr(all, &named) else {
        return Ok(None);
    };
    let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(files.schema));
    // `None` where it would exclude nothing.
    let Some(predicate) = builder.build(all) else {
        return Ok(None);
    };
    let keep = (0..files.dataset.files()).map(|file| {
        let statistics = Statistics { files, file };
        let groups = statistics.num_containers();
        // What cannot be evaluated excludes nothing.
        let kept = predicate.prune(&statistics);
        kept.ok()
            .filter(|kept| kept.len() == groups)
            .unwrap_or_else(|| vec![true; groups])
    });
    Ok(Some(keep.collect()))
}

/// Statistics of the row groups of one file.
struct Statistics<'a> {
    files: &'a FileColumns<'a>,
    file: usize,
}

impl Statistics<'_> {
    /// The statistics of a column, if the file has it in the type of the table.
    fn of(&self, column: &Column) -> Option<ingest::RowGroups> {
        let FileColumns {
            dataset,
            columns,
            schema,
        } = self.files;
        let wanted = columns.get(schema.index_of(&column.name).ok()?)?;
        let own = dataset.field(wanted.column);
        if own.data_type() != wanted.field.data_type() {
            return None;
        }
        dataset.statistics(self.file, wanted.column)
    }
}

impl PruningStatistics for Statistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.of(column).map(|known| known.mins)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.of(column).map(|known| known.maxes)
    }

    fn num_containers(&self) -> usize {
        self.files.dataset.groups(self.file)
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.of(column)
            .map(|known| Arc::new(known.nulls) as ArrayRef)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    #[allow(clippy::mutable_key_type, reason = "the signature is DataFusion's")]
    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
