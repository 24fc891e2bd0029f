//! Everything at once: commits of all durabilities, checkpoints, vacuum, a disk that is full now and then, and
//! the power that goes in the midst of it, again and again.

use std::sync::Arc;

use io::fault::Disk;
use store::{Durability, Options, Store};

use crate::crash::{History, Images, recovers, seed_of};
use crate::model::{Random, State, change, create_with, open, small};

/// How many distinct images are tried at least.
const IMAGES: usize = if cfg!(feature = "slow") { 10_000 } else { 600 };
/// Losses of power one after the other.
const GENERATIONS: u64 = 3;

fn options(seed: u64) -> Options {
    Options {
        // Dense, or in whole blocks.
        alignment: if seed.is_multiple_of(2) { 64 } else { 4096 },
        // The log is folded every few commits.
        checkpoint_bytes: 5000,
        ..small()
    }
}

/// Opens the store, or makes it, and works until the disk stops.
fn work(disk: &Disk, history: &mut History, seed: u64, steps: usize) {
    let mut random = Random::new(seed);
    let opened = match history.acknowledged {
        None => create_with(disk, &options(seed)),
        Some(_) => Store::open_on(disk.device("data"), disk.device("log"), &options(seed)),
    };
    let Ok(mut store) = opened else { return };
    // Opening for writing makes durable what was found.
    let found = store.snapshot().version() as usize;
    history.states.truncate(found + 1);
    history.acknowledged = Some(found);
    for _ in 0..steps {
        let done = match random.below(16) {
            0 => match store.clone().close() {
                Ok(()) => {
                    history.acknowledged = Some(store.snapshot().version() as usize);
                    drop(store);
                    match open(disk) {
                        Ok(opened) => store = opened,
                        Err(_) => return,
                    }
                    Ok(())
                }
                Err(error) => Err(error),
            },
            1 => store.checkpoint(),
            2 => vacuum(&store, history),
            3 => {
                let used: usize = disk.names().iter().map(|name| disk.bytes(name).len()).sum();
                disk.set_capacity(used as u64 + random.below(6000));
                Ok(())
            }
            4 => {
                disk.set_capacity(u64::MAX);
                Ok(())
            }
            _ => commit(&store, &mut random, history),
        };
        match done {
            Ok(()) => {}
            Err(error) if error.is_full() => {}
            Err(_) => return,
        }
    }
}

/// Each of its steps is a commit that changes nothing.
fn vacuum(store: &Arc<Store>, history: &mut History) -> store::Result<()> {
    let head = store.snapshot().version() as usize;
    history.states.truncate(head + 1);
    // More than it has steps; those that it does not take are cut off again.
    let same = history.states[head].clone();
    history.states.extend(std::iter::repeat_n(same, 40));
    let done = store.vacuum();
    if done.is_ok() {
        let head = store.snapshot().version() as usize;
        history.states.truncate(head + 1);
        history.acknowledged = Some(head);
    }
    done.map(drop)
}

fn commit(store: &Arc<Store>, random: &mut Random, history: &mut History) -> store::Result<()> {
    let mut transaction = store.begin()?;
    let head = transaction.base().version() as usize;
    history.states.truncate(head + 1);
    let mut state = history.states[head].clone();
    change(random, &mut transaction, &mut state, 2000)?;
    let durability = match random.below(5) {
        0 => Durability::None,
        1 => Durability::Process,
        _ => Durability::Power,
    };
    transaction.set_durability(durability);
    history.states.push(state);
    let version = transaction.commit()? as usize;
    if version == head {
        history.states.pop();
    } else if durability == Durability::Power {
        history.acknowledged = Some(version);
    }
    Ok(())
}

fn copy(history: &History) -> History {
    History {
        states: history.states.clone(),
        acknowledged: history.acknowledged,
    }
}

/// The power goes at each `stride`-th operation of a generation, and again in the next.
fn generation(before: &Disk, history: &History, number: u64, seed: u64, seen: &mut Images) {
    if number == GENERATIONS || seen.len() >= IMAGES {
        return;
    }
    let steps = if number == 0 { 30 } else { 12 };
    let whole = before.crash(1);
    work(&whole, &mut copy(history), seed, steps);
    let stride = 1 + number * 9;
    let mut random = Random::new(seed);
    for operation in (random.below(stride)..whole.operations()).step_by(stride as usize) {
        let disk = before.crash(1);
        disk.stop_after(operation);
        let mut left_by = copy(history);
        work(&disk, &mut left_by, seed, steps);
        if left_by.acknowledged.is_none() {
            continue;
        }
        for image in 0..5 {
            let left = disk.crash(seed_of(operation, image));
            if !seen.is_new(&left) {
                continue;
            }
            let of = format!("seed {seed}, generation {number}, operation {operation}/{image}");
            recovers(&left.crash(1), &left_by, &of);
            if random.below(60) == 0 {
                generation(&left, &left_by, number + 1, seed + 1000, seen);
            }
        }
    }
}

#[test]
fn the_power_goes_again_and_again_amid_everything() {
    let mut seen = Images::default();
    let mut seeds = 0;
    while seen.len() < IMAGES {
        let history = History {
            states: vec![State::default()],
            acknowledged: None,
        };
        generation(&Disk::new(seeds), &history, 0, seeds, &mut seen);
        seeds += 1;
        assert!(seeds < IMAGES as u64, "{} distinct images", seen.len());
    }
}

#[test]
fn vacuum_shortens_the_file_while_snapshots_are_held() {
    let disk = Disk::new(9);
    let store = create_with(&disk, &small()).unwrap();
    let mut random = Random::new(9);
    let mut state = State::default();
    let mut pages = Vec::new();
    for _ in 0..12 {
        let transaction = store.begin().unwrap();
        for _ in 0..20 {
            let page: Vec<u8> = (0..9000).map(|_| random.next() as u8).collect();
            let id = transaction
                .write_page(&page, 0, store::Kind::Values)
                .unwrap();
            pages.push(id);
            state.pages.insert(id, page);
        }
        transaction.commit().unwrap();
    }
    // Most of the first half goes.
    let mut transaction = store.begin().unwrap();
    for &page in pages[..120].iter().filter(|&page| page % 5 > 0) {
        transaction.free_page(page);
        state.pages.remove(&page);
    }
    transaction.commit().unwrap();
    let snapshot = store.snapshot();
    let kept = futures::executor::block_on(snapshot.pool().pin(pages[239])).unwrap();
    let before = store.statistics();
    let vacuum = store.vacuum().unwrap();
    let after = store.statistics();
    assert!(vacuum.moved_pages > 50, "{vacuum:?}");
    assert_eq!(vacuum.after_bytes, after.file_bytes);
    assert_eq!(vacuum.after_bytes, disk.bytes("data").len() as u64);
    assert!(
        after.file_bytes < after.used_bytes + 32_768
            && after.file_bytes < before.file_bytes / 10 * 7,
        "{before:?} {after:?}"
    );
    assert!(*kept == state.pages[&pages[239]][..]);
    drop(kept);
    state.assert_equals(&snapshot, "the snapshot from before");
    state.assert_is_all_of(&store, "moved");
    state.assert_is_all_of(&open(&disk.crash(0)).unwrap(), "after a loss of power");
    assert_eq!(store.vacuum().unwrap().moved_pages, 0);
}
