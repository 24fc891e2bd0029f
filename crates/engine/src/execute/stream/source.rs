//! The source operator: opens pieces and passes their rows on as blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use algebra::VECTOR_ROWS;
use arrow::array::RecordBatch;
use table::Morsel;
use tokio::sync::Semaphore;

use crate::error::{Error, Result};
use crate::execute::open::OpenSource;
use crate::execute::pieces::{Chunk, Hold, OpenRows, PLACES, TakePieces, each_piece};
use crate::execute::sink::SinkState;
use crate::execute::stream::block::Block;
use crate::execute::stream::channel::Producer;
use crate::execute::stream::flow::Flow;
use crate::execute::stream::later::Later;
use crate::execute::stream::port::BlockPort;
use crate::execute::stream::read;
use crate::execute::stream::tally::Tally;
use crate::execute::stream::to_end::ToEnd;
use crate::execute::task::PipelineTask;
use crate::logical::external::ExternalPart;
use crate::operators::source::Selection;

/// What the tasks of a source share.
#[derive(Clone)]
pub(crate) struct SharedSource {
    pub flow: Arc<Flow>,
    pub task: Arc<PipelineTask>,
    /// Limits how many pieces are open at once: an open piece pins frames of the buffer pool, whose
    /// number is limited.
    open: Arc<Semaphore>,
    ids: Arc<AtomicU64>,
}

/// The selections of a piece's vectors. Reused from piece to piece.
#[derive(Default)]
struct Vectors {
    selections: Vec<Selection>,
    used: usize,
}

impl Vectors {
    /// Reads the selections of all vectors of `rows`.
    fn read(&mut self, rows: &mut OpenRows) {
        self.used = 0;
        loop {
            if self.used == self.selections.len() {
                self.selections.push(Selection::default());
            }
            if !rows.next(&mut self.selections[self.used]) {
                return;
            }
            self.used += 1;
        }
    }

    fn each(&mut self) -> &mut [Selection] {
        &mut self.selections[..self.used]
    }
}

impl SharedSource {
    pub fn new(flow: &Arc<Flow>, task: &Arc<PipelineTask>) -> SharedSource {
        let most = match &task.source {
            OpenSource::Scan { scan, filters, .. } => {
                let columns = scan.columns().len() + filters.len();
                let pool = scan.table().snapshot().pool();
                let each = columns.max(1) * (table::BLOCK_ROWS * 8 / pool.page_size()).max(1);
                (pool.frames() / 2 / each).clamp(1, 1024)
            }
            _ => 1,
        };
        SharedSource {
            flow: flow.clone(),
            task: task.clone(),
            open: Arc::new(Semaphore::new(most)),
            ids: Arc::default(),
        }
    }
}

/// Delivers blocks to a channel, or takes rows to the end of the pipeline where no other worker would.
pub(crate) struct ToChannel {
    output: Producer<Block>,
    /// The tasks that take blocks out of the channel.
    later: Arc<Later>,
    to_end: ToEnd,
}

impl ToChannel {
    pub fn new(
        flow: &Arc<Flow>,
        task: &Arc<PipelineTask>,
        later: &Arc<Later>,
        output: &Producer<Block>,
    ) -> ToChannel {
        ToChannel {
            later: later.clone(),
            output: output.clone(),
            to_end: ToEnd::new(flow, task),
        }
    }
}

impl BlockPort for ToChannel {
    async fn empty(&mut self, _: &Tally) -> Result<Block> {
        Ok(self.to_end.flow.blocks.get())
    }

    async fn full(&mut self, block: Block, tally: &Tally) -> Result<()> {
        self.later.start();
        if self.output.send(block, &tally.output).await.is_err() {
            return Err(Error::Cancelled);
        }
        self.to_end.flow.yield_now().await;
        Ok(())
    }

    async fn take_on(
        &mut self,
        rows: OpenRows,
        tally: &Tally,
    ) -> Result<std::result::Result<bool, OpenRows>> {
        let keeps = self.to_end.flow.keeps(self.output.queued());
        if !keeps && !self.to_end.is_last() {
            return Ok(Err(rows));
        }
        self.to_end.take_on(rows, tally).await
    }

    fn into_sink(self) -> Option<SinkState> {
        self.to_end.into_sink()
    }
}

