//! Files as tables: `select ... from 'file.parquet'`, `from read_csv('file', ...)`, and the source of `copy ... from`.
//!
//! What a file holds, and how it is read, is the business of the crate `ingest`; here it becomes a source of
//! DataFusion's plans ([`exec`]) and of our engine's ([`engine`]).

mod draw;
mod engine;
mod exec;
mod prune;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use ingest::{Dataset, Format, Options, Request, Wanted};

use crate::error::{Error, Result};
use crate::frontend::parse::FileOptions;

pub(crate) use crate::scan::files::engine::Files;

/// Fewest bytes of text that one worker reads at a time, and most.
const PIECE_BYTES: (u64, u64) = (1 << 20, 4 << 20);

/// The format that a statement asks for, or else the one of the file's extension, as `copy to` calls it.
pub(crate) fn format_for(path: &str, options: &FileOptions) -> Result<&'static str> {
    let format = match &options.format {
        Some(wanted) => Format::named(wanted).ok_or_else(|| unknown_format(wanted))?,
        None => Format::of_name(path).ok_or_else(|| Error::File {
            path: path.into(),
            message:
                "its extension does not tell the format; add `(format parquet|csv|json|arrow)`"
                    .into(),
        })?,
    };
    Ok(match format {
        Format::Parquet => "parquet",
        Format::Json => "json",
        Format::Arrow => "arrow",
        _ => "csv",
    })
}

/// The error for a format that is none of ours.
pub(crate) fn unknown_format(name: &str) -> Error {
    Error::unsupported(format!(
        "no file format \"{name}\"; there are parquet, csv, json and arrow"
    ))
}

/// The options of a `copy ... from`, as they are read.
pub(crate) fn options_of(options: &FileOptions) -> Result<Options> {
    let format = options.format.as_deref();
    Ok(Options {
        format: format
            .map(|name| Format::named(name).ok_or_else(|| unknown_format(name)))
            .transpose()?,
        delimiter: options.delimiter,
        quote: options.quote.map(Some),
        escape: options.escape,
        header: options.header,
        nulls: options.null.iter().cloned().collect(),
        compression: options
            .compression
            .as_deref()
            .map(ingest::Compression::named)
            .transpose()?,
        ..Options::default()
    })
}

impl From<ingest::Error> for Error {
    fn from(e: ingest::Error) -> Error {
        match e {
            ingest::Error::File { path, line, reason } => Error::File {
                path,
                message: match line {
                    Some(line) => format!("line {line}: {reason}"),
                    None => reason,
                },
            },
            ingest::Error::Stopped => Error::Cancelled,
            other => Error::invalid(other.to_string()),
        }
    }
}

/// Files as a table.
#[derive(Clone, Debug)]
pub(crate) struct FileTable {
    /// As the statement has it.
    name: String,
    dataset: Arc<Dataset>,
    /// What the table's columns are in the dataset.
    columns: Vec<Wanted>,
    schema: SchemaRef,
    /// The rows are to come in the order of the files.
    ordered: bool,
}

impl FileTable {
    /// Looks at the file of that name, or at those of the pattern.
    pub(crate) async fn open(name: &str) -> Result<FileTable> {
        FileTable::open_with(name, vec![name.into()], Options::default()).await
    }

    /// The same for several paths and with options; `name` is what messages call them.
    pub(crate) async fn open_with(
        name: &str,
        paths: Vec<PathBuf>,
        options: Options,
    ) -> Result<FileTable> {
        let opened = tokio::task::spawn_blocking(move || Dataset::open(&paths, &options)).await;
        let dataset = match opened {
            Ok(opened) => Arc::new(opened?),
            Err(join) => {
                return Err(match join.try_into_panic() {
                    Ok(panic) => crate::error::panicked(panic.as_ref()),
                    Err(_) => Error::Cancelled,
                });
            }
        };
        let columns = Request::all(&dataset).columns;
        Ok(FileTable {
            name: name.into(),
            schema: Arc::clone(dataset.schema()),
            dataset,
            columns,
            ordered: false,
        })
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

    /// What is to be read of the files for some columns of the table, on `width` workers.
    fn request(&self, projection: Option<&Vec<usize>>, width: usize) -> Request {
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

    /// How many rows there are, about.
    fn rows(&self) -> f64 {
        /// Bytes of a row's value in a file, where nothing tells how many rows it has.
        const VALUE_BYTES: u64 = 8;
        let columns = self.dataset.schema().fields().len().max(1) as u64;
        let guess = || self.dataset.bytes().unwrap_or_default() / VALUE_BYTES / columns;
        self.dataset.rows().unwrap_or_else(guess) as f64
    }
}

#[async_trait]
impl TableProvider for FileTable {
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
        // They only tell what need not be read; whoever asks tests them again.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let width = state.config().target_partitions();
        let mut request = self.request(projection, width);
        request.keep = prune::keep(state, self, filters)?;
        let partitions = match self.ordered {
            true => 1,
            false => self
                .dataset
                .parts(request.piece_bytes)
                .clamp(1, width.max(1)),
        };
        let rows = self.rows() as usize;
        Ok(Arc::new(exec::FilesExec::new(
            self.name.clone(),
            Arc::clone(&self.dataset),
            request,
            // Filters let fewer rows through than a limit asks for.
            limit.filter(|_| filters.is_empty()),
            partitions,
            rows,
        )))
    }
}
