//! What AVX-512 registers do with stored values and with what they are decoded into.
//!
//! The traits are sealed: they can be named by nobody outside, so [`super::Stored`] and
//! [`super::Number`] are implemented here only.

#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::{Lanes, Sums};
#[cfg(target_arch = "x86_64")]
pub use x86::{Lanes, Sums};

/// Where there are no such registers, nothing is asked of the types.
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    /// Every type.
    pub trait Lanes {}
    impl<T> Lanes for T {}
    /// Every type.
    pub trait Sums {}
    impl<T> Sums for T {}
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    /// Values that registers hold.
    pub trait Lanes: Copy {
        /// Bit `i`: whether `values[i] - low <= span`.
        ///
        /// # Safety
        /// The processor must have [`crate::Level::Avx512`].
        unsafe fn inside(values: &[Self; 64], low: Self, span: Self) -> u64;

        /// Eight values that follow one another, each in 64 bits.
        ///
        /// # Safety
        /// As above, and there must be eight at `values`.
        unsafe fn eight(values: *const Self) -> __m512i;

        /// The values at eight places, each in 64 bits.
        ///
        /// # Safety
        /// As above; from each place on there must be four bytes, and eight where values have eight.
        unsafe fn gather(values: *const Self, places: __m256i) -> __m512i;
    }

    /// Numbers that distances are added to.
    pub trait Sums: Copy {
        /// The sums of eight distances, modulo two to the power of the width.
        ///
        /// # Safety
        /// The processor must have [`crate::Level::Avx512`].
        unsafe fn put(self, distances: __m512i, to: &mut [MaybeUninit<Self>; 8]);
    }

    macro_rules! lanes {
        ($t:ty, $signed:ty, $lanes:literal, $set:ident, $sub:ident, $le:ident, $eight:expr, $gather:expr) => {
            impl Lanes for $t {
                #[inline]
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt"
                )]
                unsafe fn inside(values: &[$t; 64], low: $t, span: $t) -> u64 {
                    let (low, span) = ($set(low as $signed), $set(span as $signed));
                    let mut word = 0;
                    for (at, some) in values.as_chunks::<$lanes>().0.iter().enumerate() {
                        // SAFETY: a chunk has 64 bytes, as many as the register.
                        let values = unsafe { _mm512_loadu_si512(some.as_ptr().cast()) };
                        word |= u64::from($le($sub(values, low), span)) << (at * $lanes);
                    }
                    word
                }

                #[inline]
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt"
                )]
                unsafe fn eight(values: *const $t) -> __m512i {
                    // SAFETY: it reads eight values, which the caller says are there.
                    unsafe { $eight(values.cast()) }
                }

                #[inline]
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt"
                )]
                unsafe fn gather(values: *const $t, places: __m256i) -> __m512i {
                    // SAFETY: it reads four bytes from each place on (eight of 64-bit values), which
                    // the caller says are there.
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

    macro_rules! sums {
        ($($t:ty),*) => {$(
            impl Sums for $t {
                #[inline]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
                unsafe fn put(self, distances: __m512i, to: &mut [MaybeUninit<$t>; 8]) {
                    // SAFETY: both types have 64 bytes, and any bits are eight integers.
                    let distances: [u64; 8] = unsafe { std::mem::transmute(distances) };
                    for (slot, distance) in to.iter_mut().zip(distances) {
                        slot.write(self.wrapping_add(distance as $t));
                    }
                }
            }
        )*};
    }
    sums!(i8, i16, i32, i64, i128, u8, u16, u32, u64);
}
