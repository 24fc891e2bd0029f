//! The sectors that a log is made of.
//!
//! A record takes whole sectors of [`SECTOR`] bytes, and each of them says on its own to which
//! record it belongs, in which place, and by which write. A disk writes a sector whole or not at
//! all, so a loss of power leaves a mixture of sectors that are there and sectors that are not,
//! and never one whose checksum fails. That is how a torn record (not acknowledged) is told from
//! a damaged one (perhaps acknowledged).
//!
//! A write that the operating system cuts short may end within a sector; before it, there were
//! zeros. Such a sector is told from a damaged one, too: it ends with zeros where its checksum
//! should be.

use crate::format::bytes::{Put, Reader, Tag, checksum};
use crate::format::structures::LIMIT;

/// The longest body of a record.
pub(crate) const MAX_BODY: u64 = 1 << 30;

/// Bytes of a sector: the least that a disk writes whole or not at all.
pub(super) const SECTOR: usize = 512;
const TAIL: usize = 8;

/// What stands before the content of a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Mark, number and version, as log format 2 has them: each record was durable before the next
    /// was written.
    Alone,
    /// The same, and how many of the versions before were perhaps not durable.
    Grouped,
}

impl Layout {
    const fn head(self) -> usize {
        match self {
            Layout::Alone => 16,
            Layout::Grouped => 20,
        }
    }

    /// Bytes of a record in one sector.
    pub(super) const fn payload(self) -> usize {
        SECTOR - self.head() - TAIL
    }
}
/// What a record has before its body: length and checksum.
const PREFIX: usize = 8;
/// The last byte of every mark, and so of every sector: several bits, so that no flip of one makes
/// a whole sector look like one that was cut short.
const END: u32 = 0xa5;

/// The mark of a write, by a number that is another for each.
pub(super) fn mark(write: u32) -> u32 {
    END << 24 | write & 0x00ff_ffff
}

/// What tells the records of one log from those of another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed(u32);

impl Seed {
    pub(super) fn of(id: &[u8; 16]) -> Seed {
        Seed(
            id.iter()
                .fold(0, |seed: u32, &byte| seed.rotate_left(5) ^ u32::from(byte)),
        )
    }

    pub(super) fn number(self) -> u32 {
        self.0
    }

    /// The checksum of a sector that lies at `offset` of the log.
    fn sector(self, offset: u64, bytes: &[u8]) -> u32 {
        let sum = checksum(Tag::LogSector, self.0, bytes);
        crc32c::crc32c_append(sum, &offset.to_le_bytes())
    }
}

/// A sector whose checksum matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// The same in all sectors of one write, another in the next: see [`mark`].
    pub(super) mark: u32,
    /// Which sector of its record it is.
    pub(super) number: u32,
    /// The version that the record leads to.
    pub(super) version: u64,
    /// The last version that was durable when the record was written.
    pub(super) durable: u64,
    pub(super) payload: &'a [u8],
}

/// What the bytes of a sector are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sector<'a> {
    /// Zeros: never written.
    Empty,
    Whole(Frame<'a>),
    /// The beginning of a sector, then zeros: its write was cut short.
    Cut,
    /// Something that no write leaves, whole or cut short.
    Damaged,
}

