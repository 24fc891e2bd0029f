//! Building the index of a join table range by range of its keys, with all workers.

use std::sync::Arc;

use algebra::dot::Marked;

use crate::error::{Error, Result};
use crate::execute::query_state::QueryState;
use crate::operators::join_index::PackedIndex;
use crate::operators::many_keys::ScatteredKeys;

impl QueryState {
    /// The index of these keys, and whether they are distinct. The keys are dropped as soon as they have been divided.
    pub(super) async fn index_by_range(&self, keys: ScatteredKeys) -> Result<(PackedIndex, bool)> {
        let (ranges, direct) = (keys.ranges, keys.direct);
        let keys = Arc::new(keys);
        let dividing = keys.chunks().map(|first| {
            let (keys, stop) = (Arc::clone(&keys), self.stop.clone());
            async move {
                stop.check()?;
                keys.divide(first)
            }
        });
        let dividing: Vec<_> = dividing.collect();
        drop(keys);
        let chunks = Arc::new(self.spread(dividing).await?);
        let all = 0..ranges.count();
        let marking = all.clone().map(|range| {
            let (chunks, stop) = (Arc::clone(&chunks), self.stop.clone());
            async move {
                stop.check()?;
                Ok::<_, Error>(ranges.mark(range, &chunks))
            }
        });
        let marked: Vec<Marked> = self.spread(marking.collect()).await?;
        let repeated = marked.iter().any(Marked::is_repeated);
        if direct && !repeated {
            let direct = Arc::new(ranges.direct());
            let filling = all.map(|range| {
                let (chunks, direct) = (Arc::clone(&chunks), Arc::clone(&direct));
                let stop = self.stop.clone();
                async move {
                    stop.check()?;
                    direct.fill(range, &chunks);
                    Ok::<_, Error>(())
                }
            });
            self.spread(filling.collect()).await?;
            drop(chunks);
            let direct = alone(direct)?.finish();
            return Ok((PackedIndex::Direct(direct.into()), true));
        }
        let ranked = Arc::new(ranges.ranked(&marked));
        let indexing = marked.into_iter().enumerate().map(|(range, marked)| {
            let (chunks, ranked) = (Arc::clone(&chunks), Arc::clone(&ranked));
            let stop = self.stop.clone();
            async move {
                stop.check()?;
                ranked.index(range, &chunks, marked);
                Ok::<_, Error>(())
            }
        });
        self.spread(indexing.collect()).await?;
        drop(chunks);
        self.stop.check()?;
        let ranked = alone(ranked)?.finish();
        Ok((PackedIndex::Ranked(ranked.into()), !repeated))
    }
}

/// What workers have filled together, once all of them are done.
pub(super) fn alone<T>(shared: Arc<T>) -> Result<T> {
    Arc::into_inner(shared).ok_or_else(|| Error::internal("a worker still fills a join table"))
}
