//! The source operator: opens pieces, and hands their rows on as blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use algebra::VECTOR_ROWS;
use tokio::sync::Semaphore;

use super::{Block, Chunk, Flow, Hold, Producer, Tally, read};
use crate::error::{Error, Result};
use crate::run::{End, Job, Opened, node};
use crate::source::Origin;
use crate::staged::Order;

/// What the tasks of a source share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub flow: Arc<Flow>,
    pub job: Arc<Job>,
    /// One for each piece that may be open at once: opened pieces hold frames of the pool, which has so many.
    open: Arc<Semaphore>,
    ids: Arc<AtomicU64>,
}

/// The rows of a piece, as vectors of them.
#[derive(Default)]
pub(crate) struct Runs {
    origins: Vec<Origin>,
    used: usize,
}

impl Runs {
    /// All rows that `chunk` has.
    pub fn read(&mut self, chunk: &mut Chunk) {
        self.used = 0;
        loop {
            if self.used == self.origins.len() {
                self.origins.push(Origin::default());
            }
            if !chunk.advance(&mut self.origins[self.used]) {
                return;
            }
            self.used += 1;
        }
    }

    pub fn origins(&mut self) -> &mut [Origin] {
        &mut self.origins[..self.used]
    }
}

impl Shared {
    pub fn new(flow: &Arc<Flow>, job: &Arc<Job>) -> Shared {
        let most = match &job.source {
            Opened::Scan { scan, filters, .. } => {
                let columns = scan.columns().len() + filters.len();
                let pool = scan.table().snapshot().pool();
                let each = columns.max(1) * (table::BLOCK_ROWS * 8 / pool.page_size()).max(1);
                (pool.frames() / 2 / each).clamp(1, 1024)
            }
            _ => 1,
        };
        Shared {
            flow: flow.clone(),
            job: job.clone(),
            open: Arc::new(Semaphore::new(most)),
            ids: Arc::default(),
        }
    }
}

/// Where a source gets empty blocks, and takes full ones.
pub(crate) trait Hand: Send {
    /// A block without rows.
    fn empty(&mut self, tally: &Tally) -> impl Future<Output = Result<Block>> + Send;

    /// Hands a block with rows on.
    fn full(&mut self, block: Block, tally: &Tally) -> impl Future<Output = Result<()>> + Send;

    /// The filters of the scan in the order in which they are to be tested, if it is not that of the plan.
    fn order(&self) -> Option<Arc<Order>> {
        None
    }

    /// A piece was opened; whether rows of it are left.
    fn opened(&self, _left: bool) {}
}

/// Into a channel.
pub(crate) struct Sending {
    pub flow: Arc<Flow>,
    pub output: Producer<Block>,
}

impl Hand for Sending {
    async fn empty(&mut self, _: &Tally) -> Result<Block> {
        Ok(self.flow.blocks.get())
    }

    async fn full(&mut self, block: Block, tally: &Tally) -> Result<()> {
        if self.output.send(block, &tally.output).await.is_err() {
            return Err(Error::Cancelled);
        }
        tokio::task::yield_now().await;
        Ok(())
    }
}

/// Rows of a block that are worth handing on: waking whoever waits for them costs as much as some thousand rows.
const WORTH: usize = 4 * VECTOR_ROWS;
/// Pieces after which a block is handed on, however few rows the filters leave.
const PIECES: usize = 8;

/// A block being filled, and where it goes.
struct Filling<'s, H> {
    shared: &'s Shared,
    tally: &'s Tally,
    hand: H,
    block: Option<Block>,
    /// How many pieces it may have rows of.
    pieces: usize,
}

impl<H: Hand> Filling<'_, H> {
    /// A piece is at its end: hands the block on if it is worth it.
    async fn piece(&mut self) -> Result<()> {
        self.pieces += 1;
        let rows = self.block.as_ref().map_or(0, |block| block.rows);
        if rows >= WORTH || self.pieces >= PIECES {
            return self.flush().await;
        }
        // The worker is free for others in between all the same.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Hands the block on, if there is one.
    async fn flush(&mut self) -> Result<()> {
        self.pieces = 0;
        if let Some(full) = self.block.take() {
            self.tally.count(1, full.rows);
            self.hand.full(full, self.tally).await?;
        }
        Ok(())
    }

    /// Adds rows; a block that is full goes first.
    async fn add(&mut self, origin: &mut Origin, hold: &Arc<Hold>, place: u64) -> Result<()> {
        let rows = origin.rows().len();
        let most = self.shared.flow.rows;
        if self
            .block
            .as_ref()
            .is_some_and(|block| block.rows + rows > most)
        {
            self.flush().await?;
        }
        let block = match &mut self.block {
            Some(block) => block,
            None => {
                let mut block = self.hand.empty(self.tally).await?;
                block.id = self.shared.ids.fetch_add(1, Ordering::Relaxed);
                self.block.insert(block)
            }
        };
        let part = block.add(self.shared.job.types.len());
        part.batch.restart(rows);
        std::mem::swap(&mut part.origin, origin);
        part.hold = Some(hold.clone());
        part.place = place;
        block.rows += rows;
        Ok(())
    }
}

