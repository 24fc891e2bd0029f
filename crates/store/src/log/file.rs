//! The log of an open store: opening, appending, replaying, restarting.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use io::Device;

use super::frame::{self, Layout, Seed};
use super::header::{ALONE, FIRST_RECORD, Header, LOG_VERSION, PACKED};
use super::old;
use super::scan::{self, Next, Reads};
use super::source::Source;
use crate::error::{Error, Region, Result};
use crate::format::structures::{BLOCK, Bad};
use crate::log::report::Dropped;
use crate::options::Damage;

/// The log of an open store; used by one writer at a time.
#[derive(Debug)]
pub(crate) struct Log {
    device: Arc<dyn Device>,
    id: [u8; 16],
    /// The newest header that is durable.
    pub(super) header: Header,
    /// Where the next record goes.
    pub(super) end: u64,
    /// Where the records ended that recovery found, those that it did not need included.
    found: u64,
    /// Records that were not written yet; they end at `end`.
    kept: Vec<u8>,
    /// Bytes of records written, and syncs, since the log was opened.
    traffic: Traffic,
    /// A header may have been written in part; it is written again before a root is.
    suspect: bool,
    /// There may be something behind `end`; it is cut off before a record is written.
    untidy: bool,
    /// Tells the writes of this log apart.
    writes: u32,
    /// What replaying found behind the last valid record.
    dropped: Option<Dropped>,
    /// The most bytes of a record that is replayed.
    memory: u64,
}

/// What was done with the log's device since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) syncs: u64,
    pub(crate) written_bytes: u64,
}

/// Records that need not survive the process are written when there are this many bytes of them.
const KEPT: usize = 64 << 10;

/// What recovery finds in a log.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) log: Log,
    /// Per slot, what is wrong with it.
    pub(crate) bad: [Option<Bad>; 2],
}

impl Log {
    fn new(device: Arc<dyn Device>, id: [u8; 16], header: Header, suspect: bool) -> Log {
        Log {
            device,
            id,
            header,
            end: FIRST_RECORD,
            found: FIRST_RECORD,
            kept: Vec::new(),
            traffic: Traffic::default(),
            suspect,
            untidy: false,
            // Seeded by the operating system's random numbers, so that no write is taken for a
            // part of one that an earlier process did not finish.
            writes: RandomState::new().hash_one(0u8) as u32,
            dropped: None,
            memory: u64::MAX,
        }
    }

    /// Records that are replayed may take so much memory.
    pub(crate) fn limit_records(&mut self, memory: u64) {
        self.memory = memory;
    }

    /// Writes the log of a new store, durably.
    pub(crate) fn create(device: Arc<dyn Device>, id: [u8; 16]) -> Result<Log> {
        let header = |counter| Header {
            format: LOG_VERSION,
            counter,
            base: 0,
        };
        for counter in [0, 1] {
            device.write_at(counter * BLOCK as u64, &header(counter).encode(&id))?;
        }
        device.sync()?;
        Ok(Log::new(device, id, header(1), false))
    }

