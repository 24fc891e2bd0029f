//! Blocks of 64 bytes as masks with a bit for each byte: where marks stand, and what is within strings.

use algebra::bytes::equal;

pub(crate) use algebra::bytes::BLOCK;

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
    /// The brackets `open` and `close` of the next block. It begins at byte `skip` of `block`; only the last block is shorter than others.
    pub fn next(&mut self, block: &[u8; BLOCK], skip: usize, open: u8, close: u8) -> Marks {
        let masks = equal(block, [b'"', b'\\', open, close]);
        let [quotes, backslashes, open, close] = masks.map(|mask| mask >> skip);
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
                let mut block = [b'"'; BLOCK];
                let skip = BLOCK - chunk.len();
                block[skip..].copy_from_slice(chunk);
                blocks.next(&block, skip, open, close)
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
    }
}
