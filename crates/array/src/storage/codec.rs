//! Compression: values are cut into blocks, the bytes of equal weight in a block brought together, and that compressed.

use std::thread;

use crate::model::schema::Compression;

/// Bytes of values that are compressed by themselves: the least that is decompressed to read a value. What the second-level
/// cache holds twice.
pub(crate) const BLOCK: usize = 256 << 10;

/// The blocks of `bytes`, each in compressed form, or its own bytes where they would not become fewer. They are shared by up
/// to `threads` threads, of which the caller is one.
pub(crate) fn pack(
    compression: Compression,
    threads: usize,
    width: usize,
    bytes: &[u8],
) -> Vec<Vec<u8>> {
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    let each = blocks.len().div_ceil(threads.max(1)).max(1);
    let pack = |blocks: &[&[u8]]| {
        let mut packer = Packer::new(compression);
        let packed = blocks.iter().map(|block| packer.pack(width, block));
        packed.collect::<Vec<_>>()
    };
    let mut shares = blocks.chunks(each);
    let own = shares.next().unwrap_or_default();
    thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(|| pack(share))).collect();
        let mut packed = pack(own);
        for other in others {
            match other.join() {
                Ok(more) => packed.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        packed
    })
}

/// What a thread keeps from block to block: the tables of the compressor, which take longer to make than a short block to
/// compress.
struct Packer {
    compression: Compression,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Packer {
    fn new(compression: Compression) -> Packer {
        let zstd = match compression {
            Compression::Zstd(level) => zstd::bulk::Compressor::new(level).ok(),
            _ => None,
        };
        Packer { compression, zstd }
    }

    fn pack(&mut self, width: usize, block: &[u8]) -> Vec<u8> {
        let packed = match self.compression {
            Compression::None => None,
            Compression::Zstd(_) => {
                let zstd = self.zstd.as_mut();
                zstd.and_then(|zstd| zstd.compress(&shuffle(width, block)).ok())
            }
            Compression::Lz4 => Some(lz4_flex::block::compress(&shuffle(width, block))),
        };
        let fewer = packed.filter(|packed| packed.len() < block.len());
        fewer.unwrap_or_else(|| block.to_vec())
    }
}

/// The bytes of a block of `length` bytes that was packed; `None` if it does not decode to as many.
pub(crate) fn unpack(
    compression: Compression,
    width: usize,
    packed: &[u8],
    length: usize,
) -> Option<Vec<u8>> {
    if packed.len() == length {
        return Some(packed.to_vec());
    }
    let mut shuffled = vec![0; length];
    let count = match compression {
        Compression::None => return None,
        Compression::Zstd(_) => zstd::bulk::decompress_to_buffer(packed, &mut shuffled).ok()?,
        Compression::Lz4 => lz4_flex::block::decompress_into(packed, &mut shuffled).ok()?,
    };
    (count == length).then(|| unshuffle(width, &shuffled))
}

/// The first bytes of all values, then the second ones and so on.
fn shuffle(width: usize, bytes: &[u8]) -> Vec<u8> {
    if width == 1 {
        return bytes.to_vec();
    }
    let count = bytes.len() / width;
    let mut out = vec![0; bytes.len()];
    // Values of eight bytes, eight at a time; what is left, and others, byte by byte.
    let done = if width == 8 { count / 8 * 8 } else { 0 };
    for (at, eight) in bytes[..done * 8].as_chunks::<64>().0.iter().enumerate() {
        let words = transpose(words(eight));
        for (weight, word) in words.iter().enumerate() {
            out[weight * count + at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
    }
    for (weight, part) in out.chunks_mut(count.max(1)).enumerate() {
        let of = bytes.iter().skip(done * width + weight).step_by(width);
        let to = part.iter_mut().skip(done);
        to.zip(of).for_each(|(to, from)| *to = *from);
    }
    out
}

/// What [`shuffle`] had got.
fn unshuffle(width: usize, bytes: &[u8]) -> Vec<u8> {
    if width == 1 {
        return bytes.to_vec();
    }
    let count = bytes.len() / width;
    let mut out = vec![0; bytes.len()];
    let done = if width == 8 { count / 8 * 8 } else { 0 };
    for (at, eight) in out[..done * 8]
        .as_chunks_mut::<64>()
        .0
        .iter_mut()
        .enumerate()
    {
        let mut words = [0; 8];
        for (weight, word) in words.iter_mut().enumerate() {
            if let Some(bytes) = bytes[weight * count + at * 8..].first_chunk() {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        for (to, word) in eight.as_chunks_mut().0.iter_mut().zip(transpose(words)) {
            *to = word.to_le_bytes();
        }
    }
    for (weight, part) in bytes.chunks(count.max(1)).enumerate() {
        let to = out.iter_mut().skip(done * width + weight).step_by(width);
        to.zip(part.iter().skip(done))
            .for_each(|(to, from)| *to = *from);
    }
    out
}

/// Eight words of little-endian bytes.
fn words(bytes: &[u8; 64]) -> [u64; 8] {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Byte `j` of word `i` becomes byte `i` of word `j`: blocks of four bytes change places, then of two, then of one.
fn transpose(mut words: [u64; 8]) -> [u64; 8] {
    for (apart, mask) in [
        (4, 0xffff_ffff),
        (2, 0xffff_0000_ffff),
        (1, 0xff_00ff_00ff_00ff),
    ] {
        for at in (0..8).filter(|at| at & apart == 0) {
            let moved = ((words[at] >> (8 * apart)) ^ words[at + apart]) & mask;
            words[at + apart] ^= moved;
            words[at] ^= moved << (8 * apart);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            values in prop::collection::vec(prop_oneof![3 => 0..9u64, 1 => any::<u64>()], 0..900),
            width in prop::sample::select(vec![1usize, 2, 4, 8]),
            how in prop::sample::select(vec![Compression::Zstd(1), Compression::Lz4, Compression::None]),
            threads in 0..4usize,
        ) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let packed = pack(how, threads, width, &bytes).concat();
            prop_assert!(packed.len() <= bytes.len());
            prop_assert_eq!(unpack(how, width, &packed, bytes.len()), Some(bytes.clone()));
            // The form on disk: all first bytes, all second ones and so on.
            let shuffled = shuffle(width, &bytes);
            let count = bytes.len() / width;
            let at = |at: usize| shuffled[at % width * count + at / width];
            prop_assert!((0..bytes.len()).all(|byte| at(byte) == bytes[byte]));
        }

        #[test]
        fn what_was_not_packed_is_no_panic(bytes: Vec<u8>, length in 0..4000usize) {
            for how in [Compression::Zstd(1), Compression::Lz4, Compression::None] {
                let _ = unpack(how, 8, &bytes, length);
            }
        }
    }

    #[test]
    fn smooth_values_become_few_bytes() {
        let values: Vec<u8> = (0..20_000u64).flat_map(u64::to_le_bytes).collect();
        let packed = |how| pack(how, 1, 8, &values).concat().len();
        assert!(packed(Compression::Zstd(1)) < values.len() / 8);
        assert!(packed(Compression::Lz4) < values.len() / 4);
    }

    #[test]
    fn blocks_are_packed_in_order() {
        let values: Vec<u8> = (0..200_000u64).flat_map(u64::to_le_bytes).collect();
        for threads in [1, 2, 3, 100] {
            let packed = pack(Compression::Lz4, threads, 8, &values);
            assert_eq!(packed.len(), values.len().div_ceil(BLOCK));
            for (packed, block) in packed.iter().zip(values.chunks(BLOCK)) {
                let found = unpack(Compression::Lz4, 8, packed, block.len());
                assert!(found.as_deref() == Some(block), "a block comes back");
            }
        }
    }
}
