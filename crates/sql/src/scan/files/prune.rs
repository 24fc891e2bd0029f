//! Which row groups and files a query need not read.
//!
//! Statistics of floating-point columns are not used: Parquet's least and greatest values leave out NaN, which is
//! greater than all others.

use arrow::datatypes::SchemaRef;
use datafusion_expr::Expr;
use ingest::{Dataset, Wanted};

use crate::scan::prune::{ZoneBounds, Zones, kept};

/// The columns of a table of files.
pub(super) struct FileColumns<'a> {
    pub dataset: &'a Dataset,
    /// The dataset's column behind each column of the table.
    pub columns: &'a [Wanted],
    pub schema: &'a SchemaRef,
}

/// For each file, which of its row groups may have rows that pass all `filters`; `None` if all of them may.
pub(super) fn keep(files: &FileColumns<'_>, filters: &[Expr]) -> Option<Vec<Vec<bool>>> {
    if files.dataset.is_batches() || filters.is_empty() {
        return None;
    }
    let mut excludes = false;
    let keep = (0..files.dataset.files()).map(|file| {
        let groups = Groups { files, file };
        let kept = kept(filters, files.schema, &groups);
        excludes |= kept.is_some();
        kept.unwrap_or_else(|| vec![true; groups.count()])
    });
    let keep = keep.collect();
    excludes.then_some(keep)
}

/// The row groups of one file.
struct Groups<'a> {
    files: &'a FileColumns<'a>,
    file: usize,
}

impl Zones for Groups<'_> {
    fn count(&self) -> usize {
        self.files.dataset.groups(self.file)
    }

    /// Of a column that the file has in the type of the table.
    fn bounds(&self, column: &str) -> Option<ZoneBounds> {
        let FileColumns {
            dataset,
            columns,
            schema,
        } = self.files;
        let wanted = columns.get(schema.index_of(column).ok()?)?;
        let own = dataset.field(wanted.column);
        if own.data_type() != wanted.field.data_type() {
            return None;
        }
        let known = dataset.statistics(self.file, wanted.column)?;
        Some(ZoneBounds {
            min: known.mins,
            max: known.maxes,
            nulls: known.nulls,
        })
    }
}
