//! Blocks of 64 bytes as masks with a bit for each byte: where marks stand, and what is within strings.

/// How many bytes a block has.
pub(crate) const BLOCK: usize = 64;

/// The marks of a block of JSON that stand outside of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub open: u64,
    pub close: u64,
}

/// Takes one block after another of what begins outside of a string.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// All ones if the next block begins within a string.
    within: u64,
    /// 1 if the first byte of the next block is escaped.
    escaped: u64,
}

impl Blocks {
    /// The brackets `open` and `close` of the next block.
    pub fn next(&mut self, block: &[u8; BLOCK], open: u8, close: u8) -> Marks {
        let [quotes, backslashes, open, close] = equal(block, [b'"', b'\\', open, close]);
        let quotes = if backslashes | self.escaped == 0 {
            quotes
        } else {
            quotes & !self.escapes(backslashes)
        };
        // Ones from each opening quote to before its closing one.
        let within = parity(quotes) ^ self.within;
        self.within = ((within as i64) >> 63) as u64;
        Marks {
            open: open & !within,
            close: close & !within,
        }
    }

    /// The bytes that are escaped: those behind runs of an odd number of backslashes. A run that begins at an even place ends at
    /// an odd one if its length is odd, and is found by the carry of an addition.
    fn escapes(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        let backslashes = backslashes & !self.escaped;
        let follows = backslashes << 1 | self.escaped;
        let odd_starts = backslashes & !EVEN & !follows;
        let (runs, carry) = odd_starts.overflowing_add(backslashes);
        self.escaped = u64::from(carry);
        (EVEN ^ (runs << 1)) & follows
    }
}

/// For each bit whether there is an odd number of ones up to it, with it.
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// For each of `wanted` the bytes of the block that it is equal to.
#[cfg(target_arch = "x86_64")]
#[inline]
fn equal<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> [u64; N] {
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
fn equal<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> [u64; N] {
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

    /// The marks of bytes, one after the other.
    fn plain(text: &[u8], open: u8, close: u8) -> Vec<Marks> {
        let (mut quoted, mut escaped) = (false, false);
        let mut all = Vec::new();
        for block in text.chunks(BLOCK) {
            let mut marks = Marks { open: 0, close: 0 };
            for (place, byte) in block.iter().enumerate() {
                let is_escaped = std::mem::take(&mut escaped);
                match byte {
                    b'"' if !is_escaped => quoted = !quoted,
                    b'\\' => escaped = !is_escaped,
                    _ if quoted => {}
                    own if *own == open => marks.open |= 1 << place,
                    own if *own == close => marks.close |= 1 << place,
                    _ => {}
                }
            }
            all.push(marks);
        }
        all
    }

    fn by_blocks(text: &[u8], open: u8, close: u8) -> Vec<Marks> {
        let mut blocks = Blocks::default();
        text.chunks(BLOCK)
            .map(|chunk| {
                let mut block = [0; BLOCK];
                block[..chunk.len()].copy_from_slice(chunk);
                blocks.next(&block, open, close)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn marks_are_those_of_bytes(text in "[\\[\\]{}\"\\\\ab]{0,300}") {
            for (open, close) in [(b'{', b'}'), (b'[', b']')] {
                prop_assert_eq!(by_blocks(text.as_bytes(), open, close), plain(text.as_bytes(), open, close));
            }
        }

        #[test]
        fn runs_of_backslashes_cross_blocks(before in 50usize..70, count in 0usize..140, rest in "[\"{}]{0,30}") {
            let text = format!("\"{}{}{rest}", "a".repeat(before), "\\".repeat(count));
            prop_assert_eq!(by_blocks(text.as_bytes(), b'{', b'}'), plain(text.as_bytes(), b'{', b'}'));
        }

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
