//! The write-ahead log: two header slots, then records.
//!
//! A record holds the changes that lead to one version. Its place says nothing: the version does.
//! Records up to the root's version are history that the next ones overwrite; the ones after it
//! must follow without a gap.

use std::sync::Arc;

use io::Device;

use crate::bytes::{Put, Reader, Tag, checksum};
use crate::disk;
use crate::error::{Error, Region, Result};
use crate::format::{BLOCK, Bad, FORMAT_VERSION, LIMIT, LOG_MAGIC};

/// Where the records start: after two blocks of one header slot each.
pub(crate) const FIRST_RECORD: u64 = 2 * BLOCK as u64;
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"ALRC");
const RECORD_HEADER: usize = 24;
const RECORD_ALIGNMENT: usize = 8;
/// The longest body of a record.
pub(crate) const MAX_BODY: u64 = 1 << 30;

/// What one header slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Counts restarts of the log; the newer of two valid headers has the greater one.
    pub(crate) counter: u64,
    /// The root's version at the restart: records up to it may be gone.
    pub(crate) base: u64,
}

impl Header {
    fn slot(&self) -> u8 {
        (self.counter % 2) as u8
    }

    fn encode(&self, id: &[u8; 16]) -> Vec<u8> {
        let mut block = LOG_MAGIC.to_vec();
        block.put_u32(FORMAT_VERSION);
        block.extend_from_slice(id);
        block.put_u64(self.counter);
        block.put_u64(self.base);
        block.resize(BLOCK - 4, 0);
        let sum = checksum(Tag::LogHeader, u32::from(self.slot()), &block);
        block.put_u32(sum);
        block
    }

    fn decode(block: &[u8], slot: u8) -> std::result::Result<([u8; 16], Header), Bad> {
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
        let (version, id, counter, base) = fields.ok_or(Bad::Fields("too short"))?;
        if version > FORMAT_VERSION {
            return Err(Bad::Newer(version));
        }
        let header = Header { counter, base };
        if header.counter >= LIMIT {
            return Err(Bad::Fields("impossible counter"));
        }
        if header.slot() != slot {
            return Err(Bad::Fields("it is in the other slot"));
        }
        Ok((id, header))
    }
}

/// The log of an open store; used by one writer at a time.
#[derive(Debug)]
pub(crate) struct Log {
    device: Arc<dyn Device>,
    id: [u8; 16],
    /// The newest header that is durable.
    header: Header,
    /// Where the next record goes.
    end: u64,
    /// A header may have been written in part; it is written again before a root is.
    suspect: bool,
}

/// What recovery finds in a log.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) log: Log,
    /// Per slot, what is wrong with it.
    pub(crate) bad: [Option<Bad>; 2],
}

impl Log {
    /// Writes the log of a new store, durably.
    pub(crate) fn create(device: Arc<dyn Device>, id: [u8; 16]) -> Result<Log> {
        for counter in [0, 1] {
            let block = Header { counter, base: 0 }.encode(&id);
            device.write_at(counter * BLOCK as u64, &block)?;
        }
        device.sync()?;
        let header = Header {
            counter: 1,
            base: 0,
        };
        Ok(Log {
            device,
            id,
            header,
            end: FIRST_RECORD,
            suspect: false,
        })
    }

    /// Reads the headers.
    pub(crate) fn open(device: Arc<dyn Device>, id: [u8; 16]) -> Result<Found> {
        let mut bad = [None, None];
        let mut newest: Option<Header> = None;
        for slot in [0u8, 1] {
            let mut block = vec![0; BLOCK];
            disk::read(&*device, u64::from(slot) * BLOCK as u64, &mut block)?;
            match Header::decode(&block, slot) {
                Ok((found, _)) if found != id => {
                    return Err(Error::ForeignLog {
                        path: device.path().to_path_buf(),
                    });
                }
                Ok((_, header)) => {
                    newest = newest
                        .filter(|old| old.counter > header.counter)
                        .or(Some(header));
                }
                Err(Bad::Newer(found)) => {
                    let path = device.path().to_path_buf();
                    return Err(Error::NewerFormat {
                        path,
                        found,
                        supported: FORMAT_VERSION,
                    });
                }
                Err(why) => bad[usize::from(slot)] = Some(why),
            }
        }
        let Some(header) = newest else {
            let detail = "neither of the two log headers is valid";
            return Err(Error::damaged(
                device.path(),
                Region::LogHeader(0),
                0,
                detail,
            ));
        };
        let suspect = bad.iter().any(Option::is_some);
        Ok(Found {
            log: Log {
                device,
                id,
                header,
                end: FIRST_RECORD,
                suspect,
            },
            bad,
        })
    }

