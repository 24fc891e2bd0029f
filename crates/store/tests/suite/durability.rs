//! What commits of each durability cost, and what they survive.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use io::Device;
use io::fault::Disk;
use store::{DIRTY_BYTES, Durability, Kind, Options, SMALL_COMMIT, Statistics, Store};

use crate::crash::{History, Images, recovers, seed_of};
use crate::model::{Random, State, change, create, create_with, open, small};

/// Commits pages of noise, and says what that took: syncs and bytes written.
fn commit(store: &Arc<Store>, pages: usize, durability: Durability) -> (u64, u64) {
    let mut random = Random::new(pages as u64);
    let before = store.statistics();
    let mut transaction = store.begin().unwrap();
    for _ in 0..pages {
        let page: Vec<u8> = (0..4096).map(|_| random.next() as u8).collect();
        transaction.write_page(&page, 0, Kind::Blob).unwrap();
    }
    transaction.put(0, b"pages", &pages.to_le_bytes());
    transaction.set_durability(durability);
    transaction.commit().unwrap();
    let after = store.statistics();
    assert_eq!(after.commits, before.commits + 1);
    (
        after.syncs - before.syncs,
        after.written_bytes - before.written_bytes,
    )
}

#[test]
fn a_small_commit_takes_one_sync_and_a_large_one_two() {
    let disk = Disk::new(1);
    let options = Options {
        dirty_bytes: DIRTY_BYTES,
        ..small()
    };
    let store = create_with(&disk, &options).unwrap();
    // The file grows, which is made durable once.
    assert_eq!(commit(&store, 1, Durability::Power).0, 2);
    let large = SMALL_COMMIT / 4096 + 1;
    // Bytes of records that were not written when their commits returned.
    let mut kept = 0;
    for (pages, durability, syncs) in [
        (0, Durability::Power, 1),
        (1, Durability::Power, 1),
        (large - 1, Durability::Power, 1),
        (large, Durability::Power, 2),
        (1, Durability::Process, 0),
        (1, Durability::None, 0),
        // Pages that are not in the log are durable before their record is written.
        (large, Durability::Process, 1),
        (1, Durability::Power, 1),
    ] {
        let counted = disk.counts().syncs;
        let of = format!("{pages} pages, {durability:?}");
        let (counts, bytes) = commit(&store, pages, durability);
        assert_eq!(counts, syncs, "{of}");
        assert_eq!(
            disk.counts().syncs - counted,
            syncs,
            "{of}: as the disk counts"
        );
        // Pages that are in the log are written to their places later.
        let all = 4096 * pages as u64;
        let (data, logged) = if pages == large { (all, 0) } else { (0, all) };
        // In the log, a sector carries 480 bytes, and a record more than its pages.
        let record = logged * 512 / 484 + 40 * pages as u64 + 1024;
        let most = data + record + kept;
        kept = if durability == Durability::None {
            record
        } else {
            0
        };
        assert!(bytes <= most, "{of}: {bytes} of {most} bytes");
        if durability != Durability::None {
            assert!(bytes >= data + logged, "{of}: {bytes} bytes");
        }
    }
}

#[test]
fn what_each_durability_survives() {
    for (durability, process, power) in [
        (Durability::None, 1, 1),
        (Durability::Process, 2, 1),
        (Durability::Power, 2, 2),
    ] {
        let disk = Disk::new(3);
        let options = Options {
            durability,
            ..small()
        };
        let store = create_with(&disk, &options).unwrap();
        commit(&store, 1, Durability::Power);
        commit(&store, 1, durability);
        assert_eq!(store.snapshot().version(), 2, "visible in any case");
        let version = |disk: &Disk| open(disk).unwrap().snapshot().version();
        assert_eq!(version(&disk.crash(0)), power, "{durability:?}");
        // As if the process had ended now: the system has what was written.
        assert_eq!(version(&disk.crash(1)), process, "{durability:?}");
        let closed = disk.clone();
        store.close().unwrap();
        assert_eq!(version(&closed.crash(0)), 2, "{durability:?}, closed");
    }
}

#[test]
fn a_commit_makes_those_before_it_as_durable() {
    let disk = Disk::new(4);
    let store = create(&disk).unwrap();
    for durability in [Durability::None, Durability::Process, Durability::None] {
        commit(&store, 2, durability);
    }
    assert_eq!(open(&disk.crash(0)).unwrap().snapshot().version(), 0);
    commit(&store, 0, Durability::Power);
    let left = open(&disk.crash(0)).unwrap();
    assert_eq!(left.snapshot().version(), 4);
    assert!(left.check(&|_, _| {}).unwrap().is_empty());
}

