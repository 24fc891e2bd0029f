//! Records as log format 1 has them, which releases up to 0.1 wrote: a header of 24 bytes, the
//! body, and zeros up to a multiple of 8, one record after the other.
//!
//! A damaged record cannot be told from a torn one here, except where the log ends too early. So
//! whatever stands after the last valid record and is not zeros counts as damage.

use super::frame::{self, MAX_BODY, Seed};
use super::header::FIRST_RECORD;
use super::scan::{self, Next, Reads, Record};
use super::source::Source;
use crate::error::Result;
use crate::format::bytes::{Reader, Tag, checksum};
use crate::format::structures::LIMIT;

const MAGIC: u32 = u32::from_le_bytes(*b"ALRC");
const HEADER: usize = 24;
const ALIGNMENT: u64 = 8;

/// The header of a record.
struct Header {
    length: u64,
    version: u64,
    /// The checksum of the body.
    sum: u32,
}

impl Header {
    fn decode(bytes: &[u8], seed: Seed) -> Option<Header> {
        let mut reader = Reader::new(bytes);
        let magic = reader.u32()?;
        let header = Header {
            length: u64::from(reader.u32()?),
            version: reader.u64()?,
            sum: reader.u32()?,
        };
        let sum = checksum(Tag::RecordHeader, seed.number(), &bytes[..HEADER - 4]);
        let valid = magic == MAGIC && header.version < LIMIT && header.length <= MAX_BODY;
        (valid && reader.u32()? == sum).then_some(header)
    }
}

/// Reads such records.
pub(super) struct Packed {
    pub(super) seed: Seed,
    /// The root's version.
    pub(super) root_version: u64,
}

impl Reads for Packed {
    fn next(&self, source: &mut Source<'_>, offset: u64, after: Option<u64>) -> Result<Next> {
        let head = source.from(offset)?;
        let Some(header) = Header::decode(&head[..head.len().min(HEADER)], self.seed) else {
            let short = offset + HEADER as u64 > source.length();
            return rest(source, offset, offset, short);
        };
        let start = offset + HEADER as u64;
        let end = (start + header.length).next_multiple_of(ALIGNMENT);
        let newest = after.unwrap_or(self.root_version);
        if after.is_some_and(|after| header.version <= after) {
            // What was written before the log began anew.
            return Ok(Next::End);
        }
        if header.version > newest + 1 {
            let why = format!("the record of version {} stands there", header.version);
            return Ok(scan::rest(source, offset, Some(why)));
        }
        if end > source.length() {
            return rest(source, offset, start, true);
        }
        // Before memory is taken for it: most of a length that makes no sense may be a hole.
        if self.sum(source, start, header.length)? != header.sum {
            return rest(source, offset, start, false);
        }
        source.admit(header.version, header.length)?;
        let body = self.body(source, start, header.length)?;
        if frame::body_sum(&body, self.seed) != header.sum {
            return rest(source, offset, start, false);
        }
        Ok(Next::Record(Record {
            version: header.version,
            body,
            end,
        }))
    }
}

impl Packed {
    fn sum(&self, source: &mut Source<'_>, start: u64, length: u64) -> Result<u32> {
        let mut sum = frame::body_sum(&[], self.seed);
        each(source, start, length, |bytes| {
            sum = crc32c::crc32c_append(sum, bytes);
        })?;
        Ok(sum)
    }

    fn body(&self, source: &mut Source<'_>, start: u64, length: u64) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        each(source, start, length, |bytes| body.extend_from_slice(bytes))?;
        Ok(body)
    }
}

/// Calls `take` with the pieces of `length` bytes from `start` on, as far as the log has them.
fn each(
    source: &mut Source<'_>,
    start: u64,
    length: u64,
    mut take: impl FnMut(&[u8]),
) -> Result<()> {
    let (mut offset, end) = (start, start + length);
    while offset < end {
        let bytes = source.from(offset)?;
        let bytes = &bytes[..bytes.len().min((end - offset) as usize)];
        if bytes.is_empty() {
            break;
        }
        take(bytes);
        offset += bytes.len() as u64;
    }
    Ok(())
}

/// Judges what is at `offset`, which is not a valid record; `short` if the log ends within it.
fn rest(source: &mut Source<'_>, offset: u64, from: u64, short: bool) -> Result<Next> {
    debug_assert!(offset >= FIRST_RECORD);
    let reach = MAX_BODY.min(source.length().saturating_sub(from));
    let mut zeros = true;
    each(source, from, reach, |bytes| {
        zeros &= bytes.iter().all(|&byte| byte == 0);
    })?;
    Ok(match (short, zeros) {
        (_, true) if from == offset => Next::End,
        (true, _) => scan::rest(source, offset, None),
        (false, _) => {
            let why = "its checksum does not match (a log of format 1 cannot tell whether a loss of power cut it short)";
            scan::rest(source, offset, Some(why.to_string()))
        }
    })
}

/// A record as releases up to 0.1 wrote it.
#[cfg(test)]
pub(super) fn encode(version: u64, body: &[u8], seed: Seed) -> Vec<u8> {
    use crate::format::bytes::Put;

    let mut record = Vec::new();
    record.put_u32(MAGIC);
    record.put_u32(body.len() as u32);
    record.put_u64(version);
    record.put_u32(frame::body_sum(body, seed));
    let sum = checksum(Tag::RecordHeader, seed.number(), &record);
    record.put_u32(sum);
    record.extend_from_slice(body);
    record.resize(record.len().next_multiple_of(ALIGNMENT as usize), 0);
    record
}
