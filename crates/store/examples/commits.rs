//! What a commit costs: by its size, by what the store holds, by how many write, in a log that is used
//! again, with pages left dirty, and beside a checkpoint.
//!
//! `cargo run -p store --release --example commits [DIRECTORY]`. The stores are made in DIRECTORY, which
//! should be on the disk to be measured. What is compared takes turns, since disks drift; figures are
//! medians. For other stores' figures beside ours see bench/pool.

#![expect(clippy::print_stdout, reason = "an example that prints figures")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use store::{DIRTY_BYTES, Durability, Kind, Options, PageStore, Store};

const PAGE: usize = 4096;
const ROUNDS: usize = 7;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn options() -> Options {
    Options {
        page_size: PAGE as u32,
        ..Options::default()
    }
}

/// Milliseconds that a commit of this many pages takes.
fn commit(store: &Arc<Store>, pages: usize, durability: Durability) -> Outcome<f64> {
    let mut random = fastrand::Rng::new();
    let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
        .take(PAGE)
        .collect();
    let mut transaction = store.begin()?;
    transaction.set_durability(durability);
    let started = Instant::now();
    let slices = vec![&bytes[..]; pages];
    let written = transaction.write_pages(&slices, 0, Kind::Blob)?;
    for page in &written {
        transaction.put(1, b"last", &page.to_le_bytes());
    }
    transaction.commit()?;
    let took = started.elapsed().as_secs_f64() * 1000.0;
    // Nothing is left, so that all turns find the same store.
    let mut transaction = store.begin()?;
    transaction.set_durability(Durability::None);
    for page in written {
        transaction.free_page(page);
    }
    transaction.commit()?;
    Ok(took)
}

fn at(mut times: Vec<f64>, percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// Pages in the log against pages synced in the data file.
fn sizes(directory: &Path) -> Outcome<()> {
    println!("\npages   KiB   in the log ms   in the file ms   log/file");
    let open = |name: &str, small_commit| {
        let options = Options {
            small_commit,
            checkpoint_bytes: 256 << 20,
            ..options()
        };
        Store::create(directory.join(name), &options)
    };
    let (log, file) = (open("log", usize::MAX)?, open("file", 0)?);
    for pages in [1, 4, 8, 16, 32, 128] {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS * 5 {
            times[0].push(commit(&log, pages, Durability::Power)?);
            times[1].push(commit(&file, pages, Durability::Power)?);
        }
        let [log, file] = times.map(|times| at(times, 50));
        let kib = pages * PAGE / 1024;
        println!(
            "{pages:>5} {kib:>5} {log:>15.3} {file:>16.3} {:>10.2}",
            log / file
        );
    }
    Ok(())
}

/// What the store holds does not matter.
fn holdings(directory: &Path) -> Outcome<()> {
    println!("\nheld                        empty us   full us   full/empty");
    let median = |store: &Arc<Store>| -> Outcome<f64> {
        let times: Outcome<Vec<_>> = (0..200)
            .map(|_| commit(store, 1, Durability::None))
            .collect();
        Ok(at(times?, 50) * 1000.0)
    };
    let pair = |name: &str, full: &Arc<Store>, empty: &Arc<Store>| -> Outcome<()> {
        let (mut fulls, mut empties, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (full, empty) = (median(full)?, median(empty)?);
            ratios.push(full / empty);
            fulls.push(full);
            empties.push(empty);
        }
        let (full, empty, ratio) = (at(fulls, 50), at(empties, 50), at(ratios, 50));
        println!("{name:<27} {empty:>8.1} {full:>9.1} {ratio:>12.2}");
        Ok(())
    };
    let create = |name: &str| Store::create(directory.join(name), &options());
    let (full, empty) = (create("full")?, create("empty")?);
    for (store, entries) in [(&full, 10_000u32), (&empty, 10)] {
        let mut transaction = store.begin()?;
        for key in 0..entries {
            transaction.put(1, &key.to_be_bytes(), &[7; 100]);
        }
        transaction.commit()?;
    }
    pair("10,000 and 10 entries", &full, &empty)?;
    drop((full, empty));
    let (full, empty) = (create("pending")?, create("none")?);
    let snapshot = {
        let transaction = full.begin()?;
        let mut pages = Vec::new();
        let one = vec![&[7u8; 16][..]; 10_000];
        for _ in 0..100 {
            pages.extend(transaction.write_pages(&one, 0, Kind::Blob)?);
        }
        transaction.commit()?;
        let snapshot = full.snapshot();
        let mut transaction = full.begin()?;
        pages
            .into_iter()
            .for_each(|page| transaction.free_page(page));
        transaction.commit()?;
        snapshot
    };
    pair("1,000,000 pending pages, 0", &full, &empty)?;
    drop(snapshot);
    Ok(())
}

/// Several that write at the same time share their syncs.
fn writers(directory: &Path) -> Outcome<()> {
    println!("\nwriters   commits/s   syncs/commit   bytes/commit");
    let store = Store::create(directory.join("writers"), &options())?;
    for writers in [1usize, 2, 4, 16] {
        let mut rates = Vec::new();
        let before = store.statistics();
        for _ in 0..ROUNDS {
            let each = 96 / writers;
            let started = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..writers {
                    scope.spawn(|| {
                        for _ in 0..each {
                            insert(&store).expect("a commit");
                        }
                    });
                }
            });
            rates.push((writers * each) as f64 / started.elapsed().as_secs_f64());
        }
        let after = store.statistics();
        let commits = (after.commits - before.commits) as f64;
        let syncs = (after.syncs - before.syncs) as f64 / commits;
        let bytes = (after.written_bytes - before.written_bytes) as f64 / commits;
        println!(
            "{writers:>7} {:>11.0} {syncs:>14.2} {bytes:>14.0}",
            at(rates, 50)
        );
    }
    Ok(())
}

