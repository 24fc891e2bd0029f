//! Building a table of integer keys range by range of the keys.
//!
//! Keys in any order touch a table everywhere, and a large one misses the caches with each of them. Here rows are first
//! divided by the range of their keys, and what a range needs stays in the L2 cache until it is done. Chunks of rows,
//! and then ranges, can be worked on by several threads:
//!
//! 1. [`Ranges::divide`] each chunk of rows,
//! 2. [`Ranges::mark`] the keys of each range: is any of them repeated?
//! 3. [`RankedParts::index`] each range, within the table that [`Ranges::ranked`] has made room for, or if no key is repeated
//!    [`DirectParts::fill`] each range of [`Ranges::direct`].

use super::direct::Direct;
use super::found::NONE;
use super::parted::PartedVec;
use super::ranked::{Ranked, each};
use crate::level::dispatched;

/// About how many rows a range has: what is written for them is less than 512 KiB.
const RANGE_ROWS: usize = 1 << 15;
/// About how many integers a range has at most: their bits, and the counts of these, are 768 KiB.
const RANGE_INTEGERS: u64 = 1 << 22;
/// Most ranges, unless distances within them would not fit into 32 bits: rows are written to as many places by turns.
const MOST_RANGES: usize = 256;
/// Bits of the distances within a range, at least and at most: a range has whole words, and a distance is half a word.
const LEAST_BITS: u32 = 6;
const MOST_BITS: u32 = 32;
/// How many neighbours are looked at to know whether keys are scattered.
const SAMPLES: usize = 1 << 10;
/// Keys that differ by no more are near each other: rows found by position are then within 16 KiB.
const NEAR: u64 = 1 << 12;

/// Whether more than a fourth of the keys lie far from the one before, as far as a sample tells: only then is a large table
/// built faster range by range.
pub fn is_scattered(keys: &[i64]) -> bool {
    let step = (keys.len() / SAMPLES).max(1);
    let (mut all, mut far) = (0, 0);
    for pair in keys.windows(2).step_by(step) {
        all += 1;
        far += usize::from(pair[0].abs_diff(pair[1]) > NEAR);
    }
    4 * far > all
}

/// How the keys between two bounds are divided into ranges of as many integers each.
#[derive(Clone, Copy, Debug)]
pub struct Ranges {
    min: i64,
    /// The greatest distance from `min`.
    span: u64,
    /// Bits of the distances within a range, from [`LEAST_BITS`] to [`MOST_BITS`].
    bits: u32,
}

/// Some rows, divided by the ranges of their keys.
#[derive(Clone, Debug)]
pub struct Divided {
    /// Where the rows of each range begin, and behind the last.
    starts: Vec<u32>,
    /// For each row the distance of its key from the begin of the range in the high half, and its number in the low one:
    /// range by range, numbers ascending.
    pairs: Vec<u64>,
}

impl Divided {
    /// The rows of a range.
    #[inline(always)]
    fn of(&self, range: usize) -> &[u64] {
        &self.pairs[self.starts[range] as usize..self.starts[range + 1] as usize]
    }
}

/// The keys of a range, as a bit for each integer.
#[derive(Clone, Debug)]
pub struct Marked {
    words: Vec<u64>,
    /// The number of different keys.
    keys: u32,
    rows: u32,
}

impl Marked {
    /// Whether a key has several rows.
    pub fn is_repeated(&self) -> bool {
        self.keys < self.rows
    }
}

/// A [`Ranked`] of which several threads index the ranges, each of them others.
#[derive(Debug)]
pub struct RankedParts {
    ranges: Ranges,
    /// The numbers of keys and of rows in the ranges before each.
    before: Vec<(u32, u32)>,
    words: PartedVec<u64>,
    ranks: PartedVec<u32>,
    /// Where the rows of each key begin, and in a part of its own where the last ends; `None` if each key has one row.
    starts: Option<PartedVec<u32>>,
    rows: PartedVec<u32>,
}

/// A [`Direct`] of which several threads fill the ranges, each of them others.
#[derive(Debug)]
pub struct DirectParts {
    ranges: Ranges,
    /// The rows of each range, and in a part of its own the one that nothing finds.
    rows: PartedVec<u32>,
}

impl Ranges {
    /// About as many ranges of `min..=max` as suit a table of so many rows.
    ///
    /// # Panics
    /// As [`Ranges::new`].
    pub fn of_rows(min: i64, max: i64, rows: usize) -> Ranges {
        let by_keys = max.wrapping_sub(min) as u64 / RANGE_INTEGERS;
        let by_keys = by_keys.min(MOST_RANGES as u64) as usize;
        let most = (rows / RANGE_ROWS).max(by_keys).clamp(1, MOST_RANGES);
        Ranges::new(min, max, most)
    }

