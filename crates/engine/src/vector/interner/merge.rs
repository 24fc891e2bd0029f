//! Strings of one interner in another: how those of several workers are merged.

use algebra::krao::Partition;
use algebra::prefetch;
use arrow::buffer::Buffer;

use crate::vector::interner::{BYTES_AHEAD, FIRST_SLOTS, Found, INLINE, Interner, VIEWS_AHEAD};

/// Most strings that an interner may have for each that was added to be made loose, in percent.
const SHRINKS: usize = 75;

impl Interner {
    /// From now on [`add_hashed`](Interner::add_hashed) gives each string a number of its own, whether it is known or not: for
    /// strings most of which are new. Gives the memory back that searches take.
    fn loosen(&mut self) {
        self.slots = vec![];
        self.hashes = vec![];
        self.last = None;
        self.loose = true;
    }

    /// Makes it loose if most strings that were added so far were new.
    pub fn loosen_if_new(&mut self) {
        if !self.loose && self.len() * 100 > self.added * SHRINKS {
            self.loosen();
        }
    }

    /// The hash of the string with this number, while it is not loose.
    pub fn hash(&self, number: u32) -> u64 {
        self.hashes.get(number as usize).copied().unwrap_or(0)
    }

    /// Closes the block being filled, so that others share it instead of copying it.
    pub fn seal(&mut self) {
        if !self.open.is_empty() {
            self.close(vec![]);
        }
    }

    /// Shares the blocks of `other`, one of `sharers` that do, each of which takes about as many of its strings; returns the place of
    /// the first block here.
    pub fn share(&mut self, other: &Interner, sharers: usize) -> u32 {
        self.seal();
        let expected = self.len() + other.len() / sharers;
        if sharers > 1 && self.slots.len() < 2 * expected {
            self.place((2 * expected).next_power_of_two().max(FIRST_SLOTS));
        }
        let first = self.full.len() as u32;
        self.full.extend(other.full.iter().cloned());
        if !other.open.is_empty() {
            self.full.push(Buffer::from_slice_ref(&other.open));
        }
        self.bytes += other.bytes / sharers;
        first
    }

    /// The number here of the string that has `number` in `other` and this hash. The blocks of `other` are shared here from
    /// block `first` on.
    #[inline(always)]
    pub fn adopt_one(&mut self, other: &Interner, first: u32, number: u32, hash: u64) -> u32 {
        let view = other.view(number);
        match self.probe(hash, view, || other.text(view)) {
            Found::Number(number) => number,
            Found::Slot(slot) if view as u32 <= INLINE => self.insert(slot, hash, view),
            Found::Slot(slot) => self.insert(slot, hash, view + (u128::from(first) << 64)),
        }
    }

    /// Divides its strings, and NULL, into `2^bits` partitions of their hashes.
    pub fn partitions(&self, bits: u32) -> Vec<Partition> {
        let of = |hash: u64| hash.checked_shr(64 - bits).unwrap_or(0) as usize;
        let mut counts = vec![0; 1 << bits];
        self.hashes.iter().for_each(|hash| counts[of(*hash)] += 1);
        let empty = counts.into_iter().map(|count| Partition {
            groups: Vec::with_capacity(count),
            hashes: Vec::with_capacity(count),
            keys: vec![],
        });
        let mut parts: Vec<Partition> = empty.collect();
        for (number, hash) in (0u32..).zip(&self.hashes) {
            let part = &mut parts[of(*hash)];
            part.groups.push(number);
            part.hashes.push(*hash);
        }
        parts
    }

    /// The numbers here, in `out`, of the strings that have these numbers in `other` and these hashes; also that of NULL. The blocks
    /// of `other` are shared here from block `first` on.
    pub fn adopt_some(
        &mut self,
        other: &Interner,
        first: u32,
        (numbers, hashes): (&[u32], &[u64]),
        out: &mut Vec<u32>,
    ) {
        out.clear();
        for (place, (number, hash)) in numbers.iter().zip(hashes).enumerate() {
            if let Some(later) = numbers.get(place + VIEWS_AHEAD) {
                other.ahead_view(*later);
            }
            if let Some(later) = numbers.get(place + BYTES_AHEAD) {
                other.ahead_bytes(*later);
            }
            self.ahead(hashes, place);
            out.push(if other.is_null(*number) {
                self.null()
            } else {
                self.adopt_one(other, first, *number, *hash)
            });
        }
    }

    /// Prefetches the view of a string that is read soon.
    #[inline(always)]
    pub fn ahead_view(&self, number: u32) {
        if let Some(view) = self.known(number) {
            prefetch(view);
        }
    }

    /// Prefetches the bytes of a string that is read soon.
    #[inline(always)]
    pub fn ahead_bytes(&self, number: u32) {
        if let Some(first) = self.text(self.view(number)).first() {
            prefetch(first);
        }
    }

    /// Adds all strings of `other`, which must not be loose; returns their numbers here, in the order of `other`. Its blocks are
    /// shared, not copied.
    pub fn adopt(&mut self, other: &Interner) -> Vec<u32> {
        let mut first = 0;
        if !other.full.is_empty() || !other.open.is_empty() {
            first = self.share(other, 1);
        }
        self.added += other.added;
        let mut numbers = Vec::with_capacity(other.len());
        for (number, hash) in (0u32..).zip(&other.hashes) {
            if other.is_null(number) {
                numbers.push(self.null());
                continue;
            }
            self.ahead(&other.hashes, number as usize);
            numbers.push(self.adopt_one(other, first, number, *hash));
        }
        numbers
    }
}
