//! Several handles with the same files, as several processes have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use store::{Access, Error, Kind, Options, PageId, Store};

use crate::model::small;

struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.atoll");
        Store::create(&path, &small()).unwrap().close().unwrap();
        Place {
            _directory: directory,
            path,
        }
    }

    fn open(&self, access: Access) -> store::Result<Arc<Store>> {
        open(&self.path, access)
    }

    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).unwrap().len()
    }
}

fn open(path: &Path, access: Access) -> store::Result<Arc<Store>> {
    Store::open(path, &Options { access, ..small() })
}

/// Writes a page of noise that `seed` determines, and commits it under the key `k` in the place of
/// the page that stood there.
fn replace(store: &Arc<Store>, seed: u32) -> store::Result<PageId> {
    let mut transaction = store.begin()?;
    let old = transaction.get(0, b"k").map(|old| number(&old));
    let page = transaction.write_page(&noise(seed), 0, Kind::Blob)?;
    if let Some(old) = old {
        transaction.free_page(old);
    }
    transaction.put(0, b"k", &page.to_le_bytes());
    transaction.put(0, b"seed", &seed.to_le_bytes());
    transaction.commit()?;
    Ok(page)
}

fn number(bytes: &[u8]) -> PageId {
    PageId::from_le_bytes(bytes.try_into().unwrap())
}

fn noise(seed: u32) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed.into());
    (0..small().page_size).map(|_| random.u8(..)).collect()
}

/// The page under the key, read from the file.
fn stored(store: &Arc<Store>) -> Vec<u8> {
    store.forget().unwrap();
    let page = number(&store.snapshot().get(0, b"k").unwrap());
    block_on(store.pool().pin(page)).unwrap().to_vec()
}

#[test]
fn readers_stay_with_their_version_while_one_writes() {
    let place = Place::new();
    let writer = place.open(Access::Write).unwrap();
    replace(&writer, 0).unwrap();
    let mut readers = Vec::new();
    for seed in 1..40 {
        readers.push((seed - 1, place.open(Access::Read).unwrap()));
        replace(&writer, seed).unwrap();
        if seed % 7 == 0 {
            writer.checkpoint().unwrap();
        }
    }
    for (seed, reader) in &readers {
        assert_eq!(stored(reader), noise(*seed));
        assert!(!reader.is_current().unwrap());
        assert!(matches!(reader.begin(), Err(Error::ReadOnly { .. })));
        assert!(matches!(
            reader.check(&|_, _| {}),
            Err(Error::Changed { .. })
        ));
    }
    // Not even the end of the file goes while somebody reads, and all of it does after.
    writer.close().unwrap();
    let grown = place.bytes();
    for (seed, reader) in &readers {
        assert_eq!(stored(reader), noise(*seed));
    }
    drop(readers);
    let writer = place.open(Access::Write).unwrap();
    replace(&writer, 99).unwrap();
    writer.close().unwrap();
    assert!(place.bytes() < grown / 4, "{} of {grown}", place.bytes());
}

/// What was free before a writer came may be what readers from before read: also at the end.
#[test]
fn readers_outlive_writers() {
    let place = Place::new();
    let writer = place.open(Access::Write).unwrap();
    for seed in 0..8 {
        replace(&writer, seed).unwrap();
    }
    writer.close().unwrap();
    let reader = place.open(Access::Read).unwrap();
    for seed in 8..40 {
        let writer = place.open(Access::Write).unwrap();
        replace(&writer, seed).unwrap();
        assert_eq!(stored(&writer), noise(seed));
        if seed % 3 == 0 {
            writer.close().unwrap();
        }
        assert_eq!(stored(&reader), noise(7), "after {seed}");
    }
}

#[test]
fn what_readers_leave_is_used_again() {
    let place = Place::new();
    let writer = place.open(Access::Write).unwrap();
    replace(&writer, 0).unwrap();
    let reader = place.open(Access::Read).unwrap();
    for seed in 1..100 {
        replace(&writer, seed).unwrap();
    }
    let pending = writer.statistics().pending_bytes;
    assert!(pending >= 90 * u64::from(small().page_size), "{pending}");
    drop(reader);
    let before = place.bytes();
    for seed in 100..200 {
        replace(&writer, seed).unwrap();
    }
    assert_eq!(writer.statistics().pending_bytes, 0);
    assert_eq!(place.bytes(), before);
}

#[test]
fn handles_on_demand_write_in_turn() {
    let place = Place::new();
    let first = place.open(Access::OnDemand).unwrap();
    let second = place.open(Access::OnDemand).unwrap();
    replace(&first, 1).unwrap();
    assert!(first.is_current().unwrap() && !second.is_current().unwrap());
    // Another may not go on from what it found at first.
    assert!(matches!(replace(&second, 2), Err(Error::Changed { .. })));
    let second = place.open(Access::OnDemand).unwrap();
    assert_eq!(stored(&second), noise(1));
    replace(&second, 2).unwrap();
    replace(&second, 3).unwrap();
    assert!(!first.is_current().unwrap());
    assert_eq!(stored(&first), noise(1));
    // A transaction keeps others out, its end lets them in.
    let third = place.open(Access::OnDemand).unwrap();
    let under_way = second.begin().unwrap();
    assert!(matches!(third.begin(), Err(Error::Busy { .. })));
    assert!(matches!(third.try_begin(), Err(Error::Busy { .. })));
    assert!(matches!(place.open(Access::Write), Err(Error::Busy { .. })));
    drop(under_way);
    drop(third.begin().unwrap());
    for store in [first, second, third] {
        store.close().unwrap();
    }
    let store = place.open(Access::Write).unwrap();
    assert_eq!(stored(&store), noise(3));
    let problems = store.check(&|_, _| {}).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_checkpoint_of_another_is_a_change() {
    let place = Place::new();
    let store = place.open(Access::OnDemand).unwrap();
    replace(&store, 1).unwrap();
    let reader = place.open(Access::Read).unwrap();
    assert!(reader.is_current().unwrap());
    store.checkpoint().unwrap();
    assert!(!reader.is_current().unwrap());
    assert_eq!(stored(&reader), noise(1));
    replace(&store, 2).unwrap();
    store.close().unwrap();
}

#[test]
fn one_handle_writes() {
    let place = Place::new();
    let writer = place.open(Access::Write).unwrap();
    let error = place.open(Access::Write).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    assert!(error.to_string().contains("a.atoll"), "{error}");
    writer.close().unwrap();
    let _reader = place.open(Access::Read).unwrap();
    place.open(Access::Write).unwrap();
}

/// Readers come and go while one writes, folds its log in and uses space again: each sees one commit
/// whole, and later readers no earlier one.
#[test]
fn readers_come_at_any_moment() {
    let place = Place::new();
    let writer = place.open(Access::Write).unwrap();
    replace(&writer, 0).unwrap();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reading = || {
            let (mut last, mut versions) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let reader = place.open(Access::Read).unwrap();
                let seed = number(&reader.snapshot().get(0, b"seed").unwrap());
                assert_eq!(stored(&reader), noise(seed));
                assert!(seed >= last, "{seed} after {last}");
                versions += usize::from(seed > last);
                last = seed;
            }
            versions
        };
        let readers = [scope.spawn(reading), scope.spawn(reading)];
        for seed in 1..400 {
            replace(&writer, seed).unwrap();
            if seed % 5 == 0 {
                writer.checkpoint().unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
        readers.map(|reader| reader.join().unwrap())
    });
    assert!(seen.iter().all(|&versions| versions > 1), "{seen:?}");
    let problems = writer.check(&|_, _| {}).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}
