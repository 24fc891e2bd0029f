//! The codecs of chunks: bytes to bytes.

use std::borrow::Cow;
use std::io::Read;

use crate::options::Packing;
use crate::zarr::blosc;

/// A codec of a chunk's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// A member of gzip, or several.
    Gzip,
    /// A stream of zlib.
    Zlib,
    /// Frames of zstd.
    Zstd,
    /// Blosc, of whatever is in it.
    Blosc,
    /// A checksum behind the bytes.
    Crc32c,
}

impl Codec {
    /// The codec of that name.
    ///
    /// # Errors
    /// Which codecs are read, in words.
    pub fn of_name(name: &str) -> Result<Codec, String> {
        Ok(match name {
            "gzip" => Codec::Gzip,
            "zlib" | "numcodecs.zlib" => Codec::Zlib,
            "zstd" | "numcodecs.zstd" => Codec::Zstd,
            "blosc" | "numcodecs.blosc" => Codec::Blosc,
            "crc32c" | "numcodecs.crc32c" => Codec::Crc32c,
            _ => {
                return Err(format!(
                    "its chunks are packed with '{name}', which is not read; write them without compression, or with \
                     zstd, gzip, zlib or blosc"
                ));
            }
        })
    }
}

/// The most bytes that a chunk can have in any step of its packing, if it has `bytes` unpacked.
pub(super) fn most(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 8).saturating_add(4096)
}

/// Unpacks a chunk that is to have `expected` bytes. `codecs` stand in the order in which it was packed.
///
/// # Errors
/// What is wrong, in words. However much the bytes would unpack to, not much more than `expected` is allocated.
pub(super) fn unpack(bytes: Vec<u8>, codecs: &[Codec], expected: usize) -> Result<Vec<u8>, String> {
    let bytes = unpack_some(bytes, codecs, most(expected))?;
    if bytes.len() != expected {
        let got = bytes.len();
        return Err(format!(
            "has {got} bytes of values where {expected} are needed"
        ));
    }
    Ok(bytes)
}

/// Unpacks bytes of which it is only known that they are `limit` at most.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn unpack_some(
    mut bytes: Vec<u8>,
    codecs: &[Codec],
    limit: usize,
) -> Result<Vec<u8>, String> {
    for codec in codecs.iter().rev() {
        bytes = match codec {
            Codec::Gzip => read(flate2::read::MultiGzDecoder::new(&bytes[..]), limit, "gzip")?,
            Codec::Zlib => read(flate2::read::ZlibDecoder::new(&bytes[..]), limit, "zlib")?,
            Codec::Zstd => zstd::bulk::decompress(&bytes, limit)
                .map_err(|error| format!("cannot be unpacked as zstd ({error})"))?,
            Codec::Blosc => blosc::unpack(&bytes, limit)?,
            Codec::Crc32c => checked(bytes)?,
        };
    }
    Ok(bytes)
}

fn read(from: impl Read, limit: usize, name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = from.take(limit as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot be unpacked as {name} ({error})"))?;
    if bytes.len() > limit {
        return Err(format!("unpacks to more than {limit} bytes"));
    }
    Ok(bytes)
}

fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let values = bytes.len().checked_sub(4);
    let values = values.ok_or("is too short for its checksum")?;
    let (of_values, sum) = bytes.split_at(values);
    if crc32c::crc32c(of_values).to_le_bytes() != sum {
        return Err("does not have its checksum".to_owned());
    }
    bytes.truncate(values);
    Ok(bytes)
}

/// Packs a chunk.
///
/// # Errors
/// What the compressor says: of a level that there is not, for one.
pub(super) fn pack(bytes: &[u8], packing: Packing) -> std::io::Result<Cow<'_, [u8]>> {
    match packing {
        Packing::None => Ok(bytes.into()),
        Packing::Usual => Ok(zstd::bulk::compress(bytes, USUAL_LEVEL)?.into()),
        Packing::Zstd(level) => Ok(zstd::bulk::compress(bytes, level)?.into()),
        Packing::Gzip(level) => {
            let level = flate2::Compression::new(level.min(9));
            let mut packed = Vec::new();
            flate2::read::GzEncoder::new(bytes, level).read_to_end(&mut packed)?;
            Ok(packed.into())
        }
    }
}

/// The level of zstd if nothing is said.
pub(super) const USUAL_LEVEL: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Codec; 5] = [
        Codec::Gzip,
        Codec::Zlib,
        Codec::Zstd,
        Codec::Blosc,
        Codec::Crc32c,
    ];

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        for (codec, packing) in [
            (Codec::Gzip, Packing::Gzip(6)),
            (Codec::Zstd, Packing::Usual),
        ] {
            let packed = pack(&vec![0; 32 << 20], packing).unwrap().into_owned();
            assert!(packed.len() < 1 << 16);
            assert!(unpack(packed.clone(), &[codec], 100).is_err());
            let cut = packed[..packed.len() / 2].to_vec();
            assert!(unpack(cut, &[codec], 32 << 20).is_err());
            assert_eq!(unpack(packed, &[codec], 32 << 20).unwrap().len(), 32 << 20);
        }
        let short = unpack(vec![1, 2, 3], &[], 4).unwrap_err();
        assert!(short.contains("has 3 bytes of values where 4"), "{short}");
        let other = Codec::of_name("lzma").unwrap_err();
        assert!(
            other.contains("'lzma'") && other.contains("zstd"),
            "{other}"
        );
    }

    #[test]
    fn a_checksum_is_checked() {
        let mut bytes = b"atoll".to_vec();
        bytes.extend(crc32c::crc32c(b"atoll").to_le_bytes());
        assert_eq!(
            unpack(bytes.clone(), &[Codec::Crc32c], 5).unwrap(),
            b"atoll"
        );
        bytes[1] ^= 1;
        assert!(
            unpack(bytes, &[Codec::Crc32c], 5)
                .unwrap_err()
                .contains("checksum")
        );
        assert!(unpack(vec![1], &[Codec::Crc32c], 5).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>, codec in 0..5usize, expected in 0..100usize) {
            let _ = unpack(bytes, &[ALL[codec]], expected);
        }
    }
}
