//! Loss of power at every operation of the disk.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use io::fault::Disk;
use store::{Error, Kind, Options, PageId, PageStore, Store};

use crate::model::{Random, State, change, create, create_with, open, open_to_read, small};

/// The images seen so far: many a crash leaves what another left before.
#[derive(Default)]
pub struct Images(HashSet<u64>);

impl Images {
    /// How many were seen.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_new(&mut self, image: &Disk) -> bool {
        let mut hasher = DefaultHasher::new();
        for name in image.names() {
            (&name, image.bytes(&name)).hash(&mut hasher);
        }
        self.0.insert(hasher.finish())
    }
}

/// Writes and changes of length that a disk has seen.
fn changes_of(disk: &Disk) -> u64 {
    let counts = disk.counts();
    counts.writes + counts.resizes
}

/// What happened before the disk stopped.
pub struct History {
    /// The state of each version, from 0; the last one may not have been acknowledged.
    pub states: Vec<State>,
    /// The last version that was acknowledged, if the store was created at all.
    pub acknowledged: Option<usize>,
}

/// Commits, checkpoints, closes and opens until the disk stops.
pub fn work(disk: &Disk, options: &Options, seed: u64, steps: usize) -> History {
    let mut random = Random::new(seed);
    let mut history = History {
        states: vec![State::default()],
        acknowledged: None,
    };
    let Ok(mut store) = create_with(disk, options) else {
        return history;
    };
    history.acknowledged = Some(0);
    for _ in 0..steps {
        match random.below(12) {
            0 => {
                if store.clone().close().is_err() {
                    return history;
                }
                drop(store);
                match open(disk) {
                    Ok(opened) => store = opened,
                    Err(_) => return history,
                }
            }
            1 | 2 => {
                if store.checkpoint().is_err() {
                    return history;
                }
            }
            _ => {
                if commit(&store, &mut random, &mut history).is_err() {
                    return history;
                }
            }
        }
    }
    let _ = store.close();
    history
}

/// Commits random changes, or now and then drops them.
pub fn commit(store: &Arc<Store>, random: &mut Random, history: &mut History) -> store::Result<()> {
    let mut transaction = store.begin()?;
    let mut state = history.states[history.acknowledged.unwrap()].clone();
    change(random, &mut transaction, &mut state, 2000)?;
    if random.below(6) == 0 {
        return Ok(());
    }
    let next = transaction.base().version() as usize + 1;
    history.states.truncate(next);
    history.states.push(state);
    if transaction.commit()? as usize == next {
        history.acknowledged = Some(next);
    } else {
        history.states.pop();
    }
    Ok(())
}

/// A seed of what a crash leaves: the kind of loss follows from it modulo 5, and which sectors
/// are lost from all of it, so that they are not the same ones at every operation.
pub fn seed_of(operation: u64, image: u64) -> u64 {
    operation * 5 * 31 + image
}

/// Opens what a crash left and compares; then goes on working with it.
pub fn recovers(image: &Disk, history: &History, of: &str) {
    // A reader first: it finds the same, and leaves everything as it is.
    let store = match open_to_read(image) {
        Ok(store) => store,
        Err(error) => {
            assert!(history.acknowledged.is_none(), "{of}: {error}");
            return;
        }
    };
    let version = store.snapshot().version() as usize;
    if let Some(state) = history.states.get(version) {
        state.assert_equals(&store.snapshot(), of);
    }
    drop(store);
    let store = open(image).unwrap_or_else(|error| panic!("{of}: {error}"));
    assert_eq!(store.snapshot().version() as usize, version, "{of}");
    let acknowledged = history.acknowledged.unwrap_or(0);
    assert!(
        version >= acknowledged,
        "{of}: {version} lost {acknowledged}"
    );
    assert!(
        version < history.states.len(),
        "{of}: version {version} never was"
    );
    history.states[version].assert_is_all_of(&store, of);

    let mut transaction = store.begin().unwrap();
    transaction.put(11, b"after", of.as_bytes());
    assert_eq!(transaction.commit().unwrap() as usize, version + 1, "{of}");
    let mut state = history.states[version].clone();
    state.keys.insert((11, b"after".to_vec()), of.into());
    state.assert_is_all_of(&store, of);
    drop(store);
    state.assert_is_all_of(&open(image).unwrap(), of);
}

