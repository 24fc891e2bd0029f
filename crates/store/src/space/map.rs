//! The page map in memory: page id -> place in the file, readable without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use buffer::PageId;
use memory::Budget;

use crate::format::structures::{CHUNK, Entry};

const FAN: usize = 2048;
const LEAF: usize = CHUNK as usize;
/// Bytes of memory that a leaf takes.
const LEAF_BYTES: u64 = (LEAF * size_of::<Words>()) as u64;

type Words = [AtomicU64; 3];
type Leaf = Box<[Words]>;
type Inner = Box<[OnceLock<Leaf>]>;

/// Page id -> [`Entry`], three levels that only ever grow.
///
/// Invariants:
/// 1. Words 0 and 1 of an entry change only while word 2 is zero, that is while the id is not
///    live; so whoever read a live word 2 (acquire) reads the words 0 and 1 that belong to it. Only
///    the offset, word 0, changes while a page is live, when its bytes have been copied: either
///    value belongs to the others.
/// 2. An id is cleared only when nobody can ask for it any more: no snapshot that knows the page
///    is alive, and no frame holds it.
#[derive(Debug)]
pub(crate) struct PageMap {
    /// `FAN` slots of `FAN` leaves of `LEAF` entries: all of the 2^32 ids.
    top: Box<[OnceLock<Inner>]>,
    page_size: u32,
    /// The memory budget that leaves created while the store is opened are taken from.
    budget: Arc<Budget>,
    /// Bytes taken from it.
    reserved: AtomicU64,
}

impl Drop for PageMap {
    fn drop(&mut self) {
        self.budget.give(*self.reserved.get_mut());
    }
}

const _: () = assert!((FAN * FAN * LEAF) as u64 == 1 << 32);

fn split(page: PageId) -> (usize, usize, usize) {
    let page = page as usize;
    (page / LEAF / FAN, page / LEAF % FAN, page % LEAF)
}

impl PageMap {
    pub(crate) fn new(page_size: u32, budget: Arc<Budget>) -> PageMap {
        PageMap {
            top: (0..FAN).map(|_| OnceLock::new()).collect(),
            page_size,
            budget,
            reserved: AtomicU64::new(0),
        }
    }

    /// Takes the memory for the entry of `page` from the budget; where too little is left, fails
    /// with what it needs. Used while a store is opened, when a file says how many entries there
    /// are; pages written later bring their own bytes.
    pub(crate) fn reserve(&self, page: PageId) -> Result<(), u64> {
        if self.leaf(page).is_none() {
            self.budget.take(LEAF_BYTES).map_err(|_| LEAF_BYTES)?;
            self.reserved.fetch_add(LEAF_BYTES, Ordering::Relaxed);
        }
        Ok(())
    }

    fn leaf(&self, page: PageId) -> Option<&Leaf> {
        let (top, inner, _) = split(page);
        self.top[top].get()?[inner].get()
    }

    fn words(&self, page: PageId) -> Option<&Words> {
        self.leaf(page)?.get(split(page).2)
    }

    fn entry(&self, words: &Words) -> Option<Entry> {
        // Acquire pairs with the release in `set`, invariant 1.
        let last = words[2].load(Ordering::Acquire);
        let [first, second] = [0, 1].map(|word| words[word].load(Ordering::Relaxed));
        if last == 0 {
            return None;
        }
        // `set` accepts entries only, so this fails for nobody.
        Entry::of_words([first, second, last], self.page_size)
            .ok()
            .flatten()
    }

    /// The entry of a live page.
    pub(crate) fn get(&self, page: PageId) -> Option<Entry> {
        self.entry(self.words(page)?)
    }

    /// The placement bucket of a live page, 0 for any other.
    pub(crate) fn bucket(&self, page: PageId) -> u8 {
        self.words(page)
            .map_or(0, |words| (words[2].load(Ordering::Relaxed) >> 16) as u8)
    }

    /// Makes `page` live. It must not be so already.
    pub(crate) fn set(&self, page: PageId, entry: &Entry) {
        let (top, inner, leaf) = split(page);
        let words = &self.top[top].get_or_init(|| (0..FAN).map(|_| OnceLock::new()).collect())
            [inner]
            .get_or_init(|| (0..LEAF).map(|_| Default::default()).collect())[leaf];
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

    /// Says that a live page lies elsewhere now, with the same bytes. Who has read the entry before
    /// reads the former place, and must look again if that holds something else by then.
    pub(crate) fn relocate(&self, page: PageId, offset: u64) {
        if let Some(words) = self.words(page) {
            words[0].store(offset, Ordering::Release);
        }
    }

    /// Makes `page` free; the caller sees to invariant 2.
    pub(crate) fn clear(&self, page: PageId) {
        if let Some(words) = self.words(page) {
            words[2].store(0, Ordering::Release);
        }
    }

    /// The live pages of one chunk.
    pub(crate) fn chunk(&self, chunk: u32) -> impl Iterator<Item = (PageId, Entry)> + '_ {
        let first = chunk * CHUNK;
        let leaf = self.leaf(first).into_iter().flatten();
        (first..=first + (CHUNK - 1))
            .zip(leaf)
            .filter_map(|(page, words)| Some((page, self.entry(words)?)))
    }

    /// All live pages below `end`, in their order.
    pub(crate) fn live(&self, end: u64) -> impl Iterator<Item = (PageId, Entry)> + '_ {
        (0..end.div_ceil(u64::from(CHUNK)) as u32).flat_map(|chunk| self.chunk(chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::kind::{Codec, Kind};
    use crate::format::structures::FIRST_EXTENT;

    fn entry(bucket: u8) -> Entry {
        Entry {
            offset: FIRST_EXTENT + 64 * u64::from(bucket),
            stored: 7,
            raw: 7,
            sum: 1,
            bucket,
            kind: Kind::Values,
            codec: Codec::Raw,
        }
    }

    #[test]
    fn entries_are_found_at_every_corner() {
        let map = PageMap::new(65_536, Budget::new(0));
        let pages = [
            0,
            1,
            1023,
            1024,
            2_097_151,
            2_097_152,
            u32::MAX - 1,
            u32::MAX,
        ];
        for (bucket, &page) in (0..).zip(&pages) {
            assert_eq!(map.get(page), None);
            map.set(page, &entry(bucket));
        }
        for (bucket, &page) in (0..).zip(&pages) {
            assert_eq!(map.get(page), Some(entry(bucket)));
            assert_eq!(map.bucket(page), bucket);
        }
        assert_eq!(
            map.live(2048).map(|(page, _)| page).collect::<Vec<_>>(),
            [0, 1, 1023, 1024]
        );
        assert_eq!(map.reserve(2), Ok(()), "its leaf is there");
        assert_eq!(map.reserve(4096), Err(LEAF_BYTES));
        map.clear(1023);
        assert_eq!(map.get(1023), None);
        assert_eq!(map.get(2), None);
    }
}
