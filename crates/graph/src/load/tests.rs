//! Loading compared with a map in memory, and what is left where it fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use io::fault::Disk;
use proptest::prelude::*;
use store::Store;

use super::naive::{budget, contents, expected, gzip, lines, options, spill, store, text};
use super::{LoadOptions, Loaded, load};
use crate::error::{Error, Result};
use crate::job::{Job, Phase};
use crate::read::graph::{Graph, list};

/// A file that is gone with this.
struct File {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn file(bytes: &[u8]) -> File {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("edges.txt");
    std::fs::write(&path, bytes).unwrap();
    File {
        _directory: directory,
        path,
    }
}

fn load_as(store: &Arc<Store>, name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Loaded> {
    let file = file(bytes);
    block_on(load(store, name, &file.path, options, Job::new(budget())))
}

/// An error of loading these bytes, which leaves no graph and no page.
fn refused(bytes: &[u8], options: &LoadOptions) -> String {
    let store = store(&Disk::new(1));
    let pages = store.statistics().pages.pages;
    let error = load_as(&store, "g", bytes, options).unwrap_err();
    assert!(block_on(list(&store.snapshot())).unwrap().is_empty());
    assert_eq!(store.statistics().pages.pages, pages);
    error.to_string()
}

/// Enough edges that everything spills that can.
fn many(count: u64) -> Vec<(u64, u64, f64)> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut id = || random.u64(..3000) * 7;
    (0..count).map(|at| (id(), id(), at as f64)).collect()
}

fn little() -> LoadOptions {
    LoadOptions {
        memory: 1,
        ..LoadOptions::default()
    }
}

fn check(all: &[(u64, u64, f64)], bytes: &[u8], options: &LoadOptions) {
    let store = store(&Disk::new(1));
    let loaded = load_as(&store, "g", bytes, options).unwrap();
    let expected = expected(all, options);
    let graph = block_on(Graph::open(&store.snapshot(), "g")).unwrap();
    let found = contents(&graph);
    assert_eq!(found.ids, expected.ids);
    assert_eq!(found.out, expected.out);
    assert_eq!(loaded.loops_dropped, expected.loops_dropped);
    assert_eq!(loaded.repeats_dropped, expected.repeats_dropped);
    assert_eq!(loaded.edges, expected.edges);
    assert_eq!(found.edges, expected.edges);
    assert_eq!(loaded.vertices, expected.ids.len() as u64);
    assert_eq!(loaded.read, all.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn as_a_map_in_memory(all in lines(80), options in options(), seed: u64, members in 0..3_usize) {
        let text = text(&all, options.weighted, seed);
        let bytes = if members > 0 { gzip(&text, members) } else { text };
        check(&all, &bytes, &options);
    }
}

#[test]
fn edges_that_spill() {
    let all = many(60_000);
    for (directed, weighted) in [(true, true), (true, false), (false, true)] {
        let options = LoadOptions {
            directed,
            weighted,
            repeats: weighted,
            ..little()
        };
        check(&all, &text(&all, weighted, 3), &options);
    }
}

#[test]
fn files_that_are_none() {
    let options = little();
    assert!(refused(b"", &options).contains("has no edges"));
    assert!(refused(b"# only a comment\n\n", &options).contains("has no edges"));
    assert!(refused(b"1 2\nx y\n", &options).contains("edges.txt, line 2: 'x'"));
    let packed = gzip(b"1 2\n3 4\n", 1);
    let cut = refused(&packed[..packed.len() - 5], &options);
    assert!(
        cut.contains("edges.txt") && cut.contains("cut short"),
        "{cut}"
    );
    let mut flipped = packed.clone();
    flipped[14] ^= 4;
    assert!(refused(&flipped, &options).contains("damaged"));
    let long = vec![b'1'; (1 << 20) + 5];
    assert!(refused(&long, &options).contains("longer than"));
    let store = store(&Disk::new(1));
    for path in ["/nonexistent/file", "/"] {
        let loading = load(&store, "g", path.as_ref(), &options, Job::new(budget()));
        let error = block_on(loading).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
    }
    for name in ["", "a\nb"] {
        let error = load_as(&store, name, b"1 2\n", &options).unwrap_err();
        assert!(matches!(error, Error::Name { .. }));
    }
}

#[test]
fn a_graph_is_replaced_only_if_that_is_asked_for() {
    let store = store(&Disk::new(1));
    let mut options = little();
    load_as(&store, "g", b"1 2\n", &options).unwrap();
    let old = block_on(Graph::open(&store.snapshot(), "g")).unwrap();
    let error = load_as(&store, "g", b"3 4\n", &options).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }));
    let pages = store.statistics().pages.pages;
    options.replace = true;
    load_as(&store, "g", b"3 4\n", &options).unwrap();
    let new = block_on(Graph::open(&store.snapshot(), "g")).unwrap();
    assert_eq!(contents(&new).ids, [3, 4]);
    assert_eq!(
        contents(&old).ids,
        [1, 2],
        "an older snapshot keeps the old one"
    );
    assert_eq!(store.statistics().pages.pages, pages);
}

