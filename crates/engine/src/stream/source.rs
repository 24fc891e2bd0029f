//! The source operator: opens pieces, and hands their rows on as blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use algebra::VECTOR_ROWS;
use tokio::sync::Semaphore;

use super::{Block, Chunk, Flow, Hold, Producer, Tally};
use crate::error::{Error, Result};
use crate::execution::Execution;
use crate::run::{End, Job, Opened, node};
use crate::source::Origin;

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
    pub fn new(flow: &Arc<Flow>, job: &Arc<Job>, execution: &Execution) -> Shared {
        let most = match &job.source {
            Opened::Scan { scan, filters, .. } => {
                let columns = scan.columns().len() + filters.len();
                let pool = scan.table().snapshot().pool();
                let each = columns.max(1) * (table::BLOCK_ROWS * 8 / pool.page_size()).max(1);
                (pool.frames() / 2 / each).clamp(1, 1024)
            }
            _ => 1,
        };
        let _ = execution;
        Shared {
            flow: flow.clone(),
            job: job.clone(),
            open: Arc::new(Semaphore::new(most)),
            ids: Arc::default(),
        }
    }

    fn block(&self) -> Block {
        let mut block = self.flow.blocks.get();
        block.id = self.ids.fetch_add(1, Ordering::Relaxed);
        block
    }
}

/// A block being filled, and where it goes.
struct Filling<'s> {
    shared: &'s Shared,
    tally: &'s Tally,
    output: &'s Producer<Block>,
    block: Block,
}

impl Filling<'_> {
    /// Hands the block on, unless it is empty.
    async fn flush(&mut self) -> Result<()> {
        if self.block.rows == 0 {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.block, self.shared.block());
        self.tally.count(1, full.rows);
        if self.output.send(full, &self.tally.output).await.is_err() {
            return Err(Error::Cancelled);
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Adds rows; a block that is full goes first.
    async fn add(&mut self, origin: &mut Origin, hold: &Arc<Hold>) -> Result<()> {
        let rows = origin.rows().len();
        if self.block.rows + rows > self.shared.flow.rows {
            self.flush().await?;
        }
        let part = self.block.add(self.shared.job.types.len());
        part.batch.restart(rows);
        std::mem::swap(&mut part.origin, origin);
        part.hold = Some(hold.clone());
        self.block.rows += rows;
        Ok(())
    }
}

/// A task of a source.
pub(crate) async fn scan(
    shared: Shared,
    tally: Arc<Tally>,
    output: Producer<Block>,
) -> Result<Option<End>> {
    let (flow, job) = (&*shared.flow, &shared.job);
    let mut filling = Filling {
        shared: &shared,
        tally: &tally,
        output: &output,
        block: shared.block(),
    };
    let mut runs = Runs::default();
    let mut origin = Origin::default();
    let whole = Arc::new(Hold::Whole(job.clone()));
    while !flow.enough.load(Ordering::Relaxed) {
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
                for morsel in &pieces[piece as usize] {
                    flow.check()?;
                    let permit = match shared.open.clone().try_acquire_owned() {
                        Ok(permit) => permit,
                        Err(_) => {
                            // Blocks that are not handed on would keep their pieces open for ever.
                            filling.flush().await?;
                            let permit = shared.open.clone().acquire_owned().await;
                            permit.map_err(|_| Error::internal("pieces closed"))?
                        }
                    };
                    let chunk = {
                        let _working = tally.work();
                        Chunk::open(job, *morsel, filters, permit).await?
                    };
                    let Some(mut chunk) = chunk else { continue };
                    runs.read(&mut chunk);
                    let hold = Arc::new(Hold::Scan(chunk));
                    for origin in runs.origins() {
                        filling.add(origin, &hold).await?;
                    }
                }
            }
            Opened::Stored { pieces, next, .. } => {
                let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                for start in piece.clone().step_by(VECTOR_ROWS) {
                    origin.start(start..(start + VECTOR_ROWS).min(piece.end));
                    filling.add(&mut origin, &whole).await?;
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
                    filling.add(&mut origin, &whole).await?;
                }
            }
        }
        filling.flush().await?;
    }
    flow.blocks.put(std::mem::take(&mut filling.block));
    Ok(None)
}
