//! The naive model, random work on both, and their comparison.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::executor::block_on;
use io::fault::Disk;
use store::{Kind, Options, PageId, PoolOptions, Result, Snapshot, Store, Transaction};

/// What a version of a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub keys: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    pub pages: BTreeMap<PageId, Vec<u8>>,
}

impl State {
    /// Panics unless `snapshot` holds just this; `of` says which comparison failed.
    pub fn assert_equals(&self, snapshot: &Snapshot, of: &str) {
        let mut keys = BTreeMap::new();
        for space in 0..12 {
            let entries: Vec<_> = snapshot.prefix(space, b"").collect();
            assert!(entries.is_sorted(), "{of}");
            for (key, value) in entries {
                assert_eq!(snapshot.get(space, &key), Some(value.clone()), "{of}");
                keys.insert((space, key.to_vec()), value.to_vec());
            }
        }
        assert_eq!(keys, self.keys, "{of}");
        for (page, bytes) in &self.pages {
            let pin = block_on(snapshot.pool().pin(*page));
            let pin = pin.unwrap_or_else(|error| panic!("{of}: page {page}: {error}"));
            assert!(*pin == bytes[..], "{of}: page {page} holds other bytes");
        }
    }

    /// As `assert_equals`, and that the store has no other pages and is sound.
    pub fn assert_is_all_of(&self, store: &Arc<Store>, of: &str) {
        self.assert_equals(&store.snapshot(), of);
        assert_eq!(
            store.statistics().pages.pages,
            self.pages.len() as u64,
            "{of}"
        );
        let problems = store.check(&|_, _| {}).unwrap();
        assert!(problems.is_empty(), "{of}: {problems:?}");
    }
}

