//! Dirty pages: those of small commits, which are in the log and are written to their places later.

use io::fault::Disk;
use store::{DIRTY_BYTES, Durability, Kind, Options, PageStore, SMALL_COMMIT, Statistics};

use crate::crash::{Images, recovers, seed_of, work};
use crate::model::{create_with, open, small};

const PAGE: usize = 4096;

fn options(dirty_pages: usize) -> Options {
    Options {
        page_size: PAGE as u32,
        dirty_bytes: (dirty_pages * PAGE) as u64,
        compress: false,
        ..small()
    }
}

fn page_store(disk: &Disk, options: &Options) -> PageStore {
    let store = PageStore::create_on(disk.device("data"), disk.device("log"), options).unwrap();
    let mut batch = store.begin().unwrap();
    for _ in 0..200 {
        batch.alloc().unwrap();
    }
    batch.commit().unwrap();
    store.checkpoint().unwrap();
    store
}

fn write(store: &PageStore, page: u32, byte: u8) {
    store.write(page, &[byte; PAGE]).unwrap();
}

fn read(store: &PageStore, page: u32) -> u8 {
    let mut bytes = [0; PAGE];
    store.view().read(page, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    bytes[0]
}

/// What writing back has done since `before`: pages, writes, and pages that it was spared.
fn written(store: &PageStore, before: &Statistics) -> (u64, u64, u64) {
    let (now, before) = (figures(store).written_back, before.written_back);
    (
        now.pages - before.pages,
        now.writes - before.writes,
        now.spared - before.spared,
    )
}

fn figures(store: &PageStore) -> Statistics {
    store.statistics().store
}

#[test]
fn neighbours_are_written_back_at_once() {
    let store = page_store(&Disk::new(1), &options(40));
    let before = figures(&store);
    for page in 1..=20 {
        write(&store, page, page as u8);
    }
    let full = figures(&store);
    assert_eq!((full.dirty_pages, full.dirty_bytes), (20, 20 * PAGE as u64));
    assert_eq!(written(&store, &before), (0, 0, 0));
    // More than half of the room is taken.
    write(&store, 21, 21);
    let (pages, writes, spared) = written(&store, &before);
    assert_eq!((pages, spared), (21, 0));
    assert!(writes <= 4, "{writes} writes");
    assert_eq!(figures(&store).dirty_pages, 0);
    for page in 1..=21 {
        assert_eq!(read(&store, page), page as u8);
    }
}

#[test]
fn of_a_page_that_is_written_often_the_last_bytes_are_written_back() {
    let disk = Disk::new(2);
    let store = page_store(&disk, &options(40));
    let before = figures(&store);
    for byte in 0..100 {
        write(&store, 7, byte);
        write(&store, 8, byte);
    }
    store.checkpoint().unwrap();
    let (pages, _, spared) = written(&store, &before);
    assert!(pages <= 10 && spared >= 190, "{pages} and {spared}");
    assert_eq!((read(&store, 7), read(&store, 8)), (99, 99));
    assert!(store.check(&|_, _| ()).unwrap().is_empty());
}

#[test]
fn without_room_pages_are_written_with_their_commit() {
    for options in [
        options(0),
        // No page is in the log.
        Options {
            small_commit: 0,
            ..options(40)
        },
    ] {
        let store = page_store(&Disk::new(3), &options);
        let before = figures(&store);
        write(&store, 3, 9);
        let after = figures(&store);
        assert_eq!(after.dirty_pages, 0);
        assert!(after.written_bytes - before.written_bytes >= PAGE as u64);
        assert_eq!(written(&store, &before), (0, 0, 0));
        assert_eq!(read(&store, 3), 9);
    }
}

#[test]
fn a_commit_that_becomes_large_writes_what_it_left() {
    let disk = Disk::new(4);
    let options = Options {
        dirty_bytes: DIRTY_BYTES,
        ..options(0)
    };
    let store = create_with(&disk, &options).unwrap();
    let mut transaction = store.begin().unwrap();
    let pages: Vec<_> = (0..=SMALL_COMMIT / PAGE)
        .map(|byte| {
            let write = transaction.write_page(&[byte as u8; PAGE], 0, Kind::Blob);
            let dirty = store.statistics().dirty_pages;
            let few = byte < SMALL_COMMIT / PAGE;
            assert_eq!(dirty, if few { byte as u64 + 1 } else { 0 });
            write.unwrap()
        })
        .collect();
    transaction.put(0, b"pages", &pages.len().to_le_bytes());
    transaction.commit().unwrap();
    // The log has none of them.
    let left = open(&disk.crash(1)).unwrap();
    for (byte, page) in pages.into_iter().enumerate() {
        let pin = futures::executor::block_on(left.pool().pin(page)).unwrap();
        assert_eq!(*pin, [byte as u8; PAGE][..]);
    }
}

#[test]
fn a_transaction_that_is_dropped_leaves_no_dirty_page() {
    let store = create_with(&Disk::new(5), &options(40)).unwrap();
    let transaction = store.begin().unwrap();
    transaction.write_page(&[1; PAGE], 0, Kind::Blob).unwrap();
    assert_eq!(store.statistics().dirty_pages, 1);
    drop(transaction);
    let statistics = store.statistics();
    assert_eq!((statistics.dirty_pages, statistics.dirty_bytes), (0, 0));
}

#[test]
fn a_killed_process_loses_none() {
    let disk = Disk::new(6);
    let store = create_with(&disk, &options(40)).unwrap();
    let mut transaction = store.begin().unwrap();
    let page = transaction.write_page(&[5; PAGE], 0, Kind::Blob).unwrap();
    transaction.set_durability(Durability::Process);
    transaction.commit().unwrap();
    assert_eq!(store.statistics().dirty_pages, 1);
    // As if the process had ended now: the system has what was written.
    let killed = disk.crash(1);
    let store = open(&killed).unwrap();
    let pin = futures::executor::block_on(store.pool().pin(page)).unwrap();
    assert_eq!(*pin, [5; PAGE][..]);
}

/// The other crash tests leave dirty pages as well; here it is made sure that some are written back
/// and some commits find no room.
#[test]
fn writing_back_may_be_cut_short_anywhere() {
    let mut seen = Images::default();
    for (seed, dirty_bytes) in [(0, 3_000), (1, 9_000), (2, 30_000)] {
        let options = Options {
            dirty_bytes,
            ..small()
        };
        let whole = Disk::new(seed);
        work(&whole, &options, seed, 20);
        for operation in 0..whole.operations() {
            let disk = Disk::new(seed);
            disk.stop_after(operation);
            let history = work(&disk, &options, seed, 20);
            for image in 0..3 {
                let left = disk.crash(seed_of(operation, image));
                if seen.is_new(&left) {
                    let of = format!("seed {seed}, operation {operation}, image {image}");
                    recovers(&left, &history, &of);
                }
            }
        }
    }
    assert!(seen.len() > 200, "{} distinct images", seen.len());
}
