//! Hostile bytes for headers, sectors and records of the log, in all of its formats.

use std::sync::Arc;

use fuzz::{Draw, Target};
use io::Device;
use io::fault::Disk;

use super::file::Log;
use super::frame::{self, Layout, SECTOR, Sector, Seed};
use super::header::{ALONE, FIRST_RECORD, Header, LOG_VERSION, PACKED};
use super::old;
use crate::error::Error;
use crate::format::bytes::Tag;
use crate::format::fuzzed::forge_block;
use crate::format::structures::{Bad, LIMIT};
use crate::options::Damage;

const ID: [u8; 16] = [3; 16];

#[test]
fn headers() {
    let words = &["valid", "magic", "checksum", "fields", "newer"];
    let target = Target::new("log::fuzzed::headers", 20_000).expects(words);
    target.run(|draw| {
        let header = Header {
            format: draw.below(LOG_VERSION as usize + 1) as u32,
            counter: draw.number() % LIMIT,
            base: draw.number(),
        };
        let mut block = header.encode(&ID);
        forge_block(draw, &mut block, Tag::LogHeader, u32::from(header.slot()));
        match Header::decode(&block, header.slot()) {
            Ok((_, found)) => {
                assert!(found.counter < LIMIT && found.base < LIMIT, "{found:?}");
                "valid"
            }
            Err(Bad::Magic) => "magic",
            Err(Bad::Checksum) => "checksum",
            Err(Bad::Newer(_)) => "newer",
            Err(Bad::Fields(_)) => "fields",
        }
    });
}

/// Makes the checksum of the sector at `offset` anew, and the mark at its end.
fn seal(sector: &mut [u8], offset: u64) {
    let tail = frame::tail_of(&sector[..SECTOR - 8], offset, Seed::of(&ID));
    sector[SECTOR - 8..].copy_from_slice(&tail);
}

/// The record of `version` at `offset` as the format has it.
fn record(draw: &mut Draw, format: u32, version: u64, offset: u64) -> Vec<u8> {
    let length = *draw.one_of(&[0, 30, 400, 476, 477, 1500]);
    let body = draw.bytes(length);
    let seed = Seed::of(&ID);
    if format == PACKED {
        return old::encode(version, &body, seed);
    }
    let mark = frame::mark(draw.number() as u32);
    let durable = version.saturating_sub(1 + draw.below(3) as u64);
    let mut record = frame::encode((version, durable), &body, mark, offset, seed);
    if format == ALONE {
        // The field that the format has not is at the end of the head; one sector serves.
        record.truncate(SECTOR);
        let body = &body[..body.len().min(Layout::Alone.payload() - 8)];
        record[16..20].copy_from_slice(&(body.len() as u32).to_le_bytes());
        record[20..24].copy_from_slice(&frame::body_sum(body, seed).to_le_bytes());
        record[24..504].fill(0);
        record[24..24 + body.len()].copy_from_slice(body);
        seal(&mut record, offset);
    }
    record
}

/// Changes a sector of the records; mostly its checksum is right then.
fn forge_sector(draw: &mut Draw, records: &mut [u8]) {
    if records.len() < SECTOR {
        return;
    }
    let at = draw.below(records.len() / SECTOR) * SECTOR;
    let sector = &mut records[at..at + SECTOR];
    if draw.one_in(6) {
        draw.disturb(sector);
        return;
    }
    // The head with mark, number, version, length and checksum of the body; or all.
    let end = *draw.one_of(&[28, 28, SECTOR - 8]);
    draw.disturb(&mut sector[..end]);
    seal(sector, FIRST_RECORD + at as u64);
}

