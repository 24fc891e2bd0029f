//! Membership: of numbers in a list, of codes among the labels that a predicate holds for.

use crate::fill;
use crate::level::dispatched;

/// Lists up to this length are compared value by value, vectorised.
const FEW: usize = 8;

/// Bits of the widest list that is tested as a bitmap.
const SPAN: usize = 4096;

dispatched! {
    /// `out[i]`: whether `values[i]` stands in `sorted_set`, which is ascending.
    pub fn in_set_i64(values: &[i64], sorted_set: &[i64], out: &mut Vec<bool>) {
        debug_assert!(sorted_set.is_sorted());
        let (Some(&first), Some(&last)) = (sorted_set.first(), sorted_set.last()) else {
            return fill::map(values, out, |_| false);
        };
        let span = last.wrapping_sub(first) as u64;
        if sorted_set.len() <= FEW {
            // The last is repeated, so that the number of comparisons is fixed.
            let mut few = [last; FEW];
            few[..sorted_set.len()].copy_from_slice(sorted_set);
            fill::map(values, out, |v| few.iter().fold(false, |hit, f| hit | (v == *f)));
        } else if span < SPAN as u64 {
            let mut bits = [0u64; SPAN / 64];
            for value in sorted_set {
                let at = value.wrapping_sub(first) as usize % SPAN;
                bits[at / 64] |= 1 << (at % 64);
            }
            fill::map(values, out, |v| {
                let at = v.wrapping_sub(first) as u64;
                let bit = bits[at as usize % SPAN / 64] >> (at % 64) & 1 == 1;
                bit & (at <= span)
            });
        } else {
            fill::map(values, out, |v| contains(sorted_set, v));
        }
    }

    /// The hits of up to 64 labels as bits.
    fn labels_of_word(codes: &[u32], word: u64, out: &mut Vec<bool>) {
        fill::map(codes, out, |code| (word >> (code & 63) & 1 == 1) & (code < 64));
    }
}

/// `out[i] = hits[codes[i]]`: a predicate that was evaluated once per label, composed with
/// the rows. Codes that have no label are no hits.
pub fn labels(codes: &[u32], hits: &[bool], out: &mut Vec<bool>) {
    if hits.len() <= 64 {
        let word = hits
            .iter()
            .enumerate()
            .fold(0, |word, (i, hit)| word | u64::from(*hit) << i);
        labels_of_word(codes, word, out);
    } else {
        // For the baseline: gathering bytes in wide registers takes twice as long.
        let last = hits.len() - 1;
        fill::map(codes, out, |code| {
            hits[(code as usize).min(last)] & (code as usize <= last)
        });
    }
}

/// Binary search whose steps do not depend on what is found.
#[inline(always)]
fn contains(sorted: &[i64], value: i64) -> bool {
    let (mut base, mut size) = (0, sorted.len());
    while size > 1 {
        let half = size / 2;
        base += if sorted[base + half] <= value {
            half
        } else {
            0
        };
        size -= half;
    }
    sorted[base] == value
}
