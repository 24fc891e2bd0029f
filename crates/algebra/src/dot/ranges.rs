//! Building a table of integer keys range by range of the keys.
//!
//! Keys in any order touch a table everywhere, and a large one misses the caches with each of them. Here rows are first
//! divided by the range of their keys, and what a range needs stays in the L2 cache until it is done. Chunks of rows,
//! and then ranges, can be worked on by several threads:
//!
//! 1. [`Ranges::divide`] each chunk of rows,
//! 2. [`Ranges::mark`] the keys of each range: is any of them repeated?
//! 3. [`Ranges::index`] each range and join the indexes by [`Ranges::ranked`], or if no key is repeated [`Ranges::fill`]
//!    each range and join these by [`Ranges::direct`].

use super::direct::Direct;
use super::found::NONE;
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
    repeated: bool,
}

impl Marked {
    /// Whether a key has several rows.
    pub fn is_repeated(&self) -> bool {
        self.repeated
    }
}

/// What a [`Ranked`] has of a range, with ranks and places counted from those of the range.
#[derive(Clone, Debug)]
pub struct RangeIndex {
    words: Vec<u64>,
    before: Vec<u32>,
    /// The number of different keys.
    keys: u32,
    /// Where the rows of each key begin; empty if each key has one row.
    starts: Vec<u32>,
    rows: Vec<u32>,
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
        let mut repeated = false;
        for chunk in chunks {
            for pair in chunk.of(range) {
                let at = (pair >> 32) as usize;
                let (word, bit) = (&mut words[at / 64], 1 << (at % 64));
                repeated |= *word & bit != 0;
                *word |= bit;
            }
        }
        Marked { words, repeated }
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

    /// Indexes the rows of a range, of which the keys have been marked. `repeated` says whether any key of any range is
    /// repeated. Chunks must come in the order of their rows.
    ///
    /// # Panics
    /// When there is no such range, or chunks are not those whose keys have been marked.
    pub fn index(
        self,
        range: usize,
        chunks: &[Divided],
        marked: Marked,
        repeated: bool,
    ) -> RangeIndex {
        let words = marked.words;
        let before = before(&words);
        let last = words.len() - 1;
        let keys = before[last] + words[last].count_ones();
        let (starts, rows) = if repeated {
            several(&words, &before, keys as usize, range, chunks)
        } else {
            let rows = one_each(&words, &before, keys as usize, range, chunks);
            (vec![], rows)
        };
        RangeIndex {
            words,
            before,
            keys,
            starts,
            rows,
        }
    }

    /// The table of all ranges, as [`Ranked::build`] makes it of the same rows if these are not in the order of their keys.
    /// `parts` are in the order of the ranges.
    ///
    /// # Panics
    /// When they are more or fewer.
    pub fn ranked(self, parts: Vec<RangeIndex>) -> Ranked {
        assert_eq!(parts.len(), self.count(), "an index for each range");
        let repeated = parts.iter().any(|part| !part.starts.is_empty());
        let all = |of: fn(&RangeIndex) -> usize| parts.iter().map(of).sum::<usize>();
        let (words, found) = (all(|part| part.words.len()), all(|part| part.rows.len()));
        let starting = all(|part| part.starts.len()) + usize::from(repeated);
        let mut table = Ranked {
            min: self.min,
            span: self.span,
            words: Vec::with_capacity(words),
            before: Vec::with_capacity(words),
            starts: None,
            rows: None,
        };
        let mut starts: Vec<u32> = Vec::with_capacity(starting);
        let mut rows: Vec<u32> = Vec::with_capacity(found);
        let mut keys = 0u32;
        // One part after the other is freed, so that the table is never in memory twice.
        for part in parts {
            let begin = rows.len() as u32;
            table.words.extend_from_slice(&part.words);
            table
                .before
                .extend(part.before.iter().map(|before| before + keys));
            starts.extend(part.starts.iter().map(|start| start + begin));
            rows.extend_from_slice(&part.rows);
            keys += part.keys;
        }
        if repeated {
            starts.push(rows.len() as u32);
            table.starts = Some(starts);
        }
        table.rows = Some(rows);
        table
    }

    /// The row of each integer of a range, [`NONE`] where there is none. Of several rows of a key the last stays.
    ///
    /// # Panics
    /// When there is no such range, or chunks have been divided into others.
    pub fn fill(self, range: usize, chunks: &[Divided]) -> Vec<u32> {
        let integers = self.span + 1 - ((range as u64) << self.bits);
        let mut rows = vec![NONE; integers.min(1 << self.bits) as usize];
        for chunk in chunks {
            for pair in chunk.of(range) {
                rows[(pair >> 32) as usize] = *pair as u32;
            }
        }
        rows
    }

    /// The table of all ranges, as [`Direct::set`] fills it with the same rows. `parts` are in the order of the ranges.
    ///
    /// # Panics
    /// When they are more or fewer, or there are 2^32 integers between the bounds or more.
    pub fn direct(self, parts: Vec<Vec<u32>>) -> Direct {
        assert!(
            self.span < u64::from(u32::MAX),
            "keys are too far apart to be found by position"
        );
        let all = self.span as usize + 2;
        let mut rows = Vec::with_capacity(all);
        for part in parts {
            rows.extend_from_slice(&part);
        }
        rows.push(NONE);
        assert_eq!(rows.len(), all, "a row for each integer");
        Direct {
            min: self.min,
            rows,
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
    /// The number of bits that are set before each word.
    fn before(words: &[u64]) -> Vec<u32> {
        let mut sum = 0;
        let mut before = Vec::with_capacity(words.len());
        for word in words {
            before.push(sum);
            sum += word.count_ones();
        }
        before
    }

    /// The row of each key.
    fn one_each(words: &[u64], before: &[u32], keys: usize, range: usize, chunks: &[Divided]) -> Vec<u32> {
        let mut rows = vec![0; keys];
        for chunk in chunks {
            for pair in chunk.of(range) {
                rows[rank(words, before, (pair >> 32) as usize)] = *pair as u32;
            }
        }
        rows
    }

    /// Where the rows of each key begin, and the rows, key by key.
    fn several(words: &[u64], before: &[u32], keys: usize, range: usize, chunks: &[Divided]) -> (Vec<u32>, Vec<u32>) {
        let mut next = vec![0u32; keys];
        for chunk in chunks {
            for pair in chunk.of(range) {
                next[rank(words, before, (pair >> 32) as usize)] += 1;
            }
        }
        let mut all = 0;
        for count in &mut next {
            all += std::mem::replace(count, all);
        }
        let starts = next.clone();
        let mut rows = vec![0; all as usize];
        for chunk in chunks {
            for pair in chunk.of(range) {
                let place = &mut next[rank(words, before, (pair >> 32) as usize)];
                rows[*place as usize] = *pair as u32;
                *place += 1;
            }
        }
        (starts, rows)
    }
}
