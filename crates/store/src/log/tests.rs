//! The log by itself: what comes back, what is torn, what is damaged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use io::Device;
use io::fault::Disk;

use super::file::Log;
use super::frame::{SECTOR, Seed};
use super::header::{FIRST_RECORD, Header, PACKED};
use super::old;
use super::report::Dropped;
use crate::error::{Error, Region, Result};
use crate::format::structures::BLOCK;
use crate::options::Damage;

const ID: [u8; 16] = [3; 16];

/// The body of a version: from some bytes to some sectors.
fn body(version: u64) -> Vec<u8> {
    format!("body of {version}, ")
        .repeat(1 + 61 * (version as usize % 3))
        .into_bytes()
}

fn replay(device: &Arc<dyn Device>, after: u64, damage: Damage) -> Result<(Vec<u64>, Log)> {
    let mut log = Log::open(device.clone(), ID)?.log;
    let mut versions = Vec::new();
    log.replay(after, damage, |version, found, _| {
        assert_eq!(found, body(version));
        versions.push(version);
        Ok(())
    })?;
    Ok((versions, log))
}

fn versions(device: &Arc<dyn Device>, after: u64) -> Result<Vec<u64>> {
    replay(device, after, Damage::Refuse).map(|(versions, _)| versions)
}

fn write(log: &mut Log, versions: std::ops::RangeInclusive<u64>) {
    for version in versions {
        log.tidy().unwrap();
        let versions = (version, version - 1);
        log.append(versions, &body(version), true).unwrap();
        log.device().sync().unwrap();
    }
}

fn flip(device: &Arc<dyn Device>, offset: u64) {
    let mut byte = [0];
    device.read_at(offset, &mut byte).unwrap();
    device.write_at(offset, &[byte[0] ^ 4]).unwrap();
}

/// A log of the versions from 1 on, and where the last of them begins.
fn log_of(last: u64) -> (Arc<dyn Device>, Log, u64) {
    let device = Disk::new(1).device("log");
    let mut log = Log::create(device.clone(), ID).unwrap();
    write(&mut log, 1..=last - 1);
    let start = log.end;
    write(&mut log, last..=last);
    (device, log, start)
}

fn bytes(device: &Arc<dyn Device>) -> Vec<u8> {
    let mut bytes = vec![0; device.len().unwrap() as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

/// A device whose reads pass through a function first.
struct Read<F>(Arc<dyn Device>, F);

impl<F> std::fmt::Debug for Read<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<F: Fn(u64, &mut [u8]) + Send + Sync> Device for Read<F> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)?;
        self.1(offset, into);
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, from)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

#[test]
fn records_come_back_and_history_is_skipped() {
    let (device, mut log, _) = log_of(5);
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
    let (device, mut log, _) = log_of(9);
    let old = bytes(&device)[FIRST_RECORD as usize..].to_vec();
    log.restart(9).unwrap();
    device.write_at(FIRST_RECORD, &old).unwrap();
    write(&mut log, 10..=10);
    let (found, log) = replay(&device, 9, Damage::Refuse).unwrap();
    assert_eq!(found, [10]);
    assert_eq!(log.dropped(), None);
}

#[test]
fn what_a_crash_leaves_of_the_last_record_is_dropped_and_reported() {
    let (device, log, start) = log_of(5);
    let whole = bytes(&device);
    let sectors = (log.end - start) / SECTOR as u64;
    assert!(sectors > 2);
    let torn = |image: Vec<u8>, of: String| {
        let device = Disk::new(0).device("log");
        device.write_at(0, &image).unwrap();
        let (found, log) = replay(&device, 0, Damage::Refuse).unwrap();
        assert_eq!(found, [1, 2, 3, 4], "{of}");
        assert_eq!(log.end, start, "{of}");
        log.dropped().cloned()
    };
    // The length came through up to some byte.
    for length in start..log.end {
        let dropped = torn(
            whole[..length as usize].to_vec(),
            format!("cut at {length}"),
        );
        // A record begins with random bytes: zeros at its beginning are as nothing.
        let some = whole[start as usize..length as usize]
            .iter()
            .any(|&byte| byte != 0);
        let expected = some.then(|| Dropped {
            version: 5,
            offset: start,
            bytes: length - start,
            damage: None,
        });
        assert_eq!(dropped, expected);
    }
    // Any of its sectors came through, but not all.
    for kept in 0..(1u32 << sectors) - 1 {
        let mut image = whole.clone();
        for lost in (0..sectors).filter(|sector| kept >> sector & 1 == 0) {
            let at = start as usize + lost as usize * SECTOR;
            image[at..at + SECTOR].fill(0);
        }
        let dropped = torn(image, format!("sectors {kept:b}"));
        assert_eq!(dropped.is_some(), kept != 0, "{kept:b}");
    }
}