#[test]
fn every_operation_may_be_the_last() {
    let mut seen = Images::default();
    for seed in 0..2 {
        let whole = Disk::new(seed);
        let history = work(&whole, &small(), seed, 24);
        assert!(history.acknowledged.unwrap() > 8, "the workload commits");
        recovers(&whole.crash(0), &history, "nothing failed");
        for operation in 0..whole.operations() {
            let disk = Disk::new(seed);
            disk.stop_after(operation);
            let history = work(&disk, &small(), seed, 24);
            for image in 0..5 {
                let left = disk.crash(seed_of(operation, image));
                if seen.is_new(&left) {
                    let of = format!("seed {seed}, operation {operation}, image {image}");
                    recovers(&left, &history, &of);
                }
            }
        }
    }
    assert!(seen.len() > 400, "{} distinct images", seen.len());
}

#[test]
fn recovery_may_be_cut_short_too() {
    let mut seen = Images::default();
    let mut writes = 0;
    for seed in 0..3 {
        let whole = Disk::new(seed);
        let _ = work(&whole, &small(), seed, 16);
        // At ends of the work that leave something to replay, and others.
        for stop in (10..whole.operations()).step_by(9) {
            let disk = Disk::new(seed);
            disk.stop_after(stop);
            let history = work(&disk, &small(), seed, 16);
            if history.acknowledged.is_none() {
                continue;
            }
            let crashed = disk.crash(seed_of(stop, 1));
            let counted = crashed.crash(1);
            open(&counted).unwrap();
            let changes = changes_of(&counted);
            writes += changes;
            if changes == 0 {
                continue;
            }
            for operation in 0..counted.operations() {
                let again = crashed.crash(1);
                again.stop_after(operation);
                let _ = open(&again);
                for second in 0..5 {
                    let left = again.crash(seed_of(operation, second));
                    let of = format!("seed {seed}, stop {stop}, operation {operation}/{second}");
                    if seen.is_new(&left) {
                        recovers(&left, &history, &of);
                    }
                }
            }
        }
    }
    assert!(writes > 40, "recoveries wrote {writes} times");
    assert!(seen.len() > 150, "{} distinct images", seen.len());
}

#[test]
fn every_operation_of_automatic_checkpoints_may_be_the_last() {
    // A log of three sectors is long enough.
    let options = store::Options {
        checkpoint_bytes: 1500,
        ..small()
    };
    let run = |disk: &Disk| {
        let mut random = Random::new(7);
        let mut history = History {
            states: vec![State::default()],
            acknowledged: None,
        };
        let Ok(store) = create_with(disk, &options) else {
            return (history, 0);
        };
        history.acknowledged = Some(0);
        for _ in 0..18 {
            if commit(&store, &mut random, &mut history).is_err() {
                break;
            }
        }
        let done = store.statistics().checkpoints;
        (history, done)
    };
    let whole = Disk::new(7);
    let (_, checkpoints) = run(&whole);
    assert!(checkpoints >= 4, "{checkpoints} checkpoints");
    let mut seen = Images::default();
    for operation in 0..whole.operations() {
        let disk = Disk::new(7);
        disk.stop_after(operation);
        let (history, _) = run(&disk);
        for image in 0..5 {
            let left = disk.crash(seed_of(operation, image));
            if seen.is_new(&left) {
                recovers(
                    &left,
                    &history,
                    &format!("operation {operation}, image {image}"),
                );
            }
        }
    }
    assert!(seen.len() > 200, "{} distinct images", seen.len());
}

