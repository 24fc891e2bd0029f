//! Stores whose file is mapped into memory: the same pages as through frames, and a loss is an error (row M1).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::executor::block_on;
use io::Device;
use io::fault::Disk;
use store::{Access, Error, Kind, Options, PageId, PoolOptions, Store};

use crate::model::Random;

fn options(mapped: bool) -> Options {
    Options {
        page_size: 4096,
        mapped,
        compress: false,
        pool: PoolOptions {
            bytes: 64 << 12,
            io_threads: 1,
            ..PoolOptions::default()
        },
        // Dirty pages are no part of the file yet.
        dirty_bytes: 0,
        ..Options::default()
    }
}

/// A page whose bytes tell its number, of any length.
fn content(number: u64, random: &mut Random) -> Vec<u8> {
    let length = 8 + random.below(4089) as usize;
    number
        .to_le_bytes()
        .into_iter()
        .cycle()
        .take(length)
        .collect()
}

fn write(store: &Arc<Store>, pages: u64, random: &mut Random) -> BTreeMap<PageId, Vec<u8>> {
    let transaction = store.begin().unwrap();
    let mut state = BTreeMap::new();
    for number in 0..pages {
        let bytes = content(number, random);
        let page = transaction.write_page(&bytes, 0, Kind::Blob).unwrap();
        state.insert(page, bytes);
    }
    transaction.commit().unwrap();
    state
}

fn reads(store: &Store, state: &BTreeMap<PageId, Vec<u8>>) {
    for (page, bytes) in state {
        assert!(
            *block_on(store.pool().pin(*page)).unwrap() == bytes[..],
            "page {page}"
        );
    }
    store.pool().intact().unwrap();
}

fn filled(path: &Path, pages: u64) -> BTreeMap<PageId, Vec<u8>> {
    let store = Store::create(path, &options(false)).unwrap();
    let state = write(&store, pages, &mut Random::new(5));
    store.close().unwrap();
    state
}

#[test]
fn pages_take_no_frame_and_have_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("islands");
    // Many times more than the pool has frames, all of them pinned at the same time.
    let state = filled(&path, 1_000);
    for access in [Access::Read, Access::Write] {
        let options = Options {
            access,
            ..options(true)
        };
        let store = Store::open(&path, &options).unwrap();
        let pins: Vec<_> = state
            .keys()
            .map(|page| block_on(store.pool().pin(*page)).unwrap())
            .collect();
        for (pin, bytes) in pins.iter().zip(state.values()) {
            assert!(**pin == bytes[..], "page {}", pin.page());
            assert_eq!(pin.as_ptr() as usize % 64, 0);
            assert_eq!(pin.node(), 0);
        }
        let statistics = store.pool().statistics();
        assert_eq!((statistics.mapped, statistics.loads), (1_000, 0));
        assert_eq!((statistics.resident, statistics.misses), (0, 1_000));
        drop(pins);
        reads(&store, &state);
        assert_eq!(store.pool().statistics().hits, 1_000, "verified once");
    }
}

#[test]
fn compressed_pages_and_new_ones_go_through_frames() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("islands");
    let store = Store::create(
        &path,
        &Options {
            compress: true,
            ..options(false)
        },
    )
    .unwrap();
    let mut random = Random::new(6);
    let mut state = write(&store, 100, &mut random);
    store.close().unwrap();
    let store = Store::open(&path, &options(true)).unwrap();
    reads(&store, &state);
    let before = store.pool().statistics();
    assert!(before.loads > 0 && before.loads + before.mapped == 100);
    // What is written now may lie behind the mapped part of the file.
    state.extend(write(&store, 100, &mut random));
    reads(&store, &state);
    store.close().unwrap();
}

#[test]
fn space_is_used_again_while_the_file_is_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("islands");
    let mut state = filled(&path, 50);
    let mut random = Random::new(7);
    let store = Store::open(&path, &options(true)).unwrap();
    for round in 0..60 {
        let held = *state.keys().nth(random.below(50) as usize).unwrap();
        let pin = block_on(store.pool().pin(held)).unwrap();
        let bytes = pin.to_vec();
        let mut transaction = store.begin().unwrap();
        // The pinned page is among those that are replaced.
        let mut freed = vec![held];
        freed.extend(
            state
                .keys()
                .copied()
                .filter(|page| *page != held && page % 3 == round % 3),
        );
        for page in freed {
            transaction.free_page(page);
            state.remove(&page);
        }
        let mut number = 1_000 * u64::from(round);
        while state.len() < 50 {
            number += 1;
            let bytes = content(number, &mut random);
            let page = transaction.write_page(&bytes, 0, Kind::Blob).unwrap();
            state.insert(page, bytes);
        }
        transaction.commit().unwrap();
        assert!(*pin == bytes[..], "round {round}: a pinned page changed");
        drop(pin);
        reads(&store, &state);
    }
    assert!(store.pool().statistics().mapped > 100);
    assert!(store.check(&|_, _| ()).unwrap().is_empty());
}

#[test]
fn damage_is_named_when_the_page_is_first_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("islands");
    let state = filled(&path, 20);
    let mut bytes = std::fs::read(&path).unwrap();
    let (page, content) = state.iter().next_back().unwrap();
    let at = bytes
        .windows(content.len())
        .position(|window| window == content)
        .unwrap();
    bytes[at + 3] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(
        &path,
        &Options {
            access: Access::Read,
            ..options(true)
        },
    )
    .unwrap();
    let error = block_on(store.pool().pin(*page)).unwrap_err().to_string();
    assert!(
        error.contains("checksum") && error.contains("islands"),
        "{error}"
    );
}

#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("islands");
    let state = filled(&path, 500);
    let store = Store::open(
        &path,
        &Options {
            access: Access::Read,
            ..options(true)
        },
    )
    .unwrap();
    let half: BTreeMap<_, _> = state.clone().into_iter().take(250).collect();
    reads(&store, &half);
    let length = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(length / 8).unwrap();
    // Pages that were verified before read as zeros now, and the pool knows.
    for page in half.keys() {
        let pin = block_on(store.pool().pin(*page)).unwrap();
        std::hint::black_box(pin.iter().map(|byte| u64::from(*byte)).sum::<u64>());
    }
    let error = store.pool().intact().unwrap_err();
    assert!(matches!(error, buffer::Error::Lost { .. }), "{error}");
    assert!(error.to_string().contains("was lost"), "{error}");
    // Those that were not yet are refused.
    let last = *state.keys().last().unwrap();
    let error = block_on(store.pool().pin(last)).unwrap_err().to_string();
    assert!(error.contains("was lost"), "{error}");
}

#[test]
fn what_is_no_file_cannot_be_mapped() {
    let disk = Disk::new(3);
    let (data, log) = (disk.device("data"), disk.device("log"));
    let store = Store::create_on(data.clone(), log.clone(), &options(false)).unwrap();
    drop(store);
    let error = Store::open_on(data as Arc<dyn Device>, log, &options(true)).unwrap_err();
    assert!(
        matches!(error, Error::Io(_)) && error.to_string().contains("map"),
        "{error}"
    );
}
