//! The pieces of a source, claimed and opened one after the other: the one loop over sources that all executors run.
//!
//! What is done with a piece's rows is the executor's business: it gives a [`TakePieces`].

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use algebra::VECTOR_ROWS;
use arrow::array::RecordBatch;
use futures::StreamExt;
use memory::Traffic;
use table::{Cursor, Filter, Morsel};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{Error, Result};
use crate::execute::open::OpenSource;
use crate::execute::task::{PipelineTask, node};
use crate::logical::external::Part;
use crate::operators::external_scan::Arrived;
use crate::operators::limit::Limit;
use crate::operators::source::{ColumnReader, Selection};
use crate::vector::rows::Materialized;

/// What an executor does with the pieces of a source.
pub(crate) trait TakePieces: Send {
    /// A piece begins. Pieces, and vectors of rows within one, come in the order of their places in the source.
    fn begin(&mut self, _place: u64) {}

    /// Opens a piece of a scan; `None` if its filters leave no row.
    fn open(&mut self, morsel: Morsel) -> impl Future<Output = Result<Option<Chunk>>> + Send;

    /// The next rows of a part of an external source; `None` after the last.
    fn receive(
        &mut self,
        part: &mut Part,
    ) -> impl Future<Output = Option<Result<RecordBatch>>> + Send {
        part.rows.next()
    }

    /// Takes opened rows; true if no more are needed.
    fn take(&mut self, rows: OpenRows) -> impl Future<Output = Result<bool>> + Send;

