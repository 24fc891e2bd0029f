//! How chunks are packed: the filters that they went through.

use std::io::Read;

/// A filter of a data set's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filter {
    /// Its number in the list that the HDF Group keeps.
    pub id: u16,
    /// The first of its settings.
    pub first: Option<u32>,
}

const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER: u16 = 3;
const LZF: u16 = 32000;
const ZSTD: u16 = 32015;

impl Filter {
    /// Whether it can be undone.
    ///
    /// # Errors
    /// What it is called, in words, if not.
    pub fn check(self) -> Result<(), String> {
        let name = match self.id {
            DEFLATE | SHUFFLE | FLETCHER | LZF | ZSTD => return Ok(()),
            4 => "szip",
            5 => "n-bit",
            6 => "scale-offset",
            32001 => "blosc",
            32004 => "lz4",
            32008 => "bitshuffle",
            32013 => "zfp",
            32026 => "blosc2",
            other => return Err(refused(&format!("filter {other}"))),
        };
        Err(refused(name))
    }
}

fn refused(name: &str) -> String {
    format!(
        "its chunks are packed with {name}, which is not read; write it with gzip, zstd or none (h5repack -f GZIP=4)"
    )
}

/// The most bytes that a chunk can have in any step of its packing, if it has `bytes` unpacked.
pub(super) fn most(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 8).saturating_add(4096)
}

/// Unpacks a chunk of values of `width` bytes that is to have `expected` bytes. `skipped` has a bit for each filter that it
/// did not go through.
///
/// # Errors
/// What is wrong, in words. However much the bytes would unpack to, not much more than `expected` is allocated.
pub(super) fn unpack(
    mut bytes: Vec<u8>,
    (filters, skipped): (&[Filter], u32),
    width: usize,
    expected: usize,
) -> Result<Vec<u8>, String> {
    let limit = most(expected);
    for (at, filter) in filters.iter().enumerate().rev() {
        if at < 32 && skipped >> at & 1 == 1 {
            continue;
        }
        bytes = match filter.id {
            DEFLATE => inflate(&bytes, limit)?,
            SHUFFLE => unshuffle(&bytes, filter.first.map_or(width, |of| of as usize)),
            FLETCHER => checked(bytes)?,
            LZF => unlzf(&bytes, limit)?,
            ZSTD => zstd::bulk::decompress(&bytes, limit)
                .map_err(|error| format!("cannot be unpacked as zstd ({error})"))?,
            _ => return filter.check().map(|()| Vec::new()),
        };
    }
    if bytes.len() != expected {
        let got = bytes.len();
        return Err(format!(
            "has {got} bytes of values where {expected} are needed"
        ));
    }
    Ok(bytes)
}

fn inflate(bytes: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let read = flate2::read::ZlibDecoder::new(bytes)
        .take(limit as u64 + 1)
        .read_to_end(&mut unpacked);
    read.map_err(|error| format!("cannot be unpacked as gzip ({error})"))?;
    if unpacked.len() > limit {
        return Err(format!("unpacks to more than {limit} bytes"));
    }
    Ok(unpacked)
}

/// Brings the bytes of equal weight of all values together: what [`unshuffle`] undoes.
pub(super) fn shuffle(bytes: &[u8], width: usize) -> Vec<u8> {
    let lanes = (0..width).flat_map(|weight| bytes.iter().skip(weight).step_by(width));
    lanes.copied().collect()
}

/// Brings the bytes of each value together, which lie with those of equal weight of all values.
fn unshuffle(bytes: &[u8], width: usize) -> Vec<u8> {
    if width < 2 {
        return bytes.to_vec();
    }
    let count = bytes.len() / width;
    let mut values = vec![0; bytes.len()];
    for weight in 0..width.min(bytes.len()) {
        let lane = &bytes[weight * count..(weight + 1) * count];
        for (at, &byte) in lane.iter().enumerate() {
            values[at * width + weight] = byte;
        }
    }
    // What is no whole value lies behind, as it is.
    let whole = count * width;
    values[whole..].copy_from_slice(&bytes[whole..]);
    values
}

/// Takes Fletcher's checksum from the end.
fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let Some(values) = bytes.len().checked_sub(4) else {
        return Err("is too short for its checksum".to_owned());
    };
    let (of, sum) = bytes.split_at(values);
    let sum = u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]);
    let made = fletcher(of);
    // Before 1.6.3 machines whose numbers are little-endian had the bytes of each half the other way around.
    let old = (made & 0x00ff_00ff) << 8 | (made & 0xff00_ff00) >> 8;
    if sum != made && sum != old {
        return Err("does not have its checksum".to_owned());
    }
    bytes.truncate(values);
    Ok(bytes)
}

