//! Claiming and opening the pieces of a source, one after the other. All executors share this loop; each gives a
//! [`TakePieces`] that says what to do with a piece's rows.

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
use crate::logical::external::ExternalPart;
use crate::operators::external_scan::Arrived;
use crate::operators::limit::Limit;
use crate::operators::source::{ColumnReader, Selection};
use crate::options::BLOCK_ROWS;
use crate::vector::rows::Materialized;

/// Places that a vector takes in the order of a source: blocks with fewer rows than a vector have parts of one.
pub(crate) const PLACES: u64 = (VECTOR_ROWS / *BLOCK_ROWS.start()) as u64;

/// What an executor does with the pieces of a source.
pub(crate) trait TakePieces: Send {
    /// A piece begins. Pieces, and the vectors of a piece, come in the order of their places in the source.
    fn begin(&mut self, _place: u64) {}

    /// Opens a morsel of a scan; `None` if its filters leave no row.
    fn open(&mut self, morsel: Morsel) -> impl Future<Output = Result<Option<Chunk>>> + Send;

    /// The next rows of a part of an external source; `None` after the last.
    fn receive(
        &mut self,
        part: &mut ExternalPart,
    ) -> impl Future<Output = Option<Result<RecordBatch>>> + Send {
        part.rows.next()
    }

    /// Processes opened rows. Returns true once the limit is reached.
    fn take(&mut self, rows: OpenRows) -> impl Future<Output = Result<bool>> + Send;

    /// A piece has ended: the place to yield to other tasks.
    fn end(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// Claims and processes pieces of the source of `task` until none is left or `limit` is reached.
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
                    let places = run.len().div_ceil(VECTOR_ROWS) as u64 * PLACES;
                    limit = taker
                        .take(OpenRows::run(Hold::Arrived(arrived), run, place))
                        .await?;
                    place += places;
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
                let rows = spilled.read(&spilled.extents[*extent])?;
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

/// Opens and processes the morsels of one piece of a scan. Returns true once the limit is reached.
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
        // A piece has at most 32 morsels (2 Mi rows), and a morsel far fewer than 2^24 vectors, so places are
        // unique.
        if taker
            .take(OpenRows::scanned(chunk, place | (at as u64) << 24))
            .await?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What late columns are read from. It keeps the rows' pages in memory.
pub(crate) enum Hold {
    /// An open morsel of a scan.
    Scan(Chunk),
    /// Rows received from an external source.
    Arrived(Arrived),
    /// Rows read from the spill file.
    Materialized(Materialized),
    /// Rows that the task's source holds.
    Whole(Arc<PipelineTask>),
}

impl Hold {
    /// A reader of its columns.
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

/// An open morsel of a scan, with what it borrows from.
pub(crate) struct Chunk {
    /// Invariant: borrows from nothing but `task` and `_traffic`, and is dropped before them.
    cursor: Cursor<'static>,
    task: Arc<PipelineTask>,
    _traffic: Arc<Traffic>,
    /// A permit for the morsel to be open, where the number of open morsels is limited.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Chunk {
    /// Opens a morsel of the scan of `task` and counts its bytes in `traffic`; `None` if its filters leave no row.
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
        let filters = task.sink_factory.filters(filters, scan, &vars.columns);
        let opened = scan.open(pool, morsel, &filters, traffic, node).await?;
        Ok(opened.map(|cursor| Chunk {
            // SAFETY: the cursor borrows from the scan and its table's pool, which `task` owns on the heap, and
            // from the counters that `traffic` owns there. Neither is moved, or changed through a unique reference,
            // while it is shared, and the chunk keeps both alive: fields are dropped in order, the cursor first.
            // The lifetime leaves this module only as a borrow of the chunk. The reason for it is late
            // materialisation: each column is read only for the rows that are left when an operator needs it.
            cursor: unsafe { std::mem::transmute::<Cursor<'_>, Cursor<'static>>(cursor) },
            task: task.clone(),
            _traffic: traffic.clone(),
            _permit: permit,
        }))
    }
}

/// The open rows of a piece, handed out a vector at a time.
pub(crate) struct OpenRows {
    pub hold: Hold,
    rows: Vectors,
    /// The place of the next vector in the source.
    pub place: u64,
}

/// Which rows are still to come.
enum Vectors {
    /// The rows that pass the filters of a scan.
    Cursor,
    Run(Range<usize>),
    /// These entries of the list of marked (or unmarked) rows.
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
        self.place += PLACES;
        true
    }
}

/// Cuts the next vector of rows off `rest`.
fn next_vector(rest: &mut Range<usize>) -> Option<Range<usize>> {
    let run = rest.start..rest.end.min(rest.start + VECTOR_ROWS);
    rest.start = run.end;
    (!run.is_empty()).then_some(run)
}
