//! Compression of pages and structures.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::Read;

use crate::format::kind::Codec;

/// Compressed bytes are kept if they are at most this share of the raw ones, in percent.
///
/// Measured on a Xeon of 2.x GHz, 64 KiB of typical columns: decompressing takes 35 to 75 us of a
/// core whatever was saved, reading from the page cache 2 us. So a fifth saved pays for itself in
/// time on disks of up to some 250 MB/s (boards, network volumes), more saved on faster ones; on
/// the fastest it only pays in space. Bits that no dictionary narrows (prices, dates, at 82 to
/// 85 %) stay as they are.
const KEEP_PERCENT: usize = 80;
/// The level whose compression keeps up with loading data.
const LEVEL: i32 = 1;

thread_local! {
    // A context is some hundred KiB of tables; making one per page would dominate.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// `bytes` as they are to be stored.
pub(crate) fn compress(bytes: &[u8]) -> (Codec, Cow<'_, [u8]>) {
    let limit = bytes.len() * KEEP_PERCENT / 100;
    let mut packed = vec![0; limit];
    let length = COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        // An error says that the result is longer than the limit.
        slot.as_mut()?
            .compress_to_buffer(bytes, &mut packed[..])
            .ok()
    });
    match length {
        Some(length) if length > 0 && length < bytes.len() => {
            packed.truncate(length);
            (Codec::Zstd, Cow::Owned(packed))
        }
        _ => (Codec::Raw, Cow::Borrowed(bytes)),
    }
}

/// Fills all of `into` with what `stored` holds; says why where it holds something else.
pub(crate) fn decompress(codec: Codec, stored: &[u8], into: &mut [u8]) -> Result<(), String> {
    let length = match codec {
        Codec::Raw => {
            if stored.len() == into.len() {
                into.copy_from_slice(stored);
            }
            stored.len()
        }
        Codec::Zstd => DECOMPRESSOR.with_borrow_mut(|slot| {
            if slot.is_none() {
                *slot = Some(zstd::bulk::Decompressor::new().map_err(|error| error.to_string())?);
            }
            let Some(decompressor) = slot else {
                return Err("no decompressor".to_string());
            };
            decompressor
                .decompress_to_buffer(stored, into)
                .map_err(|error| format!("zstd: {error}"))
        })?,
    };
    if length == into.len() {
        Ok(())
    } else {
        Err(format!("{length} bytes instead of {}", into.len()))
    }
}

/// The highest compression ratio of zstd: a block of four bytes stands for 128 KiB at most.
const EXPANSION: u64 = 32 << 10;

/// Whether `raw` bytes can be stored as `stored` ones.
pub(crate) fn is_possible(codec: Codec, stored: u64, raw: u64) -> bool {
    match codec {
        Codec::Raw => stored == raw,
        Codec::Zstd => stored < raw && raw / EXPANSION <= stored,
    }
}

/// Decompresses `stored`, which should give `raw` bytes. The memory it allocates is bounded by what
/// is there, not by what `raw` claims.
///
/// # Errors
/// The reason in words, if the result is anything but `raw` bytes.
pub(crate) fn unpack(codec: Codec, stored: Vec<u8>, raw: u64) -> Result<Vec<u8>, String> {
    let length = |found: u64| format!("{found} bytes instead of {raw}");
    let bytes = match codec {
        Codec::Raw => stored,
        Codec::Zstd => {
            match zstd::zstd_safe::get_frame_content_size(&stored) {
                Ok(Some(found)) if found != raw => return Err(length(found)),
                Ok(_) => {}
                Err(_) => return Err("zstd: not a frame".to_string()),
            }
            let mut bytes = Vec::new();
            let decoder = zstd::stream::read::Decoder::with_buffer(&stored[..]);
            let read = decoder.and_then(|mut decoder| {
                decoder.window_log_max(window_log(raw))?;
                // One byte more shows that there are more.
                decoder.take(raw.saturating_add(1)).read_to_end(&mut bytes)
            });
            read.map_err(|error| format!("zstd: {error}"))?;
            bytes
        }
    };
    if bytes.len() as u64 == raw {
        Ok(bytes)
    } else {
        Err(length(bytes.len() as u64))
    }
}

/// The logarithm of the largest window that bytes of this length can have been compressed with. A frame can claim one
/// of 128 MiB, whatever its length, and memory is taken for it before anything is decompressed.
fn window_log(raw: u64) -> u32 {
    const LEAST: u32 = 10;
    const MOST: u32 = 27;
    let above = raw.max(1).checked_next_power_of_two();
    above.map_or(MOST, u64::ilog2).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_not_larger_than_what_is_in_it() {
        // A frame without its length, its window of 2^(10 + exponent), and a block of one byte 100 times.
        let frame = |exponent: u8| {
            let block = 100 << 3 | 1 << 1 | 1;
            vec![
                0x28,
                0xb5,
                0x2f,
                0xfd,
                0,
                exponent << 3,
                block as u8,
                (block >> 8) as u8,
                0,
                7,
            ]
        };
        assert_eq!(unpack(Codec::Zstd, frame(0), 100), Ok(vec![7; 100]));
        for exponent in 1..18 {
            let error = unpack(Codec::Zstd, frame(exponent), 100).unwrap_err();
            assert!(error.contains("too much memory"), "{error}");
        }
        // What this writes is read, of any length.
        for raw in [1, 100, 1024, 1025, 300_000, 9 << 20, 150 << 20] {
            let bytes = vec![3; raw];
            let (codec, stored) = compress(&bytes);
            let back = unpack(codec, stored.to_vec(), raw as u64);
            assert!(back == Ok(bytes), "{raw} bytes");
        }
    }

    #[test]
    fn compression_is_kept_only_where_it_pays() {
        let same = vec![7; 65_536];
        let (codec, stored) = compress(&same);
        assert_eq!(codec, Codec::Zstd);
        assert!(stored.len() < 1000);
        let mut back = vec![0; same.len()];
        assert_eq!(decompress(codec, &stored, &mut back), Ok(()));
        assert_eq!(back, same);
        assert!(decompress(codec, &stored, &mut back[1..]).is_err());
        assert!(decompress(codec, &stored[1..], &mut back).is_err());
        assert!(decompress(codec, &stored, &mut vec![0; same.len() + 1]).is_err());
        assert!(decompress(Codec::Raw, &same, &mut vec![0; same.len() + 1]).is_err());
        let (packed, raw) = (stored.to_vec(), same.len() as u64);
        assert!(is_possible(codec, packed.len() as u64, raw));
        assert_eq!(unpack(codec, packed.clone(), raw).as_ref(), Ok(&same));
        assert!(unpack(codec, packed.clone(), raw - 1).is_err());
        assert!(unpack(codec, packed[..packed.len() - 1].to_vec(), raw).is_err());
        assert!(unpack(codec, b"no frame".to_vec(), raw).is_err());
        assert_eq!(unpack(Codec::Raw, same.clone(), raw).as_ref(), Ok(&same));
        assert!(!is_possible(codec, 20 << 10, 3 << 30));
        assert!(!is_possible(Codec::Raw, 7, 8));

        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(65_536)
        .collect();
        assert_eq!(compress(&noise).0, Codec::Raw);
        for length in 1..40 {
            let (codec, stored) = compress(&noise[..length]);
            let mut back = vec![0; length];
            assert_eq!(decompress(codec, &stored, &mut back), Ok(()));
            assert_eq!(back, &noise[..length]);
        }
    }
}
