//! Page stores against a naive model: by themselves, under crashes, damage and full disks.

use std::collections::{BTreeMap, BTreeSet};

use futures::executor::block_on;
use io::fault::Disk;
use store::{Access, Error, Options, PageBatch, PageStore, PoolOptions, Problem, Result};

use crate::model::Random;

const PAGE: usize = 4096;

/// The allocated pages and their bytes.
type State = BTreeMap<u32, Vec<u8>>;

fn options(page_size: usize) -> Options {
    Options {
        page_size: page_size as u32,
        pool: PoolOptions {
            bytes: 32 * page_size as u64,
            io_threads: 1,
            ..PoolOptions::default()
        },
        // A few pages: some are written back, and some find no room.
        dirty_bytes: 5 * page_size as u64,
        ..Options::default()
    }
}

fn create(disk: &Disk) -> Result<PageStore> {
    PageStore::create_on(disk.device("data"), disk.device("log"), &options(PAGE))
}

fn open(disk: &Disk, access: Access) -> Result<PageStore> {
    let options = Options {
        access,
        ..options(PAGE)
    };
    PageStore::open_on(disk.device("data"), disk.device("log"), &options)
}

/// Panics unless `store` holds just `state`, and is sound.
fn assert_holds(store: &PageStore, state: &State, of: &str) {
    let view = store.view();
    let allocated: Vec<_> = view
        .runs()
        .flatten()
        .map(|page| page as u32)
        .filter(|&page| !view.is_protected(page))
        .collect();
    assert_eq!(allocated, state.keys().copied().collect::<Vec<_>>(), "{of}");
    for (&page, bytes) in state {
        let pin = block_on(view.pin(page)).unwrap_or_else(|error| panic!("{of}: {error}"));
        assert!(*pin == bytes[..], "{of}: page {page} holds other bytes");
    }
    let problems = store.check(&|_, _| {}).unwrap();
    assert!(problems.is_empty(), "{of}: {problems:?}");
}

fn some_page(random: &mut Random, state: &State) -> Option<u32> {
    let at = random.below(state.len() as u64) as usize;
    state.keys().nth(at).copied()
}

/// Random changes in `batch` and in `state`, in step.
fn change(random: &mut Random, batch: &mut PageBatch<'_>, state: &mut State) -> Result<()> {
    for _ in 0..1 + random.below(6) {
        match random.below(10) {
            0 | 1 => {
                let page = batch.alloc()?;
                let new = state.insert(page, vec![0; PAGE]).is_none();
                assert!(new, "page {page} given out twice");
            }
            2 => {
                if let Some(page) = some_page(random, state) {
                    batch.release(page)?;
                    state.remove(&page);
                }
            }
            3 => batch.reserve(random.below(20))?,
            4 => {
                if let Some(page) = some_page(random, state) {
                    let mut bytes = vec![1; PAGE];
                    batch.read(page, &mut bytes)?;
                    assert_eq!(bytes, state[&page]);
                }
            }
            5 | 6 => {
                if let Some(page) = some_page(random, state) {
                    let (at, byte) = (random.below(PAGE as u64) as usize, random.next() as u8);
                    batch.change(page)?[at] = byte;
                    state.get_mut(&page).unwrap()[at] = byte;
                }
            }
            _ => {
                if let Some(page) = some_page(random, state) {
                    let byte = random.next() as u8;
                    let bytes: Vec<_> = match random.below(2) {
                        0 => vec![byte; PAGE],
                        _ => (0..PAGE).map(|_| random.next() as u8).collect(),
                    };
                    batch.write(page, &bytes)?;
                    state.insert(page, bytes);
                }
            }
        }
    }
    Ok(())
}

/// What happened before the disk stopped: the state of each version, and the last acknowledged.
struct History {
    states: Vec<State>,
    acknowledged: Option<usize>,
}

