//! Partitions: free lists, replacement, the lists of those who wait for a load (row B4).

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures::channel::oneshot;
use parking_lot::Mutex;

use crate::config::PageId;
use crate::error::Error;
use crate::frames::{Frames, Shape};
use crate::replacement::{Policy, Replacement, Slots, Victim};
use crate::starve::Starving;
use crate::translation::Translation;
use crate::word::{Swept, Word};

/// The outcome of a load, sent to the tasks that wait for it. A task whose sender is dropped looks again.
pub(crate) type Outcome = Result<(), Error>;

/// A share of the frames of one node. Two cache lines, so that neighbours do not disturb.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Partition {
    pub(crate) node: usize,
    first: u32,
    count: u32,
    /// Chooses the page that makes room for another. Not under the lock of the partition.
    replacement: Box<dyn Replacement>,
    inner: Mutex<Inner>,
    /// For each frame, whether its page was loaded ahead and, as far as is known, not used since. A pin
    /// changes nothing here: such a page begins with no use, so it shows when somebody looks at it.
    early: Box<[AtomicBool]>,
    pub(crate) counts: Counts,
}

/// Invariants: a frame is in `free` only while nobody owns it and no word names it; `waiting` has
/// entries only for pages whose word is loading with this partition's number.
#[derive(Debug)]
struct Inner {
    free: Vec<u32>,
    waiting: HashMap<PageId, Vec<oneshot::Sender<Outcome>>>,
}

/// Counted on a miss only.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) misses: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) loaded_bytes: AtomicU64,
    pub(crate) mapped: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) takeovers: AtomicU64,
    pub(crate) prefetched: AtomicU64,
    /// Prefetched pages that were used, were asked for before they had come, left without a use.
    pub(crate) used: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) wasted: AtomicU64,
    /// Prefetches for which there was no frame.
    pub(crate) dropped: AtomicU64,
    pub(crate) evictions: AtomicU64,
    /// Pages of this partition that were put into a frame of another node.
    pub(crate) borrowed: AtomicU64,
    /// Frames that the policy looked at.
    pub(crate) looks: AtomicU64,
}

/// The frames of a partition as its policy sees them.
struct InPartition<'a> {
    first: u32,
    early: &'a [AtomicBool],
    counts: &'a Counts,
    /// Whether the frame is for a prefetch: it does not take that of another, which is still to be used.
    spares_early: bool,
    frames: &'a Frames,
    translation: &'a Translation,
    looks: Cell<u32>,
}

impl InPartition<'_> {
    /// The frame in a slot, and the word of the page it held last.
    fn word(&self, slot: u32) -> (u32, Option<Word<'_>>) {
        let frame = self.first + slot;
        self.looks.set(self.looks.get() + 1);
        (frame, self.translation.word(self.frames.get(frame).page()))
    }

    /// Whether the page in a slot was loaded ahead and not used yet. The first use of one
    /// is taken off it: it is what the load was for, and no sign that the page is wanted again.
    fn is_early(&self, slot: u32) -> bool {
        let early = &self.early[slot as usize];
        if !early.load(Ordering::Relaxed) {
            return false;
        }
        let frame = self.first + slot;
        let word = self.translation.word(self.frames.get(frame).page());
        let Some((word, Swept::Aged(uses @ 1..))) = word.map(|word| (word, word.look(frame)))
        else {
            return true;
        };
        if early.swap(false, Ordering::Relaxed) {
            count(&self.counts.used, 1);
            word.set_uses(frame, uses - 1);
        }
        false
    }

    /// Notes that the page in a slot has left.
    fn left(&self, slot: u32) {
        let early = &self.early[slot as usize];
        if early.load(Ordering::Relaxed) && early.swap(false, Ordering::Relaxed) {
            count(&self.counts.wasted, 1);
        }
    }
}