    /// A piece is at its end. To be used for letting others work.
    fn end(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// Claims pieces of the source of `task` until there is none left, or `limit` is reached.
///
/// # Errors
/// Those of reading the source, those of `taker`, and [`Error::Cancelled`].
pub(crate) async fn each_piece(
    task: &Arc<PipelineTask>,
    limit: &Limit,
    taker: &mut impl TakePieces,
) -> Result<()> {
    let mut claimant = task.source.claimant();
    while !limit.reached() {
        task.stop.check()?;
        let limit = match &task.source {
            OpenSource::Scan { pieces, .. } => {
                let claimed = claimant.as_mut().and_then(|own| own.claim(node()));
                let Some(piece) = claimed else { break };
                scan(task, &pieces[piece as usize], u64::from(piece) << 32, taker).await?
            }
            OpenSource::Read(opened) => {
                let Some(mut part) = opened.parts.next().await? else {
                    break;
                };
                let mut place = part.number << 32;
                taker.begin(place);
                let mut limit = false;
                while !limit && let Some(rows) = taker.receive(&mut part).await {
                    let arrived = opened.arrived(&rows?)?;
                    let run = 0..arrived.rows;
                    let vectors = run.len().div_ceil(VECTOR_ROWS) as u64;
                    limit = taker
                        .take(OpenRows::run(Hold::Arrived(arrived), run, place))
                        .await?;
                    place += vectors;
                    task.stop.check()?;
                }
                limit
            }
            OpenSource::Spilled { spilled, own, next } => {
                let Some(extent) = own.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                let place = (*extent as u64) << 32;
                taker.begin(place);
                let rows = spilled.get(&spilled.extents[*extent])?;
                let run = 0..rows.rows;
                taker
                    .take(OpenRows::run(Hold::Materialized(rows), run, place))
                    .await?
            }
            OpenSource::Materialized { pieces, next, .. } => {
                let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                let place = piece.start as u64;
                taker.begin(place);
                taker
                    .take(OpenRows::run(
                        Hold::Whole(task.clone()),
                        piece.clone(),
                        place,
                    ))
                    .await?
            }
            OpenSource::Marked { pieces, next, .. } => {
                let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                taker.begin(piece.start as u64);
                taker.take(OpenRows::marked(task, piece.clone())).await?
            }
        };
        if limit {
            break;
        }
        taker.end().await?;
    }
    Ok(())
}

/// Opens the morsels of one piece of a scan; true if no more rows are needed.
async fn scan(
    task: &Arc<PipelineTask>,
    morsels: &[Morsel],
    place: u64,
    taker: &mut impl TakePieces,
) -> Result<bool> {
    taker.begin(place);
    for (at, morsel) in morsels.iter().enumerate() {
        task.stop.check()?;
        let Some(chunk) = taker.open(*morsel).await? else {
            continue;
        };
        // Of these, 2 Mi rows have at most 32, and each has far fewer than 2^24 vectors.
        if taker
            .take(OpenRows::scanned(chunk, place | (at as u64) << 24))
            .await?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What columns that nobody has read yet are read from. It holds the pages of its rows.
pub(crate) enum Hold {
    /// An opened piece of a scan.
    Scan(Chunk),
    /// Rows that were read.
    Arrived(Arrived),
    /// Rows out of the spill file.
    Materialized(Materialized),
    /// What the task's source holds anyway.
    Whole(Arc<PipelineTask>),
}

impl Hold {
    /// Reads columns from it.
    pub fn reader(&self) -> ColumnReader<'_, '_> {
        let task = match self {
            Hold::Arrived(arrived) => return ColumnReader::Arrived(arrived),
            Hold::Materialized(rows) => return ColumnReader::Materialized(rows),
            Hold::Scan(chunk) => &chunk.task,
            Hold::Whole(task) => task,
        };
        match (self, &task.source) {
            (Hold::Scan(chunk), OpenSource::Scan { vars, .. }) => {
                ColumnReader::Scan(&chunk.cursor, vars)
            }
            (_, OpenSource::Materialized { rows, .. }) => ColumnReader::Materialized(rows),
            (_, OpenSource::Marked { table, row, .. }) => ColumnReader::JoinTable(table, *row),
            _ => unreachable!("what is read by pieces is held by them"),
        }
    }
}

/// An opened piece of a scan, and what it borrows from.
pub(crate) struct Chunk {
    /// Invariant: borrows from nothing but `task` and `_traffic`, and is dropped before them.
    cursor: Cursor<'static>,
    task: Arc<PipelineTask>,
    _traffic: Arc<Traffic>,
    /// One of the pieces that may be open at once, where that is limited.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Chunk {
    /// Opens a morsel of the scan of `task`, whose bytes are counted in `traffic`; `None` if its filters leave no row.
    pub async fn open(
        task: &Arc<PipelineTask>,
        morsel: Morsel,
        filters: &[Filter],
        traffic: &Arc<Traffic>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Option<Chunk>> {
        let OpenSource::Scan { scan, vars, .. } = &task.source else {
            return Err(Error::internal("a piece of what is no table"));
        };
        let pool = scan.table().snapshot().pool();
        let filters = task.sinks.filters(filters, scan, vars);
        let opened = scan.open(pool, morsel, &filters, traffic, node).await?;
        Ok(opened.map(|cursor| Chunk {
            // SAFETY: the cursor borrows from the scan and its table's pool, which `task` owns on the heap, and from
            // the counters that `traffic` owns there; neither is changed through a unique reference or moved while it
            // is shared, and the chunk keeps both: its fields are dropped in their order, the cursor first. The
            // lifetime never leaves this module but as a borrow of the chunk. Paid for by reading each column only
            // for the rows that are left when an operator needs it.
            cursor: unsafe { std::mem::transmute::<Cursor<'_>, Cursor<'static>>(cursor) },
            task: task.clone(),
            _traffic: traffic.clone(),
            _permit: permit,
        }))
    }
}

/// Opened rows of a piece, handed out vector by vector.
pub(crate) struct OpenRows {
    pub hold: Hold,
    rows: Vectors,
    /// The place of the next vector in the source.
    pub place: u64,
}

/// Which rows follow.
enum Vectors {
    /// Those that the filters of a scan left.
    Cursor,
    Run(Range<usize>),
    /// These entries of the rows that are marked, or that are not.
    Marked(Range<usize>),
}

impl OpenRows {
    fn scanned(chunk: Chunk, place: u64) -> OpenRows {
        let (hold, rows) = (Hold::Scan(chunk), Vectors::Cursor);
        OpenRows { hold, rows, place }
    }

    fn run(hold: Hold, run: Range<usize>, place: u64) -> OpenRows {
        let rows = Vectors::Run(run);
        OpenRows { hold, rows, place }
    }

    fn marked(task: &Arc<PipelineTask>, entries: Range<usize>) -> OpenRows {
        OpenRows {
            place: entries.start as u64,
            hold: Hold::Whole(task.clone()),
            rows: Vectors::Marked(entries),
        }
    }

    /// Selects the next vector of rows; false at the end.
    pub fn next(&mut self, selection: &mut Selection) -> bool {
        match (&mut self.rows, &mut self.hold) {
            (Vectors::Cursor, Hold::Scan(chunk)) => {
                if !selection.advance(&mut chunk.cursor) {
                    return false;
                }
            }
            (Vectors::Run(rest), _) => {
                let Some(run) = next_vector(rest) else {
                    return false;
                };
                selection.start(run);
            }
            (Vectors::Marked(rest), Hold::Whole(task)) => {
                let (OpenSource::Marked { rows, .. }, Some(run)) =
                    (&task.source, next_vector(rest))
                else {
                    return false;
                };
                selection.list(&rows[run]);
            }
            _ => return false,
        }
        self.place += 1;
        true
    }
}

/// The first vector of `rest`, which goes on behind it.
fn next_vector(rest: &mut Range<usize>) -> Option<Range<usize>> {
    let run = rest.start..rest.end.min(rest.start + VECTOR_ROWS);
    rest.start = run.end;
    (!run.is_empty()).then_some(run)
}
