//! Real files: names, locks, errors.

use std::path::Path;
use std::sync::Arc;

use futures::executor::block_on;
use io::fault::Disk;
use store::{Error, Kind, Options, PageId, Store, repair};

use crate::model::{open, open_to_read, small};

#[test]
fn a_store_in_files_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atoll");
    let store = Store::create(&path, &small()).unwrap();
    assert_eq!(store.path(), path);
    let mut transaction = store.begin().unwrap();
    let page = transaction
        .write_page(&[3; 16_384], 9, Kind::Dictionary)
        .unwrap();
    transaction.put(2, b"k", b"v");
    transaction.commit().unwrap();
    drop(store);
    for close in [true, true, false] {
        let store = Store::open(&path, &small()).unwrap();
        assert_eq!(store.snapshot().get(2, b"k").as_deref(), Some(&b"v"[..]));
        assert_eq!(*block_on(store.pool().pin(page)).unwrap(), [3; 16_384][..]);
        let statistics = store.statistics();
        assert_eq!(statistics.kinds[Kind::Dictionary as usize].pages, 1);
        assert_eq!(statistics.zstd.raw_bytes, 16_384);
        if close {
            store.close().unwrap();
        }
    }
    assert!(
        std::fs::metadata(&path).unwrap().len() < 16_384,
        "compressed and trimmed"
    );
}

#[test]
fn files_that_are_not_where_they_should_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atoll");
    let error = Store::open(&path, &small()).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    let error = Store::create(directory.path().join("none/a.atoll"), &small()).unwrap_err();
    assert!(
        matches!(&error, Error::MissingDirectory { path } if path.ends_with("none")),
        "{error}"
    );
    Store::create(&path, &small()).unwrap().close().unwrap();
    let error = Store::create(&path, &small()).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");

    let log = directory.path().join("a.atoll.log");
    std::fs::remove_file(&log).unwrap();
    let error = Store::open(&path, &small()).unwrap_err();
    assert!(
        matches!(&error, Error::LogMissing { path } if *path == log),
        "{error}"
    );
    let other = directory.path().join("b");
    std::fs::write(&other, "text\n").unwrap();
    let error = Store::open(&other, &small()).unwrap_err();
    assert!(matches!(error, Error::NotAtoll { .. }), "{error}");

    // A file of the log's name in the way leaves no half-made store behind.
    let third = directory.path().join("c");
    std::fs::write(directory.path().join("c.log"), "text\n").unwrap();
    let error = Store::create(&third, &small()).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert!(!third.exists());
}

#[test]
fn a_creation_that_was_cut_short_is_repeated_in_files_too() {
    let directory = tempfile::tempdir().unwrap();
    let whole = directory.path().join("whole");
    Store::create(&whole, &small()).unwrap();
    let with_log = |path: &Path| path.with_extension("log");
    let mut draft = std::fs::read(&whole).unwrap();
    draft[..8].copy_from_slice(b"atoll..\0");
    let log = std::fs::read(with_log(&whole)).unwrap();
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let left: [(Vec<u8>, Option<Vec<u8>>); 5] = [
        (vec![], None),
        (vec![], Some(vec![])),
        (draft[..4096].to_vec(), Some(vec![])),
        (draft[..4096].to_vec(), Some(half(&log))),
        (draft.clone(), Some(log)),
    ];
    for (number, (data, log)) in left.into_iter().enumerate() {
        let path = directory.path().join(format!("{number}"));
        std::fs::write(&path, data).unwrap();
        if let Some(log) = log {
            std::fs::write(with_log(&path), log).unwrap();
        }
        let error = Store::open(&path, &small()).unwrap_err();
        assert!(
            matches!(error, Error::Unfinished { .. }),
            "{number}: {error}"
        );
        let store = Store::create(&path, &small()).unwrap();
        let mut transaction = store.begin().unwrap();
        transaction.put(0, b"k", b"v");
        transaction.commit().unwrap();
        drop(store);
        let error = Store::create(&path, &small()).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{number}: {error}");
        let store = Store::open(&path, &small()).unwrap();
        assert_eq!(store.snapshot().get(0, b"k").as_deref(), Some(&b"v"[..]));
    }
}

