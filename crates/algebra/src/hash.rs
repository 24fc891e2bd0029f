//! Hashes of keys, 64 bits that each depend on every bit of the key and of the seed.
//!
//! Not cryptographic: who knows the seed can make keys that collide. What is built on them stays
//! correct then, and [`crate::krao::Groups`] also stays fast.

use crate::fill;
use crate::level::dispatched;

/// 2^64 divided by the golden ratio: odd, without a pattern of bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of 64-bit words where each bit of the result depends on all of the input: two
/// rounds of multiplication and shift, with the multipliers that Stafford found ("Mix13").
#[inline(always)]
pub(crate) fn mix(mut word: u64) -> u64 {
    word ^= word >> 30;
    word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^= word >> 27;
    word = word.wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Both halves of the product of 64-bit words, folded into one.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

dispatched! {
    /// `out[i]`: the hash of `values[i]`.
    pub fn hash_u64(values: &[u64], seed: u64, out: &mut Vec<u64>) {
        let seed = seed.wrapping_add(GOLDEN);
        fill::map(values, out, |v| mix(v ^ seed));
    }

    /// Adds a column to the hashes of others: `into[i]`, the hash of the columns before, becomes the
    /// hash of these and `values[i]`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn combine_u64(values: &[u64], into: &mut [u64]) {
        assert_eq!(values.len(), into.len(), "two inputs of different lengths");
        for (hash, v) in into.iter_mut().zip(values) {
            *hash = mix(hash.wrapping_add(GOLDEN) ^ v);
        }
    }
}

/// The hash of a word of 128 bits.
#[inline]
pub fn hash_u128(word: u128, seed: u64) -> u64 {
    let low = mix(seed.wrapping_add(GOLDEN) ^ word as u64);
    mix(low.wrapping_add(GOLDEN) ^ (word >> 64) as u64)
}

/// The hash of a text.
pub fn hash_bytes(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = mix(seed.wrapping_add(GOLDEN) ^ bytes.len() as u64);
    for pair in bytes.as_chunks::<16>().0 {
        let pair = u128::from_le_bytes(*pair);
        hash = fold(
            pair as u64 ^ hash,
            (pair >> 64) as u64 ^ GOLDEN.rotate_left(32),
        ) ^ mul(hash);
    }
    let (low, high) = ends(bytes);
    mix(fold(low ^ hash, high ^ GOLDEN) ^ mul(hash))
}

/// The last 16 bytes, or all there are: with the length they tell which. Words overlap, as loads of a length that is
/// known take less than a copy of one that is not.
#[inline(always)]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let Some(last) = bytes.last_chunk::<16>() {
        let last = u128::from_le_bytes(*last);
        return (last as u64, (last >> 64) as u64);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let word = |four: [u8; 4]| u64::from(u32::from_le_bytes(four));
        return (word(*first), word(*last));
    }
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u64::from(*byte));
    (byte(0) | byte(1) << 8 | byte(2) << 16, 0)
}

/// Keeps a factor of zero in [`fold`] from forgetting what was hashed before.
#[inline(always)]
fn mul(hash: u64) -> u64 {
    hash.wrapping_mul(GOLDEN)
}
