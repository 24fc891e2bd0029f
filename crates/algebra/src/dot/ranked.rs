//! A join table of a bit for each integer that could be a key.

use super::direct::within;
use super::found::{NONE, through};
use super::hashed::{Probe, RowLists};
use super::rank::Ranks;
use crate::encoded::{Stored, set_where};
use crate::level::dispatched;
use crate::prefetch;

/// Rows of integer keys between two bounds, found by how many keys are smaller: a bit and a half per integer
/// between the bounds, so that keys may lie far apart, and keys that are not there cost no more than a bit.
///
/// Invariants: the words have a bit more than there are integers between the bounds, which is zero; `before` has
/// one entry per word, the number of bits set in the words before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    pub(super) min: i64,
    /// The greatest distance from `min`.
    pub(super) span: u64,
    pub(super) words: Vec<u64>,
    pub(super) before: Vec<u32>,
    /// Where the rows of each key begin, and behind the last; `None` if each has one row.
    pub(super) starts: Option<Vec<u32>>,
    /// The rows in the order of their keys; `None` if each key has one row and they are in this order.
    pub(super) rows: Option<Vec<u32>>,
}

impl Ranked {
    /// Makes a table of the rows whose keys are valid. Rows are numbered from 0; valid keys must lie
    /// in `min..=max`. Many rows of scattered keys take less time [range by range](super::Ranges).
    ///
    /// # Panics
    /// When lengths differ, a valid key lies outside the bounds, `min > max`, there are 2^40 integers between
    /// them or more, or 2^32 - 1 rows or more.
    pub fn build(keys: &[i64], valid: Option<&[bool]>, min: i64, max: i64) -> Ranked {
        assert!(keys.len() < NONE as usize, "too many rows");
        assert!(min <= max, "bounds are upside down");
        let span = max.wrapping_sub(min) as u64;
        assert!(span < 1 << 40, "keys are too far apart for a bit each");
        let mut table = Ranked {
            min,
            span,
            words: vec![0; (span as usize + 1) / 64 + 1],
            before: vec![],
            starts: None,
            rows: None,
        };
        let (ascending, twice) = table.set(keys, valid);
        table.count();
        if !ascending {
            if twice {
                table.several(keys, valid);
            } else {
                table.rows = Some(table.one_each(keys, valid));
            }
        }
        table
    }

    /// Sets the bits of the keys. Gives whether rows are the keys' order, each once and all valid, and whether
    /// any key came twice.
    fn set(&mut self, keys: &[i64], valid: Option<&[bool]>) -> (bool, bool) {
        let (mut ascending, mut twice) = (valid.is_none(), false);
        let mut last = None;
        each(keys, valid, |_, key| {
            ascending &= last.is_none_or(|last| last < key);
            last = Some(key);
            let at = key.wrapping_sub(self.min) as u64;
            assert!(at <= self.span, "{key} lies outside the bounds");
            let (word, bit) = (&mut self.words[at as usize / 64], 1 << (at % 64));
            twice |= *word & bit != 0;
            *word |= bit;
        });
        (ascending, twice)
    }

    fn count(&mut self) {
        let mut sum = 0;
        self.before = self
            .words
            .iter()
            .map(|word| {
                let before = sum;
                sum += word.count_ones();
                before
            })
            .collect();
    }

    fn keys(&self) -> usize {
        let last = self.words.len() - 1;
        self.before[last] as usize + self.words[last].count_ones() as usize
    }

    fn one_each(&self, keys: &[i64], valid: Option<&[bool]>) -> Vec<u32> {
        let mut rows = vec![0; self.keys()];
        each(keys, valid, |row, key| {
            rows[self.ranks().of(key) as usize] = row;
        });
        rows
    }

    fn several(&mut self, keys: &[i64], valid: Option<&[bool]>) {
        let mut starts = vec![0u32; self.keys() + 1];
        let mut count = 0;
        each(keys, valid, |_, key| {
            starts[self.ranks().of(key) as usize + 1] += 1;
            count += 1;
        });
        for rank in 1..starts.len() {
            starts[rank] += starts[rank - 1];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; count];
        each(keys, valid, |row, key| {
            let at = &mut next[self.ranks().of(key) as usize];
            rows[*at as usize] = row;
            *at += 1;
        });
        self.starts = Some(starts);
        self.rows = Some(rows);
    }

