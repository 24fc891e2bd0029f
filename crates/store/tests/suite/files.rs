//! Real files: names, locks, errors.

use futures::executor::block_on;
use store::{Access, Error, Kind, Options, Store};

use crate::model::small;

fn options(access: Access) -> Options {
    Options { access, ..small() }
}

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