fn work(disk: &Disk, seed: u64, steps: usize) -> History {
    let mut random = Random::new(seed);
    let mut history = History {
        // No version 0 is ever seen: creating is version 1.
        states: vec![State::new(), State::new()],
        acknowledged: None,
    };
    let Ok(mut store) = create(disk) else {
        return history;
    };
    history.acknowledged = Some(1);
    for _ in 0..steps {
        match random.below(10) {
            0 => {
                if store.close().is_err() {
                    return history;
                }
                match open(disk, Access::Write) {
                    Ok(opened) => store = opened,
                    Err(_) => return history,
                }
            }
            1 if store.checkpoint().is_err() => return history,
            1 => {}
            _ => {
                let Ok(mut batch) = store.begin() else {
                    return history;
                };
                let acknowledged = history.acknowledged.unwrap();
                let mut state = history.states[acknowledged].clone();
                if change(&mut random, &mut batch, &mut state).is_err() {
                    return history;
                }
                if random.below(6) == 0 {
                    continue;
                }
                history.states.truncate(acknowledged + 1);
                history.states.push(state);
                match batch.commit() {
                    Ok(version) if version as usize == acknowledged + 1 => {
                        history.acknowledged = Some(acknowledged + 1);
                    }
                    Ok(_) => drop(history.states.pop()),
                    Err(_) => return history,
                }
                let state = &history.states[history.acknowledged.unwrap()];
                if steps > 100 {
                    assert_holds(&store, state, "after a commit");
                }
            }
        }
    }
    let _ = store.close();
    history
}

#[test]
fn a_page_store_is_a_map_from_numbers_to_bytes() {
    for seed in 0..4 {
        let disk = Disk::new(seed);
        let history = work(&disk, seed, 150);
        let last = history.acknowledged.unwrap();
        assert!(last > 60, "the workload commits");
        let store = open(&disk, Access::Write).unwrap();
        assert_holds(&store, &history.states[last], "opened again");
    }
}

#[test]
fn every_operation_may_be_the_last() {
    let seed = 5;
    let whole = Disk::new(seed);
    let history = work(&whole, seed, 20);
    assert!(history.acknowledged.unwrap() > 6, "the workload commits");
    for operation in 0..whole.operations() {
        let disk = Disk::new(seed);
        disk.stop_after(operation);
        let history = work(&disk, seed, 20);
        for image in 0..5 {
            let of = format!("operation {operation}, image {image}");
            let image = disk.crash(operation * 155 + image);
            let Some(acknowledged) = history.acknowledged else {
                // It was being created: nothing, or a store without pages, and nothing between.
                match open(&image, Access::Write) {
                    Ok(store) => assert_holds(&store, &State::new(), &of),
                    Err(Error::NotPages { .. }) => panic!("{of}: a store, and not one of pages"),
                    Err(_) => {}
                }
                continue;
            };
            let store = open(&image, Access::Write).unwrap_or_else(|e| panic!("{of}: {e}"));
            let version = store.view().version() as usize;
            assert!(
                version >= acknowledged,
                "{of}: {version} lost {acknowledged}"
            );
            assert_holds(&store, &history.states[version], &of);
            store.reserve(1).unwrap();
        }
    }
}

#[test]
fn pages_of_every_size() {
    for shift in 12..=20 {
        let size = 1 << shift;
        let disk = Disk::new(shift);
        let devices = || (disk.device("data"), disk.device("log"));
        let (data, log) = devices();
        let store = PageStore::create_on(data, log, &options(size)).unwrap();
        assert_eq!(store.page_size(), size);
        let mut batch = store.begin().unwrap();
        let pages: Vec<_> = (0..3).map(|_| batch.alloc().unwrap()).collect();
        for &page in &pages {
            batch.write(page, &vec![page as u8; size]).unwrap();
        }
        batch.commit().unwrap();
        store.close().unwrap();
        let (data, log) = devices();
        let store = PageStore::open_on(data, log, &options(size)).unwrap();
        let mut bytes = vec![0; size];
        for page in pages {
            store.view().read(page, &mut bytes).unwrap();
            assert_eq!(bytes, vec![page as u8; size]);
        }
    }
    for bytes in [0, 2048, 4095, 12_288, 2 << 20] {
        let disk = Disk::new(1);
        let error = PageStore::create_on(disk.device("data"), disk.device("log"), &options(bytes));
        assert!(matches!(error, Err(Error::PageSize { .. })), "{bytes}");
    }
}

#[test]
fn a_protected_page_begins_every_group() {
    let store = create(&Disk::new(1)).unwrap();
    let group = 8 * PAGE as u64;
    store.reserve(group).unwrap();
    let view = store.view();
    assert!(view.size() > group);
    assert_eq!((view.protected(), view.allocated()), (2, 2));
    assert!(view.is_protected(0) && view.is_protected(group as u32));
    for page in [0, group as u32] {
        assert!(matches!(
            block_on(view.pin(page)),
            Err(Error::Protected { .. })
        ));
        assert!(matches!(
            store.write(page, &[0; PAGE]),
            Err(Error::Protected { .. })
        ));
        let mut batch = store.begin().unwrap();
        assert!(matches!(batch.release(page), Err(Error::Protected { .. })));
    }
    let mut batch = store.begin().unwrap();
    let pages: Vec<_> = (0..group).map(|_| batch.alloc().unwrap()).collect();
    assert!(pages.iter().all(|&page| u64::from(page) % group != 0));
    batch.commit().unwrap();
    assert_eq!(store.view().allocated(), group + 2);
    assert_eq!(store.statistics().allocated, group + 2);
}