    /// Reads the headers.
    pub(crate) fn open(device: Arc<dyn Device>, id: [u8; 16]) -> Result<Found> {
        let mut bad = [None, None];
        let mut newest: Option<Header> = None;
        for slot in [0u8, 1] {
            match Header::read(&*device, slot)? {
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
                        supported: LOG_VERSION,
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
            log: Log::new(device, id, header, suspect),
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
        let replayed = found
            .log
            .replay(root_version, Damage::Refuse, |version, _, _| {
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

    /// What replaying found behind the last valid record, and did not apply.
    pub(crate) fn dropped(&self) -> Option<&Dropped> {
        self.dropped.as_ref()
    }

    /// Whether the records are of a format that is not written any more.
    pub(crate) fn is_old(&self) -> bool {
        self.header.format < LOG_VERSION
    }

    fn seed(&self) -> Seed {
        Seed::of(&self.id)
    }

    /// Appends the record that leads to `version`, when those up to `durable` are durable. With
    /// `write` it is written, and all before it; not durable before the device is synced. Without,
    /// it may stay in memory.
    ///
    /// After an error the record is at most partly written, and the next takes its place. The log
    /// must be [tidy](Log::tidy).
    pub(crate) fn append(
        &mut self,
        (version, durable): (u64, u64),
        body: &[u8],
        write: bool,
    ) -> Result<()> {
        debug_assert!(!self.untidy && !self.is_old());
        self.writes = self.writes.wrapping_add(1);
        let mark = frame::mark(self.writes);
        let record = frame::encode((version, durable), body, mark, self.end, self.seed());
        let bytes = record.len();
        if self.kept.is_empty() && (write || bytes > KEPT) {
            self.write(&record)?;
        } else {
            self.kept.extend(record);
            if (write || self.kept.len() > KEPT)
                && let Err(error) = self.write_kept(bytes as u64)
            {
                self.kept.truncate(self.kept.len() - bytes);
                return Err(error);
            }
        }
        self.end += bytes as u64;
        Ok(())
    }

    /// Writes the records that were kept in memory.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.write_kept(0)
    }

    /// Writes the records kept, of which the last `more` bytes are not counted in `end` yet.
    fn write_kept(&mut self, more: u64) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let kept = std::mem::take(&mut self.kept);
        let end = self.end;
        self.end = end + more - kept.len() as u64;
        let written = self.write(&kept);
        self.end = end;
        if written.is_err() {
            self.kept = kept;
        }
        written
    }

    /// Whether all records were written, to the system at least.
    pub(crate) fn is_written(&self) -> bool {
        self.kept.is_empty()
    }

    /// Writes records at `end`.
    fn write(&mut self, records: &[u8]) -> Result<()> {
        self.untidy = true;
        if let Err(error) = self.device.write_at(self.end, records) {
            // Gives back the space; the records are void with or without this.
            let _ = self.device.set_len(self.end);
            return Err(error.into());
        }
        self.untidy = false;
        self.traffic.written_bytes += records.len() as u64;
        Ok(())
    }

    /// Makes durable what was written.
    ///
    /// A disk that is found full only now is a failure like any other: what was written before may
    /// be lost, or not.
    fn sync_device(&mut self) -> Result<()> {
        self.traffic.syncs += 1;
        let synced = self.device.sync();
        synced.map_err(|error| Error::Io(Arc::new(error)))
    }

    /// What was done with the device since the log was opened, but for syncs by others.
    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Cuts off, durably, what an unfinished write or an earlier generation left behind the end.
    pub(crate) fn tidy(&mut self) -> Result<()> {
        if self.untidy {
            self.device.set_len(self.end - self.kept.len() as u64)?;
            self.sync_device()?;
            self.untidy = false;
        }
        Ok(())
    }

    fn write_header(&mut self, base: u64, format: u32) -> Result<()> {
        let header = Header {
            format,
            counter: self.header.counter + 1,
            base,
        };
        self.suspect = true;
        let offset = u64::from(header.slot()) * BLOCK as u64;
        self.device.write_at(offset, &header.encode(&self.id))?;
        self.sync_device()?;
        self.suspect = false;
        self.header = header;
        Ok(())
    }

    /// Makes a log ready for the first record after opening, where none had to be replayed:
    /// completes a restart that a crash prevented after the root was written, and cuts off what
    /// follows the last record. Only then may records that an older root would need be
    /// overwritten.
    pub(crate) fn settle(&mut self, root_version: u64) -> Result<()> {
        debug_assert_eq!(self.end, FIRST_RECORD);
        // An invalid slot may be what a crash has left of `renew`.
        if root_version > self.header.base || self.is_old() || self.suspect {
            // As in `restart`; the records stay until the header says that they are not needed.
            self.end = if self.is_old() {
                FIRST_RECORD
            } else {
                self.found
            };
            let tidied = self.tidy();
            self.end = FIRST_RECORD;
            tidied?;
            self.look_behind()?;
            self.write_header(root_version, LOG_VERSION)?;
        }
        self.tidy()
    }

    /// Writes a header again that may be torn. A checkpoint does so before it writes a root, so
    /// that no crash leaves both a root and a header torn.
    pub(crate) fn repair(&mut self) -> Result<()> {
        if self.suspect {
            // The records stay as they are, from the same one on.
            self.write_header(self.header.base, self.header.format)
        } else {
            Ok(())
        }
    }

    /// Writes a header anew, of a log all of whose records the root includes, before a root is written
    /// that may be torn: that the log is newer than the other root then shows that a crash has done it.
    pub(crate) fn renew(&mut self, root_version: u64) -> Result<()> {
        self.write_header(root_version, self.header.format)
    }

    /// Whether nobody has restarted the log, or appended to it, since it led to `version`.
    pub(crate) fn is_unchanged(&self, version: u64) -> Result<bool> {
        let found = Log::open(self.device.clone(), self.id)?;
        if found.log.header.counter != self.header.counter {
            return Ok(false);
        }
        let before = (self.end > FIRST_RECORD).then_some(version);
        let mut source = Source::new(&*self.device)?;
        let reads = self.reads(version);
        Ok(match scan::next(&*reads, &mut source, self.end, before)? {
            Next::Record(record) => record.version != version + 1,
            Next::End | Next::Rest(_) => true,
        })
    }

    /// Notices what another process has left unfinished behind the end.
    pub(crate) fn look_behind(&mut self) -> Result<()> {
        self.untidy |= self.device.len()? > self.end;
        Ok(())
    }

    /// Starts anew: a durable root includes everything up to `base`. What is there stays, to be written
    /// over: that makes a sync cheaper than one of new blocks, and records of versions up to `base` are
    /// taken for nothing else.
    pub(crate) fn restart(&mut self, base: u64) -> Result<()> {
        if self.end == FIRST_RECORD && !self.is_old() {
            return Ok(());
        }
        if self.is_old() {
            // Records of another format would be taken for damage.
            self.end = FIRST_RECORD;
            self.untidy = true;
        }
        // What is no record first: behind the new header it would be taken for later ones.
        self.tidy()?;
        self.write_header(base, LOG_VERSION)?;
        self.kept.clear();
        self.end = FIRST_RECORD;
        Ok(())
    }

    /// Gives back, durably, the room that restarts have kept.
    pub(crate) fn trim(&mut self) -> Result<()> {
        self.look_behind()?;
        self.tidy()
    }

    /// Reads the records after `version` and calls `each` with the version, the body and the
    /// offset of the record; the log then ends after the last of them. What follows it is
    /// [dropped](Log::dropped) if a crash cut it short, or if `damage` says so, else an error.
    pub(crate) fn replay(
        &mut self,
        version: u64,
        damage: Damage,
        mut each: impl FnMut(u64, &[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let device = self.device.clone();
        let mut source = Source::new(&*device)?;
        source.limit(self.memory);
        let reads = self.reads(version);
        let mut offset = FIRST_RECORD;
        let mut last: Option<u64> = None;
        loop {
            let record = match scan::next(&*reads, &mut source, offset, last)? {
                Next::Record(record) => record,
                Next::End => break,
                Next::Rest(rest) => {
                    let dropped = Dropped {
                        version: last.unwrap_or(version).max(version) + 1,
                        offset: rest.offset,
                        bytes: rest.bytes,
                        damage: rest.damage,
                    };
                    self.drop_rest(dropped, damage)?;
                    break;
                }
            };
            if record.version > version {
                if last.unwrap_or(version).max(version) + 1 != record.version {
                    let detail = format!(
                        "versions from {} to {} are missing",
                        version + 1,
                        record.version - 1
                    );
                    return Err(self.damaged(record.version, offset, detail));
                }
                each(record.version, &record.body, offset)?;
                self.end = record.end;
            }
            last = Some(record.version);
            offset = record.end;
        }
        self.found = offset;
        self.untidy = source.length() > self.end;
        Ok(())
    }

    fn reads(&self, root_version: u64) -> Box<dyn Reads> {
        let seed = self.seed();
        match self.header.format {
            PACKED => Box::new(old::Packed { seed, root_version }),
            format => {
                let layout = match format {
                    ALONE => Layout::Alone,
                    _ => Layout::Grouped,
                };
                Box::new(scan::Sectors {
                    seed,
                    base: self.header.base,
                    layout,
                })
            }
        }
    }

    fn drop_rest(&mut self, rest: Dropped, damage: Damage) -> Result<()> {
        if let (Some(why), Damage::Refuse) = (&rest.damage, damage) {
            return Err(self.damaged(rest.version, rest.offset, why.clone()));
        }
        self.dropped = Some(rest);
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
}