#[test]
fn a_flipped_bit_of_any_record_is_damage() {
    let (device, log, start) = log_of(5);
    for offset in FIRST_RECORD..log.end {
        flip(&device, offset);
        let Err(Error::Damaged {
            region: Region::LogRecord(version),
            offset: place,
            ..
        }) = versions(&device, 0)
        else {
            panic!("byte {offset} is not noticed");
        };
        assert!(place <= offset && (place == start) == (offset >= start));
        let (kept, log) = replay(&device, 0, Damage::Drop).unwrap();
        assert_eq!(kept, (1..version).collect::<Vec<_>>());
        let dropped = log.dropped().unwrap();
        assert_eq!((dropped.version, dropped.offset), (version, place));
        assert!(dropped.damage.is_some());
        flip(&device, offset);
    }
    // A whole sector lost: told by the records after it, if there are any.
    for sector in (FIRST_RECORD..start).step_by(SECTOR) {
        let mut before = [0; SECTOR];
        device.read_at(sector, &mut before).unwrap();
        device.write_at(sector, &[0; SECTOR]).unwrap();
        let error = versions(&device, 0).unwrap_err().to_string();
        assert!(error.contains("not valid, but the record"), "{error}");
        assert!(error.contains("atoll pages STORE repair"), "{error}");
        device.write_at(sector, &before).unwrap();
    }
}

#[test]
fn one_bad_read_costs_nothing() {
    let (device, log, start) = log_of(5);
    type Spoil = fn(&mut [u8]);
    let spoils: [Spoil; 3] = [
        |bytes| bytes[20] ^= 1,
        |bytes| bytes.fill(0),
        |bytes| bytes.fill(0xee),
    ];
    for spoil in spoils {
        let left = AtomicU64::new(1);
        let bad = move |offset: u64, into: &mut [u8]| {
            let at = start.checked_sub(offset).unwrap_or(u64::MAX) as usize;
            if at < into.len() && left.swap(0, Ordering::Relaxed) == 1 {
                spoil(&mut into[at..]);
            }
        };
        let device: Arc<dyn Device> = Arc::new(Read(device.clone(), bad));
        assert_eq!(versions(&device, 0).unwrap(), [1, 2, 3, 4, 5]);
    }
    assert!(log.end > start);
}

#[test]
fn what_a_failed_write_left_is_cut_off_before_the_next() {
    let disk = Disk::new(1);
    let device = disk.device("log");
    let mut log = Log::create(device.clone(), ID).unwrap();
    write(&mut log, 1..=3);
    let (end, used) = (log.end, disk.bytes("log").len() as u64);
    disk.set_capacity(used + 700);
    let error = log.append((4, 3), &[1; 5000], true).unwrap_err();
    assert!(error.is_full(), "{error}");
    disk.set_capacity(u64::MAX);
    // As if its cutting off had failed as well.
    device.write_at(end, &[9; 3000]).unwrap();
    write(&mut log, 4..=4);
    let (found, log) = replay(&device, 0, Damage::Refuse).unwrap();
    assert_eq!((found, log.dropped()), (vec![1, 2, 3, 4], None));
}

#[test]
fn a_log_that_begins_anew_is_written_over_and_given_back_when_asked() {
    let (device, mut log, _) = log_of(40);
    let full = device.len().unwrap();
    log.restart(40).unwrap();
    write(&mut log, 41..=60);
    assert_eq!(device.len().unwrap(), full);
    assert_eq!(
        versions(&device, 40).unwrap(),
        (41..=60).collect::<Vec<_>>()
    );
    // A record of which a sector was not written, with older ones behind it.
    let end = log.end;
    log.append((61, 60), &[1; 3000], true).unwrap();
    let mut old = [0; SECTOR];
    let (source, _, _) = log_of(40);
    source.read_at(end + SECTOR as u64, &mut old).unwrap();
    device.write_at(end + SECTOR as u64, &old).unwrap();
    let (found, mut left) = replay(&device, 40, Damage::Refuse).unwrap();
    assert_eq!((found.len(), left.dropped().unwrap().offset), (20, end));
    // Its remains are gone before the log begins anew, or they would be taken for what comes then.
    left.restart(60).unwrap();
    assert!(device.len().unwrap() <= end);
    write(&mut left, 61..=61);
    assert_eq!(versions(&device, 60).unwrap(), [61]);
    left.trim().unwrap();
    assert_eq!(device.len().unwrap(), left.end);
}

