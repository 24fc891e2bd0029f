//! Reads pieces of a source and stores them as blocks, with all workers, in order, in bounded memory.
//!
//! 1. A worker claims the next piece: a row group, a range of lines, a part of a generated table.
//! 2. It decodes the piece. If the lengths of all pieces so far are known, so is the place of each batch in the table,
//!    and its rows go to the assembler at once. Otherwise the piece is small: it is decoded as a whole, and waits until
//!    the pieces before it have their places.
//! 3. A complete block is put on a queue. Workers take blocks from the queue before they claim pieces, so that even a
//!    single long piece keeps all of them busy; a worker that finds the queue full encodes a block itself.
//!
//! Memory: at most `2 * width` pieces are in flight and about `width` blocks are queued; fewer where so many blocks of the
//! size that was seen so far would take more than the memory that there is.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::error::Error;
use crate::import::assemble::{Assembler, Block};

/// Bytes of a block before one was seen.
const EXPECTED_BLOCK: u64 = 16 << 20;
/// Blocks that are in memory for each piece in flight: one that it fills, one that is queued or encoded, and what is decoded.
const BLOCKS_OF_PIECE: u64 = 3;

/// How often the caller is told the progress.
const TICK: Duration = Duration::from_millis(100);

/// The batches of one piece, in order.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

/// The pieces of a source, in order. Drawing a piece may read from the file; decoding it must not have to wait for
/// other pieces.
pub(crate) type Pieces = Box<dyn Iterator<Item = Result<Piece, Error>> + Send>;

/// A part of a source that can be decoded independently.
pub(crate) struct Piece {
    /// The number of its rows, if known before it is decoded. A piece of unknown length must be small (some MiB), as it
    /// is held in memory as a whole.
    pub rows: Option<u64>,
    /// The bytes of the source that it covers.
    pub bytes: u64,
    /// Opens the piece.
    pub read: Box<dyn FnOnce() -> Result<Batches, Error> + Send>,
}

/// The destination of blocks.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Stores a block; called from many workers, in any order.
    fn block(&self, block: &Block) -> Result<(), Error>;
}

/// The progress of a run.
#[derive(Default)]
struct Counters {
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// Stores all `pieces` in `sink` with `width` tasks on `runtime` in about `memory` bytes; returns the sink and the number of rows. `watch` is
/// called with rows and bytes about ten times a second, and stops the run by [`ControlFlow::Break`].
///
/// # Errors
/// The first failure of a piece or of the sink; [`Error::Interrupted`] if `watch` stopped the run.
pub(crate) fn run<S: Sink>(
    runtime: &Handle,
    width: usize,
    memory: u64,
    pieces: Pieces,
    sink: S,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(S, u64), Error> {
    let width = width.max(1);
    let shared = Arc::new(Shared::new(width, memory, pieces, sink));
    let (done, finished) = mpsc::channel();
    for _ in 0..width {
        let (shared, done) = (Arc::clone(&shared), done.clone());
        let task = runtime.spawn(async move { shared.work().await });
        // The receiver notices a task that panicked, too, as its sender is dropped then.
        runtime.spawn(async move {
            let _ = done.send(task.await);
        });
    }
    drop(done);
    let mut panicked = None;
    loop {
        match finished.recv_timeout(TICK) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                panicked = Some(error);
                shared.halt();
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let at = &shared.counters;
                if watch(
                    at.rows.load(Ordering::Relaxed),
                    at.bytes.load(Ordering::Relaxed),
                )
                .is_break()
                {
                    shared.fail(Error::Interrupted);
                }
            }
        }
    }
    if let Some(error) = panicked {
        return Err(internal(&format!("a worker failed while reading: {error}")));
    }
    shared.finish(watch)
}

/// A piece that a worker has taken.
struct Claimed {
    index: u64,
    /// The place of its first row in the table, if known.
    start: Option<u64>,
    piece: Piece,
}

/// The pieces that are still to be claimed. Locked before [`State`].
struct Claims {
    pieces: Pieces,
    next: u64,
    /// The place of the next piece's first row, as long as all pieces so far had a known length.
    start: Option<u64>,
}

/// Pieces of unknown length that are decoded but whose predecessors are not.
#[derive(Default)]
struct Waiting {
    next: u64,
    start: u64,
    decoded: BTreeMap<u64, Vec<RecordBatch>>,
}