    /// Reads headers and records again; returns what is wrong with them. The records after
    /// `root_version` must lead to `version`.
    pub(crate) fn check(&self, root_version: u64, version: u64) -> Vec<Error> {
        let mut found = match Log::open(self.device.clone(), self.id) {
            Ok(found) => found,
            Err(error) => return vec![error],
        };
        let slots = (0u8..).zip(&found.bad);
        let mut errors: Vec<_> = slots
            .filter_map(|(slot, bad)| {
                let offset = u64::from(slot) * BLOCK as u64;
                let region = Region::LogHeader(slot);
                Some(Error::damaged(
                    self.device.path(),
                    region,
                    offset,
                    bad.as_ref()?.to_string(),
                ))
            })
            .collect();
        let mut last = root_version;
        let replayed = found.log.replay(root_version, |version, _, _| {
            last = version;
            Ok(())
        });
        match replayed {
            Ok(()) if last < version => {
                let detail = "it is not valid any more".to_string();
                errors.push(self.damaged(last + 1, found.log.end, detail));
            }
            Ok(()) => {}
            Err(error) => errors.push(error),
        }
        errors
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Bytes of records that a recovery would read.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - FIRST_RECORD
    }

    fn seed(&self) -> u32 {
        self.id
            .iter()
            .fold(0, |seed: u32, &byte| seed.rotate_left(5) ^ u32::from(byte))
    }

