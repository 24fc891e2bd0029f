//! The buffer pool: frames on the memory of all nodes, pins, and limits.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::background::Background;
use crate::config::{Config, PageId, Placement};
use crate::error::{Error, Result};
use crate::frames::{Frames, Shape};
use crate::hits::Hits;
use crate::partition::{Partition, Partitions};
use crate::prefetch::Prefetching;
use crate::read_ahead::ReadAhead;
use crate::source::Source;
use crate::statistics::{NodeStatistics, Statistics};
use crate::timer::Timer;
use crate::translation::Translation;
use crate::word::{Discarded, MAPPED};

/// How long a task waits for a frame before it is told that there is none.
const PATIENCE: Duration = Duration::from_secs(5);

/// Frames on the memory of all nodes, and the pages in them (row B2).
///
/// A pool is shared by all threads. It never writes pages to their source.
pub struct Pool {
    pub(crate) translation: Translation,
    pub(crate) frames: Arc<Frames>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) shape: Shape,
    pub(crate) hits: Hits,
    pub(crate) timer: Timer,
    os_nodes: Vec<Option<u32>>,
    pub(crate) placement: Placement,
    /// In milliseconds.
    pub(crate) patience: AtomicU64,
    /// Invariant: the owned pins there are; at most `lend_limit` when one is added.
    pub(crate) lent: AtomicUsize,
    lend_limit: AtomicUsize,
    prefetch: Prefetching,
    /// Pages that were to be prefetched and are neither loaded nor dropped yet.
    pub(crate) prefetching: AtomicUsize,
    pub(crate) background: Background,
    /// Loaders at work, each of which may own a frame.
    pub(crate) loading: AtomicUsize,
    /// The claim that the next loader gets; see `word`.
    pub(crate) claims: AtomicU32,
}

impl Pool {
    /// Makes a pool of empty frames, whose memory it takes from `budget` and gives back when it is
    /// dropped. The words of page ids count there as they are touched ([`word_bytes`](Pool::word_bytes)).
    ///
    /// # Errors
    /// [`Error::PageSize`] and [`Error::Nodes`] for what cannot be; [`Error::TooSmall`] below
    /// [`FRAMES_PER_NODE`](crate::FRAMES_PER_NODE) frames a node; [`Error::TooLarge`] past the
    /// memory this process may use; [`Error::Memory`] where the budget or the system refuses.
    pub fn new(
        config: &Config,
        source: Arc<dyn Source>,
        budget: Arc<memory::Budget>,
    ) -> Result<Arc<Pool>> {
        let shape = Shape::of(config)?;
        let frames = Arc::new(Frames::new(shape, config, budget.clone())?);
        Ok(Arc::new(Pool {
            translation: Translation::new(budget)?,
            partitions: Arc::new(Partitions::new(shape, config.replacement)),
            source,
            shape,
            hits: Hits::new(),
            timer: Timer::default(),
            os_nodes: config.nodes.clone(),
            placement: config.placement,
            patience: AtomicU64::new(PATIENCE.as_millis() as u64),
            lent: AtomicUsize::new(0),
            lend_limit: AtomicUsize::new(frames.len() / 4),
            prefetch: config.prefetch,
            prefetching: AtomicUsize::new(0),
            background: Background::default(),
            loading: AtomicUsize::new(0),
            claims: AtomicU32::new(0),
            frames,
        }))
    }

    /// Drops a page that is not wanted any more: its frame is free when this returns. A load of it
    /// that is under way is repeated, or, if it was a prefetch, dropped.
    ///
    /// # Errors
    /// [`Error::Pinned`]; the page then stays.
    pub fn discard(&self, page: PageId) -> Result<()> {
        let Some(word) = self.translation.word(page) else {
            return Ok(());
        };
        // What was used before it is discarded was loaded ahead for good.
        let part = |frame| self.partitions.get(self.frames.get(frame).partition);
        if let Some(frame) = word.load().frame().filter(|&frame| frame != MAPPED) {
            part(frame).is_early(frame, &self.frames, &self.translation);
        }
        match word.discard() {
            Discarded::Absent | Discarded::Doomed | Discarded::Freed(MAPPED) => Ok(()),
            Discarded::Freed(frame) => {
                part(frame).left(frame, &self.frames, &self.translation);
                self.partitions.give(frame, &self.frames);
                Ok(())
            }
            Discarded::Pinned(pins) => Err(Error::Pinned { page, pins }),
        }
    }

