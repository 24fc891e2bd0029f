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
    /// Workers that own every n-th chunk, instead of those above.
    pub instances: Arc<[Arc<Workers>]>,
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
        if !self.instances.is_empty() {
            return self.owned(items, task).await;
        }
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

    /// Each instance runs the tasks of its own items, one after the other.
    async fn owned<T, R, F>(
        &self,
        items: Vec<(usize, T)>,
        task: impl Fn(T) -> F + Clone + Send + 'static,
    ) -> Result<Vec<R>>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
        T: Clone + Send + Sync + 'static,
    {
        let (count, items) = (self.instances.len(), Arc::new(items));
        let failed = Arc::new(AtomicBool::new(false));
        let begin = |(first, instance): (usize, &Arc<Workers>)| {
            let (items, task, failed) = (items.clone(), task.clone(), failed.clone());
            let work = async move {
                let mut done = Vec::with_capacity(items.len().div_ceil(count));
                for (_, item) in items.iter().skip(first).step_by(count) {
                    // Relaxed: the flag guards no other data.
                    if failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let result = task(item.clone()).await;
                    done.push(result.inspect_err(|_| failed.store(true, Ordering::Relaxed))?);
                }
                Ok::<_, Error>(done.into_iter())
            };
            instance.spawn(work).abort_on_drop()
        };
        let tasks: Vec<_> = self.instances.iter().enumerate().map(begin).collect();
        let mut parts = Vec::with_capacity(count);
        for task in tasks {
            parts.push(task.await??);
        }
        // An instance that stopped early did so because another failed, whose error was returned.
        let all = (0..items.len()).filter_map(|at| parts[at % count].next());
        Ok(all.collect())
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
        let (crews, groups) = match &self.workers {
            _ if !self.instances.is_empty() => (self.instances.clone(), self.instances.len()),
            None => return stream::iter(items).then(task).boxed(),
            Some(workers) => ([workers.clone()].into(), self.groups.max(1)),
        };
        let spawn = move |(at, item)| {
            let crew: &Arc<Workers> = &crews[at % crews.len()];
            let spawned = crew.spawn(task(item)).abort_on_drop();
            async move { spawned.await.map_err(Error::from)? }
        };
        // Of so many in order, no two belong to one instance.
        stream::iter(items.enumerate())
            .map(spawn)
            .buffered(groups)
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use topology::Machine;
    use workers::Layout;

    use super::*;

    fn workers(threads: usize) -> Arc<Workers> {
        let live = Machine::live().unwrap();
        Workers::new(Layout::of(&live, &live, threads, false)).unwrap()
    }

    /// The id of the calling thread.
    fn thread() -> u32 {
        let path = std::fs::read_link("/proc/thread-self").unwrap();
        path.file_name().unwrap().to_str().unwrap().parse().unwrap()
    }

    #[test]
    fn each_instance_works_on_every_nth_chunk_and_no_other_does() {
        let instances: Arc<[Arc<Workers>]> = (1..=3).map(workers).collect();
        let crew = Crew {
            instances: instances.clone(),
            ..Crew::default()
        };
        let task = |at: usize| async move { Ok((at, thread())) };
        let items = (0..20).map(|at| (0, at)).collect();
        let whole = futures::executor::block_on(crew.all(items, task)).unwrap();
        let stream = crew.ordered(0..20, task).try_collect::<Vec<_>>();
        let stream = futures::executor::block_on(stream).unwrap();
        for all in [whole, stream] {
            assert_eq!(all.len(), 20);
            for (expected, (at, thread)) in all.into_iter().enumerate() {
                assert_eq!(at, expected);
                assert!(
                    instances[at % 3].thread_ids().contains(&thread),
                    "chunk {at}"
                );
            }
        }
    }

    #[test]
    fn a_failure_of_an_instance_is_the_error_of_all() {
        let crew = Crew {
            instances: (0..2).map(|_| workers(1)).collect(),
            ..Crew::default()
        };
        let task = |at: usize| async move {
            if at == 5 {
                Err(Error::Interrupted)
            } else {
                Ok(at)
            }
        };
        let items = (0..20).map(|at| (0, at)).collect();
        let result = futures::executor::block_on(crew.all(items, task));
        assert!(matches!(result, Err(Error::Interrupted)));
    }
}