impl<'a> Sector<'a> {
    /// Judges the `SECTOR` bytes at `offset` of the log.
    pub(super) fn judge(bytes: &'a [u8], offset: u64, seed: Seed, layout: Layout) -> Sector<'a> {
        debug_assert_eq!(bytes.len(), SECTOR);
        if bytes.iter().all(|&byte| byte == 0) {
            return Sector::Empty;
        }
        let (body, tail) = bytes.split_at(SECTOR - TAIL);
        let tail_is = tail_of(body, offset, seed);
        if tail == tail_is {
            return Frame::decode(body, layout).map_or(Sector::Damaged, Sector::Whole);
        }
        let written = tail.iter().rposition(|&byte| byte != 0);
        let written = written.map_or(0, |last| last + 1);
        if tail[..written] == tail_is[..written] {
            Sector::Cut
        } else {
            Sector::Damaged
        }
    }
}

/// The checksum, and the mark once more, whose last byte is never zero.
pub(super) fn tail_of(body: &[u8], offset: u64, seed: Seed) -> [u8; TAIL] {
    let mut tail = [0; TAIL];
    let (sum, mark) = tail.split_at_mut(4);
    sum.copy_from_slice(&seed.sector(offset, body).to_le_bytes());
    mark.copy_from_slice(&body[..4]);
    tail
}

impl<'a> Frame<'a> {
    fn decode(body: &'a [u8], layout: Layout) -> Option<Frame<'a>> {
        let mut reader = Reader::new(body);
        let (mark, number) = (reader.u32()?, reader.u32()?);
        let version = reader.u64().filter(|&version| version < LIMIT)?;
        let open = match layout {
            Layout::Alone => 0,
            Layout::Grouped => reader.u32()?,
        };
        Some(Frame {
            mark,
            number,
            version,
            durable: version.saturating_sub(1 + u64::from(open)),
            payload: reader.take(layout.payload())?,
        })
    }
}

/// How many sectors a record with a body of this many bytes takes.
pub(super) fn sectors(body: u64, layout: Layout) -> u64 {
    (PREFIX as u64 + body).div_ceil(layout.payload() as u64)
}

/// The length of a record's body and its checksum, from the payload of the first sector.
pub(super) fn prefix(payload: &[u8]) -> Option<(u64, u32)> {
    let mut reader = Reader::new(payload);
    Some((u64::from(reader.u32()?), reader.u32()?))
}

/// The checksum of a body.
pub(super) fn body_sum(body: &[u8], seed: Seed) -> u32 {
    checksum(Tag::RecordBody, seed.0, body)
}

/// Adds the payload of sector `number` to a body that is to be `length` bytes long.
pub(super) fn gather(body: &mut Vec<u8>, length: u64, number: u32, payload: &[u8]) {
    let payload = match number {
        0 => &payload[PREFIX..],
        _ => payload,
    };
    let missing = (length as usize).saturating_sub(body.len());
    body.extend_from_slice(&payload[..missing.min(payload.len())]);
}

/// The sectors of the record that leads to `version`, as one write puts them at `offset`. Versions
/// after `durable` are perhaps not durable yet.
pub(super) fn encode(
    (version, durable): (u64, u64),
    body: &[u8],
    mark: u32,
    offset: u64,
    seed: Seed,
) -> Vec<u8> {
    debug_assert!(mark >> 24 == END && offset.is_multiple_of(SECTOR as u64));
    const LAYOUT: Layout = Layout::Grouped;
    // So many that they do not fit are as many as fit: that proves less, and nothing wrong.
    let open = u32::try_from(version.saturating_sub(durable + 1)).unwrap_or(u32::MAX);
    let count = sectors(body.len() as u64, LAYOUT);
    let mut out = Vec::with_capacity(count as usize * SECTOR);
    let mut rest = body;
    for number in 0..count as u32 {
        let start = out.len();
        out.put_u32(mark);
        out.put_u32(number);
        out.put_u64(version);
        out.put_u32(open);
        if number == 0 {
            out.put_u32(body.len() as u32);
            out.put_u32(body_sum(body, seed));
        }
        let room = start + SECTOR - TAIL - out.len();
        let (here, later) = rest.split_at(room.min(rest.len()));
        out.extend_from_slice(here);
        rest = later;
        out.resize(start + SECTOR - TAIL, 0);
        let tail = tail_of(&out[start..], offset + start as u64, seed);
        out.extend_from_slice(&tail);
    }
    out
}

const _: () = assert!(Layout::Grouped.payload() > PREFIX);

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed(77);

    fn judge(sector: &[u8]) -> Sector<'_> {
        Sector::judge(sector, 8192, SEED, Layout::Grouped)
    }

    #[test]
    fn bodies_of_every_length_come_back() {
        for length in (0..1500).step_by(61).chain([476, 477, 960, 961]) {
            let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let record = encode((9, 6), &body, mark(5), 8192, SEED);
            let count = sectors(length as u64, Layout::Grouped);
            assert_eq!(record.len() as u64, count * SECTOR as u64);
            let mut back = Vec::new();
            for (number, sector) in (0u32..).zip(record.chunks_exact(SECTOR)) {
                let offset = 8192 + u64::from(number) * SECTOR as u64;
                let judged = Sector::judge(sector, offset, SEED, Layout::Grouped);
                let Sector::Whole(frame) = judged else {
                    panic!("sector {number} of a body of {length} bytes");
                };
                assert_eq!(
                    (frame.mark, frame.number, frame.version, frame.durable),
                    (mark(5), number, 9, 6)
                );
                if number == 0 {
                    let sum = body_sum(&body, SEED);
                    assert_eq!(prefix(frame.payload), Some((length as u64, sum)));
                }
                gather(&mut back, length as u64, number, frame.payload);
            }
            assert_eq!(back, body);
        }
    }

    #[test]
    fn every_flipped_bit_is_damage_and_every_cut_is_a_cut() {
        let record = encode((9, 8), &[7; 300], mark(1), 8192, SEED);
        assert!(matches!(judge(&record), Sector::Whole(_)));
        for bit in 0..SECTOR * 8 {
            let mut bad = record.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(judge(&bad), Sector::Damaged, "bit {bit}");
        }
        for written in 1..SECTOR {
            let mut cut = record.clone();
            cut[written..].fill(0);
            assert_eq!(judge(&cut), Sector::Cut, "{written} bytes");
        }
        assert_eq!(judge(&[0; SECTOR]), Sector::Empty);
        let elsewhere = Sector::judge(&record, 8192 + 512, SEED, Layout::Grouped);
        assert_eq!(elsewhere, Sector::Damaged, "a sector in another's place");
        let foreign = Sector::judge(&record, 8192, Seed(78), Layout::Grouped);
        assert_eq!(foreign, Sector::Damaged, "a sector of another store");
    }
}
