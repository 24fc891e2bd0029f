//! Disks that fail to read, lose writes, or put them elsewhere, and report success.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::executor::block_on;
use io::Device;
use io::fault::{Disk, Faults};
use store::{Error, Snapshot, Store};

use crate::model::{Random, State, change, create, open, small};

/// How many seeds are tried.
const SEEDS: u64 = if cfg!(feature = "slow") { 1000 } else { 50 };

/// A device that now and then does not write what it should, or writes it elsewhere.
#[derive(Debug)]
struct Liar {
    inner: Arc<dyn Device>,
    random: AtomicU64,
    lying: Arc<AtomicBool>,
    lies: Arc<AtomicU64>,
}

impl Liar {
    fn draw(&self, below: u64) -> u64 {
        let seed = self
            .random
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        Random::new(seed).below(below)
    }
}

impl Device for Liar {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        if !self.lying.load(Ordering::Relaxed) || self.draw(60) > 0 {
            return self.inner.write_at(offset, from);
        }
        self.lies.fetch_add(1, Ordering::Relaxed);
        let end = offset + from.len() as u64;
        if self.inner.len()? < end {
            self.inner.set_len(end)?;
        }
        if self.draw(2) == 0 {
            return Ok(());
        }
        let sectors = self.inner.len()? / 512;
        self.inner.write_at(self.draw(sectors) * 512, from)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
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

/// Every page is what it was, or an error; returns how many are errors.
fn right_or_refused(snapshot: &Snapshot, state: &State, of: &str) -> usize {
    let mut refused = 0;
    for (page, bytes) in &state.pages {
        match block_on(snapshot.pool().pin(*page)) {
            Ok(pin) => assert!(*pin == bytes[..], "{of}: page {page} holds other bytes"),
            Err(_) => refused += 1,
        }
    }
    refused
}

fn keys_are(snapshot: &Snapshot, state: &State) -> bool {
    let spaces = (0..12).flat_map(|space| {
        let entries = snapshot.prefix(space, b"");
        entries.map(move |(key, value)| ((space, key.to_vec()), value.to_vec()))
    });
    spaces.eq(state.keys.clone())
}

#[test]
fn lost_and_misdirected_writes_are_never_taken_for_what_was_written() {
    let (mut told, mut refused, mut right) = (0, 0, 0);
    for seed in 0..SEEDS {
        let of = format!("seed {seed}");
        let disk = Disk::new(seed);
        create(&disk).unwrap();
        let (lying, lies): (Arc<AtomicBool>, Arc<AtomicU64>) = Default::default();
        let device = |name: &str| -> Arc<dyn Device> {
            Arc::new(Liar {
                inner: disk.device(name),
                random: AtomicU64::new(seed * 7 + name.len() as u64),
                lying: lying.clone(),
                lies: lies.clone(),
            })
        };
        let store = Store::open_on(device("data"), device("log"), &small()).unwrap();
        let mut random = Random::new(seed);
        let mut states = vec![State::default()];
        lying.store(true, Ordering::Relaxed);
        for step in 0..40 {
            let Ok(mut transaction) = store.begin() else {
                break;
            };
            let mut state = states[states.len() - 1].clone();
            if change(&mut random, &mut transaction, &mut state, 2000).is_err() {
                break;
            }
            match transaction.commit() {
                Ok(version) if version as usize == states.len() => states.push(state),
                Ok(_) => {}
                Err(_) => break,
            }
            if step % 9 == 8 && store.checkpoint().is_err() {
                break;
            }
        }
        refused += right_or_refused(&store.snapshot(), &states[states.len() - 1], &of);
        drop(store);
        told += lies.load(Ordering::Relaxed);
        for image in [0, 1] {
            match open(&disk.crash(image)) {
                Ok(store) => {
                    let snapshot = store.snapshot();
                    let state = &states[snapshot.version() as usize];
                    assert!(keys_are(&snapshot, state), "{of}: other keys");
                    refused += right_or_refused(&snapshot, state, &of);
                    right += 1;
                }
                Err(
                    Error::Damaged { .. }
                    | Error::Truncated { .. }
                    | Error::NotAtoll { .. }
                    | Error::ForeignLog { .. },
                ) => refused += 1,
                Err(error) => panic!("{of}: {error}"),
            }
        }
    }
    assert!(
        told > SEEDS && right > 5 && refused > 5,
        "{told} {right} {refused}"
    );
}

#[test]
fn reads_that_fail_cost_nothing_but_the_read() {
    let mut failed = 0;
    for seed in 0..SEEDS {
        let of = format!("seed {seed}");
        let disk = Disk::new(seed);
        let mut random = Random::new(seed);
        let mut state = State::default();
        let store = create(&disk).unwrap();
        for step in 0..10 {
            let mut transaction = store.begin().unwrap();
            change(&mut random, &mut transaction, &mut state, 2000).unwrap();
            transaction.commit().unwrap();
            if step == 4 {
                store.checkpoint().unwrap();
            }
        }
        drop(store);
        let left = disk.crash(seed);
        left.set_faults(Faults {
            read_errors: 20,
            short_reads: 20,
            flipped_reads: 20,
            ..Faults::default()
        });
        match open(&left) {
            Ok(store) => {
                left.set_faults(Faults {
                    read_errors: 100,
                    flipped_reads: 100,
                    ..Faults::default()
                });
                failed += right_or_refused(&store.snapshot(), &state, &of);
            }
            Err(_) => failed += 1,
        }
        left.set_faults(Faults::default());
        state.assert_is_all_of(
            &open(&left).unwrap_or_else(|error| panic!("{of}: {error}")),
            &of,
        );
    }
    assert!(failed > 5, "{failed} failed");
}
