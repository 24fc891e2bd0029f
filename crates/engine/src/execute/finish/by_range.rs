//! Building the index of a join table range by range of its keys, with all workers.

use std::sync::Arc;

use algebra::dot::Marked;

use crate::error::{Error, Result};
use crate::execute::query_state::QueryState;
use crate::operators::join_index::{PackedIndex, ScatteredKeys};

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
            let filling = all.map(|range| {
                let (chunks, stop) = (Arc::clone(&chunks), self.stop.clone());
                async move {
                    stop.check()?;
                    Ok::<_, Error>(ranges.fill(range, &chunks))
                }
            });
            let parts = self.spread(filling.collect()).await?;
            drop(chunks);
            let direct = ranges.direct(parts);
            return Ok((PackedIndex::Direct(direct.into()), true));
        }
        let indexing = marked.into_iter().enumerate().map(|(range, marked)| {
            let (chunks, stop) = (Arc::clone(&chunks), self.stop.clone());
            async move {
                stop.check()?;
                Ok::<_, Error>(ranges.index(range, &chunks, marked, repeated))
            }
        });
        let parts = self.spread(indexing.collect()).await?;
        drop(chunks);
        self.stop.check()?;
        let ranked = ranges.ranked(parts);
        Ok((PackedIndex::Ranked(ranked.into()), !repeated))
    }
}