#[test]
fn wrong_use_is_refused_and_changes_nothing() {
    let store = create(&Disk::new(1)).unwrap();
    let mut batch = store.begin().unwrap();
    let page = batch.alloc().unwrap();
    assert!(matches!(
        batch.write(page, &[0; 7]),
        Err(Error::PageBytes { bytes: 7, .. })
    ));
    let free = page + 1;
    assert!(matches!(
        batch.change(free),
        Err(Error::NotAllocated { .. })
    ));
    assert!(matches!(
        batch.write(free, &[0; PAGE]),
        Err(Error::NotAllocated { .. })
    ));
    assert!(matches!(
        batch.release(free),
        Err(Error::NotAllocated { .. })
    ));
    assert!(matches!(
        batch.release(1 << 30),
        Err(Error::OutOfBounds { .. })
    ));
    assert!(matches!(
        batch.reserve(1 << 33),
        Err(Error::OutOfPageIds { .. })
    ));
    batch.commit().unwrap();
    let view = store.view();
    assert!(matches!(
        view.read(page, &mut [0; 3]),
        Err(Error::PageBytes { .. })
    ));
    assert!(matches!(
        view.read(free, &mut [0; PAGE]),
        Err(Error::NotAllocated { .. })
    ));
    assert_holds(&store, &[(page, vec![0; PAGE])].into(), "as committed");
}

#[test]
fn a_view_keeps_what_later_batches_change() {
    let store = create(&Disk::new(1)).unwrap();
    let mut batch = store.begin().unwrap();
    let page = batch.alloc().unwrap();
    batch.write(page, &[1; PAGE]).unwrap();
    batch.commit().unwrap();
    let before = store.view();
    store.write(page, &[2; PAGE]).unwrap();
    let mut batch = store.begin().unwrap();
    batch.release(page).unwrap();
    batch.commit().unwrap();
    store.pool().clear();
    assert_eq!(*block_on(before.pin(page)).unwrap(), [1; PAGE]);
    assert!(!store.view().is_allocated(page));
}

#[test]
fn writing_over_pages_does_not_grow_the_file() {
    let store = create(&Disk::new(1)).unwrap();
    let mut batch = store.begin().unwrap();
    let pages: Vec<_> = (0..64).map(|_| batch.alloc().unwrap()).collect();
    batch.commit().unwrap();
    let mut random = Random::new(1);
    let mut written = |store: &PageStore| {
        for &page in &pages {
            let bytes: Vec<_> = (0..PAGE).map(|_| random.next() as u8).collect();
            store.write(page, &bytes).unwrap();
        }
        store.checkpoint().unwrap();
        store.statistics().store.used_bytes
    };
    let first = written(&store);
    for _ in 0..5 {
        let used = written(&store);
        assert!(used < first * 5 / 4, "{used} bytes after {first}");
    }
}

#[test]
fn a_batch_searches_on_where_the_one_before_ended() {
    let store = create(&Disk::new(1)).unwrap();
    store.reserve(100).unwrap();
    let mut batch = store.begin().unwrap();
    let pages: Vec<_> = (0..10).map(|_| batch.alloc().unwrap()).collect();
    batch.release(pages[3]).unwrap();
    batch.commit().unwrap();
    let mut batch = store.begin().unwrap();
    assert_eq!(batch.alloc().unwrap(), pages[9] + 1);
    // One that is undone leaves no trace.
    drop(batch);
    let mut batch = store.begin().unwrap();
    assert_eq!(batch.alloc().unwrap(), pages[9] + 1);
    let free = store.view().size() - store.view().allocated();
    let all: BTreeSet<_> = (1..free).map(|_| batch.alloc().unwrap()).collect();
    assert!(all.contains(&pages[3]), "it goes round before it grows");
}