    /// Empties all frames that are not pinned: for cold runs. Mapped pages have none and stay.
    pub fn clear(&self) {
        self.partitions.clear(&self.frames, &self.translation);
    }

    /// Whether all that was read from mapped pages (row M1) are the bytes of their file: to be asked
    /// before a result that was computed from them is believed. Always so where nothing is mapped.
    ///
    /// # Errors
    /// [`Error::Lost`]: the file became shorter, or could not be read, while it was mapped.
    pub fn intact(&self) -> Result<()> {
        self.source
            .intact()
            .map_err(|source| Error::Lost { source })
    }

    /// Whether a page is in a frame, or mapped and verified, at this moment.
    pub fn is_resident(&self, page: PageId) -> bool {
        self.translation
            .word(page)
            .is_some_and(|word| word.load().is_resident())
    }

    /// The counters. Looks at every frame, so not for every query.
    pub fn statistics(&self) -> Statistics {
        let mut nodes: Vec<NodeStatistics> = self
            .os_nodes
            .iter()
            .zip(self.partitions.nodes())
            .map(|(os_node, node)| NodeStatistics {
                os_node: *os_node,
                partitions: self.shape.partitions_per_node,
                frames: self.shape.frames_per_node,
                waits: node.waits.load(Ordering::Relaxed),
                ..NodeStatistics::default()
            })
            .collect();
        // Of pages loaded ahead: those that nobody used yet, and those that somebody uses now.
        let (mut unused, mut used) = (0, 0);
        for (number, frame) in self.frames.iter() {
            let word = self.translation.word(frame.page());
            if let Some(pins) = word.and_then(|word| word.load().resident_in(number)) {
                let node = &mut nodes[frame.node as usize];
                node.resident += 1;
                node.pinned += usize::from(pins > 0);
                let part = self.partitions.get(frame.partition);
                if part.is_early(number, &self.frames, &self.translation) {
                    unused += usize::from(pins == 0);
                    used += u64::from(pins > 0);
                }
            }
        }
        for partition in self.partitions.iter() {
            let node = &mut nodes[partition.node];
            node.misses += partition.counts.misses.load(Ordering::Relaxed);
            node.loads += partition.counts.loads.load(Ordering::Relaxed);
            node.evictions += partition.counts.evictions.load(Ordering::Relaxed);
            node.borrowed += partition.counts.borrowed.load(Ordering::Relaxed);
        }
        let total = |of: fn(&NodeStatistics) -> u64| nodes.iter().map(of).sum();
        let counted = |of: fn(&Partition) -> &AtomicU64| {
            let each = self.partitions.iter().map(of);
            each.map(|counter| counter.load(Ordering::Relaxed)).sum()
        };
        Statistics {
            page_size: self.shape.page_size,
            frames: self.frames.len(),
            resident: nodes.iter().map(|node| node.resident).sum(),
            pinned: nodes.iter().map(|node| node.pinned).sum(),
            lent: self.lent.load(Ordering::Relaxed),
            hits: self.hits.sum(),
            misses: total(|node| node.misses),
            loads: total(|node| node.loads),
            loaded_bytes: counted(|partition| &partition.counts.loaded_bytes),
            failures: counted(|partition| &partition.counts.failures),
            takeovers: counted(|partition| &partition.counts.takeovers),
            mapped: counted(|partition| &partition.counts.mapped),
            prefetched: counted(|partition| &partition.counts.prefetched),
            prefetch_used: used + counted(|partition| &partition.counts.used),
            prefetch_late: counted(|partition| &partition.counts.late),
            prefetch_wasted: counted(|partition| &partition.counts.wasted),
            prefetch_dropped: counted(|partition| &partition.counts.dropped),
            prefetch_unused: unused,
            evictions: total(|node| node.evictions),
            waits: total(|node| node.waits),
            borrowed: total(|node| node.borrowed),
            looks: counted(|partition| &partition.counts.looks),
            nodes,
        }
    }