    /// Ranges of `min..=max`: at most `most`, or more if each would have more than 2^32 integers.
    ///
    /// # Panics
    /// When `min > max`, there are 2^40 integers between them or more, or `most` is 0.
    pub fn new(min: i64, max: i64, most: usize) -> Ranges {
        assert!(min <= max, "bounds are upside down");
        assert!(most > 0, "keys of no range");
        let span = max.wrapping_sub(min) as u64;
        assert!(span < 1 << 40, "keys are too far apart for a bit each");
        let bits = (LEAST_BITS..MOST_BITS).find(|bits| (span >> *bits) < most as u64);
        Ranges {
            min,
            span,
            bits: bits.unwrap_or(MOST_BITS),
        }
    }

    /// The number of ranges, at least 1.
    pub fn count(self) -> usize {
        (self.span >> self.bits) as usize + 1
    }

    /// Divides the rows whose keys are valid, of which the first has the number `first`.
    ///
    /// # Panics
    /// When lengths differ, a valid key lies outside the bounds, or numbers of rows would reach 2^32 - 1.
    pub fn divide(self, keys: &[i64], valid: Option<&[bool]>, first: usize) -> Divided {
        assert!(first + keys.len() < NONE as usize, "too many rows");
        let mut starts = vec![0u32; self.count() + 1];
        each(keys, valid, |_, key| {
            starts[(self.distance(key) >> self.bits) as usize + 1] += 1;
        });
        for range in 1..starts.len() {
            starts[range] += starts[range - 1];
        }
        let mut next = starts.clone();
        let mut pairs = vec![0u64; starts[self.count()] as usize];
        let (within, first) = ((1u64 << self.bits) - 1, first as u32);
        each(keys, valid, |row, key| {
            let at = self.distance(key);
            let place = &mut next[(at >> self.bits) as usize];
            pairs[*place as usize] = ((at & within) << 32) | u64::from(first + row);
            *place += 1;
        });
        Divided { starts, pairs }
    }

    #[inline(always)]
    fn distance(self, key: i64) -> u64 {
        let at = key.wrapping_sub(self.min) as u64;
        assert!(at <= self.span, "{key} lies outside the bounds");
        at
    }

    /// Marks the keys of a range. `chunks` are the same ranges of all rows.
    ///
    /// # Panics
    /// When there is no such range, or chunks have been divided into others.
    pub fn mark(self, range: usize, chunks: &[Divided]) -> Marked {
        let mut words = vec![0u64; self.words(range)];
        let (mut keys, mut rows) = (0, 0);
        for chunk in chunks {
            let pairs = chunk.of(range);
            rows += pairs.len() as u32;
            for pair in pairs {
                let at = (pair >> 32) as usize;
                let (word, bit) = (&mut words[at / 64], 1 << (at % 64));
                keys += u32::from(*word & bit == 0);
                *word |= bit;
            }
        }
        Marked { words, keys, rows }
    }

    /// The words of a range: the last has those of the integer behind the greatest key, too.
    fn words(self, range: usize) -> usize {
        let (all, own) = (
            (self.span as usize + 1) / 64 + 1,
            1usize << (self.bits - LEAST_BITS),
        );
        if range + 1 == self.count() {
            all - range * own
        } else {
            own
        }
    }

    /// The number of integers of a range.
    fn integers(self, range: usize) -> usize {
        let rest = self.span + 1 - ((range as u64) << self.bits);
        rest.min(1 << self.bits) as usize
    }

    /// Room for the table of all ranges, whose keys have been marked. `marked` is in the order of the ranges.
    ///
    /// # Panics
    /// When they are more or fewer.
    pub fn ranked(self, marked: &[Marked]) -> RankedParts {
        assert_eq!(marked.len(), self.count(), "the keys of each range");
        let (mut keys, mut rows) = (0, 0);
        let mut before = Vec::with_capacity(marked.len());
        for range in marked {
            before.push((keys, rows));
            keys += range.keys;
            rows += range.rows;
        }
        let starts = (keys < rows).then(|| {
            let lengths = marked.iter().map(|range| range.keys as usize);
            let starts = PartedVec::new(lengths.chain([1]));
            starts.write(marked.len(), |end| end.fill(rows));
            starts
        });
        let words = || marked.iter().map(|range| range.words.len());
        RankedParts {
            ranges: self,
            before,
            words: PartedVec::new(words()),
            ranks: PartedVec::new(words()),
            starts,
            rows: PartedVec::new(marked.iter().map(|range| range.rows as usize)),
        }
    }

