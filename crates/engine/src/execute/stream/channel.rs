//! Bounded channels with any number of producers and consumers, who sleep rather than spin.
//!
//! Two semaphores count the free places and the items. The items are in a ring behind a mutex or in a lock-free
//! queue; neither is ever asked for an item or a place that it does not have. A channel closes when its last
//! [`Producer`] is dropped: consumers receive the remaining items, then nothing. When its last [`Consumer`] is
//! dropped, producers get their items back. So no task is left asleep, in whatever order tasks end.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::execute::stream::tally::Waits;

/// Holds the items.
enum Ring<T> {
    Locked(Mutex<VecDeque<T>>),
    Free(Box<ArrayQueue<T>>),
}

impl<T> Ring<T> {
    /// Adds an item. The caller must have acquired a place.
    fn push(&self, item: T) {
        match self {
            Ring::Locked(ring) => ring.lock().push_back(item),
            Ring::Free(ring) => {
                let pushed = ring.push(item).is_ok();
                debug_assert!(pushed, "an item without a place");
            }
        }
    }

    fn pop(&self) -> Option<T> {
        match self {
            Ring::Locked(ring) => ring.lock().pop_front(),
            Ring::Free(ring) => ring.pop(),
        }
    }
}

/// A bounded channel; see the module.
pub(crate) struct Channel<T> {
    ring: Ring<T>,
    /// Counts free places. Closed when no consumer is left.
    room: Semaphore,
    /// Items. Closed when no producer is left.
    items: Semaphore,
    producers: AtomicUsize,
    consumers: AtomicUsize,
}

/// A channel for up to `most` items, with one producer and one consumer.
pub(crate) fn channel<T>(most: usize, lock_free: bool) -> (Producer<T>, Consumer<T>) {
    let channel = Arc::new(Channel {
        ring: if lock_free {
            Ring::Free(Box::new(ArrayQueue::new(most)))
        } else {
            Ring::Locked(Mutex::new(VecDeque::with_capacity(most)))
        },
        room: Semaphore::new(most),
        items: Semaphore::new(0),
        producers: AtomicUsize::new(1),
        consumers: AtomicUsize::new(1),
    });
    (Producer(channel.clone()), Consumer(channel))
}

/// The sending end. The channel closes when its last clone is dropped.
pub(crate) struct Producer<T>(Arc<Channel<T>>);

/// The receiving end.
pub(crate) struct Consumer<T>(Arc<Channel<T>>);

impl<T> Producer<T> {
    /// Sends `item`, waiting for room if necessary; returns it if all consumers are gone. Time spent asleep is
    /// added to `waits`.
    pub async fn send(&self, item: T, waits: &Waits) -> std::result::Result<(), T> {
        let item = match self.try_send(item) {
            Ok(()) => return Ok(()),
            Err(item) => item,
        };
        let begun = Instant::now();
        let place = self.0.room.acquire().await;
        waits.add(begun.elapsed());
        match place {
            Ok(place) => place.forget(),
            Err(_) => return Err(item),
        }
        self.put(item);
        Ok(())
    }

    /// Items that nobody has received yet.
    pub fn queued(&self) -> usize {
        self.0.items.available_permits()
    }

    /// Sends `item` if there is room now; returns it otherwise.
    pub fn try_send(&self, item: T) -> std::result::Result<(), T> {
        match self.0.room.try_acquire() {
            Ok(place) => place.forget(),
            Err(_) => return Err(item),
        }
        self.put(item);
        Ok(())
    }

    fn put(&self, item: T) {
        self.0.ring.push(item);
        self.0.items.add_permits(1);
    }
}

impl<T> Consumer<T> {
    /// Receives the next item; `None` once all producers are gone and no item is left. Time spent asleep is added
    /// to `waits`.
    pub async fn receive(&self, waits: &Waits) -> Option<T> {
        let item = match self.items.try_acquire() {
            Ok(item) => Ok(item),
            Err(tokio::sync::TryAcquireError::Closed) => return self.ring.pop(),
            Err(tokio::sync::TryAcquireError::NoPermits) => {
                let begun = Instant::now();
                let item = self.items.acquire().await;
                waits.add(begun.elapsed());
                item
            }
        };
        match item {
            Ok(item) => item.forget(),
            Err(_) => return self.ring.pop(),
        }
        let item = self.ring.pop();
        self.room.add_permits(1);
        item
    }
}

impl<T> Deref for Consumer<T> {
    type Target = Channel<T>;

    fn deref(&self) -> &Channel<T> {
        &self.0
    }
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Producer<T> {
        self.0.producers.fetch_add(1, Ordering::Relaxed);
        Producer(self.0.clone())
    }
}

impl<T> Clone for Consumer<T> {
    fn clone(&self) -> Consumer<T> {
        self.0.consumers.fetch_add(1, Ordering::Relaxed);
        Consumer(self.0.clone())
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Acquire and release: whoever sees the channel closed sees all items that were sent.
        if self.0.producers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.items.close();
        }
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        if self.0.consumers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.room.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use proptest::prelude::*;

    /// Threads that send and receive as fast as they can; some receivers leave early.
    fn storm(most: usize, lock_free: bool, producers: usize, leave: &[Option<usize>]) {
        let (sender, receiver) = channel::<usize>(most, lock_free);
        let each = 300;
        let (sent, got) = std::thread::scope(|scope| {
            let senders: Vec<_> = (0..producers)
                .map(|n| {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let waits = Waits::default();
                        let all = (0..each).map(|i| n * each + i);
                        all.take_while(|item| block_on(sender.send(*item, &waits)).is_ok())
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            drop(sender);
            let receivers: Vec<_> = leave
                .iter()
                .map(|most| {
                    let receiver = receiver.clone();
                    scope.spawn(move || {
                        let waits = Waits::default();
                        std::iter::from_fn(|| block_on(receiver.receive(&waits)))
                            .take(most.unwrap_or(usize::MAX))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            drop(receiver);
            let all = |threads: Vec<std::thread::ScopedJoinHandle<'_, Vec<usize>>>| {
                let mut all: Vec<usize> = threads
                    .into_iter()
                    .flat_map(|thread| thread.join().unwrap())
                    .collect();
                all.sort_unstable();
                all
            };
            (all(senders), all(receivers))
        });
        if leave.contains(&None) {
            assert_eq!(sent, (0..producers * each).collect::<Vec<_>>());
            assert_eq!(got, sent, "each item arrives once");
        } else {
            assert!(got.iter().all(|item| sent.contains(item)));
            assert!(got.windows(2).all(|two| two[0] < two[1]), "at most once");
            assert!(
                sent.len() <= got.len() + most,
                "what nobody took is in the ring"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn items_arrive_once_and_nobody_stays_asleep(
            most in 1usize..5,
            lock_free: bool,
            producers in 1usize..4,
            leave in proptest::collection::vec(proptest::option::weighted(0.6, 0usize..200), 1..4),
        ) {
            storm(most, lock_free, producers, &leave);
        }
    }

    #[test]
    fn a_full_channel_refuses_and_an_empty_one_ends() {
        for lock_free in [false, true] {
            let (sender, receiver) = channel(2, lock_free);
            let waits = Waits::default();
            assert_eq!((sender.try_send(1), sender.try_send(2)), (Ok(()), Ok(())));
            assert_eq!(sender.try_send(3), Err(3));
            drop(sender);
            let rest: Vec<i32> =
                std::iter::from_fn(|| block_on(receiver.receive(&waits))).collect();
            assert_eq!(rest, [1, 2]);
        }
    }
}