#[test]
fn creating_a_store_may_be_cut_short_and_is_then_repeated() {
    let mut repeated = 0;
    for pages in [false, true] {
        let create = |disk: &Disk| {
            let (data, log) = (disk.device("data"), disk.device("log"));
            if pages {
                PageStore::create_on(data, log, &small()).map(drop)
            } else {
                Store::create_on(data, log, &small()).map(drop)
            }
        };
        let whole = Disk::new(0);
        create(&whole).unwrap();
        for operation in 0..whole.operations() {
            let disk = Disk::new(0);
            disk.stop_after(operation);
            let created = create(&disk).is_ok();
            for image in 0..25 {
                let of = format!("pages {pages}, operation {operation}, image {image}");
                let left = disk.crash(seed_of(operation, image));
                match open(&left) {
                    // Everything but the acknowledgement was done.
                    Ok(store) => {
                        assert_eq!(store.snapshot().version(), u64::from(pages), "{of}");
                        let error = create(&left).unwrap_err();
                        assert!(matches!(error, Error::Exists { .. }), "{of}: {error}");
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Unfinished { .. }), "{of}: {error}");
                        assert!(!created, "{of}");
                        create(&left).unwrap_or_else(|error| panic!("{of}: {error}"));
                        let store = open(&left).unwrap();
                        assert!(store.check(&|_, _| {}).unwrap().is_empty(), "{of}");
                        repeated += 1;
                    }
                }
            }
        }
    }
    assert!(repeated > 100, "{repeated}");
}

#[test]
fn several_writing_threads_may_be_cut_short() {
    let run = |disk: &Disk| {
        let acknowledged = Mutex::new(BTreeMap::new());
        let Ok(store) = create(disk) else {
            return (acknowledged.into_inner().unwrap(), 0);
        };
        std::thread::scope(|scope| {
            for thread in 0..3u8 {
                let (store, acknowledged) = (&store, &acknowledged);
                scope.spawn(move || {
                    for step in 0..8u8 {
                        let Ok(mut transaction) = store.begin() else {
                            return;
                        };
                        let content = vec![thread * 16 + step; 3000 + usize::from(step)];
                        let page = match transaction.write_page(&content, thread, Kind::Blob) {
                            Ok(page) => page.to_le_bytes(),
                            Err(_) => return,
                        };
                        transaction.put(0, &[thread, step], &page);
                        let Ok(version) = transaction.commit() else {
                            return;
                        };
                        let mut acknowledged = acknowledged.lock().unwrap();
                        acknowledged.insert(version, ([thread, step], content));
                    }
                });
            }
        });
        (acknowledged.into_inner().unwrap(), disk.operations())
    };
    let (all, operations) = run(&Disk::new(3));
    assert_eq!(all.len(), 24);
    let mut seen = Images::default();
    for operation in 0..operations {
        let disk = Disk::new(3);
        disk.stop_after(operation);
        let (acknowledged, _) = run(&disk);
        for image in 0..6 {
            let left = disk.crash(seed_of(operation, image));
            if acknowledged.is_empty() || !seen.is_new(&left) {
                continue;
            }
            let of = format!("operation {operation}, image {image}");
            let store = open(&left).unwrap_or_else(|error| panic!("{of}: {error}"));
            let snapshot = store.snapshot();
            assert!(snapshot.version() >= *acknowledged.keys().last().unwrap());
            for (key, content) in acknowledged.values() {
                let page = snapshot
                    .get(0, key)
                    .unwrap_or_else(|| panic!("{of}: {key:?}"));
                let page = PageId::from_le_bytes(page[..].try_into().unwrap());
                let pin = block_on(snapshot.pool().pin(page)).unwrap();
                assert!(*pin == content[..], "{of}: {key:?}");
            }
            assert!(store.check(&|_, _| {}).unwrap().is_empty(), "{of}");
        }
    }
    assert!(seen.len() > 50, "{} distinct images", seen.len());
}
