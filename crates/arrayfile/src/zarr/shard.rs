//! Shards: chunks that hold chunks, with an index of where these lie.

use array::Region;

use crate::copy::{boxes, copy_common, turned};
use crate::zarr::codec::{Codec, unpack};

/// Bytes of an entry of the index: where an inner chunk lies, and its length.
const ENTRY: usize = 16;

/// What the entry of an inner chunk has that was never written.
const NOWHERE: u64 = u64::MAX;

/// How the chunks within a chunk lie.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shards {
    /// The cells of an inner chunk along each dimension.
    pub chunk: Vec<u64>,
    /// The dimensions as they lie in an inner chunk, the outermost first.
    pub order: Vec<usize>,
    /// In the order in which inner chunks were packed.
    pub codecs: Vec<Codec>,
    pub index: Index,
}

/// How the index is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Index {
    pub big_endian: bool,
    /// Whether a checksum follows it.
    pub checked: bool,
    /// Whether it stands before the chunks, and not behind them.
    pub first: bool,
}

impl Shards {
    /// How many inner chunks there are along each dimension of a chunk of this shape.
    fn counts(&self, shard: &[u64]) -> Vec<u64> {
        let lengths = shard.iter().zip(&self.chunk);
        lengths.map(|(of, by)| of / (*by).max(1)).collect()
    }

    /// Bytes of the index of a chunk of this shape, and what lies around the chunks.
    pub fn index_bytes(&self, shard: &[u64]) -> usize {
        let count: u64 = self.counts(shard).iter().product();
        usize::try_from(count)
            .unwrap_or(usize::MAX)
            .saturating_mul(ENTRY)
            .saturating_add(if self.index.checked { 4 } else { 0 })
    }

    /// Checks that whole inner chunks make up a chunk of this shape.
    ///
    /// # Errors
    /// That they do not, in words.
    pub fn check(&self, shard: &[u64]) -> Result<(), String> {
        let fits = self.chunk.len() == shard.len()
            && !self.chunk.contains(&0)
            && shard.iter().zip(&self.chunk).all(|(of, by)| of % by == 0);
        if fits {
            return Ok(());
        }
        let chunk = &self.chunk;
        Err(format!(
            "its shards of {shard:?} cells are not made up of chunks of {chunk:?}"
        ))
    }

    /// The values of a shard in row-major order, in the order of bytes that they have in the file. `fill` is a cell that
    /// was not written.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn values(&self, bytes: &[u8], shard: &[u64], fill: &[u8]) -> Result<Vec<u8>, String> {
        let index = self.read_index(bytes, shard)?;
        let width = fill.len();
        let cells: u64 = shard.iter().product();
        let mut values = fill.repeat(usize::try_from(cells).unwrap_or_default());
        let whole = Region::of_shape(shard);
        let inner: u64 = self.chunk.iter().product();
        let expected = usize::try_from(inner)
            .unwrap_or(usize::MAX)
            .saturating_mul(width);
        for (region, (start, length)) in boxes(shard, &self.chunk).zip(index) {
            if (start, length) == (NOWHERE, NOWHERE) {
                continue;
            }
            let place = usize::try_from(start)
                .ok()
                .zip(usize::try_from(length).ok());
            let packed = place
                .and_then(|(start, length)| bytes.get(start..start.checked_add(length)?))
                .ok_or("has an inner chunk that lies outside of it")?;
            let cells = unpack(packed.to_vec(), &self.codecs, expected)?;
            let cells = turned(cells, &self.chunk, &self.order, width);
            copy_common(width, (&region, &cells), (&whole, &mut values));
        }
        Ok(values)
    }

    /// Where the inner chunks lie, in row-major order.
    fn read_index(&self, bytes: &[u8], shard: &[u64]) -> Result<Vec<(u64, u64)>, String> {
        let length = self.index_bytes(shard);
        let cut = || "is too short for the index of its chunks".to_owned();
        let rest = bytes.len().checked_sub(length).ok_or_else(cut)?;
        let index = if self.index.first {
            &bytes[..length]
        } else {
            &bytes[rest..]
        };
        let (entries, sum) = index.split_at(index.len() - if self.index.checked { 4 } else { 0 });
        if self.index.checked && crc32c::crc32c(entries).to_le_bytes() != sum {
            return Err("has an index of its chunks that does not have its checksum".to_owned());
        }
        let number = |bytes: &[u8]| {
            let bytes = bytes.first_chunk::<8>().copied().unwrap_or_default();
            if self.index.big_endian {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            }
        };
        let entries = entries.chunks_exact(ENTRY);
        Ok(entries
            .map(|entry| (number(&entry[..8]), number(&entry[8..])))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(first: bool) -> Shards {
        Shards {
            chunk: vec![1, 2],
            order: vec![0, 1],
            codecs: vec![],
            index: Index {
                big_endian: false,
                checked: true,
                first,
            },
        }
    }

    /// A shard of 2 by 2 cells, of which only the second row was written.
    fn shard(first: bool) -> Vec<u8> {
        let start = if first { 36u64 } else { 0 };
        let mut index = Vec::new();
        for number in [u64::MAX, u64::MAX, start, 2] {
            index.extend(number.to_le_bytes());
        }
        index.extend(crc32c::crc32c(&index).to_le_bytes());
        if first {
            [index, vec![3, 4]].concat()
        } else {
            [vec![3, 4], index].concat()
        }
    }

    #[test]
    fn inner_chunks_are_found_by_the_index() {
        for first in [false, true] {
            let values = shards(first).values(&shard(first), &[2, 2], &[9]);
            assert_eq!(values.unwrap(), [9, 9, 3, 4]);
        }
    }

    #[test]
    fn damaged_shards_are_told() {
        let of = |bytes: &[u8]| shards(false).values(bytes, &[2, 2], &[0]).unwrap_err();
        assert!(of(&shard(false)[..20]).contains("too short"));
        let mut damaged = shard(false);
        damaged[20] ^= 1;
        assert!(of(&damaged).contains("checksum"));
        let far = Shards {
            index: Index {
                checked: false,
                ..shards(false).index
            },
            ..shards(false)
        };
        let mut index = vec![];
        for number in [0, u64::MAX, 7, 2] {
            index.extend(u64::to_le_bytes(number));
        }
        let outside = far.values(&index, &[2, 2], &[0]).unwrap_err();
        assert!(outside.contains("outside"), "{outside}");
        assert!(far.check(&[3, 2]).is_ok() && far.check(&[2, 3]).is_err());
        assert!(far.check(&[2]).is_err());
    }
}
