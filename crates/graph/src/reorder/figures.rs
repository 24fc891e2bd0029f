//! What the orders are worth: pages that a search reads through a pool of a tenth of the graph.
//!
//! `cargo test --release -p graph --lib -- --ignored --nocapture pages_that_a_search_reads`

use std::collections::VecDeque;
use std::sync::Arc;

use futures::executor::block_on;
use memory::Budget;
use store::{Options, PoolOptions, Store};

use super::neighbours::Neighbours;
use super::{ReorderOptions, Reordered, reorder};
use crate::error::Result;
use crate::format::meta::Order;
use crate::job::Job;
use crate::load::{LoadOptions, load};
use crate::read::graph::Graph;

const PAGE: u32 = 4096;

fn options(pool: u64) -> Options {
    Options {
        page_size: PAGE,
        pool: PoolOptions {
            bytes: pool,
            partitions_per_node: 1,
            ..PoolOptions::default()
        },
        ..Options::default()
    }
}

/// Pages that breadth-first searches from `starts` read, in a pool that holds none of the graph at first.
async fn pages_read(graph: &Graph, starts: &[u64]) -> Result<u64> {
    let before = graph.pool().statistics().loads;
    let mut neighbours = Neighbours::new(graph);
    let mut list = Vec::new();
    for &start in starts {
        let mut seen = vec![false; graph.vertices() as usize];
        let start = graph.find(start.cast_signed()).await?;
        let mut queue = VecDeque::from([start]);
        seen[start as usize] = true;
        while let Some(vertex) = queue.pop_front() {
            neighbours.out(vertex, &mut list).await?;
            for &other in &list {
                if !std::mem::replace(&mut seen[other as usize], true) {
                    queue.push_back(other);
                }
            }
        }
    }
    Ok(graph.pool().statistics().loads - before)
}

/// For each order, what making it said and the pages that two searches read then.
fn measure(edges: &[(u64, u64)]) -> Vec<(Order, Reordered, u64)> {
    let directory = tempfile::tempdir().unwrap();
    let (file, path) = (
        directory.path().join("edges"),
        directory.path().join("store"),
    );
    let text: String = edges
        .iter()
        .map(|(from, to)| format!("{from} {to}\n"))
        .collect();
    std::fs::write(&file, text).unwrap();
    let job = || Job::new(Budget::new(1 << 30));
    let store = Store::create(&path, &options(64 << 20)).unwrap();
    let undirected = LoadOptions {
        directed: false,
        ..LoadOptions::default()
    };
    block_on(load(&store, "g", &file, &undirected, job())).unwrap();
    let made: Vec<Reordered> = Order::ALL
        .iter()
        .map(|&order| {
            let options = ReorderOptions {
                into: Some(order.name().to_owned()),
                ..ReorderOptions::default()
            };
            block_on(reorder(&store, "g", order, &options, job())).unwrap()
        })
        .collect();
    store.close().unwrap();
    let pool = made[0].pages / 10 * u64::from(PAGE);
    let read = |order: &Order| {
        let store: Arc<Store> = Store::open(&path, &options(pool)).unwrap();
        let graph = block_on(Graph::open(&store.snapshot(), order.name())).unwrap();
        block_on(pages_read(&graph, &[edges[0].0, edges[edges.len() / 2].0])).unwrap()
    };
    let reads: Vec<u64> = Order::ALL.iter().map(read).collect();
    let made = Order::ALL.into_iter().zip(made).zip(reads);
    made.map(|((order, made), reads)| (order, made, reads))
        .collect()
}

/// The same edges under ids without any order.
fn shuffled(edges: impl Iterator<Item = (u64, u64)>, vertices: u64) -> Vec<(u64, u64)> {
    let mut random = fastrand::Rng::with_seed(11);
    let mut ids: Vec<u64> = (0..vertices).collect();
    random.shuffle(&mut ids);
    edges
        .map(|(from, to)| (ids[from as usize], ids[to as usize]))
        .collect()
}

/// Crossings of a town, as road networks are.
fn grid(side: u64) -> Vec<(u64, u64)> {
    let at = move |x: u64, y: u64| x * side + y;
    let cross = (0..side - 1).flat_map(move |x| (0..side - 1).map(move |y| (x, y)));
    let edges = cross.flat_map(move |(x, y)| [(at(x, y), at(x + 1, y)), (at(x, y), at(x, y + 1))]);
    shuffled(edges, side * side)
}

/// A skewed random graph (R-MAT), as social networks are.
fn skewed(scale: u32, edges: u64) -> Vec<(u64, u64)> {
    let mut random = fastrand::Rng::with_seed(7);
    let edges = (0..edges).map(move |_| {
        (0..scale).fold((0, 0), |(from, to), _| {
            let part = random.u32(..100);
            let right = (57..76).contains(&part) || part >= 95;
            (2 * from + u64::from(part >= 76), 2 * to + u64::from(right))
        })
    });
    shuffled(edges, 1 << scale)
}

/// Groups of 64 with many edges within and few between them, as the sites of the web are.
fn groups(count: u64) -> Vec<(u64, u64)> {
    let mut random = fastrand::Rng::with_seed(9);
    let edges = (0..count * 64 * 8).map(move |at| {
        let from = at / 8;
        let near = from / 64 * 64 + random.u64(..64);
        let far = random.u8(..20) == 0;
        (from, if far { random.u64(..count * 64) } else { near })
    });
    shuffled(edges, count * 64)
}

#[test]
fn searching_a_reordered_grid_reads_fewer_pages() {
    let found = measure(&grid(120));
    let reads = |wanted: Order| {
        found
            .iter()
            .find(|(order, ..)| *order == wanted)
            .map(|found| found.2)
    };
    let ids = reads(Order::Ids).unwrap();
    for order in [Order::Rcm, Order::Gorder] {
        assert!(reads(order).unwrap() * 5 < ids * 3, "{found:?}");
    }
}

#[test]
#[ignore = "prints figures"]
fn pages_that_a_search_reads() {
    for (name, edges) in [
        ("grid", grid(300)),
        ("skewed", skewed(14, 200_000)),
        ("groups", groups(400)),
    ] {
        for (order, made, reads) in measure(&edges) {
            eprintln!(
                "{name:7} {:7} gap {:9.1} -> {:9.1}, pages a list {:6.2} -> {:6.2}, {:4} pages; \
                 ordered in {:6.2} s, all in {:6.2} s; two searches read {reads} pages",
                order.name(),
                made.before.gap,
                made.after.gap,
                made.before.pages,
                made.after.pages,
                made.pages,
                made.ordering.as_secs_f64(),
                made.time.as_secs_f64(),
            );
        }
    }
}