impl Slots for InPartition<'_> {
    fn look(&self, slot: u32) -> Swept {
        if self.is_early(slot) && self.spares_early {
            self.looks.set(self.looks.get() + 1);
            return Swept::Pinned;
        }
        let (frame, word) = self.word(slot);
        word.map_or(Swept::Elsewhere, |word| word.look(frame))
    }

    fn age(&self, slot: u32) -> Swept {
        if self.is_early(slot) && self.spares_early {
            self.looks.set(self.looks.get() + 1);
            return Swept::Pinned;
        }
        let (frame, word) = self.word(slot);
        let swept = word.map_or(Swept::Elsewhere, |word| word.age(frame));
        if swept == Swept::Evicted {
            self.left(slot);
        }
        swept
    }

    fn set_uses(&self, slot: u32, uses: u32) {
        let frame = self.first + slot;
        if let Some(word) = self.translation.word(self.frames.get(frame).page()) {
            word.set_uses(frame, uses);
        }
    }

    fn evict(&self, slot: u32) -> bool {
        if self.is_early(slot) && self.spares_early {
            self.looks.set(self.looks.get() + 1);
            return false;
        }
        let (frame, word) = self.word(slot);
        let evicted = word.is_some_and(|word| word.evict(frame) == Swept::Evicted);
        if evicted {
            self.left(slot);
        }
        evicted
    }

    fn page(&self, slot: u32) -> PageId {
        self.frames.get(self.first + slot).page()
    }
}

/// What partitions of one node have in common.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Node {
    /// How many frames are in the free lists; at 0 nobody takes their locks to look.
    pub(crate) free: AtomicUsize,
    pub(crate) waits: AtomicU64,
}

/// All partitions, node by node. No code holds the locks of two of them at once.
#[derive(Debug)]
pub(crate) struct Partitions {
    partitions: Box<[Partition]>,
    nodes: Box<[Node]>,
    per_node: usize,
    /// How many pages with numbers side by side are in one partition.
    together: usize,
    pub(crate) starving: Starving,
    /// Frames that were given back so far.
    pub(crate) freed: AtomicU64,
    /// Frames that loads own as a [`Space`](crate::Space).
    pub(crate) spaces: AtomicUsize,
}

pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Partitions {
    pub(crate) fn new(shape: Shape, policy: Policy) -> Partitions {
        let mut partitions = Vec::new();
        for node in 0..shape.nodes {
            for part in 0..shape.partitions_per_node {
                let own = shape.frames_of(part);
                let base = (node * shape.frames_per_node) as u32;
                let (first, end) = (base + own.start as u32, base + own.end as u32);
                partitions.push(Partition {
                    node,
                    first,
                    count: end - first,
                    replacement: policy.start(end - first),
                    inner: Mutex::new(Inner {
                        // Taken from the end: the lowest addresses first.
                        free: (first..end).rev().collect(),
                        waiting: HashMap::new(),
                    }),
                    early: (first..end).map(|_| AtomicBool::new(false)).collect(),
                    counts: Counts::default(),
                });
            }
        }
        let nodes = (0..shape.nodes).map(|_| Node {
            free: AtomicUsize::new(shape.frames_per_node),
            waits: AtomicU64::new(0),
        });
        Partitions {
            partitions: partitions.into_boxed_slice(),
            nodes: nodes.collect(),
            per_node: shape.partitions_per_node,
            together: shape.pages_together(),
            starving: Starving::default(),
            freed: AtomicU64::new(0),
            spaces: AtomicUsize::new(0),
        }
    }

    /// The partition of a page with this placement bucket. Pages with numbers side by side are in the same one, some at
    /// a time: those that are loaded in order then lie side by side in memory, too, where the processor's prefetcher
    /// goes on from one to the next.
    pub(crate) fn of(&self, page: PageId, bucket: u8) -> u32 {
        let node = usize::from(bucket) % self.nodes.len();
        (node * self.per_node + (page as usize / self.together) % self.per_node) as u32
    }

    pub(crate) fn get(&self, partition: u32) -> &Partition {
        &self.partitions[partition as usize]
    }

    pub(crate) fn node(&self, node: usize) -> &Node {
        &self.nodes[node]
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter()
    }

    /// The partitions of the same node, this one first.
    fn siblings(&self, partition: u32) -> impl Iterator<Item = &Partition> {
        let own = partition as usize % self.per_node;
        let first = partition as usize - own;
        (0..self.per_node).map(move |i| &self.partitions[first + (own + i) % self.per_node])
    }

    /// A frame of the partition's node: free in the partition, free in another one of the node,
    /// under the partition's clock, under another one's. The caller owns it. None if all are
    /// pinned or being loaded.
    pub(crate) fn take(
        &self,
        partition: u32,
        frames: &Frames,
        translation: &Translation,
    ) -> Option<u32> {
        let node = self.node(self.get(partition).node);
        if node.free.load(Ordering::Relaxed) > 0 {
            let mut parts = self.siblings(partition);
            if let Some(frame) = parts.find_map(|part| self.pop(part)) {
                return Some(frame);
            }
        }
        self.siblings(partition).find_map(|part| {
            // Somebody may have given a frame back since.
            self.pop(part).or_else(|| part.evict(frames, translation))
        })
    }

    /// As [`take`](Partitions::take), for a page that nobody has asked for yet: a frame that is free,
    /// or one whose page is cold. None if a few looks find neither.
    pub(crate) fn take_cold(
        &self,
        partition: u32,
        frames: &Frames,
        translation: &Translation,
    ) -> Option<u32> {
        if self
            .node(self.get(partition).node)
            .free
            .load(Ordering::Relaxed)
            > 0
        {
            let mut parts = self.siblings(partition);
            if let Some(frame) = parts.find_map(|part| self.pop(part)) {
                return Some(frame);
            }
        }
        self.siblings(partition)
            .find_map(|part| part.evict_cold(frames, translation))
    }

    /// As [`take`](Partitions::take), from another node: for a page whose own node has no frame
    /// to give. It is slower to read there, but it can be read.
    pub(crate) fn borrow(
        &self,
        partition: u32,
        frames: &Frames,
        translation: &Translation,
    ) -> Option<u32> {
        let (own, nodes) = (partition as usize / self.per_node, self.nodes.len());
        let within = partition as usize % self.per_node;
        let others = || (1..nodes).map(|step| (own + step) % nodes);
        // One that is free costs nobody a page.
        let free = others().filter(|&node| self.node(node).free.load(Ordering::Relaxed) > 0);
        let frame = free.chain(others()).find_map(|node| {
            self.take((node * self.per_node + within) as u32, frames, translation)
        })?;
        count(&self.get(partition).counts.borrowed, 1);
        Some(frame)
    }

    /// The frames in the free list of a partition, the next to be taken last.
    pub(crate) fn free(&self, partition: u32) -> Vec<u32> {
        self.get(partition).inner.lock().free.clone()
    }

    /// Puts a frame into a free list where it does not belong.
    #[cfg(test)]
    pub(crate) fn plant(&self, partition: u32, frame: u32) {
        self.get(partition).inner.lock().free.push(frame);
    }

    /// A frame from the free list of a partition.
    fn pop(&self, part: &Partition) -> Option<u32> {
        let frame = part.inner.lock().free.pop()?;
        self.node(part.node).free.fetch_sub(1, Ordering::Relaxed);
        Some(frame)
    }

    /// Gives back a frame that the caller owns, and wakes those who wait for one.
    pub(crate) fn give(&self, frame: u32, frames: &Frames) {
        let part = self.get(frames.get(frame).partition);
        let node = self.node(part.node);
        {
            let mut inner = part.inner.lock();
            debug_assert!(inner.free.len() > 1024 || !inner.free.contains(&frame));
            inner.free.push(frame);
            node.free.fetch_add(1, Ordering::Relaxed);
        }
        count(&self.freed, 1);
        self.starving.freed();
    }

    /// Empties all frames without pins.
    pub(crate) fn clear(&self, frames: &Frames, translation: &Translation) {
        for part in &self.partitions {
            let slots = part.slots(frames, translation);
            for slot in (0..part.count).filter(|&slot| slots.evict(slot)) {
                self.give(part.first + slot, frames);
            }
        }
    }
}

