//! Loading pages before they are asked for (row B6).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use futures::{FutureExt, StreamExt, stream};

use crate::config::PageId;
use crate::pool::Pool;
use crate::together::together;

/// Loads of one call that go on at the same time.
const AT_ONCE: usize = 64;

/// Counts the pages of a call as long as it lives.
struct Call(Weak<Pool>, usize);

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.prefetching.fetch_sub(self.1, Ordering::Relaxed);
        }
    }
}

impl Pool {
    /// Loads pages that are not resident, in the background and as far as there is room, in frames that are
    /// free or whose page was not used again: pinned
    /// pages are not waited for, at most as many as a quarter of the frames are asked for and not loaded at any time, and errors are left
    /// to whoever pins the page. Within a tokio runtime a task does it, elsewhere the pool's one
    /// thread for this; dropping the pool ends it.
    pub fn prefetch(self: &Arc<Self>, pages: &[PageId]) {
        let absent = |page: &PageId| {
            let word = self.translation.word(*page);
            word.is_some_and(|word| word.load().is_absent())
        };
        // What lies in the queue for long comes too late, and takes frames all the same.
        let most = (self.frames.len() / 4).max(1);
        let room = most.saturating_sub(self.prefetching.load(Ordering::Relaxed));
        let absent = pages.iter().copied().filter(absent);
        let wanted: Vec<PageId> = absent.take(room).collect();
        if wanted.is_empty() {
            return;
        }
        self.prefetching.fetch_add(wanted.len(), Ordering::Relaxed);
        let call = Call(Arc::downgrade(self), wanted.len());
        let task = async move {
            let pool = call.0.clone();
            let loads = stream::iter(wanted).for_each_concurrent(AT_ONCE, move |page| {
                let pool = pool.clone();
                async move {
                    if let Some(pool) = pool.upgrade() {
                        pool.load_ahead(page).await;
                    }
                }
            });
            together(call.0.clone(), loads).await;
            drop(call);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(task)),
            Err(_) => self.background.spawn(task.boxed()),
        }
    }
}
