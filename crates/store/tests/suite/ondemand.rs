//! Chunks of the page map: read when a page of theirs is looked up, dropped, and damaged.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use io::fault::Disk;
use store::{Access, Error, Kind, Options, PageId, Region, Store};

use crate::crash::{History, Images, commit, recovers, seed_of};
use crate::damage::copy;
use crate::model::{Random, State, change, create, open, open_to_read, small};

/// Pages of a chunk.
const CHUNK: u32 = 1024;
/// Chunks of the stores here: more than are kept whatever the bound is.
const CHUNKS: u32 = 9;

/// A closed store whose pages are spread over all of its chunks, and what it holds.
fn spread(disk: &Disk) -> State {
    let store = create(disk).unwrap();
    let mut state = State::default();
    for chunk in 0..CHUNKS {
        let bytes: Vec<[u8; 4]> = (0..CHUNK)
            .map(|at| (chunk * CHUNK + at).to_le_bytes())
            .collect();
        let slices: Vec<&[u8]> = bytes.iter().map(|page| &page[..]).collect();
        let transaction = store.begin().unwrap();
        let pages = transaction.write_pages(&slices, 3, Kind::Blob).unwrap();
        transaction.commit().unwrap();
        state.pages.extend(
            pages
                .into_iter()
                .zip(bytes.iter().map(|page| page.to_vec())),
        );
    }
    let mut transaction = store.begin().unwrap();
    state.pages.retain(|&page, _| {
        let stays = page % 61 == 0;
        if !stays {
            transaction.free_page(page);
        }
        stays
    });
    transaction.commit().unwrap();
    store.close().unwrap();
    state
}

/// Vacuums: each of its steps is a commit that changes nothing.
fn vacuum(store: &std::sync::Arc<Store>, history: &mut History) -> store::Result<()> {
    let version = history.acknowledged.unwrap();
    history.states.truncate(version + 1);
    let same = history.states[version].clone();
    history.states.extend(vec![same; 20]);
    store.vacuum()?;
    let version = store.snapshot().version() as usize;
    history.acknowledged = Some(version);
    history.states.truncate(version + 1);
    Ok(())
}

#[test]
fn power_may_go_at_every_operation_while_chunks_come_and_go() {
    let base = Disk::new(0);
    let state = spread(&base);
    let run = |disk: &Disk| {
        let mut random = Random::new(3);
        let version = open_to_read(&base).unwrap().snapshot().version() as usize;
        let mut history = History {
            states: vec![state.clone(); version + 1],
            acknowledged: Some(version),
        };
        let Ok(mut store) = open(disk) else {
            return history;
        };
        for step in 0..14 {
            let done = match step {
                3 | 8 => store.checkpoint(),
                5 => vacuum(&store, &mut history),
                11 => {
                    let closed = store.clone().close();
                    drop(store);
                    match (closed, open(disk)) {
                        (Ok(()), Ok(opened)) => store = opened,
                        _ => return history,
                    }
                    Ok(())
                }
                _ => commit(&store, &mut random, &mut history),
            };
            if done.is_err() {
                break;
            }
            // So that what was clean is dropped for what is looked up.
            for &page in state.pages.keys().step_by(17) {
                let _ = block_on(store.pool().pin(page));
            }
        }
        history
    };
    let whole = copy(&base);
    let history = run(&whole);
    assert!(history.states.len() > 15, "{}", history.states.len());
    let operations = whole.operations();
    let mut seen = Images::default();
    // All of them in the long tests.
    let step = if cfg!(feature = "slow") { 1 } else { 4 };
    for operation in (0..operations).step_by(step) {
        let disk = copy(&base);
        disk.stop_after(operation);
        let history = run(&disk);
        let image = operation / step as u64 % 5;
        let left = disk.crash(seed_of(operation, image));
        if seen.is_new(&left) {
            recovers(&left, &history, &format!("operation {operation}/{image}"));
        }
    }
    assert!(seen.len() > 15, "{} of {operations}", seen.len());
}

