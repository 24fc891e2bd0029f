//! The entries of one chunk of the page map in memory, and what keeps them there.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use buffer::PageId;

use crate::format::structures::{CHUNK, Entry};

type Words = [AtomicU64; 3];

/// Bytes of memory that a leaf takes.
pub(super) const LEAF_BYTES: u64 = (CHUNK as usize * size_of::<Words>() + size_of::<Leaf>()) as u64;

/// The entries of one chunk, readable without a lock.
///
/// Invariants:
/// 1. Words 0 and 1 of an entry change only while word 2 is zero, that is while the id is not
///    live; so whoever read a live word 2 (acquire) reads the words 0 and 1 that belong to it. Only
///    the offset, word 0, changes while a page is live, when its bytes have been copied: either
///    value belongs to the others.
/// 2. A leaf that is [clean](Leaf::is_clean) holds what the file has of the chunk, and nothing else.
#[derive(Debug)]
pub(super) struct Leaf {
    words: Box<[Words]>,
    /// Whether a commit has changed the chunk since the last checkpoint.
    changed: AtomicBool,
    /// Holds: of pages of a transaction under way, and of freed pages that somebody may still read.
    holds: AtomicU32,
    /// Whether it was looked at since it was last considered for dropping.
    used: AtomicBool,
    /// Whether it is in the queue of those that may be dropped.
    pub(super) queued: AtomicBool,
}

fn place(page: PageId) -> usize {
    (page % CHUNK) as usize
}

impl Leaf {
    /// A leaf without a page.
    pub(super) fn empty() -> Leaf {
        Leaf {
            words: (0..CHUNK).map(|_| Words::default()).collect(),
            changed: AtomicBool::new(false),
            holds: AtomicU32::new(0),
            used: AtomicBool::new(false),
            queued: AtomicBool::new(false),
        }
    }

    /// A leaf with these pages, all of its chunk.
    pub(super) fn of(entries: &[(PageId, Entry)]) -> Leaf {
        let leaf = Leaf::empty();
        for (page, entry) in entries {
            leaf.set(*page, entry);
        }
        leaf
    }

    /// The entry of a live page.
    pub(super) fn entry(&self, page: PageId, page_size: u32) -> Option<Entry> {
        let words = &self.words[place(page)];
        // Acquire pairs with the release in `set`, invariant 1.
        let last = words[2].load(Ordering::Acquire);
        let [first, second] = [0, 1].map(|word| words[word].load(Ordering::Relaxed));
        if last == 0 {
            return None;
        }
        // `set` accepts entries only, so this fails for nobody.
        Entry::of_words([first, second, last], page_size)
            .ok()
            .flatten()
    }

    /// The live pages, where `first` is the first of the chunk.
    pub(super) fn entries(&self, first: PageId, page_size: u32) -> Vec<(PageId, Entry)> {
        (first..=first + (CHUNK - 1))
            .filter_map(|page| Some((page, self.entry(page, page_size)?)))
            .collect()
    }

    /// Makes `page` live. It must not be so already.
    pub(super) fn set(&self, page: PageId, entry: &Entry) {
        let words = &self.words[place(page)];
        debug_assert_eq!(
            words[2].load(Ordering::Relaxed),
            0,
            "page {page} is live already"
        );
        let [first, second, last] = entry.words();
        words[0].store(first, Ordering::Relaxed);
        words[1].store(second, Ordering::Relaxed);
        words[2].store(last, Ordering::Release);
    }

    pub(super) fn relocate(&self, page: PageId, offset: u64) {
        self.words[place(page)][0].store(offset, Ordering::Release);
    }

    pub(super) fn clear(&self, page: PageId) {
        self.words[place(page)][2].store(0, Ordering::Release);
    }

    /// Keeps the leaf in memory until it is let go as often.
    pub(super) fn hold(&self) {
        self.holds.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn let_go(&self) {
        let before = self.holds.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "let go more often than held");
    }

    /// Says whether the file has other entries than the last commit.
    pub(super) fn change(&self, changed: bool) {
        self.changed.store(changed, Ordering::Release);
    }

    /// Whether nothing is lost if the leaf is dropped. What makes it otherwise happens under the lock
    /// of its slot, shared; who drops it has that lock alone.
    pub(super) fn is_clean(&self) -> bool {
        !self.changed.load(Ordering::Acquire) && self.holds.load(Ordering::Acquire) == 0
    }

    /// Notes that the leaf is looked at.
    pub(super) fn touch(&self) {
        // Mostly set already, and then no thread disturbs another.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was looked at since this was last asked.
    pub(super) fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }
}
