//! Bit vectors over a range of integers: semijoins, and sets of rows.

use super::found::NONE;
use crate::fill;
use crate::level::dispatched;

/// A set of integers between two bounds, one bit for each.
///
/// Invariant: bits of `words` behind `span` are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    min: i64,
    /// The greatest distance from `min`.
    span: u64,
    words: Vec<u64>,
}

impl Bits {
    /// An empty set of integers of `min..=max`.
    ///
    /// # Panics
    /// When `min > max`, or there are 2^40 integers between them or more.
    pub fn new(min: i64, max: i64) -> Bits {
        assert!(min <= max, "bounds are upside down");
        let span = max.wrapping_sub(min) as u64;
        assert!(
            span < 1 << 40,
            "integers are too far apart for a bit vector"
        );
        Bits {
            min,
            span,
            words: vec![0; span as usize / 64 + 1],
        }
    }

    /// An empty set of rows of `0..rows`.
    ///
    /// # Panics
    /// When `rows` is zero or above 2^40.
    pub fn rows(rows: usize) -> Bits {
        assert!(rows > 0, "a bit vector of no rows");
        Bits::new(0, rows as i64 - 1)
    }

    /// Bytes of memory that it has allocated.
    pub fn memory(&self) -> usize {
        8 * self.words.capacity()
    }

    /// How many integers are in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether `value` is in the set.
    pub fn contains(&self, value: i64) -> bool {
        let at = value.wrapping_sub(self.min) as u64;
        at <= self.span && self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// Adds the valid values.
    ///
    /// # Panics
    /// When lengths differ, or a valid value lies outside the bounds.
    pub fn set(&mut self, values: &[i64], valid: Option<&[bool]>) {
        match valid {
            None => values.iter().for_each(|v| self.add(*v, true)),
            Some(valid) => {
                assert_eq!(values.len(), valid.len(), "two inputs of different lengths");
                values
                    .iter()
                    .zip(valid)
                    .for_each(|(v, valid)| self.add(*v, *valid));
            }
        }
    }

    /// Adds rows. [`NONE`] among them is skipped.
    ///
    /// # Panics
    /// When a row lies outside the bounds.
    pub fn set_rows(&mut self, rows: &[u32]) {
        rows.iter()
            .for_each(|row| self.add(i64::from(*row), *row != NONE));
    }

    #[inline(always)]
    fn add(&mut self, value: i64, really: bool) {
        let at = if really {
            value.wrapping_sub(self.min) as u64
        } else {
            0
        };
        assert!(at <= self.span, "{value} lies outside the bit vector");
        self.words[at as usize / 64] |= u64::from(really) << (at % 64);
    }

    /// `out[i]`: whether `values[i]` is valid and in the set.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn test(&self, values: &[i64], valid: Option<&[bool]>, out: &mut Vec<bool>) {
        test(&self.words, self.min, self.span, values, valid, out);
    }

    /// `out[i]`: whether `rows[i]` is in the set.
    pub fn test_rows(&self, rows: &[u32], out: &mut Vec<bool>) {
        test_rows(&self.words, self.min, self.span, rows, out);
    }

    /// Removes what is not in `other`, too: the intersection.
    ///
    /// # Panics
    /// When the bounds differ.
    pub fn and(&mut self, other: &Bits) {
        assert_eq!(
            (self.min, self.span),
            (other.min, other.span),
            "bit vectors of other bounds"
        );
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a &= b);
    }

    /// Adds what is in `other`: the union.
    ///
    /// # Panics
    /// When the bounds differ.
    pub fn or(&mut self, other: &Bits) {
        assert_eq!(
            (self.min, self.span),
            (other.min, other.span),
            "bit vectors of other bounds"
        );
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a |= b);
    }

    /// Makes this the complement: what was in the set leaves it, what was not enters it.
    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|w| *w = !*w);
        if let Some(last) = self.words.last_mut() {
            *last &= u64::MAX >> (63 - self.span % 64);
        }
    }

    /// The integers of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(move |(index, word)| {
                let mut rest = *word;
                std::iter::from_fn(move || {
                    let bit = (rest != 0).then(|| i64::from(rest.trailing_zeros()))?;
                    rest &= rest - 1;
                    Some(self.min.wrapping_add(index as i64 * 64 + bit))
                })
            })
    }
}

/// Whether the bit at a distance is set.
#[inline(always)]
fn bit(words: &[u64], span: u64, at: u64) -> bool {
    let inside = at <= span;
    let at = if inside { at } else { 0 };
    // SAFETY: every caller gives the words of a `Bits`, which has `span / 64 + 1` of them, and `at` was
    // just made at most `span`.
    (unsafe { words.get_unchecked(at as usize / 64) } >> (at % 64) & 1 == 1) & inside
}

dispatched! {
    fn test(words: &[u64], min: i64, span: u64, values: &[i64], valid: Option<&[bool]>, out: &mut Vec<bool>) {
        assert!(span / 64 < words.len() as u64);
        let hit = |v: i64| bit(words, span, v.wrapping_sub(min) as u64);
        match valid {
            None => fill::map(values, out, hit),
            Some(valid) => fill::zip(values, valid, out, |v, valid| hit(v) & valid),
        }
    }

    fn test_rows(words: &[u64], min: i64, span: u64, rows: &[u32], out: &mut Vec<bool>) {
        assert!(span / 64 < words.len() as u64);
        fill::map(rows, out, |row| bit(words, span, i64::from(row).wrapping_sub(min) as u64));
    }
}