/// Fletcher's checksum of 32 bits, as HDF5 has it: of numbers of 16 bits, the most significant byte first.
fn fletcher(bytes: &[u8]) -> u32 {
    let (mut one, mut two) = (0u32, 0u32);
    // So many sums stay below 2^32.
    for part in bytes.chunks(720) {
        for pair in part.chunks(2) {
            one += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            two += one;
        }
        one = (one & 0xffff) + (one >> 16);
        two = (two & 0xffff) + (two >> 16);
    }
    one = (one & 0xffff) + (one >> 16);
    two = (two & 0xffff) + (two >> 16);
    two << 16 | one
}

/// Unpacks LZF: runs of bytes, and copies of what came before.
fn unlzf(bytes: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let cut = || "cannot be unpacked as lzf".to_owned();
    let mut unpacked: Vec<u8> = Vec::new();
    let mut rest = bytes;
    let mut next = |count: usize| -> Result<&[u8], String> {
        let (taken, left) = rest.split_at_checked(count).ok_or_else(cut)?;
        rest = left;
        Ok(taken)
    };
    while let Ok(control) = next(1) {
        let control = usize::from(control[0]);
        if control < 32 {
            unpacked.extend(next(control + 1)?);
        } else {
            let mut length = control >> 5;
            if length == 7 {
                length += usize::from(next(1)?[0]);
            }
            let back = ((control & 31) << 8 | usize::from(next(1)?[0])) + 1;
            let from = unpacked.len().checked_sub(back).ok_or_else(cut)?;
            for at in from..from + length + 2 {
                unpacked.push(unpacked[at]);
            }
        }
        if unpacked.len() > limit {
            return Err(format!("unpacks to more than {limit} bytes"));
        }
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(id: u16) -> Filter {
        Filter { id, first: None }
    }

    #[test]
    fn each_filter_is_undone() {
        let shuffled = unpack(vec![1, 2, 3, 4, 5, 6], (&[filter(SHUFFLE)], 0), 2, 6);
        assert_eq!(shuffled.unwrap(), [1, 4, 2, 5, 3, 6]);
        assert_eq!(shuffle(&[1, 4, 2, 5, 3, 6], 2), [1, 2, 3, 4, 5, 6]);
        // Two literals, then five bytes from two before on.
        let lzf = unpack(vec![1, 7, 8, 3 << 5, 1], (&[filter(LZF)], 0), 1, 7);
        assert_eq!(lzf.unwrap(), [7, 8, 7, 8, 7, 8, 7]);
        let mut summed = vec![1, 2, 3];
        summed.extend(fletcher(&[1, 2, 3]).to_le_bytes());
        let sums = [filter(FLETCHER)];
        assert_eq!(unpack(summed.clone(), (&sums, 0), 1, 3).unwrap(), [1, 2, 3]);
        assert_eq!(unpack(summed.clone(), (&sums, 1), 1, 7).unwrap().len(), 7);
        summed[0] ^= 1;
        let said = unpack(summed, (&sums, 0), 1, 3).unwrap_err();
        assert!(said.contains("checksum"), "{said}");
        let said = filter(32001).check().unwrap_err();
        assert!(
            said.contains("blosc") && said.contains("h5repack"),
            "{said}"
        );
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let zeros = vec![0; 32 << 20];
        let mut packed = Vec::new();
        flate2::read::ZlibEncoder::new(&zeros[..], flate2::Compression::new(6))
            .read_to_end(&mut packed)
            .unwrap();
        let said = unpack(packed, (&[filter(DEFLATE)], 0), 1, 100).unwrap_err();
        assert!(said.contains("more than"), "{said}");
        // Copies of 264 bytes of what came before, again and again.
        let mut long = vec![0, 1];
        long.extend([0xe0, 0xff, 0].repeat(1 << 16));
        let said = unpack(long, (&[filter(LZF)], 0), 1, 100).unwrap_err();
        assert!(said.contains("more than"), "{said}");
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>, id in 0..6usize, first: Option<u32>, expected in 0..100usize) {
            let id = [DEFLATE, SHUFFLE, FLETCHER, LZF, ZSTD, 4][id];
            let _ = unpack(bytes, (&[Filter { id, first }], 0), 4, expected);
        }
    }
}
