//! Disks that are full, fail, or must not be written to.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use io::Device;
use io::fault::{Disk, Faults};
use store::{Error, Kind, Options, Store};

use crate::model::{Random, State, change, create, open, open_to_read, small};

#[test]
fn a_full_disk_undoes_the_transaction_and_nothing_else() {
    let mut fulls = 0;
    for room in (0..60_000).step_by(512) {
        let disk = Disk::new(1);
        let mut random = Random::new(1);
        let store = create(&disk).unwrap();
        let used: usize = disk.names().iter().map(|name| disk.bytes(name).len()).sum();
        disk.set_capacity(used as u64 + room);
        let mut state = State::default();
        for step in 0..30 {
            let of = format!("room {room}, step {step}");
            let mut changed = state.clone();
            let mut transaction = store.begin().unwrap();
            let done = change(&mut random, &mut transaction, &mut changed, 3000)
                .and_then(|()| transaction.commit());
            match done {
                Ok(_) => state = changed,
                Err(error) => {
                    assert!(error.is_full(), "{of}: {error}");
                    fulls += 1;
                    state.assert_equals(&store.snapshot(), &of);
                }
            }
            if step % 5 == 4
                && let Err(error) = store.checkpoint()
            {
                assert!(error.is_full(), "{of}: {error}");
                fulls += 1;
            }
        }
        let of = format!("room {room}");
        state.assert_is_all_of(&store, &of);
        if let Err(error) = store.clone().close() {
            assert!(error.is_full(), "{of}: {error}");
        }
        drop(store);
        // The disk is as full as before when it is opened again.
        state.assert_is_all_of(&open(&disk).unwrap(), &of);
        disk.set_capacity(u64::MAX);
        let store = open(&disk).unwrap();
        let mut transaction = store.begin().unwrap();
        change(&mut random, &mut transaction, &mut state, 3000).unwrap();
        transaction.commit().unwrap();
        state.assert_is_all_of(&store, &of);
    }
    assert!(fulls > 100, "the disk was full {fulls} times");
}

/// A device on which some writes find no room, having done a half.
#[derive(Debug)]
struct Choked {
    inner: Arc<dyn Device>,
    /// Writes and changes of length so far, over all devices of the store.
    turn: Arc<AtomicU64>,
    full: Arc<[u64]>,
    /// The writes of whole blocks, which are roots and log headers.
    blocks: Arc<Mutex<Vec<u64>>>,
}

impl Choked {
    fn is_full(&self) -> bool {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.full.contains(&turn)
    }

    fn full(&self) -> io::Result<()> {
        Err(io::Error::Full {
            path: self.inner.path().to_path_buf(),
        })
    }
}