#[test]
fn random_work_goes_on_while_chunks_come_and_go() {
    for seed in 0..3 {
        let disk = Disk::new(seed);
        let mut state = spread(&disk);
        let mut random = Random::new(seed);
        let mut store = open(&disk).unwrap();
        let mut snapshots = Vec::new();
        for step in 0..60 {
            let of = format!("seed {seed} step {step}");
            match random.below(12) {
                0 => {
                    snapshots.clear();
                    if random.below(2) == 0 {
                        store.clone().close().unwrap();
                    }
                    drop(store);
                    store = open(&disk).unwrap();
                }
                1 | 2 => store.checkpoint().unwrap(),
                3 => drop(store.vacuum().unwrap()),
                4 => snapshots.push((store.snapshot(), state.clone())),
                _ => {
                    let mut transaction = store.begin().unwrap();
                    let mut changed = state.clone();
                    change(&mut random, &mut transaction, &mut changed, 900).unwrap();
                    for _ in 0..random.below(8) {
                        let at = random.below(changed.pages.len() as u64) as usize;
                        if let Some(&page) = changed.pages.keys().nth(at) {
                            transaction.free_page(page);
                            changed.pages.remove(&page);
                        }
                    }
                    if random.below(5) > 0 {
                        transaction.commit().unwrap();
                        state = changed;
                    }
                }
            }
            if step % 10 == 9 {
                for (snapshot, state) in &snapshots {
                    state.assert_equals(snapshot, &of);
                }
                state.assert_is_all_of(&store, &of);
            }
        }
        drop(snapshots);
        store.checkpoint().unwrap();
        state.assert_is_all_of(&store, "at the end");
        // The tree above the leaves, and the few leaves that always may stay.
        let bytes = store.statistics().map_bytes;
        assert!(bytes < 400_000, "{bytes} bytes");
    }
}