/// Commits of all durabilities, checkpoints, closing and opening, until the disk stops.
fn work(disk: &Disk, seed: u64) -> History {
    let mut random = Random::new(seed);
    let mut history = History {
        states: vec![State::default()],
        acknowledged: None,
    };
    let options = Options {
        checkpoint_bytes: 6000,
        ..small()
    };
    let Ok(mut store) = create_with(disk, &options) else {
        return history;
    };
    history.acknowledged = Some(0);
    for _ in 0..24 {
        let head = store.snapshot().version() as usize;
        match random.below(14) {
            0 => {
                if store.clone().close().is_err() {
                    return history;
                }
                history.acknowledged = Some(head);
                drop(store);
                match open(disk) {
                    Ok(opened) => store = opened,
                    Err(_) => return history,
                }
            }
            1 => {
                if store.checkpoint().is_err() {
                    return history;
                }
                history.acknowledged = Some(head);
            }
            _ => {
                let Ok(mut transaction) = store.begin() else {
                    return history;
                };
                let mut state = history.states[head].clone();
                if change(&mut random, &mut transaction, &mut state, 2000).is_err() {
                    return history;
                }
                let durability = match random.below(3) {
                    0 => Durability::None,
                    1 => Durability::Process,
                    _ => Durability::Power,
                };
                transaction.set_durability(durability);
                history.states.truncate(head + 1);
                history.states.push(state);
                match transaction.commit() {
                    Ok(version) if version as usize == head => drop(history.states.pop()),
                    Ok(version) if durability == Durability::Power => {
                        history.acknowledged = Some(version as usize);
                    }
                    Ok(_) => {}
                    Err(_) => return history,
                }
            }
        }
    }
    history
}

#[test]
fn the_power_goes_between_commits_of_all_durabilities() {
    let mut seen = Images::default();
    for seed in 0..2 {
        let whole = Disk::new(seed);
        work(&whole, seed);
        for operation in 0..whole.operations() {
            let disk = Disk::new(seed);
            disk.stop_after(operation);
            let history = work(&disk, seed);
            for image in 0..5 {
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

/// A device whose sync takes its time, as that of a disk does.
#[derive(Debug)]
struct Slow(Arc<dyn Device>, AtomicU64);

impl Device for Slow {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, from)
    }

    fn sync(&self) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(10));
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
fn threads_that_commit_together_share_a_sync() {
    const THREADS: u8 = 16;
    const EACH: u8 = 10;
    let disk = Disk::new(5);
    let log = Arc::new(Slow(disk.device("log"), AtomicU64::new(0)));
    let store = Store::create_on(disk.device("data"), log.clone(), &small()).unwrap();
    commit(&store, 1, Durability::Power);
    let before: Statistics = store.statistics();
    let synced = log.1.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for step in 0..EACH {
                    let mut transaction = store.begin().unwrap();
                    transaction
                        .write_page(&[thread; 100], 0, Kind::Blob)
                        .unwrap();
                    transaction.put(0, &[thread, step], b"done");
                    let version = transaction.commit().unwrap();
                    let snapshot = store.snapshot();
                    assert!(snapshot.version() >= version, "visible when acknowledged");
                    assert!(snapshot.get(0, &[thread, step]).is_some());
                }
            });
        }
    });
    let after = store.statistics();
    let commits = after.commits - before.commits;
    assert_eq!(commits, u64::from(THREADS) * u64::from(EACH));
    let syncs = after.syncs - before.syncs;
    assert_eq!(syncs, log.1.load(Ordering::Relaxed) - synced);
    assert!(syncs * 4 <= commits, "{syncs} syncs for {commits} commits");
    drop(store);
    let store = open(&disk.crash(0)).unwrap();
    assert_eq!(store.snapshot().version(), 1 + commits);
    assert_eq!(store.statistics().pages.pages, 1 + commits);
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}

#[test]
fn space_that_only_a_version_frees_that_is_not_durable_is_not_used() {
    let disk = Disk::new(6);
    let store = create(&disk).unwrap();
    let transaction = store.begin().unwrap();
    let mut random = Random::new(6);
    let noise: Vec<u8> = (0..9000).map(|_| random.next() as u8).collect();
    let page = transaction.write_page(&noise, 0, Kind::Blob).unwrap();
    transaction.commit().unwrap();
    store.checkpoint().unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.free_page(page);
    transaction.set_durability(Durability::Process);
    transaction.commit().unwrap();
    for _ in 0..20 {
        commit(&store, 2, Durability::Process);
    }
    assert!(store.statistics().pending_bytes >= 9000);
    for image in 0..25 {
        let left = open(&disk.crash(image)).unwrap();
        assert!(left.check(&|_, _| {}).unwrap().is_empty(), "image {image}");
    }
    commit(&store, 0, Durability::Power);
    drop(store.begin().unwrap());
    assert_eq!(store.statistics().pending_bytes, 0);
}