#[test]
fn an_interruption_in_any_phase_leaves_nothing() {
    let bytes = text(&many(30_000), false, 3);
    let file = file(&bytes);
    for phase in [Phase::Read, Phase::Number, Phase::Sort, Phase::Write] {
        let store = store(&Disk::new(1));
        let pages = store.statistics().pages.pages;
        let stop = Arc::new(AtomicBool::new(false));
        let budget = budget();
        let job = Job::new(budget.clone())
            .stopped_by(stop.clone())
            .telling(|progress| {
                stop.fetch_or(progress.phase == phase, Ordering::Relaxed);
            });
        let error = block_on(load(&store, "g", &file.path, &little(), job)).unwrap_err();
        assert!(matches!(error, Error::Interrupted));
        assert!(block_on(list(&store.snapshot())).unwrap().is_empty());
        assert_eq!(store.statistics().pages.pages, pages);
        assert_eq!(budget.used(), 0);
    }
}

#[test]
fn progress_rises_to_the_whole_file() {
    let bytes = text(&many(100_000), false, 3);
    let file = file(&bytes);
    let mut told = Vec::new();
    let job = Job::new(budget()).telling(|progress| told.push(progress));
    block_on(load(&store(&Disk::new(1)), "g", &file.path, &little(), job)).unwrap();
    let read: Vec<_> = told
        .iter()
        .filter(|progress| progress.phase == Phase::Read)
        .collect();
    assert!(read.is_sorted_by_key(|progress| progress.done));
    assert_eq!(
        read.last().map(|progress| (progress.done, progress.total)),
        {
            let bytes = bytes.len() as u64;
            Some((bytes, bytes))
        }
    );
    assert!(
        told.iter()
            .all(|progress| progress.total == 0 || progress.done <= progress.total)
    );
}

#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    let bytes = text(&many(30_000), false, 3);
    let file = file(&bytes);
    // For the temporary files, which are named, and for the store.
    let full = Disk::new(1);
    full.set_capacity(100_000);
    let options = LoadOptions {
        spill: spill(&full),
        ..little()
    };
    let data = Disk::new(1);
    let error = block_on(load(
        &store(&data),
        "g",
        &file.path,
        &options,
        Job::new(budget()),
    ));
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Spill(_)), "{error}");
    assert!(error.to_string().contains("spill0"), "{error}");

    // The store sets room aside for more than it needs.
    let file = self::file(&text(&many(900_000), false, 3));
    let data = Disk::new(1);
    let store = store(&data);
    load_as(&store, "old", b"1 2\n", &little()).unwrap();
    data.set_capacity(data.room() + 50_000);
    let error = block_on(load(&store, "g", &file.path, &little(), Job::new(budget()))).unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    data.set_capacity(u64::MAX);
    let graphs = block_on(list(&store.snapshot())).unwrap();
    assert_eq!(graphs.len(), 1);
    block_on(load(&store, "g", &file.path, &little(), Job::new(budget()))).unwrap();
}

#[test]
fn a_loss_of_power_leaves_all_or_nothing() {
    // More than a small commit, whose pages lie in the log alone.
    let all = many(20_000);
    let bytes = text(&all, false, 3);
    let file = file(&bytes);
    let run = |disk: &Disk, stop: u64| {
        let store = store(disk);
        disk.stop_after(disk.operations() + stop);
        block_on(load(&store, "g", &file.path, &little(), Job::new(budget())))
            .map(|_| disk.operations())
    };
    let begun = {
        let disk = Disk::new(1);
        drop(store(&disk));
        disk.operations()
    };
    let operations = run(&Disk::new(1), 1 << 40).unwrap() - begun;
    let mut whole = 0;
    for stop in 0..operations {
        let disk = Disk::new(1);
        let done = run(&disk, stop).is_ok();
        for seed in 0..4 {
            let left = store(&disk.crash(seed));
            match block_on(Graph::open(&left.snapshot(), "g")) {
                Ok(graph) => {
                    assert_eq!(contents(&graph).out, expected(&all, &little()).out);
                    whole += 1;
                }
                Err(error) => assert!(!done && matches!(error, Error::NoGraph { .. }), "{error}"),
            }
        }
    }
    // The pages, which are neighbours and so one write, a sync, the record, a sync.
    assert!(
        operations >= 4 && whole < 4 * operations,
        "{operations} {whole}"
    );
}

#[test]
fn memory_that_is_not_there_is_named() {
    let file = file(b"1 2\n");
    let budget = memory::Budget::new(1 << 20);
    let (store, job) = (store(&Disk::new(1)), Job::new(budget.clone()));
    let error = block_on(load(&store, "g", &file.path, &little(), job)).unwrap_err();
    assert!(error.to_string().contains("reading"), "{error}");
    assert_eq!(budget.used(), 0);
}