struct State {
    in_flight: usize,
    exhausted: bool,
    waiting: Waiting,
    assembler: Assembler,
    ready: VecDeque<Block>,
    rows: u64,
    /// Bytes of the largest block so far; 0 before the first one.
    block_bytes: u64,
    /// The first failure; later ones are its consequences.
    failure: Option<Error>,
}

impl State {
    /// Learns the size of blocks from those that came after the first `before`.
    fn measure(&mut self, before: usize) {
        let bytes = self.ready.iter().skip(before).map(Block::bytes);
        self.block_bytes = bytes.fold(self.block_bytes, u64::max);
    }
}

enum Step {
    Encode(Block),
    Claim,
    Wait,
    Done,
}

struct Shared<S> {
    width: usize,
    /// Bytes that blocks may take.
    memory: u64,
    sink: S,
    claims: Mutex<Claims>,
    state: Mutex<State>,
    changed: Notify,
    stop: AtomicBool,
    counters: Counters,
}

impl<S: Sink> Shared<S> {
    fn new(width: usize, memory: u64, pieces: Pieces, sink: S) -> Shared<S> {
        Shared {
            width,
            memory,
            sink,
            claims: Mutex::new(Claims {
                pieces,
                next: 0,
                start: Some(0),
            }),
            state: Mutex::new(State {
                in_flight: 0,
                exhausted: false,
                waiting: Waiting::default(),
                assembler: Assembler::default(),
                ready: VecDeque::new(),
                rows: 0,
                block_bytes: 0,
                failure: None,
            }),
            changed: Notify::new(),
            stop: AtomicBool::new(false),
            counters: Counters::default(),
        }
    }

    fn halt(&self) {
        self.stop.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn fail(&self, error: Error) {
        self.state.lock().failure.get_or_insert(error);
        self.halt();
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    async fn work(&self) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            let result = match self.step() {
                Step::Encode(block) => self.encode(&block),
                Step::Claim => match self.claim() {
                    Ok(Some(claimed)) => self.decode(claimed).await,
                    Ok(None) => Ok(()),
                    Err(error) => Err(error),
                },
                Step::Wait => {
                    changed.await;
                    Ok(())
                }
                Step::Done => return,
            };
            if let Err(error) = result {
                self.fail(error);
            }
            tokio::task::yield_now().await;
        }
    }

    fn step(&self) -> Step {
        if self.stopped() {
            return Step::Done;
        }
        let mut state = self.state.lock();
        if let Some(block) = state.ready.pop_front() {
            return Step::Encode(block);
        }
        if !state.exhausted && state.in_flight < self.most_in_flight(&state) {
            state.in_flight += 1;
            return Step::Claim;
        }
        if state.exhausted && state.in_flight == 0 {
            Step::Done
        } else {
            Step::Wait
        }
    }

    /// How many pieces there is memory for.
    fn most_in_flight(&self, state: &State) -> usize {
        let block = match state.block_bytes {
            0 => EXPECTED_BLOCK,
            seen => seen,
        };
        let pieces = self.memory / (BLOCKS_OF_PIECE * block);
        usize::try_from(pieces)
            .unwrap_or(usize::MAX)
            .clamp(1, 2 * self.width)
    }

    /// Claims the next piece, which the caller has counted as in flight.
    fn claim(&self) -> Result<Option<Claimed>, Error> {
        let mut claims = self.claims.lock();
        let Some(piece) = claims.pieces.next() else {
            let mut state = self.state.lock();
            state.exhausted = true;
            state.in_flight -= 1;
            drop(state);
            self.changed.notify_waiters();
            return Ok(None);
        };
        let (piece, index, start) = (piece?, claims.next, claims.start);
        claims.next += 1;
        let start = match (start, piece.rows) {
            (Some(start), Some(rows)) => {
                claims.start = Some(start + rows);
                Some(start)
            }
            (Some(first), None) => {
                // The first piece of unknown length: from here on places depend on the pieces before.
                claims.start = None;
                let waiting = &mut self.state.lock().waiting;
                (waiting.next, waiting.start) = (index, first);
                None
            }
            (None, _) => None,
        };
        Ok(Some(Claimed {
            index,
            start,
            piece,
        }))
    }

