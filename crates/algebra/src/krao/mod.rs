//! Krao, the Khatri-Rao product: several grouping attributes of a row as one index.
//!
//! If the product of the attributes' cardinalities is small the index is dense: [`start`] and
//! [`combine`] compute it, and accumulators are addressed by it. Otherwise [`Groups`], a hash table,
//! numbers the combinations that occur, or [`ascend`] does if rows are sorted by them.

mod ascending;
mod groups;

pub use ascending::ascend;
pub use groups::{Groups, MAX_WORDS, Partition};

use crate::fill;
use crate::level::dispatched;

dispatched! {
    /// The index of the first attribute: its codes.
    pub fn start(codes: &[u32], index: &mut Vec<u64>) {
        fill::map(codes, index, u64::from);
    }

    /// The index of the first attribute, an integer of at least `base`: its distance from there.
    pub fn start_i64(values: &[i64], base: i64, index: &mut Vec<u64>) {
        fill::map(values, index, |v| v.wrapping_sub(base) as u64);
    }

    /// `index[i] = index[i] * labels + codes[i]`, for codes below `labels`.
    ///
    /// The caller made sure that the product of all numbers of labels fits 64 bits.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn combine(index: &mut [u64], codes: &[u32], labels: u64) {
        assert_eq!(index.len(), codes.len(), "two inputs of different lengths");
        for (index, code) in index.iter_mut().zip(codes) {
            *index = index.wrapping_mul(labels).wrapping_add(u64::from(*code));
        }
    }

    /// `index[i] = index[i] * labels + (values[i] - base)`, for integers in `base..base + labels`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn combine_i64(index: &mut [u64], values: &[i64], base: i64, labels: u64) {
        assert_eq!(index.len(), values.len(), "two inputs of different lengths");
        for (index, v) in index.iter_mut().zip(values) {
            *index = index.wrapping_mul(labels).wrapping_add(v.wrapping_sub(base) as u64);
        }
    }

    /// `numbers[i] = numbers[i] * size + (values[i] - base)`: appends a digit to keys that are looked up. Where
    /// `values[i] - base` is not a digit below `size`, the table cannot have the key, and `valid[i]` becomes false.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn digit(numbers: &mut [i64], valid: &mut [bool], values: &[i64], base: i64, size: u64) {
        assert!(numbers.len() == values.len() && valid.len() == values.len(), "three inputs of different lengths");
        for ((number, valid), value) in numbers.iter_mut().zip(valid).zip(values) {
            let distance = value.wrapping_sub(base) as u64;
            *number = number.wrapping_mul(size as i64).wrapping_add(distance as i64);
            *valid &= distance < size;
        }
    }

    /// The low halves of indexes: group numbers, where the index is dense.
    pub fn numbers(index: &[u64], out: &mut Vec<u32>) {
        fill::map(index, out, |i| i as u32);
    }

    /// Which numbers occur: bit `n` of the result is set if `n` is among `numbers`, all of which are
/// below 32.
    pub fn occurring(numbers: &[u32]) -> u32 {
        numbers.iter().fold(0, |bits, n| bits | 1u32.wrapping_shl(*n))
    }
}
