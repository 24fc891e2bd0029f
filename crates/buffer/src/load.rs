//! Loading: how a page gets into a frame.
//!
//! The task that finds a page absent lets its source find out where it is, and swaps its word to loading: it is
//! the loader:
//! 1. it takes a frame of the page's node, else of another node, waiting for one if it must;
//! 2. it has the source fill the frame, which the source owns meanwhile: what reads into it may go on after the
//!    loader is gone, and gives the frame back when it is done;
//! 3. it describes the frame, swaps the word to resident with its own pin, and only then
//! 4. wakes those who waited.
//!
//! A page that its source has in memory, as its file is mapped, needs no frame: it is verified in
//! place of steps 1 and 2.
//!
//! A loader that fails, or is dropped before it has finished, gives the frame back and the word returns to
//! absent. Those who waited get the error; after a drop, or if it was a prefetch that failed, they
//! try again, and one of them is the next loader.
//!
//! A loader is a future, and a future that is no longer polled stands still without being dropped.
//! The tasks that wait for it therefore wait for a bounded time, after which one takes the page over.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use crate::config::{PageId, Placement};
use crate::error::{Error, Result};
use crate::frames::Frame;
use crate::partition::{Counts, Outcome, count};
use crate::pin::Pin;
use crate::pool::Pool;
use crate::source::Space;
use crate::timer::Sleep;
use crate::word::{CLAIMS, Located, MAPPED, Published, Value};

/// The loader's claim to a page.
struct Loading<'p> {
    pool: &'p Pool,
    page: PageId,
    partition: u32,
    /// The claim in the word of the page by which this loader is known.
    claim: u32,
    /// A frame this loader owns.
    frame: Option<u32>,
    /// Whether the word has left `loading`.
    done: bool,
    /// Whether this is a prefetch: if it fails, the tasks that wait for the page load it themselves.
    ahead: bool,
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
                Ok(at) => {
                    if !counted {
                        // It has become resident since it was looked for.
                        self.hits.add();
                    }
                    return Ok(Pin::new(self, page, at));
                }
                Err(value) if value.is_exclusive() => {
                    self.wait_until_let_go(page).await?;
                    continue;
                }
                Err(value) if value.is_resident() => return Err(Error::TooManyPins { page }),
                Err(value) => value,
            };
            let partition = match value.loading() {
                Some(partition) => partition,
                None => {
                    self.locate(page).await;
                    self.partitions.of(page, self.source.bucket(page))
                }
            };
            if !counted {
                count(&self.counts(partition).misses, 1);
                counted = true;
            }
            let claim = self.claim();
            let mine = if value.loading().is_some() {
                self.wait_for(page, partition, value, claim).await?
            } else {
                word.begin(partition, claim)
            };
            if mine {
                let loader = Loading::new(self, page, partition, claim);
                // None: the page was discarded meanwhile, so what was read may be outdated.
                if let Some(pin) = loader.run().await? {
                    return Ok(pin);
                }
            }
        }
    }

    /// Prefetches a page, unless it is resident, being loaded, or no frame is free or cold. Errors are only
    /// counted: the task that pins the page later gets its own.
    pub(crate) async fn load_ahead(&self, page: PageId) {
        let Some(word) = self.translation.word(page) else {
            return;
        };
        if !word.load().is_absent() {
            return;
        }
        self.locate(page).await;
        let partition = self.partitions.of(page, self.source.bucket(page));
        let claim = self.claim();
        if !word.begin(partition, claim) {
            return;
        }
        let mut loader = Loading::new(self, page, partition, claim);
        loader.ahead = true;
        let mapped = self.source.mapped(page).is_some();
        if !mapped {
            let (partitions, words) = (&self.partitions, &self.translation);
            loader.frame = partitions.take_cold(partition, &self.frames, words);
            if loader.frame.is_none() {
                loader.drop_it();
                return;
            }
        }
        // Counted where it is published. Nobody asked for an error.
        let _ = loader.run().await;
    }

    async fn locate(&self, page: PageId) {
        if let Some(located) = self.source.locate(page) {
            located.await;
        }
    }

    fn counts(&self, partition: u32) -> &Counts {
        &self.partitions.get(partition).counts
    }

    fn claim(&self) -> u32 {
        self.claims.fetch_add(1, Ordering::Relaxed) & CLAIMS
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed))
    }

    pub(crate) fn sleep(&self, until: Instant) -> Result<Sleep> {
        self.timer.sleep(until).map_err(|source| Error::Thread {
            source: source.into(),
        })
    }

    /// Waits for the load that is under way in `seen`. True if it took too long and the caller
    /// has taken it over, with `claim`.
    async fn wait_for(
        &self,
        page: PageId,
        partition: u32,
        seen: Value,
        claim: u32,
    ) -> Result<bool> {
        let Some(word) = self.translation.word(page) else {
            return Ok(false);
        };
        let goes_on = || word.load().loading() == Some(partition);
        let Some(told) = self.partitions.get(partition).join(page, goes_on) else {
            return Ok(false);
        };
        let sleep = self.sleep(Instant::now() + self.patience())?;
        match select(told, sleep).await {
            Either::Left((told, _)) => told.unwrap_or(Ok(())).map(|()| false),
            Either::Right(_) => {
                let mine = word.take_over(seen, claim);
                count(&self.counts(partition).takeovers, u64::from(mine));
                Ok(mine)
            }
        }
    }

    /// A frame for a page of this partition, which the caller then owns: of its own node if that
    /// has one to give, else of another.
    async fn frame(&self, page: PageId, partition: u32) -> Result<u32> {
        let (frames, words) = (&self.frames, &self.translation);
        let take = || {
            let own = self.partitions.take(partition, frames, words);
            let other = || match self.placement {
                Placement::Bind => None,
                _ => self.partitions.borrow(partition, frames, words),
            };
            own.or_else(other)
        };
        if let Some(frame) = take() {
            return Ok(frame);
        }
        let node = self.partitions.get(partition).node;
        let starving = &self.partitions.starving;
        count(&self.partitions.node(node).waits, 1);
        let since = Instant::now();
        loop {
            let patience = self.patience();
            let freed = starving.join();
            if let Some(frame) = take() {
                return Ok(frame);
            }
            let sleep = self.sleep(starving.deadline(since, patience))?;
            if let Either::Right(_) = select(freed, sleep).await
                && starving.gives_up(since, patience)
            {
                return Err(self.exhausted(page, node));
            }
        }
    }

    /// No frame could be had; of those of its own node where it may have no other.
    fn exhausted(&self, page: PageId, node: usize) -> Error {
        let bound = self.placement == Placement::Bind;
        let may = |frame: &Frame| !bound || frame.node as usize == node;
        let all = || self.frames.iter().filter(|(_, frame)| may(frame));
        let usable = all().filter(|&(number, frame)| {
            let word = self.translation.word(frame.page());
            word.and_then(|word| word.load().resident_in(number)) == Some(0)
        });
        let frames = all().count();
        Error::Exhausted {
            page,
            frames,
            pinned: frames - usable.count(),
            bytes: (frames * self.page_size()) as u64,
        }
    }
}

