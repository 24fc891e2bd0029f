//! Work on a graph, dealt out to the workers in pieces (morsels), those whose pages lie on a worker's
//! node first.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memory::Budget;
use workers::{Morsels, Workers};

use crate::error::{Error, Result};
use crate::read::graph::{Graph, Lists};
use crate::read::reader::{Reader, Reads};
use crate::run::room::Room;

/// Vertices of a piece, a multiple of 64.
pub(crate) const PIECE: u32 = 1024;
/// A worker's slots for pins are a quarter of the pool divided by the workers, and never more than this.
const MOST_SLOTS: usize = 1 << 14;

/// The workers, the memory, and whether to go on: what a kernel runs with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Crew {
    workers: Arc<Workers>,
    budget: Arc<Budget>,
    stop: Arc<AtomicBool>,
}

impl Crew {
    /// All of these workers, and the memory of this budget.
    pub fn new(workers: Arc<Workers>, budget: Arc<Budget>) -> Crew {
        Crew {
            workers,
            budget,
            stop: Arc::default(),
        }
    }

    /// Stops what runs, if set: it ends with [`Error::Interrupted`] within milliseconds.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// The workers.
    pub fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    /// The memory.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Takes memory for `each` bytes a vertex, of what `kernel` needs.
    pub(crate) fn room(&self, graph: &Graph, each: u64, kernel: &str) -> Result<Room> {
        self.room_of(graph, u64::from(graph.vertices()) * each, kernel)
    }

    /// Takes memory for what `kernel` needs.
    pub(crate) fn room_of(&self, graph: &Graph, bytes: u64, kernel: &str) -> Result<Room> {
        Room::take(&self.budget, bytes, || {
            format!("{kernel} of graph '{}'", graph.name())
        })
    }

    /// How many tasks work on `pieces` pieces: no more than can each keep a page pinned.
    fn tasks(&self, graph: &Graph, pieces: usize) -> usize {
        let able = (graph.pool().frames() / 4).max(1);
        self.workers.width().min(pieces).min(able).max(1)
    }

    /// Runs `task` on each of some workers, who draw pieces from the share that they are given. What
    /// each returns, in no particular order.
    ///
    /// # Errors
    /// The first of a task; then the others are stopped.
    pub(crate) async fn run<T, F>(
        &self,
        graph: &Arc<Graph>,
        pieces: Vec<(usize, u32)>,
        task: impl Fn(Arc<Graph>, Share) -> F,
    ) -> Result<Vec<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let tasks = self.tasks(graph, pieces.len());
        let frames = graph.pool().frames() / 4 / tasks;
        // A power of two that is not above a quarter of the frames.
        let slots = (frames + 1).next_power_of_two() / 2;
        let slots = slots.min(graph.list_pages().next_power_of_two());
        let share = Share {
            morsels: Arc::new(Morsels::near(self.workers.layout().nearness(), pieces)),
            failed: Arc::default(),
            stop: self.stop.clone(),
            slots: slots.clamp(1, MOST_SLOTS),
        };
        let guarded = |share: Share| {
            let failed = share.failed.clone();
            let work = task(graph.clone(), share);
            async move {
                let result = work.await;
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                result
            }
        };
        let others: Vec<_> = (1..tasks)
            .map(|_| self.workers.spawn(guarded(share.clone())).abort_on_drop())
            .collect();
        // The caller is a task, too.
        let mut results = vec![guarded(share.clone()).await];
        for other in others {
            results.push(other.await?);
        }
        // One that was stopped because another failed has less to say.
        let reason = |result: &Result<T>| matches!(result, Err(error) if !matches!(error, Error::Interrupted));
        if let Some(at) = results.iter().position(reason) {
            results.swap(0, at);
        }
        results.into_iter().collect()
    }

    /// As [`run`](Crew::run), for all vertices: piece *n* is [`Share::vertices`] of *n*.
    pub(crate) async fn sweep<T, F>(
        &self,
        graph: &Arc<Graph>,
        lists: &Lists,
        task: impl Fn(Arc<Graph>, Share) -> F,
    ) -> Result<Vec<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let pieces = homes(graph, lists).await?;
        self.run(graph, pieces, task).await
    }
}

/// The pieces of all vertices, with the home node of each one's lists.
async fn homes(graph: &Graph, lists: &Lists) -> Result<Vec<(usize, u32)>> {
    let pieces = 0..graph.vertices().div_ceil(PIECE);
    let pool = graph.pool();
    if pool.nodes() == 1 || lists.neighbours.pages.is_empty() {
        return Ok(pieces.map(|piece| (0, piece)).collect());
    }
    let mut reader = Reader::new(graph, 1);
    let mut homes = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (start, _) = reader.bounds(lists, piece * PIECE).await?;
        homes.push((home(graph, lists, start), piece));
    }
    Ok(homes)
}

/// The home node of the list that begins at `start`.
pub(crate) fn home(graph: &Graph, lists: &Lists, start: u64) -> usize {
    let page = (start >> lists.neighbours.shift) as usize;
    let page = lists.neighbours.pages.get(page);
    page.map_or(0, |&page| graph.pool().home_of(page))
}

/// A task's share of the work.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    morsels: Arc<Morsels>,
    failed: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    slots: usize,
}

impl Share {
    /// The next piece; `None` when there are no more.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn next(&self) -> Result<Option<u32>> {
        if self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let node = workers::here().map_or(0, |here| here.node);
        Ok(self.morsels.claim(node))
    }

    /// The next piece of a sweep, as vertices.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn vertices(&self, graph: &Graph) -> Result<Option<Range<u32>>> {
        let piece = self.next()?;
        Ok(piece.map(|piece| {
            let start = piece * PIECE;
            start..start.saturating_add(PIECE).min(graph.vertices())
        }))
    }

    /// A reader for the task.
    pub fn reader<'g>(&self, graph: &'g Graph) -> Reader<'g> {
        Reader::new(graph, self.slots).reading_ahead()
    }
}

/// The sum of what tasks have read.
pub(crate) fn total(reads: impl IntoIterator<Item = Reads>) -> Reads {
    let mut sum = Reads::default();
    reads.into_iter().for_each(|more| sum += more);
    sum
}
