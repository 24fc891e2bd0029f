//! Files, or data frames, as a table that plans read.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion_common::Result as DataFusionResult;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use ingest::{Dataset, Options, Request, Wanted};

use crate::error::{Error, Result};
use crate::scan::files::prune::FileColumns;

/// Least and most bytes of text that one worker reads at a time.
const PIECE_BYTES: (u64, u64) = (1 << 20, 4 << 20);

/// Files as a table.
#[derive(Clone, Debug)]
pub(crate) struct FileTable {
    /// The path or pattern as the statement writes it.
    pub(super) name: String,
    pub(super) dataset: Arc<Dataset>,
    /// The dataset's column behind each column of the table.
    columns: Vec<Wanted>,
    schema: SchemaRef,
    /// Whether rows must come in the order of the files.
    ordered: bool,
}

impl FileTable {
    /// Opens the file of that name, or the files that match it as a pattern.
    pub(crate) async fn open(name: &str) -> Result<FileTable> {
        FileTable::open_with(name, vec![name.into()], Options::default()).await
    }

    /// Opens several paths or patterns with options; messages call them `name`.
    pub(crate) async fn open_with(
        name: &str,
        paths: Vec<PathBuf>,
        options: Options,
    ) -> Result<FileTable> {
        let opened = tokio::task::spawn_blocking(move || Dataset::open(&paths, &options)).await;
        match opened {
            Ok(opened) => Ok(FileTable::of(name, Arc::new(opened?))),
            Err(join) => Err(Error::of_task(join)),
        }
    }

    /// A dataset that is open already; messages call it `name`.
    pub(crate) fn of(name: &str, dataset: Arc<Dataset>) -> FileTable {
        FileTable {
            name: name.into(),
            schema: Arc::clone(dataset.schema()),
            columns: Request::all(&dataset).columns,
            dataset,
            ordered: false,
        }
    }

    /// The same files with hidden columns for the name of the file of each row, and its number there.
    pub(crate) fn with_places(mut self) -> FileTable {
        let own = self.schema.fields();
        let places = self.dataset.places();
        // A file may have columns of these names.
        if places
            .iter()
            .all(|place| own.find(place.field.name()).is_none())
        {
            let hidden = places.iter().map(|place| Arc::clone(&place.field));
            let fields: Vec<FieldRef> = own.iter().cloned().chain(hidden).collect();
            self.schema = Arc::new(Schema::new(fields));
            self.columns.extend(places);
        }
        self
    }

    /// Whether it has the hidden columns of [`FileTable::with_places`].
    pub(crate) fn has_places(&self) -> bool {
        self.columns.len() > self.dataset.schema().fields().len()
    }

    /// The files.
    pub(crate) fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The same files with these columns of them, and with their rows in order.
    pub(crate) fn with_columns(mut self, columns: Vec<Wanted>) -> FileTable {
        let fields: Vec<FieldRef> = columns.iter().map(|column| column.field.clone()).collect();
        self.schema = Arc::new(Schema::new(fields));
        self.columns = columns;
        self.ordered = true;
        self
    }

    /// What to read of the files for some columns of the table, on `width` workers.
    pub(super) fn request(&self, projection: Option<&Vec<usize>>, width: usize) -> Request {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let columns = projection.unwrap_or(&all);
        let bytes = self.dataset.bytes().unwrap_or(u64::MAX);
        let (least, most) = PIECE_BYTES;
        Request {
            columns: columns.iter().map(|c| self.columns[*c].clone()).collect(),
            piece_bytes: (bytes / width.max(1) as u64).clamp(least, most) as usize,
            ahead: true,
            ..Request::of(&self.dataset, [])
        }
    }

    /// The table's columns, for [`prune`].
    pub(super) fn file_columns(&self) -> FileColumns<'_> {
        FileColumns {
            dataset: &self.dataset,
            columns: &self.columns,
            schema: &self.schema,
        }
    }

    /// Estimated number of rows.
    pub(super) fn rows(&self) -> f64 {
        /// Bytes of one value in a file whose number of rows is not known.
        const VALUE_BYTES: u64 = 8;
        let columns = self.dataset.schema().fields().len().max(1) as u64;
        let guess = || self.dataset.bytes().unwrap_or_default() / VALUE_BYTES / columns;
        self.dataset.rows().unwrap_or_else(guess) as f64
    }
}

impl TableSource for FileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        // They only tell what need not be read; the operator above tests them again.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