#[test]
fn reserved_pages_can_be_written_when_the_disk_is_full() {
    let noise = |seed| {
        let mut random = Random::new(seed);
        (0..PAGE).map(|_| random.next() as u8).collect::<Vec<_>>()
    };
    for reserved in [100, 1000] {
        let disk = Disk::new(1);
        let store = create(&disk).unwrap();
        store.reserve(reserved).unwrap();
        // Nothing is left but some room for the log.
        disk.set_capacity(disk.room() + (64 << 10));
        let mut state = State::new();
        let mut batch = store.begin().unwrap();
        for seed in 0..reserved {
            let page = batch.alloc().unwrap();
            let bytes = noise(seed);
            batch.write(page, &bytes).unwrap();
            state.insert(page, bytes);
        }
        batch.commit().unwrap();
        assert_holds(&store, &state, "written");
        // More does not fit: the file does not pretend to have room.
        let error = store.reserve(2000).unwrap_err();
        assert!(error.is_full(), "{error}");
        assert_holds(&store, &state, "as before");
    }
}

#[test]
fn what_is_reserved_in_a_file_takes_room_on_its_disk() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reef.pages");
    let store = PageStore::create(&path, &options(PAGE)).unwrap();
    let room = || std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(room() < 4 << 20);
    store.reserve(2048).unwrap();
    assert!(room() >= 8 << 20, "{} bytes", room());
    store.close().unwrap();
    assert!(room() < 4 << 20, "closing gives it back");
}

#[test]
fn other_stores_are_not_taken_for_page_stores() {
    let disk = Disk::new(1);
    let store = crate::model::create(&disk).unwrap();
    assert!(!store.is_raw());
    let mut transaction = store.begin().unwrap();
    transaction.put(0, b"t", b"a table");
    transaction.commit().unwrap();
    store.close().unwrap();
    assert!(matches!(
        open(&disk, Access::Write),
        Err(Error::NotPages { .. })
    ));
    // One without a table yet is no page store either, and opening it does not make it one.
    let empty = Disk::new(3);
    crate::model::create(&empty).unwrap().close().unwrap();
    let before = (empty.bytes("data"), empty.bytes("log"));
    for access in [Access::Write, Access::Read] {
        assert!(matches!(open(&empty, access), Err(Error::NotPages { .. })));
    }
    assert_eq!(before, (empty.bytes("data"), empty.bytes("log")));
    let store = crate::model::open(&empty).unwrap();
    assert!(!store.is_raw() && store.snapshot().version() == 0);
    let pages = Disk::new(2);
    create(&pages).unwrap().close().unwrap();
    assert!(crate::model::open(&pages).unwrap().is_raw());
}

#[test]
fn damage_is_named_by_the_number_that_the_caller_knows() {
    let disk = Disk::new(1);
    let store = create(&disk).unwrap();
    let mut batch = store.begin().unwrap();
    let pages: Vec<_> = (0..8).map(|_| batch.alloc().unwrap()).collect();
    for &page in &pages {
        batch.write(page, &[0xa0 | page as u8; PAGE]).unwrap();
    }
    // So that numbers here and below differ.
    batch
        .write(pages[0], &Random::new(3).page(1).repeat(PAGE))
        .unwrap();
    let noise: Vec<u8> = {
        let mut random = Random::new(9);
        (0..PAGE).map(|_| random.next() as u8).collect()
    };
    batch.write(pages[5], &noise).unwrap();
    batch.commit().unwrap();
    store.close().unwrap();
    let bytes = disk.bytes("data");
    let at = bytes.windows(64).position(|window| window == &noise[..64]);
    assert!(disk.flip("data", at.unwrap() as u64 * 8 + 77));
    let store = open(&disk, Access::Read).unwrap();
    let error = block_on(store.view().pin(pages[5])).map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Unreadable { page, .. } if page == pages[5]),
        "{error}"
    );
    let problems = store.check(&|_, _| {}).unwrap();
    assert!(
        matches!(&problems[..], [Problem::Page { page, .. }] if *page == pages[5]),
        "{problems:?}"
    );
}

#[test]
fn a_full_disk_undoes_the_batch_and_nothing_else() {
    let disk = Disk::new(1);
    let store = create(&disk).unwrap();
    let mut batch = store.begin().unwrap();
    let page = batch.alloc().unwrap();
    batch.write(page, &[1; PAGE]).unwrap();
    batch.commit().unwrap();
    disk.set_capacity(disk.bytes("data").len() as u64 + disk.bytes("log").len() as u64 + 4096);
    let error = store.reserve(1 << 20).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_holds(&store, &[(page, vec![1; PAGE])].into(), "after it");
}