    /// How many logical nodes the frames lie on.
    pub fn nodes(&self) -> usize {
        self.shape.nodes
    }

    /// The logical node on whose memory a page with this placement bucket is put while that has
    /// room.
    pub fn node_of(&self, bucket: u8) -> usize {
        usize::from(bucket) % self.shape.nodes
    }

    /// The logical node on whose memory `page` is put while that has room: that of its placement
    /// bucket. Its actual node is [`Pin::node`](crate::Pin::node).
    pub fn home_of(&self, page: PageId) -> usize {
        self.node_of(self.source.bucket(page))
    }

    /// The state of prefetching for one caller who reads pages of this pool, as
    /// [`Config::prefetch`] has it: it asks for no more than an eighth of the frames at once, and
    /// for less where there are several nodes.
    pub fn read_ahead(&self) -> ReadAhead {
        let most = self.shape.frames_per_node / 8;
        ReadAhead::new(self.prefetch, u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// The size of a frame in bytes.
    pub fn page_size(&self) -> usize {
        self.shape.page_size
    }

    /// The memory of all frames in bytes: the configured size, rounded down.
    pub fn bytes(&self) -> u64 {
        self.shape.bytes()
    }

    /// The memory, in bytes, of the words that translate page ids: 8 for each, in blocks of 256 KiB, of which those
    /// count in which a page was ever loaded (the system may take 2 MiB, a huge page, for one). Where the budget had
    /// no room for one, it is counted as soon as there is.
    pub fn word_bytes(&self) -> u64 {
        self.translation.bytes()
    }

    /// The memory of the frames: a range of addresses, mapped and readable, for each logical node. Its contents may
    /// change at any time. For tools that watch memory accesses from outside.
    pub fn memory(&self) -> impl Iterator<Item = Range<*const u8>> {
        self.frames.memory()
    }

    /// The number of frames.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// What the system refused when the memory was set up (huge pages, binding), each once.
    pub fn notes(&self) -> Vec<String> {
        self.frames.notes()
    }

    /// The most pins lent out as [`OwnedPin`](crate::OwnedPin) at the same time: at first a
    /// quarter of the frames.
    pub fn lend_limit(&self) -> usize {
        self.lend_limit.load(Ordering::Relaxed)
    }

    /// Sets [`lend_limit`](Pool::lend_limit). Pins already lent stay so.
    pub fn set_lend_limit(&self, pins: usize) {
        self.lend_limit.store(pins, Ordering::Relaxed);
    }

    /// Sets how long a task waits for a frame without any becoming free before it gets
    /// [`Error::Exhausted`]; 5 seconds at first. Where several wait, the first to give up is
    /// progress for the others, who wait for at least a fifth of this longer. Also how long a
    /// load may take before another who waits for the page tries it anew.
    pub fn set_patience(&self, patience: Duration) {
        let milliseconds = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        // A day is for ever, and does not overflow a clock.
        self.patience
            .store(milliseconds.min(86_400_000), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn unpin(&self, page: PageId) {
        if let Some(word) = self.translation.word(page)
            && word.unpin()
        {
            self.partitions.starving.freed();
        }
    }

    /// Counts one more owned pin, if there may be one.
    pub(crate) fn lend(&self) -> bool {
        let limit = self.lend_limit();
        self.lent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |lent| {
                (lent < limit).then_some(lent + 1)
            })
            .is_ok()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
