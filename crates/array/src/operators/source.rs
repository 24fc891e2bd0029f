//! What operators are to each other, and the tasks that they share work among.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use workers::Workers;

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
