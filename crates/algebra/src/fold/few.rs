//! Folding into few groups with AVX-512: each row is compared with each group number, and what is
//! not the group's is masked. Lanes stay in registers, so no row waits for a store.

use std::arch::x86_64::*;

use super::piece::{FEW, Piece};
use crate::level::{Level, level};

/// What is folded.
pub(super) const SUM: u8 = 0;
/// Of floats.
pub(super) const SUM_F64: u8 = 1;
/// The least integer.
pub(super) const MIN: u8 = 2;
/// The greatest integer.
pub(super) const MAX: u8 = 3;
/// The least float, as its key.
pub(super) const MIN_F64: u8 = 4;
/// The greatest float, as its key.
pub(super) const MAX_F64: u8 = 5;

/// Values of 8 bytes, all of whose bits may be read as an integer.
pub(super) trait Word: Copy {}
impl Word for i64 {}
impl Word for f64 {}

/// The result of each group, in bits, and in bit `g` whether group `g` had a row; of sums, which start from nothing,
/// no bit.
pub(super) type Folded = ([u64; FEW], u8);

/// Folds a piece with up to [`FEW`] states by masks, if the processor can.
#[inline]
pub(super) fn fold<const KIND: u8, W: Word>(piece: Piece<'_, W>, states: usize) -> Option<Folded> {
    let groups = piece
        .groups
        .filter(|_| states <= FEW && level() == Level::Avx512)?;
    let (values, valid) = (piece.values, piece.valid);
    assert!(groups.len() == values.len() && valid.is_none_or(|v| v.len() == values.len()));
    // SAFETY: `level` is at most what was detected, and is AVX-512; that the lengths are equal was just
    // asserted.
    Some(unsafe {
        match states {
            0..=2 => lanes::<2, KIND, W>(groups, values, valid),
            3 => lanes::<3, KIND, W>(groups, values, valid),
            4 => lanes::<4, KIND, W>(groups, values, valid),
            5 => lanes::<5, KIND, W>(groups, values, valid),
            6 => lanes::<6, KIND, W>(groups, values, valid),
            _ => lanes::<FEW, KIND, W>(groups, values, valid),
        }
    })
}

/// # Safety
/// All slices must have one length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
unsafe fn lanes<const G: usize, const KIND: u8, W: Word>(
    groups: &[u32],
    values: &[W],
    valid: Option<&[bool]>,
) -> Folded {
    const { assert!(size_of::<W>() == 8 && G <= FEW) };
    let mut lanes = Lanes::<G>::new(KIND);
    let whole = values.len() / 8 * 8;
    let (groups, values) = (
        groups.as_ptr(),
        (values.as_ptr().cast::<i64>(), values.len()),
    );
    let read = |row: usize| {
        // SAFETY: both loops below give rows that are multiples of 8 below `whole`, so 8 rows from `row`
        // on are inside; `groups` is as long as `values`.
        unsafe {
            let numbers = _mm256_loadu_si256(groups.add(row).cast());
            (numbers, _mm512_loadu_si512(values.0.add(row).cast()))
        }
    };
    match valid {
        None => {
            for row in (0..whole).step_by(8) {
                let (numbers, words) = read(row);
                lanes.step::<KIND>(numbers, words, 0xff);
            }
        }
        Some(valid) => {
            for row in (0..whole).step_by(8) {
                let (numbers, words) = read(row);
                // SAFETY: `row + 8` is at most `whole`, and `valid` is as long as `values`.
                let flags = unsafe { _mm_loadl_epi64(valid.as_ptr().add(row).cast()) };
                lanes.step::<KIND>(numbers, words, _mm_test_epi8_mask(flags, flags) as u8);
            }
        }
    }
    if whole < values.1 {
        let rest = (1u8 << (values.1 - whole)) - 1;
        let flags = valid.map_or(rest, |v| {
            v[whole..]
                .iter()
                .enumerate()
                .fold(0, |bits, (i, flag)| bits | u8::from(*flag) << i)
        });
        // SAFETY: the mask `rest` has a bit for each row from `whole` on, and lanes without one are not
        // read; `groups` is as long as `values`.
        let (numbers, words) = unsafe {
            let numbers = _mm256_maskz_loadu_epi32(rest, groups.add(whole).cast());
            (numbers, _mm512_maskz_loadu_epi64(rest, values.0.add(whole)))
        };
        lanes.step::<KIND>(numbers, words, flags);
    }
    lanes.finish(KIND)
}

/// Eight lanes for each of `G` groups.
#[derive(Clone, Copy)]
struct Lanes<const G: usize> {
    words: [__m512i; G],
    seen: [__mmask8; G],
}

