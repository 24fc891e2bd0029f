//! Several threads that write, and the power that goes meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use io::fault::Disk;
use store::{Access, Kind, Options, PageStore, Store, Transaction};

use crate::crash::{History, recovers};
use crate::model::{Random, State, change, create, small};

const WRITERS: u64 = 4;

/// Pages of one transaction from two threads at once.
fn write_from_two(transaction: &Transaction, random: &mut Random, state: &mut State) -> bool {
    let pages: Vec<_> = (0..4).map(|_| random.page(2000)).collect();
    let write = |page: &Vec<u8>| transaction.write_page(page, 1, Kind::Values).ok();
    let written: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = pages
            .chunks(2)
            .map(|pages| scope.spawn(move || pages.iter().map(write).collect::<Vec<_>>()))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    for (page, bytes) in written.iter().zip(&pages) {
        let Some(page) = page else { return false };
        state.pages.insert(*page, bytes.clone());
    }
    true
}

/// One of several that commit and fold, until the disk stops or there were enough.
fn write(store: &Arc<Store>, history: &Mutex<History>, seed: u64, look: &dyn Fn()) {
    let mut random = Random::new(seed);
    for _ in 0..12 {
        look();
        if random.below(7) == 0 && store.checkpoint().is_err() {
            return;
        }
        let Ok(mut transaction) = store.begin() else {
            return;
        };
        let base = transaction.base().version() as usize;
        let mut state = history.lock().unwrap().states[base].clone();
        if change(&mut random, &mut transaction, &mut state, 2000).is_err() {
            return;
        }
        if random.below(3) == 0 && !write_from_two(&transaction, &mut random, &mut state) {
            return;
        }
        {
            // What is not committed by the end is overwritten by who comes next.
            let states = &mut history.lock().unwrap().states;
            states.truncate(base + 1);
            states.push(state);
        }
        match transaction.commit() {
            Ok(version) => {
                let acknowledged = &mut history.lock().unwrap().acknowledged;
                *acknowledged = (*acknowledged).max(Some(version as usize));
            }
            Err(_) => return,
        }
    }
}

/// Runs the writers on the disk. Each calls `look` before each of its steps, while others are in
/// the midst of theirs.
fn run(disk: &Disk, seed: u64, look: impl Fn(&Mutex<History>) + Sync) -> Option<History> {
    let store = create(disk).ok()?;
    let history = Mutex::new(History {
        states: vec![State::default()],
        acknowledged: Some(0),
    });
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, history, look) = (&store, &history, &look);
            scope.spawn(move || {
                write(store, history, seed * WRITERS + writer, &|| look(history));
            });
        }
    });
    Some(history.into_inner().unwrap())
}

#[test]
fn the_power_goes_while_several_threads_write() {
    let (mut images, mut commits) = (Vec::new(), 0);
    for seed in 0..3 {
        let disk = Disk::new(seed);
        let taken: Mutex<Vec<(usize, Disk)>> = Mutex::default();
        let history = run(&disk, seed, |history| {
            let acknowledged = history.lock().unwrap().acknowledged.unwrap();
            let number = taken.lock().unwrap().len() as u64;
            let image = match number % 8 {
                7 => disk.crash_torn(number * 31),
                _ => disk.crash(number * 5 * 31 + number),
            };
            taken.lock().unwrap().push((acknowledged, image));
        });
        let taken = taken.into_inner().unwrap();
        let mut history = history.unwrap();
        commits += history.acknowledged.unwrap();
        for (number, (acknowledged, image)) in taken.into_iter().enumerate() {
            images.push((image.bytes("data"), image.bytes("log")));
            history.acknowledged = Some(acknowledged);
            recovers(&image, &history, &format!("seed {seed}, image {number}"));
        }
    }
    assert!(commits > 80, "{commits} commits");
    let all = images.len();
    let distinct = images.into_iter().collect::<BTreeSet<_>>().len();
    assert!(distinct > 40, "{distinct} distinct images of {all}");
}

#[test]
fn the_disk_stops_while_several_threads_write() {
    let seed = 9;
    let whole = Disk::new(seed);
    run(&whole, seed, |_| {}).unwrap();
    let mut distinct = BTreeSet::new();
    for operation in (4..whole.operations()).step_by(7) {
        let disk = Disk::new(seed);
        disk.stop_after(operation);
        let Some(history) = run(&disk, seed, |_| {}) else {
            continue;
        };
        for image in 0..5 {
            let left = disk.crash(operation * 155 + image);
            distinct.insert((left.bytes("data"), left.bytes("log")));
            recovers(
                &left,
                &history,
                &format!("operation {operation}, image {image}"),
            );
        }
    }
    assert!(distinct.len() > 60, "{} distinct images", distinct.len());
}

const PAGE: usize = 4096;

fn page_options(access: Access) -> Options {
    Options {
        page_size: PAGE as u32,
        access,
        ..small()
    }
}

/// A page that says who wrote it, and how many before.
fn stamped(writer: u32, turn: u32) -> Vec<u8> {
    [writer.to_le_bytes(), turn.to_le_bytes()]
        .concat()
        .repeat(PAGE / 8)
}

#[test]
fn what_a_page_store_acknowledged_is_seen_at_once_and_survives() {
    let disk = Disk::new(3);
    let options = page_options(Access::Write);
    let store = PageStore::create_on(disk.device("data"), disk.device("log"), &options).unwrap();
    let mut batch = store.begin().unwrap();
    let pages: Vec<u32> = (0..WRITERS).map(|_| batch.alloc().unwrap()).collect();
    for (writer, &page) in (0..).zip(&pages) {
        batch.write(page, &stamped(writer, 0)).unwrap();
    }
    batch.commit().unwrap();
    let acknowledged: Vec<_> = pages.iter().map(|_| AtomicU32::new(0)).collect();
    let images = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (writer, &page) in (0..).zip(&pages) {
            let (store, disk, acknowledged, images) = (&store, &disk, &acknowledged, &images);
            scope.spawn(move || {
                let mut bytes = vec![0; PAGE];
                for turn in 1..400 {
                    store.write(page, &stamped(writer, turn)).unwrap();
                    acknowledged[writer as usize].store(turn, Ordering::SeqCst);
                    store.view().read(page, &mut bytes).unwrap();
                    let seen = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
                    assert_eq!(seen, turn, "writer {writer} does not see what it wrote");
                    if turn % 25 == 0 {
                        let turns: Vec<_> = acknowledged
                            .iter()
                            .map(|turn| turn.load(Ordering::SeqCst))
                            .collect();
                        let image = disk.crash(u64::from(turn * 155 + writer));
                        images.lock().unwrap().push((turns, image));
                    }
                }
            });
        }
    });
    let images = images.into_inner().unwrap();
    assert_eq!(images.len(), 60);
    for (number, (turns, image)) in images.iter().enumerate() {
        let options = page_options(Access::Read);
        let store =
            PageStore::open_on(image.device("data"), image.device("log"), &options).unwrap();
        let mut bytes = vec![0; PAGE];
        for ((writer, &page), acknowledged) in (0..).zip(&pages).zip(turns) {
            store.view().read(page, &mut bytes).unwrap();
            let turn = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
            assert!(
                turn >= *acknowledged,
                "image {number} lost turn {acknowledged} of {writer}"
            );
            assert_eq!(bytes, stamped(writer, turn));
        }
        assert!(store.check(&|_, _| {}).unwrap().is_empty());
    }
}