impl Device for Choked {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        if from.len() == 4096 {
            self.blocks
                .lock()
                .unwrap()
                .push(self.turn.load(Ordering::Relaxed));
        }
        if !self.is_full() {
            return self.inner.write_at(offset, from);
        }
        self.inner.write_at(offset, &from[..from.len() / 2])?;
        self.full()
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        if self.is_full() {
            self.full()
        } else {
            self.inner.set_len(bytes)
        }
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

/// Works on a disk that is full at the given writes; returns how many writes there were, and
/// how many times somebody was told that the disk is full, and which writes were of blocks.
fn work_on_full_disk(full: &[u64]) -> (u64, usize, Vec<u64>) {
    let disk = Disk::new(0);
    create(&disk).unwrap();
    let turn = Arc::new(AtomicU64::new(0));
    let blocks = Arc::new(Mutex::new(Vec::new()));
    let device = |name| {
        let full = full.into();
        Arc::new(Choked {
            inner: disk.device(name),
            turn: turn.clone(),
            full,
            blocks: blocks.clone(),
        }) as Arc<dyn Device>
    };
    let store = Store::open_on(device("data"), device("log"), &small()).unwrap();
    let mut random = Random::new(4);
    let mut state = State::default();
    let mut told = 0;
    for step in 0..36 {
        let of = format!("full at {full:?}, step {step}");
        if step % 6 == 5 {
            let checkpoint = store.checkpoint();
            if let Err(error) = &checkpoint {
                assert!(error.is_full(), "{of}: {error}");
                told += 1;
            }
            state.assert_equals(&open_to_read(&disk.crash(1)).unwrap().snapshot(), &of);
            continue;
        }
        let mut changed = state.clone();
        let mut transaction = store.begin().unwrap();
        let done = change(&mut random, &mut transaction, &mut changed, 3000)
            .and_then(|()| transaction.commit());
        match done {
            Ok(_) => state = changed,
            Err(error) => {
                assert!(error.is_full(), "{of}: {error}");
                told += 1;
            }
        }
        state.assert_equals(&store.snapshot(), &of);
    }
    let of = format!("full at {full:?}");
    let writes = turn.swap(u64::MAX / 2, Ordering::Relaxed);
    let written = std::mem::take(&mut *blocks.lock().unwrap());
    state.assert_equals(&open_to_read(&disk.crash(1)).unwrap().snapshot(), &of);
    // With room again, everything is put right.
    let mut transaction = store.begin().unwrap();
    transaction.put(5, b"room", b"again");
    transaction.commit().unwrap();
    state.keys.insert((5, b"room".to_vec()), b"again".to_vec());
    store.checkpoint().unwrap();
    state.assert_is_all_of(&store, &of);
    store.close().unwrap();
    state.assert_is_all_of(&open(&disk).unwrap(), &of);
    (writes, told, written)
}

#[test]
fn every_write_may_find_the_disk_full() {
    let (writes, told, blocks) = work_on_full_disk(&[]);
    assert_eq!(told, 0);
    assert!(writes > 70, "{writes}");
    let mut random = Random::new(6);
    let mut told = 0;
    for first in 0..writes {
        told += work_on_full_disk(&[first]).1;
        for _ in 0..2 {
            let second = first + 1 + random.below(30);
            told += work_on_full_disk(&[first, second]).1;
        }
    }
    assert!(told > writes as usize, "{told}");
    // Two checkpoints that fail at their last writes, in all ways; what the first one skips
    // shifts the second a little.
    for (at, &first) in blocks.iter().enumerate() {
        for &second in blocks[at + 1..].iter().take(3) {
            for second in second - 1..=second + 1 {
                work_on_full_disk(&[first, second]);
            }
        }
    }
}

/// A device whose sync reports a full disk when it is told to.
#[derive(Debug)]
struct LateFull {
    inner: Arc<dyn Device>,
    full: Arc<AtomicBool>,
    /// Whether what was written reaches the disk all the same.
    durable: bool,
}

impl Device for LateFull {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, from)
    }

    fn sync(&self) -> io::Result<()> {
        let full = self.full.load(Ordering::Relaxed);
        if !full || self.durable {
            self.inner.sync()?;
        }
        if full {
            return Err(io::Error::Full {
                path: self.inner.path().to_path_buf(),
            });
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.inner.set_len(bytes)
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

#[test]
fn a_disk_found_full_by_a_sync_leaves_open_whether_the_commit_is_durable() {
    for (name, durable) in [("log", false), ("log", true), ("data", true)] {
        let of = format!("{name}, durable: {durable}");
        let disk = Disk::new(0);
        create(&disk).unwrap();
        let full = Arc::new(AtomicBool::new(false));
        let device = |which: &str| {
            let inner = disk.device(which);
            let full = if which == name {
                full.clone()
            } else {
                Arc::default()
            };
            Arc::new(LateFull {
                inner,
                full,
                durable,
            }) as Arc<dyn Device>
        };
        // Each commit syncs both.
        let options = Options {
            small_commit: 0,
            ..small()
        };
        let store = Store::open_on(device("data"), device("log"), &options).unwrap();
        let begin = |value: &[u8]| {
            let mut transaction = store.begin().unwrap();
            transaction.write_page(value, 0, Kind::Blob).unwrap();
            transaction.put(0, b"key", value);
            transaction
        };
        begin(b"first").commit().unwrap();
        full.store(true, Ordering::Relaxed);
        let error = begin(b"second").commit().unwrap_err();
        assert!(!error.is_full(), "{of}: {error}");
        let text = error.to_string();
        match name {
            "log" => {
                assert!(
                    matches!(error, Error::Uncertain { version: 2, .. }),
                    "{of}: {error}"
                );
                assert!(text.contains("not known"), "{text}");
            }
            // No record was written, so it is known.
            _ => assert!(matches!(error, Error::Latched { .. }), "{of}: {error}"),
        }
        assert!(!text.contains("undone"), "{text}");
        full.store(false, Ordering::Relaxed);
        for _ in 0..2 {
            let error = store.begin().unwrap_err();
            assert!(matches!(error, Error::Latched { .. }), "{of}: {error}");
        }
        let first = Some(&b"first"[..]);
        assert_eq!(
            store.snapshot().get(0, b"key").as_deref(),
            first,
            "readers go on"
        );
        let writes = disk.counts().writes;
        let _ = store.close();
        assert_eq!(disk.counts().writes, writes, "{of}: closing writes nothing");
        let store = open(&disk.crash(0)).unwrap();
        let expected = if durable && name == "log" {
            Some(&b"second"[..])
        } else {
            first
        };
        assert_eq!(store.snapshot().get(0, b"key").as_deref(), expected, "{of}");
    }
}

#[test]
fn a_failing_disk_never_loses_an_acknowledged_commit() {
    let (mut latched, mut uncertain) = (0, 0);
    for seed in 0..60 {
        let disk = Disk::new(seed);
        let mut random = Random::new(seed);
        let store = create(&disk).unwrap();
        disk.set_faults(Faults {
            short_writes: 8,
            write_errors: 8,
            sync_errors: 8,
            ..Faults::default()
        });
        let mut state = State::default();
        let mut acknowledged = 0;
        let mut maybe = None;
        for step in 0..60 {
            let Ok(mut transaction) = store.begin() else {
                break;
            };
            let mut changed = state.clone();
            if change(&mut random, &mut transaction, &mut changed, 3000).is_err() {
                continue;
            }
            match transaction.commit() {
                Ok(version) => (acknowledged, state) = (version, changed),
                Err(Error::Latched { .. }) => break,
                Err(_) => {
                    assert!(maybe.is_none(), "seed {seed}: a commit after a failed one");
                    maybe = Some(changed);
                }
            }
            if step % 7 == 0 {
                let _ = store.checkpoint();
            }
        }
        disk.set_faults(Faults::default());
        uncertain += u32::from(maybe.is_some());
        if store.statistics().latched.is_some() {
            latched += 1;
            let error = store.begin().unwrap_err();
            assert!(matches!(error, Error::Latched { .. }), "{error}");
        }
        assert!(maybe.is_none() || store.statistics().latched.is_some());
        // Readers go on.
        state.assert_equals(&store.snapshot(), &format!("seed {seed}"));
        drop(store);
        for image in 0..4 {
            let of = format!("seed {seed}, image {image}");
            let store = open(&disk.crash(seed * 155 + image))
                .unwrap_or_else(|error| panic!("{of}: {error}"));
            let version = store.snapshot().version();
            match &maybe {
                Some(changed) if version == acknowledged + 1 => {
                    changed.assert_is_all_of(&store, &of);
                }
                _ => {
                    assert_eq!(version, acknowledged, "{of}");
                    state.assert_is_all_of(&store, &of);
                }
            }
        }
    }
    assert!(latched > 30 && uncertain > 10, "{latched}, {uncertain}");
}

#[test]
fn a_reader_writes_nothing() {
    let disk = Disk::new(0);
    let store = create(&disk).unwrap();
    let mut transaction = store.begin().unwrap();
    let page = transaction.write_page(b"page", 0, Kind::Blob).unwrap();
    transaction.put(0, b"key", b"value");
    transaction.commit().unwrap();
    assert!(store.statistics().log_bytes > 0);
    drop(store);
    let before = disk.counts();
    let files: Vec<_> = disk.names().iter().map(|name| disk.bytes(name)).collect();
    let store = open_to_read(&disk).unwrap();
    let state = State {
        keys: [((0, b"key".to_vec()), b"value".to_vec())].into(),
        pages: [(page, b"page".to_vec())].into(),
    };
    state.assert_is_all_of(&store, "read only");
    assert!(matches!(store.begin().unwrap_err(), Error::ReadOnly { .. }));
    assert!(matches!(
        store.checkpoint().unwrap_err(),
        Error::ReadOnly { .. }
    ));
    store.close().unwrap();
    let after = disk.counts();
    assert_eq!(
        (before.writes, before.syncs, before.resizes),
        (after.writes, after.syncs, after.resizes)
    );
    assert_eq!(
        files,
        disk.names()
            .iter()
            .map(|name| disk.bytes(name))
            .collect::<Vec<_>>()
    );
}