    /// Room for the row of each integer of all ranges.
    ///
    /// # Panics
    /// When there are 2^32 integers between the bounds or more.
    pub fn direct(self) -> DirectParts {
        assert!(
            self.span < u64::from(u32::MAX),
            "keys are too far apart to be found by position"
        );
        let lengths = (0..self.count()).map(|range| self.integers(range));
        let rows = PartedVec::new(lengths.chain([1]));
        rows.write(self.count(), |none| none.fill(NONE));
        DirectParts { ranges: self, rows }
    }
}

impl RankedParts {
    /// Indexes the rows of a range, of which the keys have been marked. Chunks must come in the order of their rows.
    ///
    /// # Panics
    /// When there is no such range, it has been indexed, or chunks are not those whose keys have been marked.
    pub fn index(&self, range: usize, chunks: &[Divided], marked: Marked) {
        let (first, begin) = self.before[range];
        let marks = &marked.words[..];
        self.words
            .write(range, |words| words.copy_from_slice(marks));
        self.ranks.write(range, |ranks| {
            before(marks, first, ranks);
            let keys = RangeKeys {
                words: marks,
                ranks,
                first,
                range,
                chunks,
            };
            self.rows.write(range, |rows| match &self.starts {
                None => one_each(&keys, rows),
                Some(starts) => starts.write(range, |starts| several(&keys, begin, starts, rows)),
            });
        });
    }

    /// The table of all ranges, as [`Ranked::build`] makes it of the same rows if these are not in the order of their keys.
    ///
    /// # Panics
    /// When a range has not been indexed.
    pub fn finish(self) -> Ranked {
        Ranked {
            min: self.ranges.min,
            span: self.ranges.span,
            words: self.words.into_vec(),
            before: self.ranks.into_vec(),
            starts: self.starts.map(PartedVec::into_vec),
            rows: Some(self.rows.into_vec()),
        }
    }
}

impl DirectParts {
    /// Writes the row of each integer of a range, [`NONE`] where there is none. Of several rows of a key the last stays.
    ///
    /// # Panics
    /// When there is no such range, it has been filled, or chunks have been divided into others.
    pub fn fill(&self, range: usize, chunks: &[Divided]) {
        self.rows.write(range, |rows| {
            rows.fill(NONE);
            for chunk in chunks {
                for pair in chunk.of(range) {
                    rows[(pair >> 32) as usize] = *pair as u32;
                }
            }
        });
    }

    /// The table of all ranges, as [`Direct::set`] fills it with the same rows.
    ///
    /// # Panics
    /// When a range has not been filled.
    pub fn finish(self) -> Direct {
        Direct {
            min: self.ranges.min,
            rows: self.rows.into_vec(),
        }
    }
}

/// The marked keys of a range, and chunks of their rows.
struct RangeKeys<'a> {
    words: &'a [u64],
    /// How many keys are less than those of each word, of this range and of those before it.
    ranks: &'a [u32],
    /// How many keys are in the ranges before it.
    first: u32,
    range: usize,
    chunks: &'a [Divided],
}

impl RangeKeys<'_> {
    /// Calls `f` with the place of each row's key among those of the range, and the row.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(usize, u32)) {
        for chunk in self.chunks {
            for pair in chunk.of(self.range) {
                let rank = rank(self.words, self.ranks, (pair >> 32) as usize);
                f(rank - self.first as usize, *pair as u32);
            }
        }
    }
}

/// How many keys are less than the one at the distance `at`.
#[inline(always)]
fn rank(words: &[u64], before: &[u32], at: usize) -> usize {
    let smaller = words[at / 64] & ((1 << (at % 64)) - 1);
    (before[at / 64] + smaller.count_ones()) as usize
}

dispatched! {
    /// The number of bits that are set before each word, and `sum` more.
    fn before(words: &[u64], sum: u32, ranks: &mut [u32]) {
        let mut sum = sum;
        for (word, rank) in words.iter().zip(ranks) {
            *rank = sum;
            sum += word.count_ones();
        }
    }

    /// The row of each key.
    fn one_each(keys: &RangeKeys<'_>, rows: &mut [u32]) {
        keys.each(|key, row| rows[key] = row);
    }

    /// Where the rows of each key begin, from `begin` on, and the rows, key by key.
    fn several(keys: &RangeKeys<'_>, begin: u32, starts: &mut [u32], rows: &mut [u32]) {
        let mut next = vec![0u32; starts.len()];
        keys.each(|key, _| next[key] += 1);
        let mut all = 0;
        for (count, start) in next.iter_mut().zip(starts) {
            *start = begin + all;
            all += std::mem::replace(count, all);
        }
        keys.each(|key, row| {
            let place = &mut next[key];
            rows[*place as usize] = row;
            *place += 1;
        });
    }
}
