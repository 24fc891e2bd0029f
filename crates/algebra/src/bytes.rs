//! Bytes of a text, 64 at a time, as masks with a bit for each.

/// How many bytes a block has.
pub const BLOCK: usize = 64;

/// For each of `wanted` the bytes of the block that it is equal to.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn equal<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> [u64; N] {
    // SAFETY: all processors of this architecture have SSE2.
    unsafe { by_vectors(block, wanted) }
}

/// [`equal`] by vectors of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn by_vectors<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> [u64; N] {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let mut all = [0; N];
    let (vectors, _) = block.as_chunks::<16>();
    for (place, vector) in vectors.iter().enumerate() {
        let bits = u128::from_le_bytes(*vector);
        let own = _mm_set_epi64x((bits >> 64) as i64, bits as i64);
        for (mask, byte) in all.iter_mut().zip(wanted) {
            let same = _mm_cmpeq_epi8(own, _mm_set1_epi8(byte as i8));
            *mask |= u64::from(_mm_movemask_epi8(same) as u16) << (16 * place);
        }
    }
    all
}

/// For each of `wanted` the bytes of the block that it is equal to.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn equal<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> [u64; N] {
    by_words(block, wanted)
}

/// [`equal`] by words of 8 bytes, for other processors.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn by_words<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> [u64; N] {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // Brings the first bit of each byte together, that of the first byte to the lowest place.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut all = [0; N];
    let (words, _) = block.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        for (mask, byte) in all.iter_mut().zip(wanted) {
            let differs = word ^ u64::from_le_bytes([byte; 8]);
            // The highest bit of each byte that is zero.
            let zeros = !(((differs & LOW) + LOW) | differs | LOW);
            *mask |= ((zeros >> 7).wrapping_mul(GATHER) >> 56) << (8 * place);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_bytes_have_bits(block in prop::collection::vec(any::<u8>(), BLOCK), byte in any::<u8>(), at in 0usize..BLOCK) {
            let mut own: [u8; BLOCK] = block.try_into().unwrap();
            own[at] = byte;
            let wanted = [byte, byte ^ 1, byte.wrapping_add(0x80)];
            let bit = |byte: u8| (0..BLOCK).filter(|at| own[*at] == byte).fold(0u64, |all, at| all | 1u64 << at);
            let naive: [u64; 3] = wanted.map(bit);
            prop_assert_eq!(equal(&own, wanted), naive);
            prop_assert_eq!(by_words(&own, wanted), naive);
        }
    }
}