#[test]
fn readers_look_pages_up_while_one_writes() {
    let disk = Disk::new(0);
    let state = spread(&disk);
    let store = open(&disk).unwrap();
    let (stable, mut other): (Vec<_>, Vec<_>) =
        state.pages.iter().partition(|(page, _)| **page % 2 == 0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (store, stable, over) = (&store, &stable, &over);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                while !over.load(Ordering::Relaxed) {
                    let (page, bytes) = stable[random.below(stable.len() as u64) as usize];
                    let pin = block_on(store.pool().pin(*page)).unwrap();
                    assert!(*pin == bytes[..], "page {page}");
                    drop(pin);
                    let _ = store.pool().discard(*page);
                }
            });
        }
        let mut random = Random::new(9);
        for step in 0..60 {
            let mut transaction = store.begin().unwrap();
            for _ in 0..random.below(4) {
                if let Some((page, _)) = other.pop() {
                    transaction.free_page(*page);
                }
            }
            for _ in 0..random.below(4) {
                let bytes = random.page(3000);
                transaction.write_page(&bytes, 0, Kind::Values).unwrap();
            }
            transaction.commit().unwrap();
            match step % 8 {
                3 => store.checkpoint().unwrap(),
                7 => drop(store.vacuum().unwrap()),
                _ => {}
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}

/// A process that reads looks chunks up at places which a process that writes needs no more.
#[test]
fn readers_beside_a_writer_find_chunks_that_were_replaced() {
    let disk = Disk::new(0);
    let state = spread(&disk);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atoll");
    std::fs::write(&path, disk.bytes("data")).unwrap();
    std::fs::write(directory.path().join("a.atoll.log"), disk.bytes("log")).unwrap();
    let open = |access| Store::open(&path, &Options { access, ..small() }).unwrap();
    let reader = open(Access::Read);
    let mut random = Random::new(4);
    {
        // One writer after the other, each of which replaces all chunks several times.
        for round in 0..3 {
            let writer = open(Access::Write);
            for step in 0..4 {
                let mut transaction = writer.begin().unwrap();
                let all: Vec<Vec<u8>> = (0..40).map(|_| random.page(4000)).collect();
                let slices: Vec<&[u8]> = all.iter().map(|page| &page[..]).collect();
                let mut pages = transaction.write_pages(&slices, 0, Kind::Blob).unwrap();
                for chunk in 0..CHUNKS {
                    let mut of_chunk = state.pages.range(chunk * CHUNK..);
                    transaction.free_page(*of_chunk.nth(round * 4 + step).unwrap().0);
                }
                transaction.commit().unwrap();
                writer.checkpoint().unwrap();
                let mut transaction = writer.begin().unwrap();
                pages.drain(..).for_each(|page| transaction.free_page(page));
                transaction.commit().unwrap();
                writer.checkpoint().unwrap();
            }
            writer.close().unwrap();
        }
    }
    state.assert_equals(&reader.snapshot(), "the reader's version");
    assert_eq!(reader.statistics().map_failure, None);
    let grown = std::fs::metadata(&path).unwrap().len();
    drop(reader);
    let writer = open(Access::Write);
    let _ = writer.vacuum().unwrap();
    assert!(writer.check(&|_, _| {}).unwrap().is_empty());
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(after < grown, "{after} of {grown}");
}

/// Damages the chunk of this number; returns where it is.
fn damage_chunk(disk: &Disk, chunk: u32) -> u64 {
    let length = disk.bytes("data").len() as u64;
    for offset in (192..length / 64).rev().map(|unit| unit * 64) {
        disk.flip("data", offset * 8);
        let problems = open_to_read(disk)
            .map(|store| store.check(&|_, _| {}).unwrap())
            .unwrap_or_default();
        if let [store::Problem::Damaged(Error::Damaged { region, offset, .. })] = problems[..]
            && region == Region::MapChunk(chunk)
        {
            return offset;
        }
        disk.flip("data", offset * 8);
    }
    panic!("chunk {chunk} was not found");
}

#[test]
fn a_damaged_chunk_is_an_error_of_its_pages_only() {
    let disk = Disk::new(0);
    let state = spread(&disk);
    let offset = damage_chunk(&disk, 4);
    let named = format!("page map chunk 4 at offset {offset}");
    for access in [Access::Read, Access::Write] {
        let options = Options { access, ..small() };
        let store = Store::open_on(disk.device("data"), disk.device("log"), &options).unwrap();
        for (page, bytes) in &state.pages {
            match block_on(store.pool().pin(*page)) {
                Ok(pin) => assert!(*pin == bytes[..] && page / CHUNK != 4, "page {page}"),
                Err(error) => {
                    assert_eq!(page / CHUNK, 4, "{error}");
                    assert!(error.to_string().contains(&named), "{error}");
                }
            }
        }
        let text = store.statistics().map_failure.unwrap();
        assert!(text.contains(&named), "{text}");
        assert_eq!(store.place(4 * CHUNK + 2), None);
        let problems = store.check(&|_, _| {}).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].to_string().contains(&named), "{}", problems[0]);
    }
    // What is free cannot be known, so nothing is written; and nothing is freed that cannot be found.
    let store = open(&disk).unwrap();
    let data = disk.bytes("data");
    let transaction = store.begin().unwrap();
    let error = transaction.write_page(b"x", 0, Kind::Blob).unwrap_err();
    assert!(error.to_string().contains(&named), "{error}");
    drop(transaction);
    let freed = *state.pages.range(4 * CHUNK..).next().unwrap().0;
    let mut transaction = store.begin().unwrap();
    transaction.free_page(freed);
    let error = transaction.commit().unwrap_err();
    assert!(error.to_string().contains(&named), "{error}");
    // Commits that need none of it go on.
    let mut transaction = store.begin().unwrap();
    transaction.free_page(*state.pages.keys().next().unwrap());
    transaction.put(0, b"k", b"v");
    transaction.commit().unwrap();
    let error = store.checkpoint().unwrap_err();
    assert!(error.to_string().contains(&named), "{error}");
    drop(store);
    assert!(disk.bytes("data") == data, "nothing was written over");
    let store = open_to_read(&disk).unwrap();
    assert_eq!(store.snapshot().get(0, b"k").as_deref(), Some(&b"v"[..]));
}

#[test]
fn opening_reads_no_chunk_and_looking_up_reads_one() {
    let disk = Disk::new(0);
    let state = spread(&disk);
    let reads = || disk.counts().reads;
    let before = reads();
    let store = open_to_read(&disk).unwrap();
    let opening = reads() - before;
    let few: Vec<PageId> = state
        .pages
        .range(5 * CHUNK..)
        .map(|(page, _)| *page)
        .take(5)
        .collect();
    let before = reads();
    for page in &few {
        drop(block_on(store.pool().pin(*page)).unwrap());
    }
    assert_eq!(reads() - before, 5 + 1, "five pages and one chunk");
    // Two blocks of the log, three of the data file, the directory, the log's end.
    assert!(opening < CHUNKS as u64 + 3, "{opening} reads");
    drop(store);
    let before = reads();
    let store = open(&disk).unwrap();
    let to_write = reads() - before;
    assert!(to_write < CHUNKS as u64 + 6, "{to_write} reads");
    store.close().unwrap();
}
