//! What is drawn: numbers at the edges of their types, and mutations of bytes.

use std::ops::Range;

/// Numbers that comparisons and sums are wrong about.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];
/// The longest piece that a mutation adds.
const PIECE: usize = 600;

/// One case: random numbers that follow from its seed.
#[derive(Debug, Clone)]
pub struct Draw(fastrand::Rng);

impl Draw {
    /// The case of this seed.
    pub fn new(seed: u64) -> Draw {
        Draw(fastrand::Rng::with_seed(seed))
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit.max(1))
    }

    /// Whether this is one of `of` cases.
    pub fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    /// One of these.
    ///
    /// # Panics
    /// If there are none.
    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A number of 64 bits: often at the edge of a type, or near one, often small.
    pub fn number(&mut self) -> u64 {
        let edge = *self.one_of(&EDGES);
        match self.below(5) {
            0 => edge,
            1 => edge.wrapping_add(self.0.u64(..9)).wrapping_sub(4),
            2 => self.0.u64(..70),
            3 => self.0.u64(..) >> self.below(64),
            _ => 64 * self.0.u64(..2000),
        }
    }

    /// As many bytes: noise, or one byte again and again.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        if self.one_in(2) {
            return vec![self.0.u8(..); length];
        }
        std::iter::repeat_with(|| self.0.u8(..))
            .take(length)
            .collect()
    }

    /// Changes bytes in their places, the length stays: one to four times a bit, a byte, a number, or a piece that is
    /// copied from elsewhere or filled.
    pub fn disturb(&mut self, bytes: &mut [u8]) {
        for _ in 0..1 + self.below(4) {
            if bytes.is_empty() {
                return;
            }
            match self.below(6) {
                0 => bytes[self.below(bytes.len())] ^= 1 << self.below(8),
                1 => bytes[self.below(bytes.len())] = self.0.u8(..),
                2 | 3 => self.set_number(bytes),
                4 => {
                    let from = self.part(bytes.len());
                    let to = self.below(bytes.len() - from.len() + 1);
                    bytes.copy_within(from, to);
                }
                _ => {
                    let part = self.part(bytes.len());
                    let fill = *self.one_of(&[0, 0xff]);
                    bytes[part].fill(fill);
                }
            }
        }
    }

    /// As [`disturb`](Draw::disturb), and now and then bytes are taken away, added, or said twice.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(3) {
            match self.below(8) {
                0 => bytes.truncate(self.below(bytes.len() + 1)),
                1 => {
                    let part = self.part(bytes.len());
                    bytes.drain(part);
                }
                2 => {
                    let (at, length) = (self.below(bytes.len() + 1), self.below(PIECE));
                    let piece = self.bytes(length);
                    bytes.splice(at..at, piece);
                }
                3 => {
                    let mut part = self.part(bytes.len());
                    part.end = part.end.min(part.start + PIECE);
                    let piece = bytes[part.clone()].to_vec();
                    bytes.splice(part.end..part.end, piece);
                }
                _ => self.disturb(bytes),
            }
        }
    }

    /// Writes a number of 1, 2, 4 or 8 bytes over others, or adds a little to one that is there; half of the time at a
    /// multiple of its length.
    fn set_number(&mut self, bytes: &mut [u8]) {
        let width = (1 << self.below(4)).min(bytes.len());
        let mut at = self.below(bytes.len() - width + 1);
        if self.one_in(2) {
            at -= at % width;
        }
        let place = &mut bytes[at..at + width];
        let mut number = [0; 8];
        number[..width].copy_from_slice(place);
        let number = if self.one_in(3) {
            let by = self.0.u64(..9);
            u64::from_le_bytes(number).wrapping_add(by).wrapping_sub(4)
        } else {
            self.number()
        };
        place.copy_from_slice(&number.to_le_bytes()[..width]);
    }

    /// A part of `length` bytes, mostly a short one.
    fn part(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        let most = *self.one_of(&[8, 64, usize::MAX]);
        start..start + self.below((length - start + 1).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_case_and_others_differ() {
        let case = |seed| {
            let mut draw = Draw::new(seed);
            let mut bytes = draw.bytes(100);
            draw.mutate(&mut bytes);
            (bytes, draw.number())
        };
        assert_eq!(case(7), case(7));
        let distinct: std::collections::BTreeSet<_> = (0..200).map(case).collect();
        assert!(distinct.len() > 190);
    }

    #[test]
    fn bytes_of_any_length_are_changed_in_every_way() {
        let (mut shorter, mut longer, mut same) = (0, 0, 0);
        for seed in 0..3000 {
            let mut draw = Draw::new(seed);
            let length = draw.below(40);
            let before = vec![7; length];
            let mut bytes = before.clone();
            draw.disturb(&mut bytes);
            assert_eq!(bytes.len(), length, "the length stays");
            draw.mutate(&mut bytes);
            shorter += usize::from(bytes.len() < length);
            longer += usize::from(bytes.len() > length);
            same += usize::from(bytes == before);
        }
        assert!(
            shorter > 300 && longer > 300 && same < 1500,
            "{shorter} {longer} {same}"
        );
    }
}
