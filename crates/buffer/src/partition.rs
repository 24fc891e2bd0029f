//! Partitions: free lists, clock hands, the lists of those who wait for a load (row B4).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures::channel::oneshot;
use parking_lot::Mutex;

use crate::frames::{Frames, Shape};
use crate::starve::Starving;
use crate::word::{Swept, USAGE_CAP};
use crate::{Error, PageId, translation::Translation};

/// What those who wait for a load are told; those told nothing (the sender is gone) look again.
pub(crate) type Outcome = Result<(), Error>;

/// A share of the frames of one node. Two cache lines, so that neighbours do not disturb.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Partition {
    pub(crate) node: usize,
    first: u32,
    count: u32,
    inner: Mutex<Inner>,
    pub(crate) counts: Counts,
}

/// Invariants: a frame is in `free` only while nobody owns it and no word names it; `waiting` has
/// entries only for pages whose word is loading with this partition's number.
#[derive(Debug)]
struct Inner {
    free: Vec<u32>,
    hand: u32,
    waiting: HashMap<PageId, Vec<oneshot::Sender<Outcome>>>,
}

/// Counted on a miss only.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) misses: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) loaded_bytes: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) takeovers: AtomicU64,
    pub(crate) prefetched: AtomicU64,
    pub(crate) evictions: AtomicU64,
}

/// What partitions of one node have in common.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Node {
    /// How many frames are in the free lists, so that nobody looks there for none.
    free: AtomicUsize,
    pub(crate) starving: Starving,
    pub(crate) waits: AtomicU64,
}

/// All partitions, node by node. No code holds the locks of two of them at once.
#[derive(Debug)]
pub(crate) struct Partitions {
    partitions: Box<[Partition]>,
    nodes: Box<[Node]>,
    per_node: usize,
}

pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Partitions {
    pub(crate) fn new(shape: Shape) -> Partitions {
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
                    inner: Mutex::new(Inner {
                        // Taken from the end: the lowest addresses first.
                        free: (first..end).rev().collect(),
                        hand: 0,
                        waiting: HashMap::new(),
                    }),
                    counts: Counts::default(),
                });
            }
        }
        let nodes = (0..shape.nodes).map(|_| Node {
            free: AtomicUsize::new(shape.frames_per_node),
            starving: Starving::default(),
            waits: AtomicU64::new(0),
        });
        Partitions {
            partitions: partitions.into_boxed_slice(),
            nodes: nodes.collect(),
            per_node: shape.partitions_per_node,
        }
    }

    /// The partition of a page with this placement bucket.
    pub(crate) fn of(&self, page: PageId, bucket: u8) -> u32 {
        let node = usize::from(bucket) % self.nodes.len();
        (node * self.per_node + page as usize % self.per_node) as u32
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
            for part in self.siblings(partition) {
                if let Some(frame) = part.inner.lock().free.pop() {
                    node.free.fetch_sub(1, Ordering::Relaxed);
                    return Some(frame);
                }
            }
        }
        for part in self.siblings(partition) {
            let mut inner = part.inner.lock();
            // Somebody may have given a frame back since.
            if let Some(frame) = inner.free.pop() {
                node.free.fetch_sub(1, Ordering::Relaxed);
                return Some(frame);
            }
            if let Some(frame) = part.turn(&mut inner, frames, translation) {
                count(&part.counts.evictions, 1);
                return Some(frame);
            }
        }
        None
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
        node.starving.freed();
    }

    /// Empties all frames without pins.
    pub(crate) fn clear(&self, frames: &Frames, translation: &Translation) {
        for part in &self.partitions {
            for frame in part.first..part.first + part.count {
                let page = frames.get(frame).page();
                let swept = translation.word(page).map(|word| word.evict(frame));
                if swept == Some(Swept::Evicted) {
                    self.give(frame, frames);
                }
            }
        }
    }
}

impl Partition {
    /// Turns the clock until a frame falls out, or none can: a round met only pinned ones.
    fn turn(&self, inner: &mut Inner, frames: &Frames, translation: &Translation) -> Option<u32> {
        let rounds = u64::from(USAGE_CAP) + 2;
        let mut barren = 0;
        for step in 0..rounds * u64::from(self.count) {
            let frame = self.first + inner.hand;
            inner.hand = (inner.hand + 1) % self.count;
            let word = translation.word(frames.get(frame).page())?;
            // Pages used faster than the hand turns could keep their counts up for ever: the last
            // round takes what it finds.
            let last = step >= (rounds - 1) * u64::from(self.count);
            let swept = if last {
                word.evict(frame)
            } else {
                word.age(frame)
            };
            match swept {
                Swept::Evicted => return Some(frame),
                Swept::Aged => barren = 0,
                Swept::Elsewhere | Swept::Pinned => barren += 1,
            }
            if barren >= self.count {
                return None;
            }
        }
        None
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

    /// Tells those who wait for the load of a page what became of it.
    pub(crate) fn tell(&self, page: PageId, outcome: &Outcome) {
        let waiting = self.inner.lock().waiting.remove(&page);
        for sender in waiting.into_iter().flatten() {
            // Who waited and has gone needs no answer.
            let _ = sender.send(outcome.clone());
        }
    }
}
