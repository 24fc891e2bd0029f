//! Values as words whose unsigned order is that of the values.

use crate::fill;
use crate::level::dispatched;
use crate::total::Total;

/// Which end comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Least first.
    Ascending,
    /// Greatest first.
    Descending,
}

impl Direction {
    /// What words are exclusive-ored with.
    #[inline(always)]
    fn flip(self) -> u64 {
        match self {
            Direction::Ascending => 0,
            Direction::Descending => u64::MAX,
        }
    }
}

/// The sign bit, which unsigned order needs the other way round.
const SIGN: u64 = 1 << 63;

/// `word(values[i])`, zero under nulls: all nulls are equal.
#[inline(always)]
fn words<T: Copy>(
    values: &[T],
    valid: Option<&[bool]>,
    out: &mut Vec<u64>,
    word: impl Fn(T) -> u64,
) {
    match valid {
        None => fill::map(values, out, word),
        Some(valid) => fill::zip(
            values,
            valid,
            out,
            |v, valid| if valid { word(v) } else { 0 },
        ),
    }
}

dispatched! {
    /// The word that comes before those of a column with nulls: it orders nulls first or last.
    pub fn encode_nulls(valid: &[bool], nulls_first: bool, out: &mut Vec<u64>) {
        fill::map(valid, out, |valid| u64::from(valid == nulls_first));
    }

    /// Words of integers, in the order of the integers or its reverse.
    ///
    /// # Panics
    /// When lengths differ, here and below.
    pub fn encode_i64(values: &[i64], valid: Option<&[bool]>, direction: Direction, out: &mut Vec<u64>) {
        let flip = direction.flip() ^ SIGN;
        words(values, valid, out, |v| v as u64 ^ flip);
    }

    /// Words of codes of a sorted dictionary, or of other unsigned numbers.
    pub fn encode_u64(values: &[u64], valid: Option<&[bool]>, direction: Direction, out: &mut Vec<u64>) {
        let flip = direction.flip();
        words(values, valid, out, |v| v ^ flip);
    }

    /// Words of floats, in total order (`f64::total_cmp`).
    pub fn encode_f64(values: &[f64], valid: Option<&[bool]>, direction: Direction, out: &mut Vec<u64>) {
        let flip = direction.flip() ^ SIGN;
        words(values, valid, out, |v| v.key() as u64 ^ flip);
    }

    /// Two words for each 128-bit integer.
    pub fn encode_i128(
        values: &[i128], valid: Option<&[bool]>, direction: Direction,
        high: &mut Vec<u64>, low: &mut Vec<u64>,
    ) {
        let flip = direction.flip();
        words(values, valid, high, |v| (v >> 64) as u64 ^ flip ^ SIGN);
        words(values, valid, low, |v| v as u64 ^ flip);
    }
}
