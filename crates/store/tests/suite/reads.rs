//! Reads that fail: once, always, and now and then.

use std::sync::Arc;

use futures::executor::block_on;
use io::fault::{Disk, Faults};
use store::{Error, Store};

use crate::crash::work;
use crate::model::small;
use crate::model::{Random, State, change, create, open, open_to_read};

const SECTOR: u64 = 512;

/// A disk with pages and keys in the data file and in the log, and what it holds.
fn filled() -> (Disk, State) {
    let seed = 21;
    let disk = Disk::new(seed);
    let history = work(&disk, &small(), seed, 24);
    let mut state = history.states[history.acknowledged.unwrap()].clone();
    let mut random = Random::new(seed);
    let store = open(&disk).unwrap();
    store.checkpoint().unwrap();
    for _ in 0..4 {
        let mut transaction = store.begin().unwrap();
        change(&mut random, &mut transaction, &mut state, 3000).unwrap();
        transaction.put(9, b"more", &[7; 700]);
        transaction.commit().unwrap();
    }
    state.keys.insert((9, b"more".to_vec()), vec![7; 700]);
    assert!(store.statistics().log_bytes > 2000);
    assert!(state.pages.len() > 4);
    (disk, state)
}

/// Reads everything: what comes is right, whatever else fails. Returns how much failed.
fn reads_right_or_not(store: &Arc<Store>, state: &State, of: &str) -> usize {
    // The keys are in memory: there is no reason for any to be missing.
    for ((space, key), value) in &state.keys {
        let found = store.snapshot().get(*space, key);
        assert_eq!(found.as_deref(), Some(&value[..]), "{of}");
    }
    let read = |page: &u32, bytes: &Vec<u8>| match block_on(store.pool().pin(*page)) {
        Ok(pin) => {
            assert!(*pin == bytes[..], "{of}: page {page} holds other bytes");
            0
        }
        Err(error) => {
            assert!(matches!(error, buffer::Error::Load { .. }), "{of}: {error}");
            1
        }
    };
    state
        .pages
        .iter()
        .map(|(page, bytes)| read(page, bytes))
        .sum()
}

#[test]
fn a_sector_that_fails_to_be_read_costs_nothing_once_and_loses_nothing_ever() {
    let (disk, state) = filled();
    let (mut refused, mut unread) = (0, 0);
    for name in ["data", "log"] {
        let bytes = disk.bytes(name);
        for (sector, bytes) in (0u64..).zip(bytes.chunks(SECTOR as usize)) {
            // What was never written is never read.
            if bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            let bytes = sector * SECTOR..(sector + 1) * SECTOR;
            for times in [1, u32::MAX] {
                let of = format!("{name}, sector {sector}, {times} times");
                let image = disk.crash(1);
                image.fail_reads(name, bytes.clone(), times);
                let opened = match sector % 2 {
                    0 => open(&image),
                    _ => open_to_read(&image),
                };
                let store = match opened {
                    Ok(store) => Some(store),
                    Err(error) => {
                        assert!(matches!(error, Error::Io(_)), "{of}: {error}");
                        refused += 1;
                        // Once is no harm: it opens when it is tried again.
                        (times == 1).then(|| open(&image).unwrap())
                    }
                };
                if let Some(store) = &store {
                    let failed = reads_right_or_not(store, &state, &of);
                    unread += failed;
                    let again = reads_right_or_not(store, &state, &of);
                    // A failed load leaves nothing behind.
                    assert_eq!(again, if times == 1 { 0 } else { failed }, "{of}");
                    let problems = store.check(&|_, _| {});
                    let sound = problems.is_ok_and(|problems| problems.is_empty());
                    assert!(sound || times > 1, "{of}");
                }
                drop(store);
                image.mend_reads();
                state.assert_is_all_of(&open(&image).unwrap(), &of);
            }
        }
    }
    assert!(refused > 20, "{refused} refused to open");
    assert!(unread > 20, "{unread} pages were not read");
}

#[test]
fn reads_that_fail_now_and_then_lose_nothing_and_give_nothing_wrong() {
    let (mut failed, mut refused, mut unwritten) = (0, 0, 0);
    for seed in 0..24 {
        let disk = Disk::new(seed);
        let mut random = Random::new(seed);
        let mut store = create(&disk).unwrap();
        let mut state = State::default();
        disk.set_faults(Faults {
            short_reads: 30,
            read_errors: 60,
            ..Faults::default()
        });
        for step in 0..60 {
            let of = format!("seed {seed}, step {step}");
            match random.below(12) {
                0 => {
                    drop(store);
                    store = (0..200)
                        .find_map(|_| match open(&disk) {
                            Ok(store) => Some(store),
                            Err(error) => {
                                let read = matches!(error, Error::Io(_) | Error::Truncated { .. });
                                assert!(read, "{of}: {error}");
                                refused += 1;
                                None
                            }
                        })
                        .expect("a read succeeds now and then");
                }
                1 => tried_again(&of, &mut unwritten, || store.checkpoint()),
                2 | 3 => {
                    store.pool().clear();
                    failed += reads_right_or_not(&store, &state, &of);
                }
                _ => {
                    // What is free, and what a freed page takes, is read when it is first needed.
                    let before = state.clone();
                    tried_again(&of, &mut unwritten, || {
                        state = before.clone();
                        let mut transaction = store.begin()?;
                        change(&mut random, &mut transaction, &mut state, 3000)?;
                        transaction.commit().map(drop)
                    });
                }
            }
        }
        let of = format!("seed {seed}");
        disk.set_faults(Faults::default());
        state.assert_is_all_of(&store, &of);
        drop(store);
        for image in 0..3 {
            state.assert_is_all_of(&open(&disk.crash(seed * 155 + image)).unwrap(), &of);
        }
    }
    assert!(
        failed > 20 && refused > 20 && unwritten > 0,
        "{failed} pages, {refused} opens, {unwritten} writes"
    );
}

/// Does something until no read fails in it; counts the failures.
fn tried_again(of: &str, failures: &mut u32, mut deed: impl FnMut() -> store::Result<()>) {
    for _ in 0..200 {
        match deed() {
            Ok(()) => return,
            Err(error) => {
                let read = matches!(error, Error::Io(_) | Error::Truncated { .. });
                assert!(read, "{of}: {error}");
                *failures += 1;
            }
        }
    }
    panic!("{of}: a read succeeds now and then");
}
