//! In every order a graph is the same one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use io::fault::Disk;
use proptest::prelude::*;
use store::Store;

use super::{ReorderOptions, Reordered, reorder};
use crate::error::{Error, Result};
use crate::format::meta::Order;
use crate::job::{Job, Phase};
use crate::load::naive::{budget, contents, lines, options, spill, store, text};
use crate::load::{LoadOptions, load};
use crate::read::graph::{Graph, list};

fn loaded(disk: &Disk, bytes: &[u8], options: &LoadOptions) -> Arc<Store> {
    let store = store(disk);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("edges.txt");
    std::fs::write(&path, bytes).unwrap();
    block_on(load(&store, "g", &path, options, Job::new(budget()))).unwrap();
    store
}

fn little() -> ReorderOptions {
    ReorderOptions {
        memory: 1,
        ..ReorderOptions::default()
    }
}

fn reordered(store: &Arc<Store>, order: Order, options: &ReorderOptions) -> Result<Reordered> {
    block_on(reorder(store, "g", order, options, Job::new(budget())))
}

fn graph(store: &Arc<Store>, name: &str) -> Arc<Graph> {
    block_on(Graph::open(&store.snapshot(), name)).unwrap()
}

/// A ring of `count` vertices under ids that jump about.
fn ring(count: u64) -> Vec<u8> {
    let id = |at: u64| at % count * 7919 % count;
    let lines: Vec<_> = (0..count).map(|at| (id(at), id(at + 1), 0.0)).collect();
    text(&lines, false, 1)
}

fn undirected() -> LoadOptions {
    LoadOptions {
        directed: false,
        ..LoadOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_edges_stay(all in lines(60), options in options(), seed: u64, orders in prop::collection::vec(0..5_usize, 1..4)) {
        let disk = Disk::new(1);
        let store = loaded(&disk, &text(&all, options.weighted, seed), &options);
        let before = contents(&graph(&store, "g"));
        let mut last = None;
        for order in orders.into_iter().map(|order| Order::ALL[order]) {
            let done = reordered(&store, order, &little()).unwrap();
            let now = graph(&store, "g");
            prop_assert_eq!(now.order(), order);
            prop_assert_eq!(contents(&now), before.clone());
            prop_assert_eq!(done.vertices, before.ids.len() as u64);
            if let Some(last) = last {
                prop_assert_eq!(done.before, last);
            }
            last = Some(done.after);
        }
    }
}

#[test]
fn orders_that_search_find_a_ring() {
    let store = loaded(&Disk::new(1), &ring(3000), &undirected());
    for order in [Order::Rcm, Order::Gorder] {
        let options = ReorderOptions {
            into: Some(order.name().to_owned()),
            ..little()
        };
        let done = reordered(&store, order, &options).unwrap();
        assert!(done.before.gap > 500.0, "{done:?}");
        assert!(done.after.gap < 4.0, "{order:?} {done:?}");
        assert!(done.after.pages < done.before.pages, "{done:?}");
        assert_eq!(
            contents(&graph(&store, order.name())),
            contents(&graph(&store, "g"))
        );
    }
}

#[test]
fn high_degrees_come_first() {
    let star: Vec<_> = (0..50)
        .map(|leaf| (900, leaf, 0.0))
        .chain([(3, 4, 0.0)])
        .collect();
    let store = loaded(&Disk::new(1), &text(&star, false, 1), &undirected());
    for order in [Order::Degree, Order::Dbg, Order::Ids] {
        reordered(&store, order, &little()).unwrap();
        let ids: Vec<i64> = (0..4)
            .map(|vertex| block_on(graph(&store, "g").id(vertex)).unwrap())
            .collect();
        match order {
            Order::Ids => assert_eq!(ids, [0, 1, 2, 3]),
            Order::Degree => assert_eq!(ids, [900, 3, 4, 0]),
            _ => assert_eq!(ids[0], 900),
        }
    }
}

#[test]
fn another_name_is_not_taken_by_accident() {
    let store = loaded(&Disk::new(1), &ring(10), &undirected());
    let mut options = ReorderOptions {
        into: Some("h".to_owned()),
        ..little()
    };
    reordered(&store, Order::Rcm, &options).unwrap();
    let error = reordered(&store, Order::Degree, &options).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }));
    options.replace = true;
    reordered(&store, Order::Degree, &options).unwrap();
    assert_eq!(graph(&store, "h").order(), Order::Degree);
    assert_eq!(graph(&store, "g").order(), Order::Ids);
    options.into = Some("a\nb".to_owned());
    assert!(matches!(
        reordered(&store, Order::Rcm, &options),
        Err(Error::Name { .. })
    ));
    let none = block_on(reorder(
        &store,
        "none",
        Order::Rcm,
        &little(),
        Job::new(budget()),
    ));
    assert!(matches!(none, Err(Error::NoGraph { .. })));
}

#[test]
fn an_interruption_or_full_temporary_files_leave_the_old_order() {
    let disk = Disk::new(1);
    let store = loaded(&disk, &ring(20_000), &undirected());
    let old = contents(&graph(&store, "g"));
    let pages = store.statistics().pages.pages;
    let as_before = || {
        assert_eq!(store.statistics().pages.pages, pages);
        let graphs = block_on(list(&store.snapshot())).unwrap();
        assert_eq!((graphs.len(), graphs[0].order), (1, Order::Ids));
    };
    for phase in [Phase::Order, Phase::Sort, Phase::Write] {
        for order in Order::ALL {
            let stop = Arc::new(AtomicBool::new(false));
            let budget = budget();
            let job = Job::new(budget.clone())
                .stopped_by(stop.clone())
                .telling(|progress| {
                    stop.fetch_or(progress.phase == phase, Ordering::Relaxed);
                });
            let error = block_on(reorder(&store, "g", order, &little(), job)).unwrap_err();
            assert!(matches!(error, Error::Interrupted));
            assert_eq!(budget.used(), 0);
            as_before();
        }
    }
    let full = Disk::new(1);
    full.set_capacity(1000);
    let options = ReorderOptions {
        spill: spill(&full),
        ..little()
    };
    let error = reordered(&store, Order::Rcm, &options).unwrap_err();
    assert!(matches!(error, Error::Spill(_)), "{error}");
    as_before();
    assert_eq!(contents(&graph(&store, "g")), old);
}

#[test]
fn a_full_disk_of_the_store_leaves_the_old_order() {
    let disk = Disk::new(1);
    let mut random = fastrand::Rng::with_seed(3);
    let edges: Vec<_> = (0..600_000)
        .map(|_| (random.u64(..9000), random.u64(..9000), 0.0))
        .collect();
    let store = loaded(&disk, &text(&edges, false, 1), &LoadOptions::default());
    let pages = store.statistics().pages.pages;
    disk.set_capacity(disk.room() + 10_000);
    let error = reordered(&store, Order::Degree, &little()).unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    assert_eq!(store.statistics().pages.pages, pages);
    assert_eq!(graph(&store, "g").order(), Order::Ids);
    disk.set_capacity(u64::MAX);
    reordered(&store, Order::Degree, &little()).unwrap();
}