#[test]
fn what_others_have_in_the_place_of_a_store_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atoll");
    Store::create(&path, &small()).unwrap().close().unwrap();
    let log = directory.path().join("a.atoll.log");
    let (data_is, log_is) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
    // A store whose data file was cut to nothing was more than a creation.
    let store = Store::open(&path, &small()).unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.put(0, b"k", b"v");
    transaction.commit().unwrap();
    store.close().unwrap();
    let used_log = std::fs::read(&log).unwrap();
    let zeros = vec![0; 5000];
    let cases = [
        (b"text\n".to_vec(), vec![]),
        (zeros.clone(), b"text\n".to_vec()),
        (vec![], b"text\n".to_vec()),
        (vec![], used_log),
        (data_is, log_is),
        (vec![7; 20_000], vec![]),
        (vec![0; 20_000], vec![]),
    ];
    for (number, (data, records)) in cases.into_iter().enumerate() {
        std::fs::write(&path, &data).unwrap();
        std::fs::write(&log, &records).unwrap();
        let error = Store::create(&path, &small()).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{number}: {error}");
        assert!(std::fs::read(&path).unwrap() == data, "{number}");
        assert!(std::fs::read(&log).unwrap() == records, "{number}");
    }
}

/// A store as release 0.1 left it: three commits with a page each, closed, opened, and three
/// commits more that are only in its log, which is of format 1.
fn of_format_1() -> Disk {
    let disk = Disk::new(0);
    disk.put("data", include_bytes!("format1/data").to_vec());
    disk.put("log", include_bytes!("format1/log").to_vec());
    disk
}

/// What that store holds up to a version.
fn holds(store: &Arc<Store>, version: u8) {
    let snapshot = store.snapshot();
    assert_eq!(snapshot.version(), u64::from(version));
    for step in 0..3u8 {
        let page = snapshot.get(1, &[step]).unwrap();
        let page = PageId::from_le_bytes(page[..].try_into().unwrap());
        assert_eq!(
            *block_on(snapshot.pool().pin(page)).unwrap(),
            [step + 1; 3000][..]
        );
    }
    for step in 3..6u8 {
        let value = (step < version).then(|| format!("value {step}").into_bytes());
        assert_eq!(snapshot.get(2, &[step]).map(|v| v.to_vec()), value);
    }
}

#[test]
fn a_store_of_log_format_1_is_read_and_its_log_written_anew() {
    let disk = of_format_1();
    let store = open_to_read(&disk).unwrap();
    assert_eq!(store.recovery().replayed, 3);
    holds(&store, 6);
    drop(store);
    assert!(disk.bytes("log") == include_bytes!("format1/log"));
    for cut in [false, true] {
        let disk = of_format_1();
        if cut {
            disk.put("log", disk.bytes("log")[..8192].to_vec());
        }
        let version = if cut { 3 } else { 6 };
        // Power is lost at any operation of the conversion.
        let whole = disk.crash(1);
        holds(&open(&whole).unwrap(), version);
        for operation in 0..whole.operations() {
            let disk = disk.crash(1);
            disk.stop_after(operation);
            let _ = open(&disk);
            for image in 0..5 {
                let left = disk.crash(operation * 155 + image);
                holds(&open(&left).unwrap(), version);
                holds(&open(&left).unwrap(), version);
            }
        }
        let store = open(&whole).unwrap();
        let mut transaction = store.begin().unwrap();
        transaction.put(9, b"k", b"v");
        transaction.commit().unwrap();
        drop(store);
        let store = open(&whole).unwrap();
        assert_eq!(store.snapshot().get(9, b"k").as_deref(), Some(&b"v"[..]));
        assert!(store.check(&|_, _| {}).unwrap().is_empty());
        let log = whole.bytes("log");
        assert!([&log[8..12], &log[4104..4108]].contains(&&[3, 0, 0, 0][..]));
    }
}

