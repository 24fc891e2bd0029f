//! What operators are to each other, and the tasks that they share work among.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use workers::{Morsels, Workers};

use crate::data::block::Block;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::model::schema::Schema;
use crate::storage::array::Array;
use crate::storage::record::Statistics;

/// An array that is stored, in memory, or computed when it is asked for.
pub(crate) trait Source: Send + Sync {
    /// Its dimensions and attributes.
    fn schema(&self) -> &Schema;

    /// Its chunks: pieces in which it is best asked for.
    fn grid(&self) -> Grid {
        Grid::of(self.schema())
    }

    /// The cells of a region that lies within it, with the attributes whose flag is set.
    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>>;

    /// What is known of an attribute in a region without computing it.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        let _ = (region, attribute);
        Ok(None)
    }

    /// The logical node on whose memory most of what a region takes lies, as far as that is known.
    fn home(&self, region: &Region) -> usize {
        let _ = region;
        0
    }

    /// Where a region lies in a stored array, if it is nothing but a part of one; and the number there of each
    /// attribute.
    fn stored(&self, region: &Region) -> Option<Part> {
        let _ = region;
        None
    }
}

/// A part of a stored array.
pub(crate) struct Part {
    pub array: Arc<Array>,
    pub region: Region,
    pub attributes: Vec<usize>,
}

/// An input of an operator.
pub(crate) type Input = Arc<dyn Source>;

/// The workers that share the chunks of a plan among them, if any, and how many chunks are worked on at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crew {
    pub workers: Option<Arc<Workers>>,
    pub groups: usize,
}

impl Crew {
    /// Runs `task` on each of the items, given with the home node of each, several at a time where there are workers: a
    /// worker takes items of its own node first, then those of the nearest that has any left. What each returns, in the
    /// order of the items.
    ///
    /// # Errors
    /// One of a task, after which no other begins.
    pub async fn all<T, R, F>(
        &self,
        items: Vec<(usize, T)>,
        task: impl Fn(T) -> F + Clone + Send + 'static,
    ) -> Result<Vec<R>>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
        T: Clone + Send + Sync + 'static,
    {
        let Some(workers) = &self.workers else {
            let each = stream::iter(items.into_iter().map(|(_, item)| item)).then(task);
            return each.try_collect().await;
        };
        let numbered = items
            .iter()
            .enumerate()
            .map(|(at, (home, _))| (*home, at as u32));
        let morsels = Arc::new(Morsels::near(workers.layout().nearness(), numbered));
        let (items, failed) = (Arc::new(items), Arc::new(AtomicBool::new(false)));
        let claim = |_| {
            let (morsels, items) = (morsels.clone(), items.clone());
            let (task, failed) = (task.clone(), failed.clone());
            let work = async move {
                let mut done = Vec::new();
                // Relaxed: the flag guards no other data.
                while !failed.load(Ordering::Relaxed) {
                    let node = workers::here().map_or(0, |here| here.node);
                    let Some(at) = morsels.claim(node) else { break };
                    let result = task(items[at as usize].1.clone()).await;
                    done.push((
                        at,
                        result.inspect_err(|_| failed.store(true, Ordering::Relaxed))?,
                    ));
                }
                Ok::<_, Error>(done)
            };
            workers.spawn(work).abort_on_drop()
        };
        let tasks: Vec<_> = (0..self.groups.clamp(1, items.len().max(1)))
            .map(claim)
            .collect();
        let mut done = Vec::with_capacity(items.len());
        for task in tasks {
            done.extend(task.await??);
        }
        done.sort_unstable_by_key(|&(at, _)| at);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }

    /// Runs `task` on each of the items, several at a time where there are workers; what each returns, in the order of
    /// the items.
    pub fn ordered<T, R, F>(
        &self,
        items: impl Iterator<Item = T> + Send + 'static,
        task: impl Fn(T) -> F + Send + 'static,
    ) -> BoxStream<'static, Result<R>>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
        T: Send + 'static,
    {
        match &self.workers {
            None => stream::iter(items).then(task).boxed(),
            Some(workers) => {
                let workers = workers.clone();
                let spawn = move |item| {
                    let spawned = workers.spawn(task(item)).abort_on_drop();
                    async move { spawned.await.map_err(Error::from)? }
                };
                stream::iter(items)
                    .map(spawn)
                    .buffered(self.groups.max(1))
                    .boxed()
            }
        }
    }
}
