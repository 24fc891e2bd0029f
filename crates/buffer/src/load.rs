//! The way of a page into a frame.
//!
//! Who finds a page absent and swaps its word to loading is the loader:
//! 1. it takes a frame of the page's node, waiting for one if it must;
//! 2. it has the source fill the frame;
//! 3. it describes the frame, swaps the word to resident with its own pin, and only then
//! 4. wakes those who waited.
//!
//! A loader that fails, or is dropped on the way, gives the frame back and the word returns to
//! absent; those who waited get the error, or, after a drop, try again, and one of them is the
//! next loader.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use crate::partition::{Counts, Outcome, count};
use crate::{Error, PageId, Pin, Pool, Result};

/// The loader's claim to a page.
struct Loading<'p> {
    pool: &'p Pool,
    page: PageId,
    partition: u32,
    /// A frame this loader owns.
    frame: Option<u32>,
    /// Whether the word has left `loading`.
    done: bool,
}

impl Pool {
    /// Pins a page that was just found not to be resident.
    #[cold]
    pub(crate) async fn pin_missing(&self, page: PageId) -> Result<Pin<'_>> {
        let word = self.translation.word(page).ok_or(Error::NoSuchPage {
            page,
            capacity: self.translation.capacity(),
        })?;
        let mut counted = false;
        loop {
            let value = match word.pin() {
                Ok(frame) => {
                    if !counted {
                        // It has become resident since it was looked for.
                        self.hits.add();
                    }
                    return Ok(Pin::new(self, page, frame));
                }
                Err(value) if value.is_resident() => return Err(Error::TooManyPins { page }),
                Err(value) => value,
            };
            let partition = match value.loading() {
                Some(partition) => partition,
                None => self.partitions.of(page, self.source.bucket(page)),
            };
            if !counted {
                count(&self.counts(partition).misses, 1);
                counted = true;
            }
            if value.loading().is_some() {
                self.wait_for(page, partition).await?;
            } else if word.begin(partition) {
                let claim = Loading::new(self, page, partition);
                // None: the page was discarded meanwhile, so what was read may be outdated.
                if let Some(pin) = claim.run().await? {
                    return Ok(pin);
                }
            }
        }
    }

    /// Loads a page unless it is here or on its way, or there is no room. Errors are for whoever
    /// needs the page; they are only counted.
    pub(crate) async fn load_ahead(&self, page: PageId) {
        let Some(word) = self.translation.word(page) else {
            return;
        };
        if !word.load().is_absent() {
            return;
        }
        let partition = self.partitions.of(page, self.source.bucket(page));
        if !word.begin(partition) {
            return;
        }
        let mut claim = Loading::new(self, page, partition);
        claim.frame = self
            .partitions
            .take(partition, &self.frames, &self.translation);
        if claim.frame.is_some() && matches!(claim.run().await, Ok(Some(_))) {
            count(&self.counts(partition).prefetched, 1);
        }
    }

    fn counts(&self, partition: u32) -> &Counts {
        &self.partitions.get(partition).counts
    }

    /// Returns when a load has ended, in whatever way but for an error.
    async fn wait_for(&self, page: PageId, partition: u32) -> Outcome {
        let goes_on = || {
            let word = self.translation.word(page);
            word.and_then(|word| word.load().loading()) == Some(partition)
        };
        match self.partitions.get(partition).join(page, goes_on) {
            Some(receiver) => receiver.await.unwrap_or(Ok(())),
            None => Ok(()),
        }
    }

    /// A frame for a page of this partition, which the caller then owns.
    async fn frame(&self, page: PageId, partition: u32) -> Result<u32> {
        let take = || {
            self.partitions
                .take(partition, &self.frames, &self.translation)
        };
        if let Some(frame) = take() {
            return Ok(frame);
        }
        let node = self.partitions.get(partition).node;
        let starving = &self.partitions.node(node).starving;
        count(&self.partitions.node(node).waits, 1);
        let since = Instant::now();
        loop {
            let patience = Duration::from_millis(self.patience.load(Ordering::Relaxed));
            let freed = starving.join();
            if let Some(frame) = take() {
                return Ok(frame);
            }
            let sleep = self
                .timer
                .sleep(starving.deadline(since, patience))
                .map_err(|source| Error::Thread {
                    source: source.into(),
                })?;
            if let Either::Right(_) = select(freed, sleep).await
                && starving.gives_up(since, patience)
            {
                return Err(self.exhausted(page, node));
            }
        }
    }

    fn exhausted(&self, page: PageId, node: usize) -> Error {
        let of_node = || self.frames.iter().filter(|(_, f)| f.node as usize == node);
        let usable = of_node().filter(|&(number, frame)| {
            let word = self.translation.word(frame.page());
            word.and_then(|word| word.load().resident_in(number)) == Some(0)
        });
        let frames = of_node().count();
        Error::Exhausted {
            page,
            frames,
            pinned: frames - usable.count(),
            bytes: self.shape.bytes(),
        }
    }
}

impl<'p> Loading<'p> {
    fn new(pool: &'p Pool, page: PageId, partition: u32) -> Loading<'p> {
        Loading {
            pool,
            page,
            partition,
            frame: None,
            done: false,
        }
    }

    async fn run(mut self) -> Result<Option<Pin<'p>>> {
        let (pool, page) = (self.pool, self.page);
        let frame = match self.frame {
            Some(frame) => frame,
            None => match pool.frame(page, self.partition).await {
                Ok(frame) => frame,
                Err(error) => return Err(self.fail(error)),
            },
        };
        self.frame = Some(frame);
        // SAFETY: `start` is the first of `page_size` bytes, which were zero at first and are
        // initialised ever since. No word names the frame and no free list has it, so until
        // `publish` or `release` nobody else accesses it (`word`, invariant 1), and the slice is
        // not used after either.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(pool.frames.get(frame).start(), pool.shape.page_size)
        };
        match pool.source.load(page, bytes).await {
            Ok(len) if len <= pool.shape.page_size => Ok(self.publish(frame, len)),
            Ok(len) => Err(self.fail(Error::TooLong {
                page,
                len,
                page_size: pool.shape.page_size,
            })),
            Err(source) => Err(self.fail(Error::Load { page, source })),
        }
    }

    fn publish(mut self, frame: u32, len: usize) -> Option<Pin<'p>> {
        let pool = self.pool;
        let word = pool.translation.word(self.page)?;
        pool.frames.get(frame).describe(self.page, len as u32);
        if !word.publish(frame) {
            self.release(&Ok(()));
            return None;
        }
        self.done = true;
        self.frame = None;
        let pin = Pin::new(pool, self.page, frame);
        let partition = pool.partitions.get(self.partition);
        count(&partition.counts.loads, 1);
        count(&partition.counts.loaded_bytes, len as u64);
        partition.tell(self.page, &Ok(()));
        Some(pin)
    }

    fn fail(mut self, error: Error) -> Error {
        if let Some(word) = self.pool.translation.word(self.page) {
            word.abandon();
        }
        count(&self.pool.counts(self.partition).failures, 1);
        self.release(&Err(error.clone()));
        error
    }

    /// After the word has left `loading` without success: gives the frame back, wakes the others.
    fn release(&mut self, outcome: &Outcome) {
        self.done = true;
        if let Some(frame) = self.frame.take() {
            self.pool.partitions.give(frame, &self.pool.frames);
        }
        self.pool
            .partitions
            .get(self.partition)
            .tell(self.page, outcome);
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if let Some(word) = self.pool.translation.word(self.page) {
            word.abandon();
        }
        count(&self.pool.counts(self.partition).failures, 1);
        self.release(&Ok(()));
    }
}