    #[inline(always)]
    fn ranks(&self) -> Ranks<'_> {
        Ranks {
            words: &self.words,
            before: &self.before,
            min: self.min,
            span: self.span,
        }
    }

    /// As [`super::Keys::any_within`].
    pub(super) fn any_within(&self, low: i64, high: i64) -> bool {
        let range = within(self.min, self.span, low, high);
        range.is_some_and(|(first, last)| self.smaller(last + 1) > self.smaller(first))
    }

    /// How many keys are less than `at` behind `min`; `at` is at most one more than the greatest distance.
    fn smaller(&self, at: u64) -> u32 {
        let word = (at / 64) as usize;
        self.before[word] + (self.words[word] & ((1 << (at % 64)) - 1)).count_ones()
    }

    /// As [`super::Keys::test`].
    pub(super) fn test<T: Stored>(&self, values: &[T], base: i64, into: &mut [u64]) {
        test(
            &self.words,
            self.span,
            base.wrapping_sub(self.min),
            values,
            into,
        );
    }

    /// Whether no key has several rows.
    pub fn is_unique(&self) -> bool {
        self.starts.is_none()
    }

    /// As [`super::Hashed::grouped`].
    pub fn grouped(&self) -> Option<(&[u32], &[u32])> {
        Some((self.starts.as_deref()?, self.rows.as_deref()?))
    }

    /// Bytes of memory that it has allocated.
    pub fn memory(&self) -> usize {
        let starts = self.starts.as_ref().map_or(0, Vec::capacity);
        let rows = self.rows.as_ref().map_or(0, Vec::capacity);
        8 * self.words.capacity() + 4 * (self.before.capacity() + starts + rows)
    }

    /// The first row of each key, [`NONE`] where there is none or the key is not valid.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn find_first(&self, keys: &[i64], valid: Option<&[bool]>, out: &mut Vec<u32>) {
        self.ranks().all(keys, valid, out);
        if let Some(starts) = &self.starts {
            through(out, starts);
        }
        if let Some(rows) = &self.rows {
            through(out, rows);
        }
    }

    /// Looks the keys up. `probe` then stands before the first match: [`Ranked::matches`] gives them.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn probe(&self, keys: &[i64], valid: Option<&[bool]>, probe: &mut Probe) {
        self.ranks().all(keys, valid, &mut probe.groups);
        probe.row = 0;
        probe.taken = 0;
    }

    /// As [`super::Hashed::matches`], for a table with repeated keys.
    ///
    /// # Panics
    /// When no key is repeated: then [`Ranked::find_first`] finds all.
    pub fn matches(
        &self,
        probe: &mut Probe,
        probe_out: &mut Vec<u32>,
        build_out: &mut Vec<u32>,
        limit: usize,
    ) -> bool {
        let (Some(starts), Some(rows)) = (&self.starts, &self.rows) else {
            panic!("a table without repeated keys");
        };
        let lists = RankedRows { starts, rows };
        probe.matches(probe_out, build_out, limit, &lists)
    }
}

/// The rows of a [`Ranked`] with repeated keys.
struct RankedRows<'t> {
    starts: &'t [u32],
    rows: &'t [u32],
}

impl RowLists for RankedRows<'_> {
    #[inline(always)]
    fn row_count(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn ask_for_place(&self, rank: u32) {
        if let Some(start) = self.starts.get(rank as usize) {
            prefetch(start);
        }
    }

    #[inline(always)]
    fn ask_for_rows(&self, rank: u32) {
        let start = self.starts.get(rank as usize);
        if let Some(first) = start.and_then(|start| self.rows.get(*start as usize)) {
            prefetch(first);
        }
    }

    #[inline(always)]
    fn list(&self, rank: u32) -> &[u32] {
        let rank = rank as usize;
        &self.rows[self.starts[rank] as usize..self.starts[rank + 1] as usize]
    }
}

/// Calls `f` with the number and key of each valid row.
#[inline(always)]
pub(super) fn each(keys: &[i64], valid: Option<&[bool]>, mut f: impl FnMut(u32, i64)) {
    match valid {
        None => keys
            .iter()
            .enumerate()
            .for_each(|(row, key)| f(row as u32, *key)),
        Some(valid) => {
            assert_eq!(keys.len(), valid.len(), "two inputs of different lengths");
            for (row, (key, valid)) in keys.iter().zip(valid).enumerate() {
                if *valid {
                    f(row as u32, *key);
                }
            }
        }
    }
}

dispatched! {
    fn test<T: Stored>(words: &[u64], span: u64, shift: i64, values: &[T], into: &mut [u64]) {
        assert!((span + 1) / 64 < words.len() as u64, "a word for each distance");
        set_where(values, into, |value| {
            // Others are sent to the bit behind the last, which is zero.
            let at = (shift.wrapping_add(value.wide() as i64) as u64).min(span + 1);
            // SAFETY: there is a word for each distance up to `span + 1`, as asserted.
            unsafe { words.get_unchecked((at / 64) as usize) >> (at % 64) & 1 == 1 }
        });
    }
}
