//! Loads that begin together.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Weak;
use std::task::Poll;

use crate::pool::Pool;

impl Pool {
    /// Waits for a future; the loads that begin whenever it goes on are asked for together, so that
    /// the source can read neighbours at once:
    ///
    /// `let pins = pool.together(join_all(pages.iter().map(|page| pool.pin(*page)))).await;`
    pub async fn together<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let mut polled = Poll::Pending;
            self.source
                .together(&mut || polled = future.as_mut().poll(context));
            polled
        })
        .await
    }
}

/// As [`Pool::together`], for a future that does not keep the pool from being dropped.
pub(crate) async fn together<F: Future>(pool: Weak<Pool>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let Some(pool) = pool.upgrade() else {
            return future.as_mut().poll(context);
        };
        let mut polled = Poll::Pending;
        pool.source
            .together(&mut || polled = future.as_mut().poll(context));
        polled
    })
    .await
}