impl Partition {
    /// Takes a page out of its frame, which then belongs to the caller. `None` if all frames are
    /// pinned, free or being loaded.
    fn evict(&self, frames: &Frames, translation: &Translation) -> Option<u32> {
        let slots = self.slots(frames, translation);
        let mut evicted = None;
        while slots.looks.get() < self.count && evicted.is_none() {
            let before = slots.looks.get();
            if let Victim::Taken(slot) = self.replacement.victim(&slots) {
                evicted = Some(self.first + slot);
            } else if slots.looks.get() == before {
                // A policy with no slot to look at.
                break;
            }
        }
        // Several threads turn the one hand, so one of them need not have met all frames: it says
        // that there is none to take only after it has looked at each.
        let evicted = evicted.or_else(|| {
            let mut all = 0..self.count;
            all.find(|&slot| slots.evict(slot))
                .map(|slot| self.first + slot)
        });
        count(&self.counts.looks, u64::from(slots.looks.get()));
        count(&self.counts.evictions, u64::from(evicted.is_some()));
        evicted
    }

    /// As [`evict`](Partition::evict), of a page that is cold.
    fn evict_cold(&self, frames: &Frames, translation: &Translation) -> Option<u32> {
        let mut slots = self.slots(frames, translation);
        slots.spares_early = true;
        let evicted = self.replacement.cold(&slots);
        count(&self.counts.looks, u64::from(slots.looks.get()));
        count(&self.counts.evictions, u64::from(evicted.is_some()));
        evicted.map(|slot| self.first + slot)
    }

    /// Tells the policy that a page was loaded into a frame of this partition: one that somebody
    /// asked for, or `ahead` of that.
    pub(crate) fn loaded(
        &self,
        frame: u32,
        ahead: bool,
        frames: &Frames,
        translation: &Translation,
    ) {
        let slots = self.slots(frames, translation);
        let (slot, page) = (frame - self.first, frames.get(frame).page());
        slots.left(slot);
        self.replacement.loaded(slot, page, &slots);
        if ahead {
            slots.set_uses(slot, 0);
            self.early[slot as usize].store(true, Ordering::Relaxed);
        }
    }

    /// Whether the page in a frame of this partition was loaded ahead and not used yet, as far as can
    /// be seen; counts it if it was used.
    pub(crate) fn is_early(&self, frame: u32, frames: &Frames, translation: &Translation) -> bool {
        let slots = self.slots(frames, translation);
        slots.is_early(frame - self.first)
    }

    /// Notes that the page of a frame of this partition was discarded.
    pub(crate) fn left(&self, frame: u32, frames: &Frames, translation: &Translation) {
        self.slots(frames, translation).left(frame - self.first);
    }

    fn slots<'a>(&'a self, frames: &'a Frames, translation: &'a Translation) -> InPartition<'a> {
        InPartition {
            first: self.first,
            early: &self.early,
            counts: &self.counts,
            spares_early: false,
            frames,
            translation,
            looks: Cell::new(0),
        }
    }

    /// Joins those who wait for a load, if it still goes on: asked under the lock, because the
    /// loader changes the word first and then takes the lock to wake us.
    pub(crate) fn join(
        &self,
        page: PageId,
        goes_on: impl Fn() -> bool,
    ) -> Option<oneshot::Receiver<Outcome>> {
        let mut inner = self.inner.lock();
        if !goes_on() {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        inner.waiting.entry(page).or_default().push(sender);
        Some(receiver)
    }

    /// Whether tasks wait for the load of a page.
    pub(crate) fn is_wanted(&self, page: PageId) -> bool {
        self.inner.lock().waiting.contains_key(&page)
    }

    /// Sends the outcome of the load of a page to the tasks that wait for it.
    pub(crate) fn tell(&self, page: PageId, outcome: &Outcome) {
        let waiting = self.inner.lock().waiting.remove(&page);
        for sender in waiting.into_iter().flatten() {
            // Who waited and has gone needs no answer.
            let _ = sender.send(outcome.clone());
        }
    }
}