/// Rows that make a block worth sending: waking its consumer costs as much as processing some thousand rows.
const WORTH: usize = 4 * VECTOR_ROWS;
/// Pieces after which a block is sent, however few rows it has.
const PIECES: usize = 8;

/// A block being filled, and where it goes.
struct Filling<'s, H> {
    shared: &'s SharedSource,
    tally: &'s Tally,
    port: H,
    block: Option<Block>,
    /// How many pieces it may have rows of.
    pieces: usize,
    vectors: Vectors,
}

impl<H: BlockPort> Filling<'_, H> {
    /// Hands the block on, if there is one.
    async fn flush(&mut self) -> Result<()> {
        self.pieces = 0;
        if let Some(full) = self.block.take() {
            self.tally.count(1, full.rows);
            self.port.full(full, self.tally).await?;
        }
        Ok(())
    }

    /// Adds rows. If they do not fit in the block, sends it first.
    async fn add(&mut self, selection: &mut Selection, hold: &Arc<Hold>, place: u64) -> Result<()> {
        let rows = selection.rows().len();
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
                let mut block = self.port.empty(self.tally).await?;
                block.id = self.shared.ids.fetch_add(1, Ordering::Relaxed);
                self.block.insert(block)
            }
        };
        let part = block.add(self.shared.task.types.len());
        part.batch.restart(rows);
        std::mem::swap(&mut part.selection, selection);
        part.hold = Some(hold.clone());
        part.place = place;
        block.rows += rows;
        Ok(())
    }
}

impl<H: BlockPort> TakePieces for Filling<'_, H> {
    async fn open(&mut self, morsel: Morsel) -> Result<Option<Chunk>> {
        let task = &self.shared.task;
        let OpenSource::Scan { filters, .. } = &task.source else {
            return Ok(None);
        };
        let permit = match self.shared.open.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                // A block that is held back would keep its pieces open for ever.
                self.flush().await?;
                let permit = self.shared.open.clone().acquire_owned().await;
                permit.map_err(|_| Error::internal("pieces closed"))?
            }
        };
        let ordered = self.port.filters();
        let filters = ordered.as_deref().unwrap_or(filters);
        let chunk = {
            let _working = self.tally.work();
            Chunk::open(task, morsel, filters, &task.traffic, Some(permit)).await?
        };
        self.port.opened(chunk.is_some());
        Ok(chunk)
    }

    async fn receive(&mut self, part: &mut ExternalPart) -> Option<Result<RecordBatch>> {
        read::rows(part, self.tally).await
    }

    async fn take(&mut self, rows: OpenRows) -> Result<bool> {
        let mut rows = match self.port.take_on(rows, self.tally).await? {
            Ok(is_reached) => return Ok(is_reached),
            Err(rows) => rows,
        };
        let first = rows.place;
        let mut vectors = std::mem::take(&mut self.vectors);
        vectors.read(&mut rows);
        let hold = Arc::new(rows.hold);
        for (nth, selection) in vectors.each().iter_mut().enumerate() {
            let place = first + nth as u64 * PLACES;
            let (rows, most) = (selection.rows().len(), self.shared.flow.rows);
            if rows <= most {
                self.add(selection, &hold, place).await?;
                continue;
            }
            for (part, from) in (0..rows).step_by(most).enumerate() {
                let mut own = selection.cut(from..rows.min(from + most));
                self.add(&mut own, &hold, place + part as u64).await?;
            }
        }
        self.vectors = vectors;
        Ok(self.shared.flow.limit.reached())
    }

    /// Sends the block if it has enough rows or pieces.
    async fn end(&mut self) -> Result<()> {
        self.pieces += 1;
        let rows = self.block.as_ref().map_or(0, |block| block.rows);
        if rows >= WORTH || self.pieces >= PIECES {
            return self.flush().await;
        }
        // Yields to other tasks in any case.
        self.shared.flow.yield_now().await;
        Ok(())
    }
}

/// A task of the source operator.
pub(crate) async fn scan(
    shared: SharedSource,
    tally: Arc<Tally>,
    port: impl BlockPort,
) -> Result<Option<SinkState>> {
    let mut filling = Filling {
        shared: &shared,
        tally: &tally,
        port,
        block: None,
        pieces: 0,
        vectors: Vectors::default(),
    };
    each_piece(&shared.task, &shared.flow.limit, &mut filling).await?;
    filling.flush().await?;
    Ok(filling.port.into_sink())
}
