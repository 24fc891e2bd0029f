//! Reading records, and judging what follows the last of them.

use super::frame::{self, Frame, Layout, MAX_BODY, SECTOR, Sector, Seed};
use super::header::FIRST_RECORD;
use super::source::Source;
use crate::error::Result;

/// How often the disk is asked again before it is believed that a record is not valid.
const READS_AGAIN: usize = 2;
/// How far a search for later records goes: no record is longer.
const REACH: u64 = (MAX_BODY / Layout::Grouped.payload() as u64 + 2) * SECTOR as u64;

/// A valid record.
pub(super) struct Record {
    pub(super) version: u64,
    pub(super) body: Vec<u8>,
    /// Where the next one begins.
    pub(super) end: u64,
}

/// What is where a record could begin.
pub(super) enum Next {
    Record(Record),
    /// Nothing: the log ends here.
    End,
    /// Something that is not a valid record.
    Rest(Rest),
}

/// Bytes after the last valid record that are not zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) offset: u64,
    /// Bytes from `offset` to the end of the log.
    pub(super) bytes: u64,
    /// Why they were perhaps a commit that was acknowledged; `None` if they surely were not.
    pub(super) damage: Option<String>,
}

/// Reads records in one of the two formats.
pub(super) trait Reads {
    /// What is at `offset`. `after` is the last version before, if there was one.
    fn next(&self, source: &mut Source<'_>, offset: u64, after: Option<u64>) -> Result<Next>;
}

/// [`Reads::next`], asking the disk again where there is not a valid record. One good read is
/// enough for a record; of several that are not, the one that says most is believed.
pub(super) fn next(
    reads: &dyn Reads,
    source: &mut Source<'_>,
    offset: u64,
    after: Option<u64>,
) -> Result<Next> {
    let mut found = reads.next(source, offset, after)?;
    for turn in 0..READS_AGAIN {
        let enough = match found {
            Next::Record(_) => true,
            // Two reads that find nothing are enough.
            Next::End => turn > 0 || offset >= source.length(),
            Next::Rest(_) => false,
        };
        if enough {
            break;
        }
        source.forget();
        let again = reads.next(source, offset, after)?;
        if rank(&again) >= rank(&found) {
            found = again;
        }
    }
    Ok(found)
}

fn rank(next: &Next) -> u32 {
    match next {
        Next::End => 0,
        Next::Rest(Rest { damage: None, .. }) => 1,
        Next::Rest(_) => 2,
        Next::Record(_) => 3,
    }
}

/// Reads records of sectors (log formats 2 and 3).
pub(super) struct Sectors {
    pub(super) seed: Seed,
    /// The version before that of the first record. Records of versions up to it may stand anywhere
    /// behind the last one: they were there before the log began anew.
    pub(super) base: u64,
    pub(super) layout: Layout,
}

impl Reads for Sectors {
    fn next(&self, source: &mut Source<'_>, offset: u64, after: Option<u64>) -> Result<Next> {
        if offset >= source.length() {
            return Ok(Next::End);
        }
        let expected = after.unwrap_or(self.base) + 1;
        let sector = source.sector(offset)?;
        let Sector::Whole(first) = Sector::judge(&sector, offset, self.seed, self.layout) else {
            return self.rest(source, offset, expected);
        };
        let wanted = first.number == 0 && first.version == expected;
        match frame::prefix(first.payload) {
            Some((length, sum)) if wanted && length <= MAX_BODY => {
                self.record(source, offset, expected, &first, length, sum)
            }
            _ => self.rest(source, offset, expected),
        }
    }
}

impl Sectors {
    /// The record that begins with the sector `first`.
    fn record(
        &self,
        source: &mut Source<'_>,
        offset: u64,
        expected: u64,
        first: &Frame<'_>,
        length: u64,
        sum: u32,
    ) -> Result<Next> {
        source.admit(first.version, length)?;
        let mut body = Vec::new();
        let count = frame::sectors(length, self.layout);
        for number in 0..count as u32 {
            let place = offset + u64::from(number) * SECTOR as u64;
            let sector = source.sector(place)?;
            match Sector::judge(&sector, place, self.seed, self.layout) {
                Sector::Whole(frame)
                    if (frame.mark, frame.number, frame.version)
                        == (first.mark, number, first.version) =>
                {
                    frame::gather(&mut body, length, number, frame.payload);
                }
                _ => return self.rest(source, offset, expected),
            }
        }
        if frame::body_sum(&body, self.seed) != sum {
            let why = "its sectors are valid, and its checksum does not match".to_string();
            return Ok(rest(source, offset, Some(why)));
        }
        Ok(Next::Record(Record {
            version: first.version,
            body,
            end: offset + count * SECTOR as u64,
        }))
    }

    /// Judges what is at `offset`, where the record of version `expected` could be and is not:
    /// looks at each sector once.
    fn rest(&self, source: &mut Source<'_>, offset: u64, expected: u64) -> Result<Next> {
        let end = source.length().min(offset.saturating_add(REACH));
        let mut written = false;
        for place in (offset..end).step_by(SECTOR) {
            let sector = source.sector(place)?;
            let damage = match Sector::judge(&sector, place, self.seed, self.layout) {
                Sector::Empty => continue,
                // What was there before.
                Sector::Whole(frame) if frame.version < expected => continue,
                Sector::Whole(frame) => proof(&frame, (offset, place), expected),
                Sector::Cut => None,
                Sector::Damaged => Some(format!("the checksum at offset {place} does not match")),
            };
            written = true;
            if damage.is_some() {
                return Ok(rest(source, offset, damage));
            }
        }
        Ok(if written {
            rest(source, offset, None)
        } else {
            Next::End
        })
    }
}

/// Why a valid sector at `place`, not of an earlier version than `expected`, proves that the record
/// at `offset` was durable: one that says so was written only after that. Later ones that do not
/// were written together with it, or shortly after, and as little durable.
fn proof(frame: &Frame<'_>, (offset, place): (u64, u64), expected: u64) -> Option<String> {
    let before = u64::from(frame.number) * SECTOR as u64;
    let here = place - offset == before;
    (frame.durable >= expected || (frame.version == expected && !here)).then(|| {
        format!(
            "it is not valid, but the record of version {} at offset {} is",
            frame.version,
            place.saturating_sub(before)
        )
    })
}

/// What is left from `offset` on.
pub(super) fn rest(source: &Source<'_>, offset: u64, damage: Option<String>) -> Next {
    debug_assert!(offset >= FIRST_RECORD);
    Next::Rest(Rest {
        offset,
        bytes: source.length().saturating_sub(offset),
        damage,
    })
}