/// Random numbers that follow from a seed.
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.u64(..limit.max(1))
    }

    /// A page: half of them compress well.
    pub fn page(&mut self, limit: u64) -> Vec<u8> {
        let length = 1 + self.below(limit);
        if self.below(2) == 0 {
            let byte = self.next() as u8;
            return vec![byte; length as usize];
        }
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Settings that make opening cheap.
pub fn small() -> Options {
    let pool = PoolOptions {
        bytes: 32 * 16_384,
        io_threads: 1,
        ..PoolOptions::default()
    };
    Options {
        page_size: 16_384,
        pool,
        // So few that commits write dirty pages back, and that some find no room for theirs.
        dirty_bytes: 6_000,
        // Chunks of the page map are dropped as soon as a few others are wanted.
        map_bytes: 0,
        ..Options::default()
    }
}

pub fn create(disk: &Disk) -> Result<Arc<Store>> {
    create_with(disk, &small())
}

pub fn create_with(disk: &Disk, options: &Options) -> Result<Arc<Store>> {
    Store::create_on(disk.device("data"), disk.device("log"), options)
}

pub fn open(disk: &Disk) -> Result<Arc<Store>> {
    Store::open_on(disk.device("data"), disk.device("log"), &small())
}

pub fn open_to_read(disk: &Disk) -> Result<Arc<Store>> {
    let options = Options {
        access: store::Access::Read,
        ..small()
    };
    Store::open_on(disk.device("data"), disk.device("log"), &options)
}

/// Random changes in `transaction` and in `state`, in step.
pub fn change(
    random: &mut Random,
    transaction: &mut Transaction,
    state: &mut State,
    page_limit: u64,
) -> Result<()> {
    for _ in 0..1 + random.below(5) {
        match random.below(10) {
            0..=2 => {
                let bytes = random.page(page_limit);
                let page = transaction.write_page(&bytes, random.next() as u8, Kind::Values)?;
                assert!(
                    state.pages.insert(page, bytes).is_none(),
                    "page {page} given out twice"
                );
            }
            3 => {
                let pages: Vec<_> = (0..3).map(|_| random.page(page_limit)).collect();
                let slices: Vec<&[u8]> = pages.iter().map(|page| &page[..]).collect();
                let ids = transaction.write_pages(&slices, 7, Kind::Strings)?;
                for (id, page) in ids.into_iter().zip(pages) {
                    assert!(
                        state.pages.insert(id, page).is_none(),
                        "page {id} given out twice"
                    );
                }
            }
            4 | 5 => {
                let at = random.below(state.pages.len() as u64) as usize;
                if let Some(&page) = state.pages.keys().nth(at) {
                    transaction.free_page(page);
                    state.pages.remove(&page);
                }
            }
            6 | 7 => {
                let (space, key) = (random.below(4) as u32, vec![random.below(20) as u8; 3]);
                let value = random.page(300);
                transaction.put(space, &key, &value);
                state.keys.insert((space, key), value);
            }
            8 => {
                let (space, key) = (random.below(4) as u32, vec![random.below(20) as u8; 3]);
                transaction.delete(space, &key);
                state.keys.remove(&(space, key));
            }
            _ => {
                let space = random.below(4) as u32;
                if random.below(4) == 0 {
                    transaction.delete_space(space);
                    state.keys.retain(|(of, _), _| *of != space);
                } else {
                    let key = vec![random.below(20) as u8; 3];
                    let expected = state.keys.get(&(space, key.clone()));
                    assert_eq!(
                        transaction.get(space, &key).as_deref(),
                        expected.map(|v| &v[..])
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn random_work_with_snapshots_and_reopening() {
    for seed in 0..12 {
        let disk = Disk::new(seed);
        let mut random = Random::new(seed);
        let mut store = create(&disk).unwrap();
        let mut state = State::default();
        let mut snapshots: Vec<(Snapshot, State)> = Vec::new();
        for step in 0..120 {
            let of = format!("seed {seed} step {step}");
            match random.below(20) {
                0 => {
                    snapshots.clear();
                    if random.below(2) == 0 {
                        store.clone().close().unwrap();
                    }
                    drop(store);
                    store = open(&disk).unwrap();
                    state.assert_is_all_of(&store, &of);
                }
                1 => store.checkpoint().unwrap(),
                2 => snapshots.push((store.snapshot(), state.clone())),
                3 if !snapshots.is_empty() => {
                    let at = random.below(snapshots.len() as u64) as usize;
                    let (snapshot, state) = snapshots.swap_remove(at);
                    state.assert_equals(&snapshot, &of);
                }
                _ => {
                    let mut transaction = store.begin().unwrap();
                    let mut changed = state.clone();
                    change(&mut random, &mut transaction, &mut changed, 16_384).unwrap();
                    if random.below(5) > 0 {
                        transaction.commit().unwrap();
                        state = changed;
                    }
                }
            }
            state.assert_equals(&store.snapshot(), &of);
        }
        for (snapshot, state) in &snapshots {
            state.assert_equals(snapshot, "at the end");
        }
        drop(snapshots);
        state.assert_is_all_of(&store, "at the end");
    }
}

#[test]
fn space_is_used_again_once_no_snapshot_needs_it() {
    let disk = Disk::new(0);
    let store = create(&disk).unwrap();
    let mut random = Random::new(5);
    let mut pages: Vec<PageId> = Vec::new();
    let mut replace = || {
        let mut transaction = store.begin().unwrap();
        for page in pages.drain(..) {
            transaction.free_page(page);
        }
        for _ in 0..40 {
            let bytes: Vec<u8> = (0..16_384).map(|_| random.next() as u8).collect();
            pages.push(transaction.write_page(&bytes, 0, Kind::Values).unwrap());
        }
        transaction.commit().unwrap();
        assert!(pages.iter().all(|&page| page < 200), "ids are used again");
    };
    for _ in 0..20 {
        replace();
    }
    let used = store.statistics();
    assert!(used.file_bytes < 4 << 20, "{used:?}");
    let snapshot = store.snapshot();
    replace();
    replace();
    assert_eq!(store.statistics().pending_bytes, 2 * 40 * 16_384);
    drop(snapshot);
    replace();
    assert_eq!(store.statistics().pending_bytes, 0);
    store.clone().close().unwrap();
    let closed = store.statistics();
    assert_eq!(closed.log_bytes, 0);
    assert!(
        closed.file_bytes <= used.file_bytes + (2 << 20),
        "{closed:?}"
    );
}

#[test]
fn what_is_pinned_stays_and_what_is_freed_is_freed_once() {
    let store = create(&Disk::new(0)).unwrap();
    let transaction = store.begin().unwrap();
    let page = transaction.write_page(&[1; 1000], 0, Kind::Values).unwrap();
    transaction.commit().unwrap();
    let pin = block_on(store.pool().pin(page)).unwrap();
    let snapshot = store.snapshot();
    let mut transaction = store.begin().unwrap();
    transaction.free_page(page);
    transaction.commit().unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.free_page(page);
    let error = transaction.commit().unwrap_err();
    assert!(matches!(error, store::Error::NoSuchPage { .. }), "{error}");
    drop(snapshot);
    let write = |byte| {
        let transaction = store.begin().unwrap();
        let page = transaction
            .write_page(&[byte; 1000], 0, Kind::Values)
            .unwrap();
        transaction.commit().unwrap();
        page
    };
    let other = write(2);
    assert_ne!(other, page, "its id is not given out while it is pinned");
    assert_eq!(*pin, [1; 1000]);
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
    drop(pin);
    assert_eq!(write(3), page, "now it is");
    assert_eq!(*block_on(store.pool().pin(page)).unwrap(), [3; 1000]);
}

#[test]
fn transactions_see_their_own_changes_and_nobody_else_does() {
    let store = create(&Disk::new(0)).unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.put(0, b"a", b"1");
    let space = transaction.new_space();
    transaction.put(space, b"b", b"2");
    assert_eq!(transaction.get(0, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(transaction.prefix(space, b"").count(), 1);
    assert_eq!(transaction.base().get(0, b"a"), None);
    assert_eq!(store.snapshot().get(0, b"a"), None);
    assert!(store.try_begin().unwrap().is_none(), "one writer at a time");
    let before = store.snapshot();
    assert_eq!(transaction.commit().unwrap(), 1);
    assert_eq!(before.get(0, b"a"), None);
    assert_eq!(store.snapshot().get(0, b"a").as_deref(), Some(&b"1"[..]));

    let mut transaction = store.begin().unwrap();
    assert_ne!(transaction.new_space(), space);
    transaction.delete_space(space);
    transaction.put(space, b"c", b"3");
    drop(transaction);
    assert_eq!(store.snapshot().prefix(space, b"").count(), 1);
    assert_eq!(
        store.begin().unwrap().commit().unwrap(),
        1,
        "nothing to commit"
    );
}

#[test]
fn impossible_pages_are_refused() {
    let store = create(&Disk::new(0)).unwrap();
    let mut transaction = store.begin().unwrap();
    for bytes in [0, 16_385] {
        let error = transaction
            .write_page(&vec![0; bytes], 0, Kind::Blob)
            .unwrap_err();
        assert!(matches!(error, store::Error::PageLength { .. }), "{error}");
    }
    let page = transaction.write_page(b"kept", 0, Kind::Blob).unwrap();
    transaction.free_page(99);
    let error = transaction.commit().unwrap_err();
    assert!(
        matches!(error, store::Error::NoSuchPage { page: 99, .. }),
        "{error}"
    );
    assert!(block_on(store.pool().pin(page)).is_err(), "it was undone");

    let mut transaction = store.begin().unwrap();
    let page = transaction.write_page(b"never", 0, Kind::Blob).unwrap();
    transaction.free_page(page);
    assert_eq!(transaction.commit().unwrap(), 0);
    State::default().assert_is_all_of(&store, "written and freed in one transaction");
}
