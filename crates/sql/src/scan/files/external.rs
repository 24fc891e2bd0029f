//! Files as an external scan of Atoll's own engine.
//!
//! The engine's workers decode, a piece at a time, only the columns and row groups that the query needs. The engine
//! evaluates all filters itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::planner::Planner;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion_common::Result as DataFusionResult;
use datafusion_expr::TableScan;
use engine::{ExternalPart, ExternalParts, ExternalSource, Opening};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use ingest::{Dataset, Request, RowGroups};
use tokio::sync::Mutex;

use crate::error::Error;
use crate::scan::files::reader::Pieces;
use crate::scan::files::table::FileTable;
use crate::scan::files::{prune, reader};

/// The files of one scan, as the engine reads them.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// As the statement has it.
    name: String,
    /// The columns that are read.
    pub schema: SchemaRef,
    /// Estimated number of rows.
    pub rows: f64,
    /// For each column the least and the greatest value, where the files' statistics tell them.
    pub bounds: Vec<Option<(i128, i128)>>,
    /// For each column whether it may hold NULLs.
    pub nullable: Vec<bool>,
    dataset: Arc<Dataset>,
    request: Request,
}

impl Files {
    /// The files that `scan` reads from `table`.
    pub(crate) fn of(
        planner: &Planner,
        scan: &TableScan,
        table: &FileTable,
    ) -> DataFusionResult<Files> {
        let width = planner.config().target_partitions();
        let mut request = table.request(scan.projection.as_ref(), width);
        request.keep = prune::keep(&table.file_columns(), &scan.filters);
        let fields: Vec<FieldRef> = request.columns.iter().map(|c| c.field.clone()).collect();
        let columns = request.columns.iter().map(|wanted| {
            let own = table.dataset.field(wanted.column);
            if own.data_type() == wanted.field.data_type() {
                known(&table.dataset, wanted.column)
            } else {
                (None, true)
            }
        });
        let (bounds, nullable) = columns.unzip();
        Ok(Files {
            name: table.name.clone(),
            schema: Arc::new(Schema::new(fields)),
            rows: table.rows(),
            bounds,
            nullable,
            dataset: Arc::clone(&table.dataset),
            request,
        })
    }
}

impl Files {
    /// The least and the greatest value of a column in memory, if looking at all of them is worth it for who groups by
    /// them: then they are near each other.
    pub(crate) fn looked_at(&self, column: usize) -> Option<(i128, i128)> {
        /// More groups than this are found by hash in any case.
        const SPAN: u64 = 1 << 20;
        let wanted = &self.request.columns[column];
        let own = self.dataset.field(wanted.column);
        if own.data_type() != wanted.field.data_type() {
            return None;
        }
        let (low, high) = self.dataset.bounds(wanted.column, SPAN)?;
        Some((low.into(), high.into()))
    }
}

/// The bounds of a column's values, if all files tell them, and whether some may be NULL.
fn known(dataset: &Dataset, column: usize) -> (Option<(i128, i128)>, bool) {
    if dataset.is_batches() {
        return (None, !dataset.has_no_nulls(column));
    }
    let (mut bounds, mut complete, mut nullable) = (None::<(i128, i128)>, true, false);
    for file in 0..dataset.files() {
        let Some(groups) = dataset.statistics(file, column) else {
            return (None, true);
        };
        for group in 0..groups.nulls.len() {
            let nulls = groups
                .nulls
                .is_valid(group)
                .then(|| groups.nulls.value(group));
            nullable |= nulls != Some(0);
            let rows = groups
                .rows
                .is_valid(group)
                .then(|| groups.rows.value(group));
            if rows == Some(0) || rows.is_some() && rows == nulls {
                continue;
            }
            match bounds_of(&groups, group) {
                Some((least, greatest)) => {
                    let (low, high) = bounds.unwrap_or((least, greatest));
                    bounds = Some((low.min(least), high.max(greatest)));
                }
                None => complete = false,
            }
        }
    }
    (
        bounds.filter(|(low, high)| complete && low <= high),
        nullable,
    )
}

