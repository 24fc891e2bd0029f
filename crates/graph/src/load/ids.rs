//! The set of ids of a file, and their numbers by rising id.
//!
//! Ids below 2^32 lie in bitmaps of 2^16 ids each, made when the first id of theirs comes, as long
//! as there is memory for them; other ids in a sorted list. Files whose ids are close together take
//! little more than a bit for each id, those with ids all over the place eight bytes for each.

use std::sync::Arc;

use memory::Budget;

use crate::error::{Error, Result};
use crate::format::meta::MOST_VERTICES;
use crate::run::room::Room;

/// Ids of a bitmap, as a power of two.
const CHUNK_BITS: u32 = 16;
/// Words of a bitmap.
const CHUNK_WORDS: usize = 1 << (CHUNK_BITS - 6);
/// Bitmaps that there may be.
const CHUNKS: usize = 1 << (32 - CHUNK_BITS);
/// No bitmap.
const NONE: u32 = u32::MAX;
/// Words that share a count of the ids before them.
const BLOCK_WORDS: usize = 8;
/// Fewest ids that are gathered before they are sorted into the list.
const LEAST_PENDING: usize = 8 << 10;

/// Collects ids.
#[derive(Debug)]
pub(crate) struct Ids {
    what: String,
    budget: Arc<Budget>,
    rooms: Vec<Room>,
    /// Where the bitmap of each chunk lies, in chunks.
    directory: Vec<u32>,
    words: Vec<u64>,
    /// Bytes that bitmaps may take.
    bitmaps: u64,
    /// Sorted, each once.
    list: Vec<u64>,
    pending: Vec<u64>,
    /// Bytes taken for both.
    listed: u64,
}

impl Ids {
    /// An empty set, for messages that of `what`, whose bitmaps take at most `bitmaps` bytes.
    pub fn new(what: String, budget: &Arc<Budget>, bitmaps: u64) -> Result<Ids> {
        let mut ids = Ids {
            what,
            budget: budget.clone(),
            rooms: Vec::new(),
            directory: Vec::new(),
            words: Vec::new(),
            bitmaps,
            list: Vec::new(),
            pending: Vec::new(),
            listed: 0,
        };
        ids.take(8 * CHUNKS as u64)?;
        ids.directory = vec![NONE; CHUNKS];
        Ok(ids)
    }

    fn take(&mut self, bytes: u64) -> Result<()> {
        let room = Room::take(&self.budget, bytes, || self.what.clone())?;
        self.rooms.push(room);
        Ok(())
    }

    /// Adds an id.
    #[inline]
    pub fn insert(&mut self, id: u64) -> Result<()> {
        let chunk = self.directory.get((id >> CHUNK_BITS) as usize);
        match chunk {
            Some(&chunk) if chunk != NONE => {
                set(&mut self.words, chunk, id);
                Ok(())
            }
            _ => self.insert_new(id),
        }
    }

    #[cold]
    #[inline(never)]
    fn insert_new(&mut self, id: u64) -> Result<()> {
        if (id >> 32) == 0 && self.grow()? {
            let chunk = (self.words.len() / CHUNK_WORDS) as u32;
            self.words.resize(self.words.len() + CHUNK_WORDS, 0);
            self.directory[(id >> CHUNK_BITS) as usize] = chunk;
            set(&mut self.words, chunk, id);
            return Ok(());
        }
        self.pending.push(id);
        if self.pending.len() >= self.list.len().max(LEAST_PENDING) {
            self.settle()?;
        }
        Ok(())
    }

    /// Sees to it that there is memory for one more bitmap; false if there is to be none.
    fn grow(&mut self) -> Result<bool> {
        if self.words.len() < self.words.capacity() {
            return Ok(true);
        }
        let chunks = (self.words.len() / CHUNK_WORDS / 2).max(8);
        let more = chunks * CHUNK_WORDS;
        let bytes = 8 * (self.words.len() + more) as u64;
        if bytes > self.bitmaps {
            // Never again, so that no chunk has ids in both.
            self.bitmaps = 0;
            return Ok(false);
        }
        self.take(8 * more as u64)?;
        self.words.reserve_exact(more);
        Ok(true)
    }