#[test]
fn a_log_with_a_hole_is_read_in_pieces() {
    // 8 TiB, of which all but the beginning is a hole.
    let directory = tempfile::tempdir().unwrap();
    let file = io::File::create(directory.path().join("log")).unwrap();
    let device: Arc<dyn Device> = Arc::new(file);
    let mut log = Log::create(device.clone(), ID).unwrap();
    write(&mut log, 1..=3);
    device.set_len(8 << 40).unwrap();
    let most = Arc::new(AtomicU64::new(0));
    let seen = most.clone();
    let measure = move |_: u64, into: &mut [u8]| {
        seen.fetch_max(into.len() as u64, Ordering::Relaxed);
    };
    let measured: Arc<dyn Device> = Arc::new(Read(device, measure));
    assert_eq!(versions(&measured, 0).unwrap(), [1, 2, 3]);
    assert!(most.load(Ordering::Relaxed) <= 1 << 20);
}

#[test]
fn the_search_for_later_records_reads_nothing_often() {
    let device = Disk::new(1).device("log");
    let mut log = Log::create(device.clone(), ID).unwrap();
    write(&mut log, 1..=300);
    let length = log.bytes();
    log.restart(300).unwrap();
    // Of the first record nothing is left, and the search finds no version that is later.
    device.write_at(FIRST_RECORD, &[0; SECTOR]).unwrap();
    let read = Arc::new(AtomicU64::new(0));
    let seen = read.clone();
    let count = move |_: u64, into: &mut [u8]| {
        seen.fetch_add(into.len() as u64, Ordering::Relaxed);
    };
    let counted: Arc<dyn Device> = Arc::new(Read(device, count));
    assert_eq!(versions(&counted, 300).unwrap(), [0u64; 0]);
    let read = read.load(Ordering::Relaxed);
    assert!(read < 3 * length, "{read} bytes of {length}");
}

#[test]
fn a_log_of_format_1_is_read_and_then_written_anew() {
    let device = Disk::new(1).device("log");
    let mut log = Log::create(device.clone(), ID).unwrap();
    log.header.format = PACKED;
    for counter in [0, 1] {
        let header = Header {
            format: PACKED,
            counter,
            base: 0,
        };
        let block = header.encode(&ID);
        device.write_at(counter * BLOCK as u64, &block).unwrap();
    }
    let mut records = Vec::new();
    let mut starts = Vec::new();
    for version in 1..=4 {
        starts.push(FIRST_RECORD + records.len() as u64);
        records.extend(old::encode(version, &body(version), Seed::of(&ID)));
    }
    device.write_at(FIRST_RECORD, &records).unwrap();
    let end = FIRST_RECORD + records.len() as u64;
    assert_eq!(versions(&device, 0).unwrap(), [1, 2, 3, 4]);
    assert_eq!(versions(&device, 3).unwrap(), [4]);
    let mut noticed = 0;
    for offset in FIRST_RECORD..end {
        flip(&device, offset);
        // The padding is not covered, and holds nothing.
        match versions(&device, 0) {
            Err(Error::Damaged { .. }) => noticed += 1,
            found => assert_eq!(found.unwrap(), [1, 2, 3, 4], "byte {offset}"),
        }
        flip(&device, offset);
    }
    assert!(end - FIRST_RECORD - noticed < 4 * 8, "{noticed}");
    for length in starts[3]..end {
        device.set_len(length).unwrap();
        let (found, log) = replay(&device, 0, Damage::Refuse).unwrap();
        assert_eq!(found, [1, 2, 3], "not even where only padding is missing");
        assert_eq!(log.dropped().is_some(), length > starts[3]);
        device.write_at(FIRST_RECORD, &records).unwrap();
    }
    let (_, mut log) = replay(&device, 0, Damage::Refuse).unwrap();
    assert!(log.is_old());
    log.restart(4).unwrap();
    assert!(!log.is_old());
    write(&mut log, 5..=6);
    assert_eq!(versions(&device, 4).unwrap(), [5, 6]);
}