impl<'p> Loading<'p> {
    fn new(pool: &'p Pool, page: PageId, partition: u32, claim: u32) -> Loading<'p> {
        pool.translation.touch(page);
        pool.loading.fetch_add(1, Ordering::SeqCst);
        Loading {
            pool,
            page,
            partition,
            claim,
            frame: None,
            done: false,
            ahead: false,
        }
    }

    async fn run(mut self) -> Result<Option<Pin<'p>>> {
        let (pool, page) = (self.pool, self.page);
        if let Some(bytes) = pool.source.mapped(page) {
            return match pool.source.verify(page, bytes) {
                Ok(()) => Ok(self.publish(MAPPED, bytes.len())),
                Err(source) => Err(self.fail(Error::Load { page, source })),
            };
        }
        let frame = match self.frame {
            Some(frame) => frame,
            None => match pool.frame(page, self.partition).await {
                Ok(frame) => frame,
                Err(error) => return Err(self.fail(error)),
            },
        };
        // The space has the frame now, and gives it back if it is dropped.
        self.frame = None;
        let space = Space::new(&pool.frames, &pool.partitions, frame, pool.shape.page_size);
        match pool.source.fill(page, space).await {
            Ok((space, len)) if len <= pool.shape.page_size && space.is(frame, &pool.frames) => {
                space.keep();
                self.frame = Some(frame);
                Ok(self.publish(frame, len))
            }
            Ok((_, len)) => Err(self.fail(Error::TooLong {
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
        if frame != MAPPED {
            pool.frames.get(frame).describe(self.page, len as u32);
        }
        let at = Located {
            frame,
            full: len == pool.shape.page_size,
        };
        match word.publish(self.claim, at) {
            Published::Resident => {
                self.done = true;
                self.frame = None;
                let pin = Pin::new(pool, self.page, at);
                let partition = pool.partitions.get(self.partition);
                if frame == MAPPED {
                    count(&partition.counts.mapped, 1);
                } else {
                    let home = pool.partitions.get(pool.frames.get(frame).partition);
                    home.loaded(frame, self.ahead, &pool.frames, &pool.translation);
                    count(&partition.counts.loads, 1);
                    count(&partition.counts.loaded_bytes, len as u64);
                    count(&partition.counts.prefetched, u64::from(self.ahead));
                }
                // Before they go on, who may look at the counters.
                let late = self.ahead && frame != MAPPED && partition.is_wanted(self.page);
                count(&partition.counts.late, u64::from(late));
                partition.tell(self.page, &Ok(()));
                Some(pin)
            }
            Published::Doomed => {
                self.release(true, &Ok(()));
                None
            }
            Published::Superseded => {
                self.release(false, &Ok(()));
                None
            }
        }
    }

    fn fail(mut self, error: Error) -> Error {
        let told = if self.ahead {
            Ok(())
        } else {
            Err(error.clone())
        };
        self.abandon(&told);
        error
    }

    fn abandon(&mut self, outcome: &Outcome) {
        let word = self.pool.translation.word(self.page);
        let mine = word.is_some_and(|word| word.abandon(self.claim));
        count(&self.pool.counts(self.partition).failures, 1);
        self.release(mine, outcome);
    }

    /// Ends a prefetch for which there is no frame.
    fn drop_it(mut self) {
        let word = self.pool.translation.word(self.page);
        let mine = word.is_some_and(|word| word.abandon(self.claim));
        count(&self.pool.counts(self.partition).dropped, 1);
        self.release(mine, &Ok(()));
    }

    /// After the word has left `loading` without success, or belongs to another loader: gives the
    /// frame back, and tells the others if that is up to this loader.
    fn release(&mut self, tells: bool, outcome: &Outcome) {
        self.done = true;
        if let Some(frame) = self.frame.take() {
            self.pool.partitions.give(frame, &self.pool.frames);
        }
        if tells {
            let partition = self.pool.partitions.get(self.partition);
            partition.tell(self.page, outcome);
        }
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.abandon(&Ok(()));
        }
        self.pool.loading.fetch_sub(1, Ordering::SeqCst);
    }
}