    /// Sorts what is pending into the list.
    fn settle(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.pending.sort_unstable();
        self.pending.dedup();
        let most = self.list.len() + self.pending.len();
        // The list, and what is pending next or the list while it is merged.
        let bytes = 16 * most as u64;
        self.take(bytes.saturating_sub(self.listed))?;
        self.listed = self.listed.max(bytes);
        let mut merged = Vec::with_capacity(most);
        let (mut old, mut new) = (&self.list[..], &self.pending[..]);
        while let (Some(&a), Some(&b)) = (old.first(), new.first()) {
            merged.push(a.min(b));
            old = &old[usize::from(a <= b)..];
            new = &new[usize::from(b <= a)..];
        }
        merged.extend_from_slice(old);
        merged.extend_from_slice(new);
        if merged.len() as u64 > MOST_VERTICES {
            return Err(self.too_many());
        }
        self.list = merged;
        self.pending.clear();
        Ok(())
    }

    fn too_many(&self) -> Error {
        Error::TooManyVertices {
            what: self.what.clone(),
            limit: MOST_VERTICES,
        }
    }

    /// Numbers the ids from 0 by rising id.
    pub fn number(mut self) -> Result<Numbering> {
        self.settle()?;
        self.pending = Vec::new();
        self.take((self.words.len() / BLOCK_WORDS) as u64 * 4 + self.list.len() as u64)?;
        let mut numbering = Numbering {
            _rooms: std::mem::take(&mut self.rooms),
            before: vec![0; self.words.len() / BLOCK_WORDS],
            below: Vec::with_capacity(CHUNKS),
            starts: Starts::new(&self.list),
            directory: std::mem::take(&mut self.directory),
            words: std::mem::take(&mut self.words),
            list: std::mem::take(&mut self.list),
            count: 0,
        };
        match numbering.count() {
            Some(()) => Ok(numbering),
            None => Err(self.too_many()),
        }
    }
}

#[inline]
fn set(words: &mut [u64], chunk: u32, id: u64) {
    let word = chunk as usize * CHUNK_WORDS + (id as usize >> 6) % CHUNK_WORDS;
    words[word] |= 1 << (id % 64);
}

/// Ids and their numbers.
#[derive(Debug)]
pub(crate) struct Numbering {
    _rooms: Vec<Room>,
    directory: Vec<u32>,
    words: Vec<u64>,
    /// For each block of words: the number of its first id.
    before: Vec<u32>,
    /// For each chunk: ids of bitmaps before it.
    below: Vec<u32>,
    list: Vec<u64>,
    starts: Starts,
    count: u64,
}

impl Numbering {
    /// How many ids there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Counts the ids before each block; `None` where there are too many.
    fn count(&mut self) -> Option<()> {
        let (mut bits, mut listed) = (0_u64, 0_usize);
        for at in 0..CHUNKS {
            self.below.push(bits as u32);
            let end = (at as u64 + 1) << CHUNK_BITS;
            listed += self.list[listed..]
                .iter()
                .take_while(|&&id| id < end)
                .count();
            let chunk = self.directory[at] as usize;
            if self.directory[at] == NONE {
                continue;
            }
            let words = &self.words[chunk * CHUNK_WORDS..][..CHUNK_WORDS];
            let blocks = &mut self.before[chunk * CHUNK_WORDS / BLOCK_WORDS..];
            for (words, before) in words.chunks(BLOCK_WORDS).zip(blocks) {
                *before = (bits + listed as u64) as u32;
                bits += words
                    .iter()
                    .map(|word| u64::from(word.count_ones()))
                    .sum::<u64>();
            }
            if bits + listed as u64 > MOST_VERTICES {
                return None;
            }
        }
        self.count = bits + self.list.len() as u64;
        (self.count <= MOST_VERTICES).then_some(())
    }

    /// The number of an id that is in the set.
    #[inline]
    pub fn number(&self, id: u64) -> u32 {
        match self.directory.get((id >> CHUNK_BITS) as usize) {
            Some(&chunk) if chunk != NONE => {
                let within = (id as usize >> 6) % CHUNK_WORDS;
                let word = chunk as usize * CHUNK_WORDS + within;
                let block = word / BLOCK_WORDS;
                let full = &self.words[block * BLOCK_WORDS..word];
                let full = full.iter().map(|word| word.count_ones()).sum::<u32>();
                let part = self.words[word] & !(u64::MAX << (id % 64));
                self.before[block] + full + part.count_ones()
            }
            _ => self.listed(id),
        }
    }