#[test]
fn sectors() {
    let words = &["whole", "cut", "damaged", "empty"];
    let target = Target::new("log::fuzzed::sectors", 20_000).expects(words);
    target.run(|draw| {
        let layout = *draw.one_of(&[Layout::Alone, Layout::Grouped]);
        let mut sector = record(draw, LOG_VERSION, 9, FIRST_RECORD);
        sector.truncate(SECTOR);
        match draw.below(8) {
            0 => {
                let written = draw.below(SECTOR);
                sector[written..].fill(0);
            }
            1 => sector.fill(0),
            _ => forge_sector(draw, &mut sector),
        }
        match Sector::judge(&sector, FIRST_RECORD, Seed::of(&ID), layout) {
            Sector::Whole(frame) => {
                assert!(frame.version < LIMIT && frame.payload.len() == layout.payload());
                let (length, _) = frame::prefix(frame.payload).unwrap();
                let mut body = Vec::new();
                frame::gather(&mut body, length, frame.number, frame.payload);
                assert!(body.len() <= layout.payload());
                "whole"
            }
            Sector::Cut => "cut",
            Sector::Damaged => "damaged",
            Sector::Empty => "empty",
        }
    });
}

/// A log of some records, of which bytes were changed.
fn any_log(draw: &mut Draw) -> Arc<dyn Device> {
    let device = Disk::new(1).device("log");
    let format = *draw.one_of(&[PACKED, ALONE, LOG_VERSION, LOG_VERSION, 0]);
    let base = draw.below(3) as u64;
    for counter in [0, 1] {
        let header = Header {
            format,
            counter,
            base,
        };
        device
            .write_at(counter * 4096, &header.encode(&ID))
            .unwrap();
    }
    let mut records = Vec::new();
    let mut version = base;
    for _ in 0..draw.below(6) {
        // Now and then one is missing, or comes again.
        version =
            (version + 1 + u64::from(draw.one_in(12))).saturating_sub(u64::from(draw.one_in(12)));
        let offset = FIRST_RECORD + records.len() as u64;
        records.extend(record(draw, format, version, offset));
    }
    match draw.below(4) {
        0 => {}
        1 => draw.mutate(&mut records),
        _ => forge_sector(draw, &mut records),
    }
    if draw.one_in(6) {
        let zeros = draw.below(2000);
        records.resize(records.len() + zeros, 0);
    }
    device.write_at(FIRST_RECORD, &records).unwrap();
    device
}

/// The versions that a log leads through, after that of a root.
fn versions(log: &mut Log, after: u64, damage: Damage) -> Result<Vec<u64>, Error> {
    let mut versions = Vec::new();
    log.replay(after, damage, |version, _, _| {
        versions.push(version);
        Ok(())
    })?;
    Ok(versions)
}

#[test]
fn logs_are_replayed_checked_and_written_on() {
    let words = &["whole", "dropped", "given up"];
    let name = "log::fuzzed::logs_are_replayed_checked_and_written_on";
    let target = Target::new(name, 6_000).expects(words);
    target.run(|draw| {
        let device = any_log(draw);
        let mut log = Log::open(device.clone(), ID).unwrap().log;
        // A root that is older than the log's base is refused before.
        let after = log.header().base + draw.below(4) as u64;
        let (found, word) = match versions(&mut log, after, Damage::Refuse) {
            Ok(found) if log.dropped().is_some() => (found, "dropped"),
            Ok(found) => (found, "whole"),
            Err(error) => {
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                log = Log::open(device.clone(), ID).unwrap().log;
                let found = versions(&mut log, after, Damage::Drop).unwrap();
                (found, "given up")
            }
        };
        let expected: Vec<u64> = (after + 1..).take(found.len()).collect();
        assert_eq!(found, expected, "without a gap");
        let last = after + found.len() as u64;
        let _ = log.check(after, last);
        // A writer makes a checkpoint of what it replayed, or finds nothing to replay.
        if found.is_empty() {
            log.settle(after).unwrap();
        } else {
            log.restart(last).unwrap();
        }
        log.tidy().unwrap();
        log.append((last + 1, last), b"written on", true).unwrap();
        let mut log = Log::open(device, ID).unwrap().log;
        assert_eq!(
            versions(&mut log, last, Damage::Refuse).unwrap(),
            [last + 1]
        );
        word
    });
}
