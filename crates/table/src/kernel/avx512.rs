//! Kernels that the compiler does not find: comparing into bits without bytes between, bits into positions, and values at
//! positions. Compared with its loops comparing takes an eighth of the time for values of two bytes, a fifth for others.
//!
//! Every function here needs a processor that has [`detected`].

use std::arch::x86_64::*;

use std::mem::MaybeUninit;

use super::{Number, Stored};

/// Whether the processor has what these functions use.
#[inline]
pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
}

/// Values that wide registers hold.
pub(crate) trait Lanes: Copy {
    /// Bit `i`: whether `values[i] - low <= span`.
    ///
    /// # Safety
    /// The processor must have [`detected`].
    unsafe fn inside(values: &[Self; 64], low: Self, span: Self) -> u64;

    /// Eight values that follow one another.
    ///
    /// # Safety
    /// As above, and there must be eight at `values`.
    unsafe fn eight(values: *const Self) -> __m512i;

    /// The values at eight places.
    ///
    /// # Safety
    /// As above; from each place on there must be four bytes.
    unsafe fn gather(values: *const Self, places: __m256i) -> __m512i;
}

macro_rules! lanes {
    ($t:ty, $signed:ty, $lanes:literal, $set:ident, $sub:ident, $le:ident, $eight:expr, $gather:expr) => {
        impl Lanes for $t {
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
            unsafe fn inside(values: &[$t; 64], low: $t, span: $t) -> u64 {
                let (low, span) = ($set(low as $signed), $set(span as $signed));
                let mut word = 0;
                for (at, some) in values.as_chunks::<$lanes>().0.iter().enumerate() {
                    // SAFETY: the chunk is as long as the register.
                    let values = unsafe { _mm512_loadu_si512(some.as_ptr().cast()) };
                    word |= u64::from($le($sub(values, low), span)) << (at * $lanes);
                }
                word
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
            unsafe fn eight(values: *const $t) -> __m512i {
                // SAFETY: the caller's.
                unsafe { $eight(values.cast()) }
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
            unsafe fn gather(values: *const $t, places: __m256i) -> __m512i {
                // SAFETY: the caller's.
                unsafe { $gather(values.cast(), places) }
            }
        }
    };
}
lanes!(
    u8,
    i8,
    64,
    _mm512_set1_epi8,
    _mm512_sub_epi8,
    _mm512_cmple_epu8_mask,
    |at| _mm512_cvtepu8_epi64(_mm_loadl_epi64(at)),
    |values, places| _mm512_cvtepu32_epi64(_mm256_and_si256(
        _mm256_i32gather_epi32::<1>(values, places),
        _mm256_set1_epi32(0xff)
    ))
);
lanes!(
    u16,
    i16,
    32,
    _mm512_set1_epi16,
    _mm512_sub_epi16,
    _mm512_cmple_epu16_mask,
    |at| _mm512_cvtepu16_epi64(_mm_loadu_si128(at)),
    |values, places| _mm512_cvtepu32_epi64(_mm256_and_si256(
        _mm256_i32gather_epi32::<2>(values, places),
        _mm256_set1_epi32(0xffff)
    ))
);
lanes!(
    u32,
    i32,
    16,
    _mm512_set1_epi32,
    _mm512_sub_epi32,
    _mm512_cmple_epu32_mask,
    |at| _mm512_cvtepu32_epi64(_mm256_loadu_si256(at)),
    |values, places| _mm512_cvtepu32_epi64(_mm256_i32gather_epi32::<4>(values, places))
);
lanes!(
    u64,
    i64,
    8,
    _mm512_set1_epi64,
    _mm512_sub_epi64,
    _mm512_cmple_epu64_mask,
    |at| _mm512_loadu_si512(at),
    |values, places| _mm512_i32gather_epi64::<8>(places, values)
);

/// [`super::in_range`].
///
/// # Safety
/// The processor must have [`detected`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn in_range<T: Stored>(values: &[T], low: T, span: T, into: &mut [u64]) {
    let (whole, rest) = values.as_chunks::<64>();
    for (word, values) in into.iter_mut().zip(whole) {
        // SAFETY: the caller's.
        *word |= unsafe { T::inside(values, low, span) };
    }
    super::in_range_rest(rest, low, span, into.get_mut(whole.len()));
}

/// Writes `base + values[place - first]` of each place.
///
/// # Safety
/// The processor must have [`detected`]; no place less `first` may be above `most`, which must lie inside the values, and
/// there must be as much room as there are places.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn widen_some<S: Stored, N: Number>(
    values: &[S],
    places: &[u32],
    (first, most): (u32, u32),
    base: N,
    room: &mut [MaybeUninit<N>],
) {
    // Gathering reads four bytes of each.
    let gathered = most as usize * size_of::<S>() + 4 <= size_of_val(values) && most < 1 << 31;
    let (eights, rest) = places.as_chunks::<8>();
    let (slots, last) = room.as_chunks_mut::<8>();
    let next = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (slots, eight) in slots.iter_mut().zip(eights) {
        // SAFETY: eight places are a register; no place lies outside, and where all eight are neighbours, none between.
        unsafe {
            let places = _mm256_loadu_si256(eight.as_ptr().cast());
            let away = _mm256_sub_epi32(places, _mm256_set1_epi32(eight[0] as i32));
            if _mm256_cmpeq_epi32_mask(away, next) == 0xff {
                let start = eight[0].wrapping_sub(first) as usize;
                base.put(S::eight(values.as_ptr().add(start)), slots);
            } else if gathered {
                let places = _mm256_sub_epi32(places, _mm256_set1_epi32(first as i32));
                base.put(S::gather(values.as_ptr(), places), slots);
            } else {
                super::widen_each(values, eight, first, base, slots);
            }
        }
    }
    // SAFETY: the caller's.
    unsafe { super::widen_each(values, rest, first, base, last) };
}

/// The positions of the bits that are set, appended to `out`.
///
/// # Safety
/// The processor must have [`detected`]; `bits` must be how many are set.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn positions(words: &[u64], bits: usize, out: &mut Vec<u32>) {
    // 16 more than there are: whole registers are stored.
    out.reserve(bits + 16);
    let mut next = out.spare_capacity_mut().as_mut_ptr();
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (index, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        for quarter in 0..4 {
            let mask = (word >> (16 * quarter)) as u16;
            let first = _mm512_set1_epi32((index * 64 + 16 * quarter) as i32);
            let some = _mm512_maskz_compress_epi32(mask, _mm512_add_epi32(lanes, first));
            // SAFETY: as many positions were stored before as bits were seen, so 16 more have room.
            unsafe {
                _mm512_storeu_si512(next.cast(), some);
                next = next.add(mask.count_ones() as usize);
            }
        }
    }
    // SAFETY: all of them were written.
    unsafe { out.set_len(out.len() + bits) };
}