fn insert(store: &Arc<Store>) -> Outcome<f64> {
    let started = Instant::now();
    let transaction = store.begin()?;
    let page: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
        .take(PAGE)
        .collect();
    transaction.write_page(&page, 0, Kind::Blob)?;
    transaction.commit()?;
    Ok(started.elapsed().as_secs_f64() * 1000.0)
}

/// The latency of commits while checkpoints are made, against that without.
fn checkpoints(directory: &Path) -> Outcome<()> {
    println!("\ncommits of one page      median ms   p99 ms");
    let store = Store::create(directory.join("checkpoints"), &options())?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for _ in 0..100 {
            times[0].push(insert(&store)?);
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| -> Outcome<()> {
            let checkpoints = scope.spawn(|| -> store::Result<()> {
                while !done.load(Ordering::Relaxed) {
                    store.checkpoint()?;
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                Ok(())
            });
            let inserted = (0..100).try_for_each(|_| {
                times[1].push(insert(&store)?);
                Ok(())
            });
            done.store(true, Ordering::Relaxed);
            checkpoints.join().expect("no panic")?;
            inserted
        })?;
    }
    for (name, times) in ["without checkpoints", "with one every 50 ms"]
        .iter()
        .zip(times)
    {
        let (median, worst) = (at(times.clone(), 50), at(times, 99));
        println!("{name:<24} {median:>9.3} {worst:>8.3}");
    }
    Ok(())
}

/// A log that is written over, against one that grows.
fn reused(directory: &Path) -> Outcome<()> {
    println!("\nthe log            commit of one page, median ms");
    let create = |name: &str, checkpoint_bytes| {
        let options = Options {
            checkpoint_bytes,
            ..options()
        };
        Store::create(directory.join(name), &options)
    };
    let (grows, again) = (create("grows", 1 << 30)?, create("again", 1 << 20)?);
    // The second has been through it once.
    for _ in 0..1000 {
        insert(&again)?;
    }
    let (mut growing, mut reused, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 * ROUNDS {
        let round = |store: &Arc<Store>| -> Outcome<f64> {
            let times: Outcome<Vec<_>> = (0..40).map(|_| insert(store)).collect();
            Ok(at(times?, 50))
        };
        let (new, old) = (round(&grows)?, round(&again)?);
        ratios.push(old / new);
        growing.push(new);
        reused.push(old);
    }
    println!("grows            {:>10.3}", at(growing, 50));
    println!(
        "is written over  {:>10.3}   {:.2} times",
        at(reused, 50),
        at(ratios, 50)
    );
    Ok(())
}

/// Pages that are written over at random, one a commit: left dirty, against written with their commits.
fn dirty(directory: &Path) -> Outcome<()> {
    println!("\ndirty pages         commit, ms   bytes a commit   written back");
    let create = |name: &str, dirty_bytes| -> Outcome<PageStore> {
        let options = Options {
            dirty_bytes,
            compress: false,
            checkpoint_bytes: 1 << 20,
            ..options()
        };
        let store = PageStore::create(directory.join(name), &options)?;
        let mut batch = store.begin()?;
        batch.reserve(1 << 12)?;
        for _ in 0..1 << 12 {
            batch.alloc()?;
        }
        batch.commit()?;
        Ok(store)
    };
    let stores = [create("at-once", 0)?, create("later", DIRTY_BYTES)?];
    for hot in [16, 256, 4000] {
        let mut random = fastrand::Rng::with_seed(hot);
        let mut times = [Vec::new(), Vec::new()];
        let before = stores.each_ref().map(|store| store.statistics().store);
        for _ in 0..4 * ROUNDS {
            for (store, times) in stores.iter().zip(&mut times) {
                for _ in 0..40 {
                    // The first page of each group is the store's own.
                    let (page, byte) = (1 + random.u32(..hot as u32), random.u8(..));
                    let started = Instant::now();
                    store.write(page, &[byte; PAGE])?;
                    times.push(started.elapsed().as_secs_f64() * 1000.0);
                }
            }
        }
        let commits = times[0].len() as u64;
        let mut medians = Vec::new();
        for ((store, times), before) in stores.iter().zip(times).zip(before) {
            let name = store.path().file_name().unwrap_or_default();
            let median = at(times, 50);
            medians.push(median);
            let now = store.statistics().store;
            let bytes = (now.written_bytes - before.written_bytes) / commits;
            let (now, was) = (now.written_back, before.written_back);
            println!(
                "{hot:>4} pages {:<8} {median:>8.3} {bytes:>12}   {} pages in {} writes, {} spared",
                name.display(),
                now.pages - was.pages,
                now.writes - was.writes,
                now.spared - was.spared,
            );
        }
        println!("{:>30.2} times", medians[1] / medians[0]);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    let directory = tempfile::tempdir_in(directory)?;
    sizes(directory.path())?;
    holdings(directory.path())?;
    writers(directory.path())?;
    reused(directory.path())?;
    dirty(directory.path())?;
    checkpoints(directory.path())
}
