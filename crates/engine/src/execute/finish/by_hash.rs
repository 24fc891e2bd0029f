//! Building the hash index of a join table partition by partition of the hashes, with all workers.

use std::sync::Arc;

use algebra::dot::{Hashed, HashedParts};

use crate::error::{Error, Result};
use crate::execute::finish::by_range::alone;
use crate::execute::query_state::QueryState;
use crate::operators::many_keys::HashedKeys;

impl QueryState {
    /// The hash index of these keys. They are dropped as soon as they have been divided.
    pub(super) async fn index_by_hash(&self, keys: HashedKeys) -> Result<Hashed> {
        let partitions = keys.partitions;
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
        let filling = (0..partitions.count()).map(|part| {
            let (chunks, stop) = (Arc::clone(&chunks), self.stop.clone());
            async move {
                stop.check()?;
                Ok::<_, Error>(partitions.fill(part, &chunks))
            }
        });
        let parts = self.spread(filling.collect()).await?;
        drop(chunks);
        let joined = Arc::new(HashedParts::of(&parts));
        let joining = parts.into_iter().enumerate().map(|(part, filled)| {
            let (joined, stop) = (Arc::clone(&joined), self.stop.clone());
            async move {
                stop.check()?;
                Ok::<_, Error>(joined.join(part, filled))
            }
        });
        let keys = self.spread(joining.collect()).await?;
        Ok(alone(joined)?.finish(keys))
    }
}