    async fn decode(&self, claimed: Claimed) -> Result<(), Error> {
        let Claimed {
            index,
            start,
            piece,
        } = claimed;
        let batches = (piece.read)()?;
        match (start, piece.rows) {
            (Some(start), Some(rows)) => {
                self.decode_placed(start, rows, piece.bytes, batches).await
            }
            _ => self.decode_whole(index, piece.bytes, batches).await,
        }
    }

    /// Decodes a piece whose place is known: its batches go to the assembler as they come.
    async fn decode_placed(
        &self,
        start: u64,
        rows: u64,
        bytes: u64,
        batches: Batches,
    ) -> Result<(), Error> {
        let (mut at, mut counted) = (start, 0);
        for batch in batches {
            let batch = batch?;
            if self.stopped() {
                return Ok(());
            }
            if batch.num_rows() as u64 > start + rows - at {
                return Err(miscounted(rows));
            }
            self.place(at, &batch);
            at += batch.num_rows() as u64;
            let share = (bytes as f64 * (at - start) as f64 / rows.max(1) as f64) as u64;
            self.counters
                .bytes
                .fetch_add(share - counted, Ordering::Relaxed);
            counted = share;
            self.relieve()?;
            tokio::task::yield_now().await;
        }
        if at != start + rows {
            return Err(miscounted(rows));
        }
        self.state.lock().in_flight -= 1;
        self.changed.notify_waiters();
        Ok(())
    }

    fn place(&self, at: u64, batch: &RecordBatch) {
        let state = &mut *self.state.lock();
        let before = state.ready.len();
        state.assembler.add(at, batch, &mut state.ready);
        state.rows += batch.num_rows() as u64;
        state.measure(before);
        for _ in before..state.ready.len() {
            self.changed.notify_one();
        }
    }

    /// Encodes blocks while the queue is too long.
    fn relieve(&self) -> Result<(), Error> {
        loop {
            let mut state = self.state.lock();
            if state.ready.len() <= self.width.min(self.most_in_flight(&state)) {
                return Ok(());
            }
            let block = state.ready.pop_front();
            drop(state);
            if let Some(block) = block {
                self.encode(&block)?;
            }
        }
    }

    /// Decodes a piece whose place depends on those before it.
    async fn decode_whole(&self, index: u64, bytes: u64, batches: Batches) -> Result<(), Error> {
        let mut decoded = Vec::new();
        for batch in batches {
            decoded.push(batch?);
            if self.stopped() {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        let state = &mut *self.state.lock();
        let before = state.ready.len();
        state.waiting.decoded.insert(index, decoded);
        while let Some(batches) = state.waiting.decoded.remove(&state.waiting.next) {
            for batch in &batches {
                let rows = batch.num_rows() as u64;
                state
                    .assembler
                    .add(state.waiting.start, batch, &mut state.ready);
                state.waiting.start += rows;
                state.rows += rows;
            }
            state.waiting.next += 1;
            state.in_flight -= 1;
        }
        state.measure(before);
        self.changed.notify_waiters();
        Ok(())
    }

    fn encode(&self, block: &Block) -> Result<(), Error> {
        self.sink.block(block)?;
        self.counters
            .rows
            .fetch_add(block.rows(), Ordering::Relaxed);
        Ok(())
    }

    /// Stores the last block, once all tasks have ended.
    fn finish(
        self: Arc<Self>,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(S, u64), Error> {
        let (last, rows, failure) = {
            let mut state = self.state.lock();
            let last = std::mem::take(&mut state.assembler).finish();
            (last, state.rows, state.failure.take())
        };
        if let Some(error) = failure {
            return Err(error);
        }
        for block in &last {
            self.encode(block)?;
        }
        if watch(rows, self.counters.bytes.load(Ordering::Relaxed)).is_break() {
            return Err(Error::Interrupted);
        }
        match Arc::try_unwrap(self) {
            Ok(shared) => Ok((shared.sink, rows)),
            // All tasks have ended, and each dropped its reference before it reported that.
            Err(_) => Err(internal("a finished task still holds the pipeline")),
        }
    }
}

fn miscounted(rows: u64) -> Error {
    Error::Import(format!(
        "a piece that announced {rows} rows holds another number of them; the file is damaged, write it again"
    ))
}

fn internal(what: &str) -> Error {
    Error::Import(format!("{what}; nothing was stored, please report this"))
}

#[cfg(test)]
mod tests;
