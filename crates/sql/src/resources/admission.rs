//! Admission control: which queries may run now, as all of them take memory from one limit.
//!
//! * A query needs a [permit](Admission::permit) to compute up to its first rows. There are [`PERMITS_PER_WORKER`] for
//!   each worker, and they are given in the order in which queries ask.
//! * A query that runs holds a [`Ticket`] until its last row is taken. The ticket says whether the query was ever in
//!   the company of another: if not, nobody else can give memory back, and waiting is of no use.
//! * A query that ran short of memory gives its ticket back and [waits](Admission::wait_for_memory) until another query
//!   ends. Only one query waits at a time; those behind it queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// How long a query that is short of memory waits for another to end before it fails. Others may take forever: a client
/// that reads half an answer and then nothing holds the memory of its query.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How many times as long it waits in all while others end and what they give back does not suffice.
const AGAIN: u32 = 6;

/// Queries that compute at the same time, for each worker. More of them would only push each other's rows out of the
/// caches.
const PERMITS_PER_WORKER: usize = 8;

/// Counts the queries that run, and lets others wait.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Queries that run now.
    running: AtomicUsize,
    /// Tickets given so far.
    admitted: AtomicUsize,
    permits: Semaphore,
    /// Woken whenever a query ends.
    ended: Notify,
    /// Held by the one query that waits for memory: if several did, each would wait for the others.
    waiting: Mutex<()>,
}

/// A query that runs; it ends when its ticket is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<Admission>,
    /// How many queries ran when this one was admitted.
    others: usize,
    /// The number of this ticket, counted from 1.
    number: usize,
}

impl Ticket {
    /// Whether no other query has run at any time since this one was admitted.
    pub(crate) fn is_alone(&self) -> bool {
        self.others == 0 && self.admission.admitted.load(Ordering::Acquire) == self.number
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.admission.running.fetch_sub(1, Ordering::AcqRel);
        self.admission.ended.notify_waiters();
    }
}

/// The one query that waits for others to give memory back.
#[derive(Debug)]
pub(crate) struct MemoryWait<'a> {
    admission: &'a Arc<Admission>,
    patience: Duration,
    until: Instant,
    _waiting: MutexGuard<'a, ()>,
}

impl Admission {
    /// Admission control for `workers` workers; no query runs yet.
    pub(crate) fn new(workers: usize) -> Arc<Admission> {
        Arc::new(Admission {
            running: AtomicUsize::new(0),
            admitted: AtomicUsize::new(0),
            permits: Semaphore::new(PERMITS_PER_WORKER * workers.max(1)),
            ended: Notify::new(),
            waiting: Mutex::new(()),
        })
    }

    /// Waits for the permit to compute, which is given back when dropped.
    pub(crate) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // Never `None`: nobody closes the semaphore.
        self.permits.acquire().await.ok()
    }

    /// Admits a query at once.
    pub(crate) fn admit(self: &Arc<Self>) -> Ticket {
        Ticket {
            others: self.running.fetch_add(1, Ordering::AcqRel),
            number: self.admitted.fetch_add(1, Ordering::AcqRel) + 1,
            admission: Arc::clone(self),
        }
    }

    /// Queues a query that had too little memory and holds no ticket. Once it is the first in the queue, it waits for
    /// up to `patience` for another to end, and for up to [`AGAIN`] times that in all.
    pub(crate) async fn wait_for_memory(self: &Arc<Self>, patience: Duration) -> MemoryWait<'_> {
        let waiting = self.waiting.lock().await;
        MemoryWait {
            admission: self,
            patience,
            until: Instant::now() + AGAIN * patience,
            _waiting: waiting,
        }
    }
}

impl MemoryWait<'_> {
    /// Waits until another query ends, or none runs, and admits this one for another try. `None` once its patience is
    /// over.
    pub(crate) async fn retry(&mut self) -> Option<Ticket> {
        let ended = self.admission.ended.notified();
        tokio::pin!(ended);
        // From here on every end is noticed, also one before the wait begins.
        ended.as_mut().enable();
        if self.admission.running.load(Ordering::Acquire) > 0 {
            let until = self.until.min(Instant::now() + self.patience);
            timeout_at(until, ended).await.ok()?;
        }
        Some(self.admission.admit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_query_alone_waits_for_nobody() {
        let admission = Admission::new(1);
        let ticket = admission
            .wait_for_memory(PATIENCE)
            .await
            .retry()
            .await
            .unwrap();
        assert!(ticket.is_alone());
    }

    #[tokio::test]
    async fn permits_are_given_in_the_order_they_were_asked_for() {
        let admission = Admission::new(1);
        let mut taken = vec![];
        for _ in 0..PERMITS_PER_WORKER {
            taken.push(admission.permit().await);
        }
        let next = admission.permit();
        tokio::pin!(next);
        assert!(futures::poll!(next.as_mut()).is_pending());
        drop(taken.pop());
        assert!(futures::poll!(next.as_mut()).is_ready());
    }

    #[test]
    fn a_query_that_meets_another_is_not_alone() {
        let admission = Admission::new(1);
        let first = admission.admit();
        assert!(first.is_alone());
        let second = admission.admit();
        assert!(!first.is_alone() && !second.is_alone());
        drop(second);
        assert!(!first.is_alone(), "it was not, for a while");
        drop(first);
        assert!(admission.admit().is_alone());
    }

    #[tokio::test]
    async fn each_query_that_ends_allows_a_retry() {
        let admission = Admission::new(1);
        let others = [admission.admit(), admission.admit()];
        let end = async {
            for other in others {
                tokio::time::sleep(Duration::from_millis(400)).await;
                drop(other);
            }
        };
        let wait = async {
            // Both together take longer than the patience with each.
            let patience = Duration::from_millis(600);
            let mut wait = admission.wait_for_memory(patience).await;
            let mut retries = 0;
            while let Some(ticket) = wait.retry().await {
                retries += 1;
                if ticket.is_alone() {
                    break;
                }
            }
            retries
        };
        assert_eq!(tokio::join!(end, wait).1, 2);
    }

    #[tokio::test]
    async fn one_that_stays_is_not_waited_for_forever() {
        let admission = Admission::new(1);
        let stays = admission.admit();
        let patience = Duration::from_millis(20);
        let begun = Instant::now();
        let retry = admission.wait_for_memory(patience).await.retry().await;
        assert!(retry.is_none());
        assert!(begun.elapsed() >= patience);
        drop(stays);
    }
}
