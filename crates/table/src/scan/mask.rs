//! Bit masks over the rows of a block: which rows a scan still wants.

use std::ops::Range;

/// A set of rows of a block: one bit for each row, the least significant bit of the first word first.
///
/// Invariant: bits at and after `rows` are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    rows: usize,
}

impl Mask {
    /// The set of all of `rows` rows.
    pub fn all(rows: usize) -> Mask {
        let mut mask = Mask {
            words: vec![u64::MAX; rows.div_ceil(64)],
            rows,
        };
        mask.trim();
        mask
    }

    /// The empty set, of `rows` rows.
    pub fn none(rows: usize) -> Mask {
        Mask {
            words: vec![0; rows.div_ceil(64)],
            rows,
        }
    }

    fn trim(&mut self) {
        let tail = self.rows % 64;
        if tail != 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << tail) - 1;
        }
    }

    /// The number of rows of the block, in the set or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of rows in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether no row is in the set.
    pub fn is_none(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// Whether any row of `range` is in the set.
    pub fn any_in(&self, range: Range<usize>) -> bool {
        let first = range.start / 64;
        let words = &self.words[first..range.end.div_ceil(64)];
        let mut words = words.iter().enumerate();
        words.any(|(i, word)| word & bits(first + i, &range) != 0)
    }

    /// Adds or removes a row.
    pub fn set(&mut self, row: usize, wanted: bool) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let bit = 1 << (row % 64);
        if wanted {
            self.words[row / 64] |= bit;
        } else {
            self.words[row / 64] &= !bit;
        }
    }

    /// Keeps what is also in `bits`, a bitmap of at least as many rows.
    pub(crate) fn and_bytes(&mut self, bits: &[u8]) {
        for (word, bytes) in self.words.iter_mut().zip(bits.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word &= u64::from_le_bytes(padded);
        }
    }

    /// Adds the rows that are 0 in `bits`.
    pub(crate) fn or_not_bytes(&mut self, bits: &[u8]) {
        for (word, bytes) in self.words.iter_mut().zip(bits.chunks(8)) {
            let mut padded = [0xff; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word |= !u64::from_le_bytes(padded);
        }
        self.trim();
    }

    /// Keeps what is also in `other`.
    pub(crate) fn and(&mut self, other: &Mask) {
        debug_assert_eq!(self.rows, other.rows);
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// The words that hold the rows of `range`, which starts at a multiple of 64.
    pub(crate) fn words(&self, range: Range<usize>) -> &[u64] {
        debug_assert_eq!(range.start % 64, 0);
        &self.words[range.start / 64..range.end.div_ceil(64)]
    }

    /// As [`words`](Mask::words), to change them.
    pub(crate) fn words_mut(&mut self, range: Range<usize>) -> &mut [u64] {
        debug_assert_eq!(range.start % 64, 0);
        &mut self.words[range.start / 64..range.end.div_ceil(64)]
    }

    /// Sets all rows of `range`.
    pub(crate) fn set_range(&mut self, range: Range<usize>) {
        self.change(range, |word, bits| *word |= bits);
    }

    /// Removes all rows of `range`.
    pub fn clear_range(&mut self, range: Range<usize>) {
        self.change(range, |word, bits| *word &= !bits);
    }

    /// Changes the words that hold rows of `range`: `how` is given each with the bits of those rows.
    fn change(&mut self, range: Range<usize>, how: impl Fn(&mut u64, u64)) {
        let first = range.start / 64;
        let words = &mut self.words[first..range.end.div_ceil(64)];
        for (i, word) in words.iter_mut().enumerate() {
            how(word, bits(first + i, &range));
        }
    }

    /// The rows in the set, ascending.
    pub fn positions(&self) -> Vec<u32> {
        let mut positions = Vec::new();
        algebra::encoded::positions(&self.words, &mut positions);
        positions
    }
}

/// The places of the bits that are set, ascending.
pub(crate) fn set_bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(index, word)| {
        let rest = std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)));
        let rest = rest.take_while(|rest| *rest != 0);
        rest.map(move |rest| index * 64 + rest.trailing_zeros() as usize)
    })
}

/// The bits of a word, the one at this place, that stand for rows of `range`, which ends behind the word's first row.
fn bits(at: usize, range: &Range<usize>) -> u64 {
    let start = at * 64;
    let low = range.start.saturating_sub(start).min(63);
    let high = match range.end - start {
        end @ ..64 => (1 << end) - 1,
        _ => u64::MAX,
    };
    (u64::MAX << low) & high
}

#[cfg(test)]
#[allow(clippy::needless_range_loop, reason = "the position is what is tested")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_the_set_rows(rows in 1usize..400, picks in prop::collection::vec(any::<bool>(), 400)) {
            let mut mask = Mask::none(rows);
            for row in 0..rows {
                mask.set(row, picks[row]);
            }
            let expected: Vec<u32> = (0..rows as u32).filter(|r| picks[*r as usize]).collect();
            prop_assert_eq!(mask.count(), expected.len());
            prop_assert_eq!(mask.is_none(), expected.is_empty());
            for start in (0..rows).step_by(7) {
                for end in [start, (start + 1).min(rows), (start + 70).min(rows), rows] {
                    let any = (start..end).any(|r| picks[r]);
                    prop_assert_eq!(mask.any_in(start..end), any, "{}..{}", start, end);
                }
            }
            prop_assert_eq!(mask.positions(), expected);
            let (start, end) = (rows / 3, rows - rows / 4);
            mask.set_range(start..end);
            for row in 0..rows {
                let expected = picks[row] || (start..end).contains(&row);
                prop_assert_eq!(mask.any_in(row..row + 1), expected);
            }
            let (from, to) = (rows / 4, rows - rows / 3);
            mask.clear_range(from..to);
            for row in 0..rows {
                let before = picks[row] || (start..end).contains(&row);
                prop_assert_eq!(mask.any_in(row..row + 1), before && !(from..to).contains(&row));
            }
        }

        #[test]
        fn bitmaps_combine(rows in 1usize..300, a in prop::collection::vec(any::<u8>(), 40), b in prop::collection::vec(any::<u8>(), 40)) {
            let bit = |bytes: &[u8], r: usize| bytes[r / 8] >> (r % 8) & 1 == 1;
            let mut mask = Mask::all(rows);
            mask.and_bytes(&a);
            mask.or_not_bytes(&b);
            for row in 0..rows {
                let expected = bit(&a, row) || !bit(&b, row);
                prop_assert_eq!(mask.any_in(row..row + 1), expected);
            }
            prop_assert!(mask.count() <= rows);
        }
    }
}