    /// Appends the record that leads to `version`; not durable before [`sync`](Log::sync).
    /// After an error the record is at most partly written, and the next takes its place.
    pub(crate) fn append(&mut self, version: u64, body: &[u8]) -> Result<u64> {
        let mut record = Vec::with_capacity(RECORD_HEADER + body.len() + RECORD_ALIGNMENT);
        record.put_u32(RECORD_MAGIC);
        record.put_u32(body.len() as u32);
        record.put_u64(version);
        record.put_u32(checksum(Tag::RecordBody, self.seed(), body));
        let sum = checksum(Tag::RecordHeader, self.seed(), &record);
        record.put_u32(sum);
        record.extend_from_slice(body);
        record.resize(record.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        if let Err(error) = self.device.write_at(self.end, &record) {
            // Gives back the space; the record is void with or without this.
            let _ = self.device.set_len(self.end);
            return Err(error.into());
        }
        Ok(self.end + record.len() as u64)
    }

    /// Makes the record that `append` wrote up to `end` durable.
    pub(crate) fn sync(&mut self, end: u64) -> Result<()> {
        self.device.sync()?;
        self.end = end;
        Ok(())
    }

    fn write_header(&mut self, base: u64) -> Result<()> {
        let header = Header {
            counter: self.header.counter + 1,
            base,
        };
        self.suspect = true;
        let offset = u64::from(header.slot()) * BLOCK as u64;
        self.device.write_at(offset, &header.encode(&self.id))?;
        self.device.sync()?;
        self.suspect = false;
        self.header = header;
        Ok(())
    }

    /// Completes, on opening, a restart that a crash prevented after the root was written. Only
    /// then may records that an older root would need be overwritten.
    pub(crate) fn complete_restart(&mut self, root_version: u64) -> Result<()> {
        if root_version > self.header.base {
            self.write_header(root_version)
        } else {
            Ok(())
        }
    }

    /// Writes a header again that may be torn. A checkpoint does so before it writes a root, so
    /// that no crash leaves both a root and a header torn.
    pub(crate) fn repair(&mut self, root_version: u64) -> Result<()> {
        if self.suspect {
            self.write_header(root_version)
        } else {
            Ok(())
        }
    }

    /// Whether nobody has restarted the log, or appended to it, since it led to `version`.
    pub(crate) fn is_unchanged(&self, version: u64) -> Result<bool> {
        let found = Log::open(self.device.clone(), self.id)?;
        if found.log.header.counter != self.header.counter {
            return Ok(false);
        }
        Ok(self.next_version()? != Some(version + 1))
    }

    /// The version of the record after the end, if there is a whole one.
    fn next_version(&self) -> Result<Option<u64>> {
        let left = self.device.len()?.saturating_sub(self.end);
        if left < RECORD_HEADER as u64 {
            return Ok(None);
        }
        let mut bytes = vec![0; RECORD_HEADER];
        disk::read(&*self.device, self.end, &mut bytes)?;
        let length = bytes[4..8]
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        if length > left.min(MAX_BODY) {
            return Ok(None);
        }
        bytes.resize(RECORD_HEADER + length as usize, 0);
        disk::read(&*self.device, self.end, &mut bytes)?;
        Ok(self.record(&bytes, 0).map(|record| record.version))
    }

    /// Starts anew: a durable root includes everything up to `base`.
    pub(crate) fn restart(&mut self, base: u64) -> Result<()> {
        if self.end == FIRST_RECORD {
            return Ok(());
        }
        self.write_header(base)?;
        self.end = FIRST_RECORD;
        // Old records that stay are recognised by their versions; this only gives back space.
        let _ = self.device.set_len(FIRST_RECORD);
        Ok(())
    }

    /// Reads the records after `version` and calls `each` with the version, the body and the
    /// offset of the record; the log then ends after the last of them.
    pub(crate) fn replay(
        &mut self,
        version: u64,
        mut each: impl FnMut(u64, &[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let bytes = self.read_records()?;
        let mut position = 0;
        let mut last: Option<u64> = None;
        while let Some(record) = self.record(&bytes, position)
            && last.is_none_or(|last| record.version == last + 1)
        {
            let offset = FIRST_RECORD + position as u64;
            if record.version > version {
                if last.unwrap_or(version).max(version) + 1 != record.version {
                    let detail = format!(
                        "versions from {} to {} are missing",
                        version + 1,
                        record.version - 1
                    );
                    return Err(self.damaged(record.version, offset, detail));
                }
                each(record.version, record.body, offset)?;
                self.end = FIRST_RECORD + record.end as u64;
            }
            last = Some(record.version);
            position = record.end;
        }
        let newest = last.unwrap_or(version).max(version);
        self.no_later_record(&bytes, position, newest)
    }

    /// A torn last record is what a crash leaves; a valid record after an invalid one is not.
    fn no_later_record(&self, bytes: &[u8], from: usize, newest: u64) -> Result<()> {
        let magic = RECORD_MAGIC.to_le_bytes();
        for position in (from..bytes.len()).step_by(RECORD_ALIGNMENT) {
            if bytes[position..].starts_with(&magic)
                && let Some(record) = self.record(bytes, position)
                && record.version > newest
            {
                let detail = format!(
                    "invalid, but the record of version {} at offset {} is valid",
                    record.version,
                    FIRST_RECORD + position as u64
                );
                return Err(self.damaged(newest + 1, FIRST_RECORD + from as u64, detail));
            }
        }
        Ok(())
    }

    fn damaged(&self, version: u64, offset: u64, detail: String) -> Error {
        Error::damaged(
            self.device.path(),
            Region::LogRecord(version),
            offset,
            detail,
        )
    }

    fn read_records(&self) -> Result<Vec<u8>> {
        let length = self.device.len()?.saturating_sub(FIRST_RECORD);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        disk::read(&*self.device, FIRST_RECORD, &mut bytes)?;
        Ok(bytes)
    }

    /// The valid record at `position`, if there is one.
    fn record<'b>(&self, bytes: &'b [u8], position: usize) -> Option<Record<'b>> {
        let bytes = bytes.get(position..)?;
        let mut reader = Reader::new(bytes);
        if reader.u32()? != RECORD_MAGIC {
            return None;
        }
        let length = reader.u32()? as usize;
        let version = reader.u64().filter(|&version| version < LIMIT)?;
        let body_sum = reader.u32()?;
        let header_sum = reader.u32()?;
        if checksum(Tag::RecordHeader, self.seed(), &bytes[..RECORD_HEADER - 4]) != header_sum {
            return None;
        }
        let body = reader.take(length)?;
        if checksum(Tag::RecordBody, self.seed(), body) != body_sum {
            return None;
        }
        let end = (position + RECORD_HEADER + length).next_multiple_of(RECORD_ALIGNMENT);
        Some(Record { version, body, end })
    }
}

struct Record<'b> {
    version: u64,
    body: &'b [u8],
    end: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::fault::Disk;

