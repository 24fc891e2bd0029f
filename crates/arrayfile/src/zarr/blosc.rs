//! Blosc, version 1: a header, where blocks begin, and blocks of bytes that were shuffled and then packed, some of them in
//! a stream for each byte of a value.

/// Bytes of the header.
const HEADER: usize = 16;
/// The most streams of a block.
const MOST_STREAMS: usize = 16;
/// The fewest bytes of a stream.
const LEAST_STREAM: usize = 128;
/// The farthest that a short match of BloscLZ lies back.
const FAR: usize = 8191;

/// What the header says.
struct Header {
    flags: u8,
    /// Bytes of a value.
    width: usize,
    /// Bytes of all values.
    bytes: usize,
    /// Bytes of a block.
    block: usize,
}

/// The bytes that were packed: `limit` at most.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn unpack(packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let header = header(packed)?;
    if header.bytes > limit {
        return Err(format!("unpacks to more than {limit} bytes"));
    }
    let Header { flags, bytes, .. } = header;
    if flags & 2 != 0 {
        let plain = packed.get(HEADER..).and_then(|rest| rest.get(..bytes));
        return plain.map(<[u8]>::to_vec).ok_or_else(cut);
    }
    let mut values = vec![0; bytes];
    for (number, into) in values.chunks_mut(header.block).enumerate() {
        let start = number_at(packed, HEADER + 4 * number)?;
        let stored = packed.get(start..).ok_or_else(cut)?;
        let mut block = vec![0; into.len()];
        header.read(stored, &mut block)?;
        header.unshuffle(&block, into);
    }
    Ok(values)
}

fn cut() -> String {
    "ends too early for what its Blosc header says".to_owned()
}

fn header(packed: &[u8]) -> Result<Header, String> {
    let [version, _, flags, width, ..] = *packed else {
        return Err(cut());
    };
    // Versions of the format that this is the header of.
    if !matches!(version, 1 | 2) {
        return Err(format!("has version {version} of Blosc, which is not read"));
    }
    let (bytes, block) = (number_at(packed, 4)?, number_at(packed, 8)?);
    number_at(packed, 12)?;
    if flags & 2 == 0 && bytes > 0 && block == 0 {
        return Err("has blocks of no bytes".to_owned());
    }
    Ok(Header {
        flags,
        width: usize::from(width).max(1),
        bytes,
        block: block.max(1),
    })
}

/// The four bytes at a place as a number.
fn number_at(bytes: &[u8], at: usize) -> Result<usize, String> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let number = four.map(|four| u32::from_le_bytes(*four));
    number
        .and_then(|number| usize::try_from(number).ok())
        .ok_or_else(cut)
}

impl Header {
    /// Unpacks the streams of a block.
    fn read(&self, mut stored: &[u8], block: &mut [u8]) -> Result<(), String> {
        let split = self.flags & 0x10 == 0
            && block.len() == self.block
            && self.width <= MOST_STREAMS
            && self.block / self.width >= LEAST_STREAM;
        let streams = if split { self.width } else { 1 };
        let each = block.len() / streams;
        if each * streams != block.len() {
            return Err("has a block that is no whole number of streams".to_owned());
        }
        for into in block.chunks_mut(each.max(1)) {
            let length = number_at(stored, 0)?;
            let stream = stored.get(4..).and_then(|rest| rest.get(..length));
            let stream = stream.ok_or_else(cut)?;
            if length == into.len() {
                into.copy_from_slice(stream);
            } else {
                self.unpack_stream(stream, into)?;
            }
            stored = &stored[4 + length..];
        }
        Ok(())
    }

    fn unpack_stream(&self, stream: &[u8], into: &mut [u8]) -> Result<(), String> {
        let unpacked = match self.flags >> 5 {
            0 => blosclz(stream, into),
            1 => lz4_flex::block::decompress_into(stream, into).ok(),
            2 => snap::raw::Decoder::new().decompress(stream, into).ok(),
            3 => {
                let mut decoder = flate2::Decompress::new(true);
                let done = decoder.decompress(stream, into, flate2::FlushDecompress::Finish);
                done.ok()
                    .and_then(|_| usize::try_from(decoder.total_out()).ok())
            }
            4 => zstd::bulk::decompress_to_buffer(stream, into).ok(),
            other => {
                return Err(format!(
                    "is packed with codec {other} in Blosc, which is none"
                ));
            }
        };
        if unpacked == Some(into.len()) {
            Ok(())
        } else {
            Err("has a block of Blosc that cannot be unpacked".to_owned())
        }
    }

    /// Puts the bytes of a block in their order.
    fn unshuffle(&self, block: &[u8], into: &mut [u8]) {
        let count = block.len() / self.width;
        let whole = count * self.width;
        if self.flags & 4 != 0 && count.is_multiple_of(8) && count > 0 {
            unshuffle_bits(&block[..whole], self.width, &mut into[..whole]);
            into[whole..].copy_from_slice(&block[whole..]);
        } else if self.flags & 5 == 1 && self.width > 1 {
            for (at, values) in block[..whole].chunks_exact(count.max(1)).enumerate() {
                for (value, byte) in values.iter().enumerate() {
                    into[value * self.width + at] = *byte;
                }
            }
            into[whole..].copy_from_slice(&block[whole..]);
        } else {
            into.copy_from_slice(block);
        }
    }
}

