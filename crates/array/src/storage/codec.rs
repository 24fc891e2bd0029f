//! Compression: values are cut into blocks, the bytes of equal weight in a block brought together, and that compressed.

use crate::model::schema::Compression;

/// Bytes of values that are compressed by themselves: the least that is decompressed to read a value. What the second-level
/// cache holds twice.
pub(crate) const BLOCK: usize = 256 << 10;

/// A block in compressed form; its own bytes where they would not become fewer.
pub(crate) fn pack(compression: Compression, width: usize, block: &[u8]) -> Vec<u8> {
    let shuffled = shuffle(width, block);
    let packed = match compression {
        Compression::None => None,
        Compression::Zstd(level) => zstd::bulk::compress(&shuffled, level).ok(),
        Compression::Lz4 => Some(lz4_flex::block::compress(&shuffled)),
    };
    let fewer = packed.filter(|packed| packed.len() < block.len());
    fewer.unwrap_or_else(|| block.to_vec())
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
    for (weight, part) in out.chunks_mut(count.max(1)).enumerate() {
        let of = bytes[weight..].iter().step_by(width);
        part.iter_mut().zip(of).for_each(|(to, from)| *to = *from);
    }
    out
}

fn unshuffle(width: usize, bytes: &[u8]) -> Vec<u8> {
    if width == 1 {
        return bytes.to_vec();
    }
    let count = bytes.len() / width;
    let mut out = vec![0; bytes.len()];
    for (weight, part) in bytes.chunks(count.max(1)).enumerate() {
        let to = out[weight..].iter_mut().step_by(width);
        to.zip(part).for_each(|(to, from)| *to = *from);
    }
    out
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
        ) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let packed = pack(how, width, &bytes);
            prop_assert!(packed.len() <= bytes.len());
            prop_assert_eq!(unpack(how, width, &packed, bytes.len()), Some(bytes));
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
        assert!(pack(Compression::Zstd(1), 8, &values).len() < values.len() / 8);
        assert!(pack(Compression::Lz4, 8, &values).len() < values.len() / 4);
    }
}