    const ID: [u8; 16] = [3; 16];

    fn versions(device: &Arc<dyn Device>, after: u64) -> Result<Vec<u64>> {
        let mut found = Log::open(device.clone(), ID)?;
        let mut versions = Vec::new();
        found.log.replay(after, |version, body, _| {
            assert_eq!(body, format!("body of {version}").as_bytes());
            versions.push(version);
            Ok(())
        })?;
        Ok(versions)
    }

    fn write(log: &mut Log, versions: std::ops::RangeInclusive<u64>) {
        for version in versions {
            let end = log
                .append(version, format!("body of {version}").as_bytes())
                .unwrap();
            log.sync(end).unwrap();
        }
    }

    fn flip(device: &Arc<dyn Device>, offset: u64) {
        let mut byte = [0];
        device.read_at(offset, &mut byte).unwrap();
        device.write_at(offset, &[byte[0] ^ 4]).unwrap();
    }

    #[test]
    fn records_come_back_and_history_is_skipped() {
        let device = Disk::new(1).device("log");
        let mut log = Log::create(device.clone(), ID).unwrap();
        write(&mut log, 1..=5);
        assert_eq!(versions(&device, 0).unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(versions(&device, 3).unwrap(), [4, 5]);
        assert_eq!(versions(&device, 5).unwrap(), [0u64; 0]);
        log.restart(5).unwrap();
        assert_eq!(versions(&device, 5).unwrap(), [0u64; 0]);
        write(&mut log, 6..=7);
        assert_eq!(versions(&device, 5).unwrap(), [6, 7]);
        assert!(
            matches!(versions(&device, 3), Err(Error::Damaged { .. })),
            "4 and 5 are missing"
        );
        assert!(matches!(
            Log::open(device, [4; 16]),
            Err(Error::ForeignLog { .. })
        ));
    }

    #[test]
    fn old_records_beyond_the_end_are_not_taken_for_new_ones() {
        let device = Disk::new(1).device("log");
        let mut log = Log::create(device.clone(), ID).unwrap();
        write(&mut log, 1..=9);
        let mut old = vec![0; log.bytes() as usize];
        device.read_at(FIRST_RECORD, &mut old).unwrap();
        log.restart(9).unwrap();
        device.write_at(FIRST_RECORD, &old).unwrap();
        write(&mut log, 10..=10);
        assert_eq!(versions(&device, 9).unwrap(), [10]);
    }

    #[test]
    fn a_torn_tail_is_dropped_and_damage_before_a_valid_record_is_an_error() {
        let device = Disk::new(1).device("log");
        let mut log = Log::create(device.clone(), ID).unwrap();
        write(&mut log, 1..=2);
        let third = log.end;
        write(&mut log, 3..=3);
        for length in third..log.end {
            device.set_len(length).unwrap();
            let all = length >= log.end - 7 && versions(&device, 0).unwrap() == [1, 2, 3];
            assert!(
                all || versions(&device, 0).unwrap() == [1, 2],
                "cut at {length}"
            );
        }
        device.set_len(third).unwrap();
        for offset in FIRST_RECORD..FIRST_RECORD + 24 {
            flip(&device, offset);
            let error = versions(&device, 0).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Damaged {
                        offset: FIRST_RECORD,
                        ..
                    }
                ),
                "{error}"
            );
            flip(&device, offset);
        }
    }
}