/// A task of a source.
pub(crate) async fn scan(
    shared: Shared,
    tally: Arc<Tally>,
    hand: impl Hand,
) -> Result<Option<End>> {
    let (flow, job) = (&*shared.flow, &shared.job);
    let mut filling = Filling {
        shared: &shared,
        tally: &tally,
        hand,
        block: None,
        pieces: 0,
    };
    let mut runs = Runs::default();
    let mut origin = Origin::default();
    let whole = Arc::new(Hold::Whole(job.clone()));
    while !flow.enough.reached() {
        flow.check()?;
        match &job.source {
            Opened::Scan {
                filters,
                pieces,
                morsels,
                ..
            } => {
                let Some(piece) = morsels.claim(node()) else {
                    break;
                };
                for (at, morsel) in pieces[piece as usize].iter().enumerate() {
                    flow.check()?;
                    let permit = match shared.open.clone().try_acquire_owned() {
                        Ok(permit) => permit,
                        Err(_) => {
                            // A block that is not handed on would keep its pieces open for ever.
                            filling.flush().await?;
                            let permit = shared.open.clone().acquire_owned().await;
                            permit.map_err(|_| Error::internal("pieces closed"))?
                        }
                    };
                    let order = filling.hand.order();
                    let filters = order.as_ref().map_or(&filters[..], |order| &order.filters);
                    let chunk = {
                        let _working = tally.work();
                        Chunk::open(job, *morsel, filters, permit).await?
                    };
                    filling.hand.opened(chunk.is_some());
                    let Some(mut chunk) = chunk else { continue };
                    runs.read(&mut chunk);
                    let hold = Arc::new(Hold::Scan(chunk));
                    // Of these, 2 Mi rows have at most 32, and each has far fewer than 2^24 vectors.
                    let first = u64::from(piece) << 32 | (at as u64) << 24;
                    for (nth, origin) in runs.origins().iter_mut().enumerate() {
                        filling.add(origin, &hold, first | nth as u64).await?;
                    }
                }
            }
            Opened::Read(opened) => {
                let Some(mut part) = opened.parts.next().await? else {
                    break;
                };
                let mut place = part.number << 32;
                while let Some(rows) = read::rows(&mut part, &tally).await {
                    let arrived = opened.arrived(&rows?)?;
                    let rows = arrived.rows;
                    let hold = Arc::new(Hold::Arrived(arrived));
                    for start in (0..rows).step_by(VECTOR_ROWS) {
                        origin.start(start..(start + VECTOR_ROWS).min(rows));
                        filling.add(&mut origin, &hold, place).await?;
                        place += 1;
                    }
                    flow.check()?;
                    if flow.enough.reached() {
                        break;
                    }
                }
            }
            Opened::Stored { pieces, next, .. } => {
                let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                for start in piece.clone().step_by(VECTOR_ROWS) {
                    origin.start(start..(start + VECTOR_ROWS).min(piece.end));
                    filling.add(&mut origin, &whole, start as u64).await?;
                }
            }
            Opened::Filed { filed, own, next } => {
                let Some(extent) = own.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                let stored = {
                    let _working = tally.work();
                    filed.get(&filed.extents[*extent])?
                };
                let rows = stored.rows;
                let hold = Arc::new(Hold::Stored(stored));
                let first = (*extent as u64) << 32;
                for start in (0..rows).step_by(VECTOR_ROWS) {
                    origin.start(start..(start + VECTOR_ROWS).min(rows));
                    filling
                        .add(&mut origin, &hold, first + start as u64)
                        .await?;
                }
            }
            Opened::Marked {
                rows, pieces, next, ..
            } => {
                let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                for some in rows[piece.clone()].chunks(VECTOR_ROWS) {
                    origin.list(some);
                    let place = u64::from(some[0]);
                    filling.add(&mut origin, &whole, place).await?;
                }
            }
        }
        filling.piece().await?;
    }
    filling.flush().await?;
    Ok(None)
}