fn bounds_of(groups: &RowGroups, group: usize) -> Option<(i128, i128)> {
    Some((whole(&groups.mins, group)?, whole(&groups.maxes, group)?))
}

/// A value as a whole number, as the engine holds it.
fn whole(values: &ArrayRef, at: usize) -> Option<i128> {
    if values.is_null(at) || matches!(values.data_type(), DataType::Boolean) {
        return None;
    }
    let mut out = Vec::new();
    table::wides_of(&values.slice(at, 1), &mut out).ok()?;
    out.first().copied()
}

impl ExternalSource for Files {
    fn name(&self) -> &str {
        &self.name
    }

    fn parts(&self) -> usize {
        match &self.request.keep {
            Some(keep) if self.dataset.rows().is_some() => {
                keep.iter().flatten().filter(|kept| **kept).count()
            }
            _ => self.dataset.parts(self.request.piece_bytes),
        }
    }

    fn explain(&self) -> Vec<String> {
        let groups = self.request.keep.as_ref().map(|keep| {
            let all: usize = keep.iter().map(Vec::len).sum();
            let kept = keep.iter().flatten().filter(|kept| **kept).count();
            format!("groups={kept} of {all}")
        });
        groups.into_iter().collect()
    }

    fn open(&self, opening: &Opening<'_>) -> engine::Result<Arc<dyn ExternalParts>> {
        // A pipe is read once: by the first of several.
        let share = match (self.dataset.is_once(), opening.share) {
            (true, (0, _)) => Some((0, 1)),
            (true, _) => None,
            (false, share) => Some(share),
        };
        let request = |share| Request {
            share,
            ..self.request.clone()
        };
        Ok(Arc::new(PieceQueue {
            dataset: Arc::clone(&self.dataset),
            request: share.map(request),
            pieces: Mutex::default(),
        }))
    }
}

/// Hands pieces to workers.
struct PieceQueue {
    dataset: Arc<Dataset>,
    /// `None` if there is nothing to read.
    request: Option<Request>,
    /// The reader, from when the first piece is asked for.
    pieces: Mutex<Option<Pieces>>,
}

impl ExternalParts for PieceQueue {
    fn next(&self) -> BoxFuture<'_, engine::Result<Option<ExternalPart>>> {
        async move {
            let Some(request) = &self.request else {
                return Ok(None);
            };
            let mut pieces = self.pieces.lock().await;
            let begin = || reader::begin(&self.dataset, request.clone());
            let piece = pieces.get_or_insert_with(begin).next().await;
            let Some(piece) = piece.transpose().map_err(ours)? else {
                return Ok(None);
            };
            Ok(Some(ExternalPart {
                number: piece.number,
                rows: stream::iter(decoded(piece)).boxed(),
            }))
        }
        .boxed()
    }
}

/// The batches of a piece, decoded as they are asked for.
fn decoded(
    piece: ingest::Piece,
) -> impl Iterator<Item = engine::Result<arrow::array::RecordBatch>> + Send {
    let mut read = Some(piece.read);
    let mut batches: Option<ingest::Batches> = None;
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        // Decoders of damaged data have been seen to panic.
        let step = AssertUnwindSafe(|| {
            if let Some(read) = read.take() {
                batches = Some(read()?);
            }
            batches.as_mut().and_then(Iterator::next).transpose()
        });
        let next = match catch_unwind(step) {
            Ok(next) => next.map_err(|e| ours(e.into())),
            Err(panic) => Err(ours(Error::of_panic(panic.as_ref()))),
        };
        ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    })
}

fn ours(e: Error) -> engine::Error {
    match e {
        Error::Cancelled => engine::Error::Cancelled,
        e => engine::Error::Call(Box::new(e)),
    }
}