    fn listed(&self, id: u64) -> u32 {
        let range = self.starts.range(id);
        let at = range.start + self.list[range].partition_point(|&other| other < id);
        let below = match self.below.get((id >> CHUNK_BITS) as usize) {
            Some(&below) => u64::from(below),
            None => self.count - self.list.len() as u64,
        };
        (at as u64 + below) as u32
    }

    /// Gives all ids to `sink`, rising.
    pub fn each(&self, mut sink: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let mut listed = 0;
        for (at, &chunk) in self.directory.iter().enumerate() {
            let end = (at as u64 + 1) << CHUNK_BITS;
            while let Some(&id) = self.list.get(listed).filter(|&&id| id < end) {
                sink(id)?;
                listed += 1;
            }
            if chunk == NONE {
                continue;
            }
            let words = &self.words[chunk as usize * CHUNK_WORDS..][..CHUNK_WORDS];
            for (word, &bits) in words.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let bit = u64::from(bits.trailing_zeros());
                    sink(((at as u64) << CHUNK_BITS) + 64 * word as u64 + bit)?;
                    bits &= bits - 1;
                }
            }
        }
        self.list[listed..].iter().try_for_each(|&id| sink(id))
    }
}

/// Where to look in the sorted list: it is cut into equal ranges of ids, about eight ids in each if
/// they are spread evenly.
#[derive(Debug)]
struct Starts {
    first: u64,
    shift: u32,
    starts: Vec<u64>,
}

impl Starts {
    fn new(list: &[u64]) -> Starts {
        let (first, last) = (list.first().copied(), list.last().copied());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        let wanted = (list.len() / 8).max(1).ilog2();
        let bits = 64 - (last - first).leading_zeros();
        let shift = bits.saturating_sub(wanted).min(63);
        let mut starts = Vec::with_capacity(list.len() / 8 + 2);
        for (at, id) in list.iter().enumerate() {
            while starts.len() as u64 <= (id - first) >> shift {
                starts.push(at as u64);
            }
        }
        starts.push(list.len() as u64);
        Starts {
            first,
            shift,
            starts,
        }
    }

    #[inline]
    fn range(&self, id: u64) -> std::ops::Range<usize> {
        let at = (id.saturating_sub(self.first) >> self.shift) as usize;
        match self.starts.get(at..at + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(given: &[u64], bitmaps: u64) {
        let budget = Budget::new(64 << 20);
        let mut ids = Ids::new("x".to_owned(), &budget, bitmaps).unwrap();
        given.iter().try_for_each(|&id| ids.insert(id)).unwrap();
        let numbering = ids.number().unwrap();
        let expected: BTreeSet<u64> = given.iter().copied().collect();
        let mut all = Vec::new();
        numbering
            .each(|id| {
                all.push(id);
                Ok(())
            })
            .unwrap();
        assert!(all.iter().eq(&expected));
        assert_eq!(numbering.len(), expected.len() as u64);
        for (number, &id) in all.iter().enumerate() {
            assert_eq!(numbering.number(id), number as u32, "{id}");
        }
        drop(numbering);
        assert_eq!(budget.used(), 0);
    }

    fn id() -> impl Strategy<Value = u64> {
        prop_oneof![
            0..300_u64,
            0..1_u64 << 20,
            0..1_u64 << 32,
            any::<u64>(),
            Just(u64::MAX)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn numbers_rise_with_ids(ids in prop::collection::vec(id(), 0..400), bitmaps in prop_oneof![Just(0), Just(100_000_u64), Just(1 << 30)]) {
            check(&ids, bitmaps);
        }
    }

    #[test]
    fn many_that_are_listed() {
        let mut random = fastrand::Rng::with_seed(3);
        let ids: Vec<u64> = (0..60_000)
            .map(|_| random.u64(..) >> random.u32(..60))
            .collect();
        check(&ids, 0);
        check(&ids, 1 << 30);
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let budget = Budget::new(2 << 20);
        let mut ids = Ids::new("the ids of x".to_owned(), &budget, 0).unwrap();
        let failed = (0..1_000_000).try_for_each(|id| ids.insert(id << 33));
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("the ids of x needs"), "{error}");
    }
}