impl<const G: usize> Lanes<G> {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    #[inline]
    fn new(kind: u8) -> Lanes<G> {
        let start = match kind {
            SUM => 0,
            MIN | MIN_F64 => i64::MAX,
            // For the greatest values the least integer; for sums of floats its bits, which are those of -0.
            _ => i64::MIN,
        };
        Lanes {
            words: [_mm512_set1_epi64(start); G],
            seen: [0; G],
        }
    }

    /// Takes eight rows, those of `valid`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    #[inline]
    fn step<const KIND: u8>(&mut self, numbers: __m256i, words: __m512i, valid: __mmask8) {
        let words = match KIND {
            MIN_F64 | MAX_F64 => {
                let sign = _mm512_srai_epi64::<63>(words);
                _mm512_xor_si512(words, _mm512_srli_epi64::<1>(sign))
            }
            _ => words,
        };
        for group in 0..G {
            let number = _mm256_set1_epi32(group as i32);
            let here = _mm256_mask_cmpeq_epi32_mask(valid, numbers, number);
            let old = self.words[group];
            self.words[group] = match KIND {
                SUM => _mm512_mask_add_epi64(old, here, old, words),
                SUM_F64 => {
                    let (old, words) = (_mm512_castsi512_pd(old), _mm512_castsi512_pd(words));
                    _mm512_castpd_si512(_mm512_mask_add_pd(old, here, old, words))
                }
                MIN | MIN_F64 => _mm512_mask_min_epi64(old, here, old, words),
                _ => _mm512_mask_max_epi64(old, here, old, words),
            };
            // To look at masks one by one takes as long as the sums.
            if !matches!(KIND, SUM | SUM_F64) {
                self.seen[group] |= here;
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    #[inline]
    fn finish(self, kind: u8) -> Folded {
        let (mut results, mut seen) = ([0; FEW], 0);
        for (group, (result, words)) in results.iter_mut().zip(self.words).enumerate() {
            *result = match kind {
                SUM => _mm512_reduce_add_epi64(words) as u64,
                SUM_F64 => _mm512_reduce_add_pd(_mm512_castsi512_pd(words)).to_bits(),
                MIN | MIN_F64 => _mm512_reduce_min_epi64(words) as u64,
                _ => _mm512_reduce_max_epi64(words) as u64,
            };
            seen |= u8::from(self.seen[group] != 0) << group;
        }
        (results, seen)
    }
}

/// Adds to each state, of at most [`FEW`], how many valid rows its group has; false if the
/// processor cannot.
#[inline]
pub(super) fn count(groups: &[u32], valid: Option<&[bool]>, state: &mut [i64]) -> bool {
    if state.len() > FEW || level() < Level::Avx512 {
        return false;
    }
    assert!(valid.is_none_or(|v| v.len() == groups.len()));
    // SAFETY: `level` is at most what was detected, and is AVX-512; that the lengths are equal was just
    // asserted.
    unsafe {
        match state.len() {
            0..=2 => counted::<2>(groups, valid, state),
            3 => counted::<3>(groups, valid, state),
            4 => counted::<4>(groups, valid, state),
            5 => counted::<5>(groups, valid, state),
            6 => counted::<6>(groups, valid, state),
            _ => counted::<FEW>(groups, valid, state),
        }
    }
    true
}

/// # Safety
/// `valid` must be as long as `groups`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
unsafe fn counted<const G: usize>(groups: &[u32], valid: Option<&[bool]>, state: &mut [i64]) {
    // Lanes of 32 bits: pieces have fewer rows than those can count.
    let (mut counts, one) = ([_mm512_setzero_si512(); G], _mm512_set1_epi32(1));
    for (piece, numbers) in groups.chunks(16).enumerate() {
        let rest = u16::MAX >> (16 - numbers.len());
        let flags = valid.map_or(rest, |valid| {
            // SAFETY: the mask `rest` has a bit for each row of the piece, and lanes without one are not
            // read; `valid` is as long as `groups`.
            let flags =
                unsafe { _mm_maskz_loadu_epi8(rest, valid.as_ptr().add(16 * piece).cast()) };
            _mm_test_epi8_mask(flags, flags)
        });
        // SAFETY: as above, of the piece itself.
        let numbers = unsafe { _mm512_maskz_loadu_epi32(rest, numbers.as_ptr().cast()) };
        for (group, count) in counts.iter_mut().enumerate() {
            let number = _mm512_set1_epi32(group as i32);
            let here = _mm512_mask_cmpeq_epi32_mask(flags, numbers, number);
            *count = _mm512_mask_add_epi32(*count, here, *count, one);
        }
    }
    for (state, counts) in state.iter_mut().zip(counts) {
        *state += i64::from(_mm512_reduce_add_epi32(counts));
    }
}
