//! Threads that read while others write.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use store::{Kind, PageId, Store};

use crate::model::small;

/// Each version has eight pages full of its number, and their ids in the catalog.
#[test]
fn readers_see_whole_versions_while_one_commits() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("a.atoll"), &small()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut versions = 0u64;
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let snapshot = store.snapshot();
                        assert!(snapshot.version() >= last);
                        versions += u64::from(snapshot.version() > last);
                        last = snapshot.version();
                        let ids = snapshot.prefix(1, b"").map(|(_, page)| page);
                        let pages: Vec<_> = ids
                            .map(|page| PageId::from_le_bytes((&*page).try_into().unwrap()))
                            .collect();
                        for &page in &pages {
                            let pin = block_on(snapshot.pool().pin(page)).unwrap();
                            let expected = snapshot.version().to_le_bytes();
                            assert!(pin.chunks(8).all(|word| word == expected), "page {page}");
                        }
                        // Too late: the pages may be freed and their ids used again.
                        drop(snapshot);
                        store.pool().prefetch(&pages);
                    }
                    versions
                })
            })
            .collect();
        let mut pages: Vec<PageId> = Vec::new();
        for version in 1..=150u64 {
            let mut transaction = store.begin().unwrap();
            for page in pages.drain(..) {
                transaction.free_page(page);
            }
            let bytes = version.to_le_bytes().repeat(500);
            for key in 0..8u8 {
                let page = transaction.write_page(&bytes, key, Kind::Values).unwrap();
                transaction.put(1, &[key], &page.to_le_bytes());
                pages.push(page);
            }
            assert_eq!(transaction.commit().unwrap(), version);
            if version % 40 == 0 {
                store.checkpoint().unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 3, "the reader saw versions pass");
        }
    });
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
    assert!(
        store.statistics().used_bytes < 1 << 20,
        "{:?}",
        store.statistics()
    );
}

#[test]
fn many_threads_write_the_pages_of_one_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atoll");
    let store = Store::create(&path, &small()).unwrap();
    let transaction = store.begin().unwrap();
    let mut pages: Vec<(PageId, Vec<u8>)> = Vec::new();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u8)
            .map(|thread| {
                let transaction = &transaction;
                scope.spawn(move || {
                    (0..100u8)
                        .map(|page| {
                            let bytes = [thread, page].repeat(1 + usize::from(page) * 80);
                            (
                                transaction.write_page(&bytes, page, Kind::Values).unwrap(),
                                bytes,
                            )
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for writer in writers {
            pages.extend(writer.join().unwrap());
        }
    });
    transaction.commit().unwrap();
    let waiting = store.begin().unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| store.begin().unwrap().base().version());
        drop(waiting);
        assert_eq!(second.join().unwrap(), 1);
    });
    drop(store);
    let store = Store::open(&path, &small()).unwrap();
    for (page, bytes) in &pages {
        assert_eq!(*block_on(store.pool().pin(*page)).unwrap(), bytes[..]);
    }
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}
