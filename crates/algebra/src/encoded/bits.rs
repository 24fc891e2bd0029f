//! Tests of stored values, one bit per row, and the positions of the bits that are set.

use super::value::Stored;
#[cfg(target_arch = "x86_64")]
use crate::level::Level;
use crate::level::{dispatched, level};

/// Sets bit `i` of `into` where `low <= values[i] <= low + span`; leaves the others. Rows that
/// `into` has no word for are not looked at.
pub fn in_range<T: Stored>(values: &[T], low: T, span: T, into: &mut [u64]) {
    match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `level` is at most what was detected.
        Level::Avx512 => unsafe { avx512::in_range(values, low, span, into) },
        _ => in_range_narrow(values, low, span, into),
    }
}

dispatched! {
    fn in_range_narrow<T: Stored>(values: &[T], low: T, span: T, into: &mut [u64]) {
        let (whole, rest) = values.as_chunks::<64>();
        for (word, values) in into.iter_mut().zip(whole) {
            let mut inside = [0u8; 64];
            for (flag, value) in inside.iter_mut().zip(values) {
                *flag = u8::from(value.minus(low) <= span);
            }
            *word |= pack(&inside);
        }
        in_range_rest(rest, low, span, into.get_mut(whole.len()));
    }
}

/// The same of fewer than 64 values, whose word is `word`.
#[inline(always)]
fn in_range_rest<T: Stored>(values: &[T], low: T, span: T, word: Option<&mut u64>) {
    if let Some(word) = word {
        for (bit, value) in values.iter().enumerate() {
            *word |= u64::from(value.minus(low) <= span) << bit;
        }
    }
}

/// 64 flags of 0 or 1 into a word, the first in bit 0.
#[inline(always)]
fn pack(flags: &[u8; 64]) -> u64 {
    let mut word = 0;
    for (byte, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication moves flag i from bit 8 * i to bit 56 + i.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (8 * byte);
    }
    word
}

/// Sets bit `i` of `into` where `hit(values[i])`; leaves the others. Without branches: hits are as good as random.
#[inline(always)]
pub(crate) fn set_where<T: Stored>(values: &[T], into: &mut [u64], hit: impl Fn(T) -> bool) {
    let (whole, rest) = values.as_chunks::<64>();
    for (word, values) in into.iter_mut().zip(whole) {
        let mut hits = [0u8; 64];
        for (flag, value) in hits.iter_mut().zip(values) {
            *flag = u8::from(hit(*value));
        }
        *word |= pack(&hits);
    }
    if let Some(word) = into.get_mut(whole.len()) {
        for (bit, value) in rest.iter().enumerate() {
            *word |= u64::from(hit(*value)) << bit;
        }
    }
}

dispatched! {
    /// Sets bit `i` of `into` where `table[codes[i]]`; leaves the others. Codes outside the table
    /// are not in it.
    pub fn in_table<T: Stored>(codes: &[T], table: &[bool], into: &mut [u64]) {
        for (word, codes) in into.iter_mut().zip(codes.chunks(64)) {
            for (bit, code) in codes.iter().enumerate() {
                let hit = table.get(code.wide() as usize).copied().unwrap_or(false);
                *word |= u64::from(hit) << bit;
            }
        }
    }
}

/// Bits of a word from which on all of it is best looked at together; of fewer, one after the other.
#[cfg(target_arch = "x86_64")]
const MANY: usize = 7;

/// Appends the positions of the bits that are set, ascending; bit 0 of the first word is position 0.
pub fn positions(words: &[u64], out: &mut Vec<u32>) {
    let bits: usize = words.iter().map(|word| word.count_ones() as usize).sum();
    match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `level` is at most what was detected, and `bits` is how many are set.
        Level::Avx512 if bits >= MANY * words.len() => unsafe {
            avx512::positions(words, bits, out);
        },
        _ => {
            out.reserve(bits);
            positions_narrow(words, out);
        }
    }
}

fn positions_narrow(words: &[u64], out: &mut Vec<u32>) {
    for (index, word) in words.iter().enumerate() {
        let (mut word, first) = (*word, (index * 64) as u32);
        while word != 0 {
            out.push(first + word.trailing_zeros());
            word &= word - 1;
        }
    }
}

/// By hand, as the compiler does not find these: comparing into bits without bytes between takes an
/// eighth of the time of its loops for values of two bytes, a fifth for others.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::Stored;

    /// [`super::in_range`].
    ///
    /// # Safety
    /// The processor must have [`crate::Level::Avx512`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn in_range<T: Stored>(values: &[T], low: T, span: T, into: &mut [u64]) {
        let (whole, rest) = values.as_chunks::<64>();
        for (word, values) in into.iter_mut().zip(whole) {
            // SAFETY: the caller says that the processor has the features.
            *word |= unsafe { T::inside(values, low, span) };
        }
        super::in_range_rest(rest, low, span, into.get_mut(whole.len()));
    }

    /// The positions of the bits that are set, appended to `out`.
    ///
    /// # Safety
    /// The processor must have [`crate::Level::Avx512`]; `bits` must be how many are set.
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
                // SAFETY: `next` has moved by one for each bit seen, so by at most `bits`, and there
                // is room for 16 more than that.
                unsafe {
                    _mm512_storeu_si512(next.cast(), some);
                    next = next.add(mask.count_ones() as usize);
                }
            }
        }
        // SAFETY: `next` moved over `bits` positions, all of which were written.
        unsafe { out.set_len(out.len() + bits) };
    }
}
