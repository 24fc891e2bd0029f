//! Queries that run at the same time, as far as they are in each other's way: all take memory from one limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// How long a query waits for others to give memory back, before it goes on with what there is. Others may take for
/// ever: a client that reads half an answer and then nothing holds what its query took.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Queries that compute at the same time, for each worker. More of them would only push each other's rows out of the
/// caches: those that come later wait until one has its first rows, in the order they came.
const EACH: usize = 8;

/// Counts queries.
#[derive(Debug)]
pub(crate) struct Crowd {
    inside: AtomicUsize,
    /// How many more may compute now.
    turns: Semaphore,
    /// How many ever came.
    came: AtomicUsize,
    left: Notify,
    /// Held by the one query that waits for memory: if several did, each would wait for the others.
    first: Mutex<()>,
}

/// A query that runs; it has left when this is dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    crowd: Arc<Crowd>,
    /// How many were inside before it.
    before: usize,
    /// How many had come, this one included.
    number: usize,
}

impl Inside {
    /// Whether nobody else was inside at any time since it came.
    pub(crate) fn alone(&self) -> bool {
        self.before == 0 && self.crowd.came.load(Ordering::Acquire) == self.number
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.crowd.inside.fetch_sub(1, Ordering::AcqRel);
        self.crowd.left.notify_waiters();
    }
}

/// A query that waits for memory, the first of those that do.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    crowd: &'a Arc<Crowd>,
    until: Instant,
    _first: MutexGuard<'a, ()>,
}

impl Crowd {
    /// Nobody yet, on `workers` workers.
    pub(crate) fn new(workers: usize) -> Arc<Crowd> {
        Arc::new(Crowd {
            inside: AtomicUsize::new(0),
            turns: Semaphore::new(EACH * workers.max(1)),
            came: AtomicUsize::new(0),
            left: Notify::new(),
            first: Mutex::new(()),
        })
    }

    /// Waits until few enough queries compute; this one does as long as it keeps what it gets.
    pub(crate) async fn take_turn(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody ever closes it.
        self.turns.acquire().await.ok()
    }

    /// A query begins.
    pub(crate) fn enter(self: &Arc<Self>) -> Inside {
        Inside {
            before: self.inside.fetch_add(1, Ordering::AcqRel),
            number: self.came.fetch_add(1, Ordering::AcqRel) + 1,
            crowd: Arc::clone(self),
        }
    }

    /// A query that had too little memory, and has left, queues with others of its kind, and will then wait for
    /// `patience`.
    pub(crate) async fn queue(self: &Arc<Self>, patience: Duration) -> Queue<'_> {
        let first = self.first.lock().await;
        Queue {
            crowd: self,
            until: Instant::now() + patience,
            _first: first,
        }
    }
}

impl Queue<'_> {
    /// Waits until a query leaves or nobody is inside, and enters: it is worth another try. `None` if the wait has been
    /// long.
    pub(crate) async fn turn(&mut self) -> Option<Inside> {
        let left = self.crowd.left.notified();
        tokio::pin!(left);
        // From here on whoever leaves is heard, also before the wait begins.
        left.as_mut().enable();
        if self.crowd.inside.load(Ordering::Acquire) > 0 {
            timeout_at(self.until, left).await.ok()?;
        }
        Some(self.crowd.enter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_query_alone_waits_for_nobody() {
        let crowd = Crowd::new(1);
        let inside = crowd.queue(PATIENCE).await.turn().await.unwrap();
        assert!(inside.alone());
    }

    #[tokio::test]
    async fn turns_are_taken_in_the_order_they_were_asked_for() {
        let crowd = Crowd::new(1);
        let mut taken = vec![];
        for _ in 0..EACH {
            taken.push(crowd.take_turn().await);
        }
        let next = crowd.take_turn();
        tokio::pin!(next);
        assert!(futures::poll!(next.as_mut()).is_pending());
        drop(taken.pop());
        assert!(futures::poll!(next.as_mut()).is_ready());
    }

    #[test]
    fn who_meets_another_is_not_alone() {
        let crowd = Crowd::new(1);
        let first = crowd.enter();
        assert!(first.alone());
        let second = crowd.enter();
        assert!(!first.alone() && !second.alone());
        drop(second);
        assert!(!first.alone(), "it was not, for a while");
        drop(first);
        assert!(crowd.enter().alone());
    }

    #[tokio::test]
    async fn each_that_leaves_gives_a_turn() {
        let crowd = Crowd::new(1);
        let others = [crowd.enter(), crowd.enter()];
        let leave = async {
            for other in others {
                tokio::time::sleep(Duration::from_millis(20)).await;
                drop(other);
            }
        };
        let wait = async {
            let mut queue = crowd.queue(PATIENCE).await;
            let mut turns = 0;
            while let Some(inside) = queue.turn().await {
                turns += 1;
                if inside.alone() {
                    break;
                }
            }
            turns
        };
        assert_eq!(tokio::join!(leave, wait).1, 2);
    }

    #[tokio::test]
    async fn one_that_stays_is_not_waited_for_for_ever() {
        let crowd = Crowd::new(1);
        let stays = crowd.enter();
        let patience = Duration::from_millis(20);
        let begun = Instant::now();
        assert!(crowd.queue(patience).await.turn().await.is_none());
        assert!(begun.elapsed() >= patience);
        drop(stays);
    }
}