/// Puts bits in their order, which lie bit by bit of the values: the lowest of the first byte of all values first.
fn unshuffle_bits(block: &[u8], width: usize, into: &mut [u8]) {
    into.fill(0);
    let row = block.len() / width / 8;
    for (number, bits) in block.chunks_exact(row.max(1)).enumerate() {
        let (at, bit) = (number / 8, number % 8);
        for (eight, byte) in bits.iter().enumerate() {
            for value in 0..8 {
                into[(eight * 8 + value) * width + at] |= (byte >> value & 1) << bit;
            }
        }
    }
}

/// Unpacks a stream of BloscLZ; how many bytes it had. `None` if it is none.
fn blosclz(stream: &[u8], into: &mut [u8]) -> Option<usize> {
    let (mut at, mut written) = (0, 0);
    let mut control = usize::from(stream.first()? & 31);
    at += 1;
    loop {
        if control < 32 {
            let count = control + 1;
            let from = stream.get(at..at + count)?;
            into.get_mut(written..written + count)?
                .copy_from_slice(from);
            (at, written) = (at + count, written + count);
        } else {
            let mut count = (control >> 5) + 2;
            let mut back = (control & 31) << 8;
            if control >> 5 == 7 {
                loop {
                    let more = usize::from(*stream.get(at)?);
                    (at, count) = (at + 1, count + more);
                    if more != 255 {
                        break;
                    }
                }
            }
            let code = usize::from(*stream.get(at)?);
            at += 1;
            if code == 255 && back == 31 << 8 {
                let far = stream.get(at..at + 2)?;
                back = (usize::from(far[0]) << 8 | usize::from(far[1])) + FAR;
                at += 2;
            } else {
                back += code;
            }
            let from = written.checked_sub(back + 1)?;
            if written + count > into.len() {
                return None;
            }
            // What is copied may be what was just written.
            for step in 0..count {
                into[written + step] = into[from + step];
            }
            written += count;
        }
        let Some(next) = stream.get(at) else {
            return Some(written);
        };
        control = usize::from(*next);
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_other_programs_packed_is_unpacked() {
        let numbers = (0..2003_u32).flat_map(|at| (at * at % 997).to_le_bytes());
        let wanted: Vec<u8> = numbers.collect();
        for name in ["blosclz", "lz4", "zlib-plain", "zstd", "zstd-bits"] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/blosc");
            let packed = std::fs::read(format!("{folder}/{name}")).unwrap();
            assert_eq!(unpack(&packed, wanted.len()).unwrap(), wanted, "{name}");
            assert!(unpack(&packed, wanted.len() - 1).is_err(), "{name}");
            assert!(
                unpack(&packed[..packed.len() / 2], wanted.len()).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn snappy_is_unpacked() {
        let values: Vec<u8> = (0..300_u16).map(|at| (at % 7) as u8).collect();
        let streams: Vec<Vec<u8>> = values
            .chunks(200)
            .map(|block| snap::raw::Encoder::new().compress_vec(block).unwrap())
            .collect();
        // Blocks of 200 bytes with one stream each; values of a byte are not shuffled.
        let mut packed = vec![2, 1, 2 << 5 | 0x10, 1];
        let starts = [24, 28 + streams[0].len() as u32];
        for number in [300, 200, starts[1] + 4 + streams[1].len() as u32] {
            packed.extend(number.to_le_bytes());
        }
        packed.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
        for stream in &streams {
            packed.extend((stream.len() as u32).to_le_bytes());
            packed.extend(stream);
        }
        assert_eq!(unpack(&packed, 300).unwrap(), values);
        let end = packed.len() - 1;
        assert!(unpack(&packed[..end], 300).is_err());
        packed[30] ^= 0xff;
        assert_ne!(unpack(&packed, 300), Ok(values));
    }

    #[test]
    fn matches_may_overlap_what_they_make() {
        let mut into = [0; 9];
        // "abc" as it is, and a match of six bytes three back.
        let stream = [2, b'a', b'b', b'c', 4 << 5, 2];
        assert_eq!(blosclz(&stream, &mut into), Some(9));
        assert_eq!(&into, b"abcabcabc");
        assert_eq!(blosclz(&[4 << 5 | 1, 2], &mut into), None);
        assert_eq!(blosclz(&stream, &mut [0; 8]), None);
    }

    #[test]
    fn bits_come_back() {
        // Eight values of two bytes, of which only the third has a bit: the lowest of its second byte.
        let mut block = vec![0; 16];
        block[8] = 1 << 2;
        let mut into = vec![0; 16];
        unshuffle_bits(&block, 2, &mut into);
        let mut wanted = vec![0; 16];
        wanted[5] = 1;
        assert_eq!(into, wanted);
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            flags: u8, width in 0..20u8, length in 0..200u32, block in 0..200u32,
        ) {
            let mut packed = vec![2, 1, flags, width];
            packed.extend(length.to_le_bytes());
            packed.extend(block.to_le_bytes());
            packed.extend(96u32.to_le_bytes());
            packed.extend(bytes);
            let _ = unpack(&packed, 150);
            let _ = unpack(&packed[..packed.len().min(15)], 150);
        }
    }
}
