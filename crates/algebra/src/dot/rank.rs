//! Counting the bits before a bit: how a [`super::Ranked`] is looked up in.

use super::found::NONE;
use crate::fill;
#[cfg(target_arch = "x86_64")]
use crate::level::Level;
use crate::level::{dispatched, level};

/// A bit for each distance from `min`.
///
/// Invariants: there is a word for every distance up to `span + 1`, whose bit is zero; `before` has an entry for every
/// word, the number of bits set in the words before it.
#[derive(Clone, Copy)]
pub(super) struct Ranks<'a> {
    pub words: &'a [u64],
    pub before: &'a [u32],
    pub min: i64,
    pub span: u64,
}

impl Ranks<'_> {
    /// How many keys are smaller, or [`NONE`] if this is no key.
    #[inline(always)]
    pub fn of(self, key: i64) -> u32 {
        // Keys outside are sent to the bit behind the last, which is zero.
        let at = (key.wrapping_sub(self.min) as u64).min(self.span + 1);
        let (word, bit) = ((at / 64) as usize, at % 64);
        debug_assert!(word < self.words.len() && self.words.len() == self.before.len());
        // SAFETY: `at` is at most `span + 1`, and the invariants of `Ranks` promise a word and an entry of `before` for
        // every distance up to there; `all`, the one way here from outside, asserts them.
        let (bits, before) = unsafe {
            let bits = *self.words.get_unchecked(word);
            (bits, *self.before.get_unchecked(word))
        };
        // No branch: which keys are there is as good as random, and a wrong guess costs more than all of this.
        let smaller = before + (bits & ((1 << bit) - 1)).count_ones();
        smaller | ((bits >> bit & 1) as u32).wrapping_sub(1)
    }

    /// [`Ranks::of`] each key, [`NONE`] where it is not valid.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn all(self, keys: &[i64], valid: Option<&[bool]>, out: &mut Vec<u32>) {
        assert!(
            (self.span + 1) / 64 < self.words.len() as u64 && self.words.len() == self.before.len(),
            "a word for each distance"
        );
        assert!(
            valid.is_none_or(|valid| valid.len() == keys.len()),
            "two inputs of different lengths"
        );
        match level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                let room = fill::room(out, keys.len());
                // SAFETY: `level` is at most what was detected; there is a word for each distance, a flag for each key
                // and room for its rank.
                unsafe {
                    avx512::all(self, keys, valid, room.as_mut_ptr().cast());
                    out.set_len(keys.len());
                }
            }
            _ => narrow(self, keys, valid, out),
        }
    }
}

dispatched! {
    fn narrow(ranks: Ranks<'_>, keys: &[i64], valid: Option<&[bool]>, out: &mut Vec<u32>) {
        match valid {
            None => fill::map(keys, out, |key| ranks.of(key)),
            Some(valid) => fill::zip(keys, valid, out, |key, valid| {
                if valid { ranks.of(key) } else { NONE }
            }),
        }
    }
}

/// By hand, as the compiler does not gather here: a third less time than its loop.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::Ranks;

    /// Writes the rank of each key to `out`.
    ///
    /// # Safety
    /// The invariants of [`Ranks`] must hold, `valid` be as long as `keys`, and `out` have room for as many ranks.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn all(
        ranks: Ranks<'_>,
        keys: &[i64],
        valid: Option<&[bool]>,
        out: *mut u32,
    ) {
        let (min, behind) = (
            _mm512_set1_epi64(ranks.min),
            _mm512_set1_epi64((ranks.span + 1) as i64),
        );
        let (one, none) = (_mm512_set1_epi64(1), _mm256_set1_epi32(-1));
        for (eight, keys) in keys.chunks(8).enumerate() {
            let inside = u8::MAX >> (8 - keys.len());
            // SAFETY: of flags and keys only as many are read as there are, and as many ranks are written; distances
            // are at most `span + 1`, for which there are words and entries of `before`.
            unsafe {
                let asked = match valid {
                    None => inside,
                    Some(valid) => {
                        let flags = valid.as_ptr().add(eight * 8).cast();
                        let flags = _mm_maskz_loadu_epi8(inside.into(), flags);
                        _mm_test_epi8_mask(flags, flags) as u8
                    }
                };
                let keys = _mm512_maskz_loadu_epi64(inside, keys.as_ptr());
                let at = _mm512_min_epu64(_mm512_sub_epi64(keys, min), behind);
                let word = _mm512_srli_epi64::<6>(at);
                let bits = _mm512_i64gather_epi64::<8>(word, ranks.words.as_ptr().cast());
                let before = _mm512_i64gather_epi32::<4>(word, ranks.before.as_ptr().cast());
                // Shifts and rotations take the distance by its last six bits.
                let bit = _mm512_rolv_epi64(one, at);
                let there = _mm512_mask_test_epi64_mask(asked, bits, bit);
                let smaller = ones(_mm512_and_si512(bits, _mm512_sub_epi64(bit, one)));
                let rank = _mm256_add_epi32(before, _mm512_cvtepi64_epi32(smaller));
                let rank = _mm256_mask_mov_epi32(none, there, rank);
                _mm256_mask_storeu_epi32(out.add(eight * 8).cast(), inside, rank);
            }
        }
    }

    /// The number of bits that are set, by lane: from a table of the sixteen halves of a byte, as counting in one
    /// instruction came later than the rest.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    fn ones(bits: __m512i) -> __m512i {
        let (table, low) = (
            _mm512_broadcast_i32x4(_mm_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            )),
            _mm512_set1_epi8(15),
        );
        let count = |half| _mm512_shuffle_epi8(table, _mm512_and_si512(half, low));
        let bytes = _mm512_add_epi8(count(bits), count(_mm512_srli_epi16::<4>(bits)));
        _mm512_sad_epu8(bytes, _mm512_setzero_si512())
    }
}
