//! Which row groups and files a query need not read.
//!
//! Statistics of floating-point columns are not asked: the least and greatest values in Parquet leave NaN out, which
//! is greater than all others.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

use crate::scan::files::FileTable;

/// For each file which of its parts can hold rows that pass all `filters`; `None` where nothing can be told.
pub(crate) fn keep(
    state: &dyn Session,
    table: &FileTable,
    filters: &[Expr],
) -> DataFusionResult<Option<Vec<Vec<bool>>>> {
    let named = DFSchema::try_from(table.schema.as_ref().clone())?;
    let mut known = vec![];
    for filter in filters {
        let unqualified = filter.clone().transform(|e| {
            Ok(match e {
                Expr::Column(c) => Transformed::yes(Expr::Column(Column::new_unqualified(c.name))),
                other => Transformed::no(other),
            })
        })?;
        // None has to be understood.
        if state
            .create_physical_expr(unqualified.data.clone(), &named)
            .is_ok()
        {
            known.push(unqualified.data);
        }
    }
    let Some(all) = conjunction(known) else {
        return Ok(None);
    };
    let Ok(all) = state.create_physical_expr(all, &named) else {
        return Ok(None);
    };
    let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&table.schema));
    // None where it would exclude nothing.
    let Some(predicate) = builder.build(all) else {
        return Ok(None);
    };
    let files = 0..table.dataset.files();
    let keep = files.map(|file| {
        let statistics = Statistics { table, file };
        let groups = statistics.num_containers();
        // What cannot be evaluated excludes nothing.
        let kept = predicate.prune(&statistics);
        kept.ok()
            .filter(|kept| kept.len() == groups)
            .unwrap_or_else(|| vec![true; groups])
    });
    Ok(Some(keep.collect()))
}

/// What is known of the parts of one file.
struct Statistics<'a> {
    table: &'a FileTable,
    file: usize,
}

impl Statistics<'_> {
    /// What the file tells of a column, in the type that the table has it in.
    fn of(&self, column: &Column) -> Option<ingest::RowGroups> {
        let schema: &SchemaRef = &self.table.schema;
        let wanted = self
            .table
            .columns
            .get(schema.index_of(&column.name).ok()?)?;
        let own = self.table.dataset.schema().field(wanted.column);
        if own.data_type() != wanted.field.data_type() {
            return None;
        }
        self.table.dataset.statistics(self.file, wanted.column)
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
        self.table.dataset.groups(self.file)
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.of(column)
            .map(|known| Arc::new(known.nulls) as ArrayRef)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    #[allow(clippy::mutable_key_type)] // DataFusion's signature.
    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