#[test]
fn the_last_record_of_log_format_1_is_not_dropped_unless_the_file_ends_in_it() {
    let disk = of_format_1();
    let log = disk.bytes("log");
    disk.put("log", log[..log.len() - 1].to_vec());
    let store = open(&disk).unwrap();
    holds(&store, 5);
    assert_eq!(store.recovery().dropped.as_ref().unwrap().damage, None);
    let disk = of_format_1();
    disk.flip("log", (log.len() as u64 - 20) * 8);
    for open in [open, open_to_read] {
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}

#[test]
fn repair_gives_up_what_is_damaged_and_keeps_a_copy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atoll");
    let store = Store::create(&path, &small()).unwrap();
    for value in 0..3u8 {
        let mut transaction = store.begin().unwrap();
        transaction.put(0, b"k", &[value]);
        transaction.commit().unwrap();
    }
    drop(store);
    let done = repair(&path, &small()).unwrap();
    assert_eq!((done.copy, done.recovery.dropped), (None, None));
    let log_path = directory.path().join("a.atoll.log");
    for round in 0..2u8 {
        let mut log = std::fs::read(&log_path).unwrap();
        let at = log.len() - 100;
        log[at] ^= 1;
        std::fs::write(&log_path, &log).unwrap();
        let done = repair(&path, &small()).unwrap();
        let copy = done.copy.unwrap();
        assert!(std::fs::read(&copy).unwrap() == log, "{}", copy.display());
        assert!(done.recovery.dropped.unwrap().damage.is_some());
        let store = Store::open(&path, &small()).unwrap();
        let kept = store.snapshot().get(0, b"k");
        assert_eq!(kept.as_deref(), Some(&[1 + 6 * round][..]));
        for value in [7, 8] {
            let mut transaction = store.begin().unwrap();
            transaction.put(0, b"k", &[value]);
            transaction.commit().unwrap();
        }
    }
}

#[test]
fn pages_begin_at_the_multiples_that_the_store_was_made_with() {
    let directory = tempfile::tempdir().unwrap();
    for alignment in [64u32, 512, 4096] {
        let path = directory.path().join(alignment.to_string());
        let options = Options {
            alignment,
            ..small()
        };
        let store = Store::create(&path, &options).unwrap();
        let mut expected = Vec::new();
        for round in 0..5u8 {
            let mut transaction = store.begin().unwrap();
            // Some compress well, some take less than a block anyway.
            let long = [
                vec![round; 16_384],
                (0..9000u32).map(|at| (at * 31 % 251) as u8).collect(),
            ];
            let slices: Vec<_> = long.iter().map(|page| &page[..]).collect();
            let pages = transaction.write_pages(&slices, 0, Kind::Blob).unwrap();
            expected.extend(pages.iter().copied().zip(long.iter().cloned()));
            let one = transaction.write_page(&[round; 10], 0, Kind::Blob).unwrap();
            expected.push((one, vec![round; 10]));
            if let Some((gone, _)) = (round > 1).then(|| expected.remove(0)) {
                transaction.free_page(gone);
            }
            transaction.put(1, &[round], b"round");
            transaction.commit().unwrap();
            if round == 2 {
                store.checkpoint().unwrap();
            }
        }
        store.vacuum().unwrap();
        store.close().unwrap();
        // Whatever it is opened with.
        let store = Store::open(&path, &small()).unwrap();
        let mut transaction = store.begin().unwrap();
        let page = transaction.write_page(&[9; 100], 0, Kind::Blob).unwrap();
        transaction.put(1, b"last", &page.to_le_bytes());
        transaction.commit().unwrap();
        expected.push((page, vec![9; 100]));
        for (page, bytes) in &expected {
            let place = store.place(*page).unwrap();
            assert!(
                place.offset.is_multiple_of(u64::from(alignment)),
                "{place:?}"
            );
            assert!(*block_on(store.pool().pin(*page)).unwrap() == bytes[..]);
        }
        assert!(store.check(&|_, _| {}).unwrap().is_empty());
    }
    for alignment in [0, 32, 100, 8192] {
        let options = Options {
            alignment,
            ..small()
        };
        let error = Store::create(directory.path().join("none"), &options).unwrap_err();
        assert!(error.to_string().contains("power of two"), "{error}");
    }
}
