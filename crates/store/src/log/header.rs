//! The header slots of a log.

use io::Device;

use crate::error::Result;
use crate::format::bytes::{Put, Reader, Tag, checksum};
use crate::format::disk;
use crate::format::structures::{BLOCK, Bad, LIMIT, LOG_MAGIC};

/// The format version of the logs that this release writes, and the newest that it reads. That of
/// the data file counts for itself.
pub(crate) const LOG_VERSION: u32 = 3;
/// The format whose records are not made of sectors.
pub(super) const PACKED: u32 = 1;
/// The format in which each record is durable before the next is written.
pub(super) const ALONE: u32 = 2;
/// Where the records start: after two blocks of one header slot each.
pub(crate) const FIRST_RECORD: u64 = 2 * BLOCK as u64;
/// What one header slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Of which format the records are.
    pub(super) format: u32,
    /// Counts restarts of the log; the newer of two valid headers has the greater one.
    pub(crate) counter: u64,
    /// The root's version at the restart: records up to it may be gone.
    pub(crate) base: u64,
}

impl Header {
    pub(super) fn slot(&self) -> u8 {
        (self.counter % 2) as u8
    }

    pub(super) fn encode(&self, id: &[u8; 16]) -> Vec<u8> {
        let mut block = LOG_MAGIC.to_vec();
        block.put_u32(self.format);
        block.extend_from_slice(id);
        block.put_u64(self.counter);
        block.put_u64(self.base);
        block.resize(BLOCK - 4, 0);
        let sum = checksum(Tag::LogHeader, u32::from(self.slot()), &block);
        block.put_u32(sum);
        block
    }

    /// Whether a new log has this header.
    pub(crate) fn is_first(&self) -> bool {
        self.counter <= 1 && self.base == 0
    }

    /// The store's id and the header in the block of `slot`.
    pub(crate) fn decode(block: &[u8], slot: u8) -> std::result::Result<([u8; 16], Header), Bad> {
        let (body, sum) = block
            .split_last_chunk::<4>()
            .ok_or(Bad::Fields("too short"))?;
        if checksum(Tag::LogHeader, u32::from(slot), body) != u32::from_le_bytes(*sum) {
            return Err(if body.starts_with(&LOG_MAGIC) {
                Bad::Checksum
            } else {
                Bad::Magic
            });
        }
        let mut reader = Reader::new(&body[LOG_MAGIC.len()..]);
        let fields = (|| Some((reader.u32()?, reader.id()?, reader.u64()?, reader.u64()?)))();
        let (format, id, counter, base) = fields.ok_or(Bad::Fields("too short"))?;
        if format > LOG_VERSION {
            return Err(Bad::Newer(format));
        }
        let header = Header {
            format,
            counter,
            base,
        };
        if header.counter.max(header.base) >= LIMIT {
            return Err(Bad::Fields("impossible counter or base"));
        }
        if header.slot() != slot {
            return Err(Bad::Fields("it is in the other slot"));
        }
        Ok((id, header))
    }

    /// Reads a header slot, once more if it is not valid.
    pub(super) fn read(
        device: &dyn Device,
        slot: u8,
    ) -> Result<std::result::Result<([u8; 16], Header), Bad>> {
        disk::read_block(device, u64::from(slot) * BLOCK as u64, &|block| {
            Header::decode(block, slot)
        })
    }
}
