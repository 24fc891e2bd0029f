//! Hostile graphs: all checksums are right, and what the pages say is not.

use std::sync::{Arc, OnceLock};

use buffer::PageId;
use futures::executor::block_on;
use fuzz::{Draw, Target};
use io::fault::Disk;
use memory::Budget;
use store::{Kind, Store, Transaction};
use topology::Machine;
use workers::{Layout, Workers};

use super::graph::{Graph, list};
use super::rows::EdgeRows;
use crate::error::{Error, Result};
use crate::format::meta::Order;
use crate::format::meta::{DIRECTORY, Meta, key};
use crate::job::Job;
use crate::kernel::{RankOptions, bfs, components, pagerank, triangles};
use crate::load::naive::{spill, store, text};
use crate::load::{LoadOptions, load};
use crate::reorder::{ReorderOptions, reorder};
use crate::run::crew::Crew;

const PAGE: usize = 4096;

fn crew() -> Crew {
    static WORKERS: OnceLock<Arc<Workers>> = OnceLock::new();
    let start = || {
        Workers::new(Layout::of(
            &Machine::parse("1x2").unwrap(),
            &Machine::live().unwrap(),
            2,
            false,
        ))
        .unwrap()
    };
    Crew::new(WORKERS.get_or_init(start).clone(), Budget::new(64 << 20))
}

/// A store with a graph of some vertices, whose arrays have one page or a few.
fn some_graph(draw: &mut Draw) -> Disk {
    let disk = Disk::new(0);
    let weighted = draw.one_in(3);
    let vertices = *draw.one_of(&[3, 40, 1300]);
    let mut lines = Vec::new();
    for at in 0..3 * vertices {
        let (from, to) = (draw.below(vertices), draw.below(vertices));
        lines.push((7 * from as u64, 7 * to as u64, at as f64));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("edges");
    std::fs::write(&path, text(&lines, weighted, 1)).unwrap();
    let options = LoadOptions {
        directed: draw.one_in(2),
        weighted,
        loops: draw.one_in(2),
        repeats: draw.one_in(2),
        ..LoadOptions::default()
    };
    let order = *draw.one_of(&Order::ALL);
    let store = store(&disk);
    let job = || Job::new(Budget::new(64 << 20));
    block_on(async {
        load(&store, "g", &path, &options, job()).await.unwrap();
        reorder(&store, "g", order, &ReorderOptions::default(), job())
            .await
            .unwrap();
    });
    store.close().unwrap();
    disk
}

fn copy(disk: &Disk) -> Disk {
    let copy = Disk::new(0);
    for name in disk.names() {
        copy.put(&name, disk.bytes(&name));
    }
    copy
}

fn page(store: &Arc<Store>, page: PageId) -> Vec<u8> {
    block_on(store.pool().pin(page)).unwrap().to_vec()
}

/// Writes other bytes as a page; none are too many or too few.
fn put(transaction: &mut Transaction, mut bytes: Vec<u8>) -> PageId {
    bytes.truncate(PAGE);
    if bytes.is_empty() {
        bytes.push(0);
    }
    transaction.write_page(&bytes, 0, Kind::Values).unwrap()
}

/// Replaces a part of the graph by another.
fn forge(store: &Arc<Store>, draw: &mut Draw) {
    let entry = store.snapshot().get(DIRECTORY, &key("g")).unwrap();
    let root = u32::from_le_bytes(entry[..].try_into().unwrap());
    let mut bytes = page(store, root);
    let mut meta = Meta::decode(&bytes, PAGE).unwrap();
    let mut transaction = store.begin().unwrap();
    match draw.below(6) {
        0 => draw.mutate(&mut bytes),
        1 => draw.disturb(&mut bytes),
        2 => {
            // Numbers of vertices and edges, and the first and last, which nothing else says.
            draw.disturb(&mut bytes[16..48]);
        }
        kind => {
            let at = draw.below(meta.arrays.len());
            let array = &mut meta.arrays[at];
            let Some(index) = array.index.first_mut() else {
                return;
            };
            let mut numbers = page(store, *index);
            if kind == 3 {
                // The pages: others of the graph, none at all, the same twice.
                match draw.below(3) {
                    0 => draw.mutate(&mut numbers),
                    1 => numbers[..4].copy_from_slice(&(draw.below(30) as u32).to_le_bytes()),
                    _ => draw.disturb(&mut numbers),
                }
            } else {
                let at = draw.below(numbers.len() / 4) * 4;
                let number = u32::from_le_bytes(numbers[at..at + 4].try_into().unwrap());
                let mut values = page(store, number);
                match draw.below(4) {
                    0 => draw.mutate(&mut values),
                    1 => values.fill(0),
                    _ => draw.disturb(&mut values),
                }
                let number = put(&mut transaction, values);
                numbers[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            *index = put(&mut transaction, numbers);
            bytes = meta.encode(PAGE).unwrap();
        }
    }
    let root = put(&mut transaction, bytes);
    let mut entry = root.to_le_bytes().to_vec();
    if draw.one_in(20) {
        draw.mutate(&mut entry);
    }
    transaction.put(DIRECTORY, &key("g"), &entry);
    transaction.commit().unwrap();
}

/// Reads and computes all there is.
async fn use_all(store: &Arc<Store>, draw: &mut Draw) -> Result<()> {
    let snapshot = store.snapshot();
    list(&snapshot).await?;
    let graph = Graph::open(&snapshot, "g").await?;
    let _ = graph.summary();
    let crew = crew();
    let mut all = Vec::new();
    let mut rows = EdgeRows::new(&graph);
    let edges = loop {
        match rows.next(1000).await {
            Ok(Some(_)) => {}
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    all.push(edges);
    all.push(graph.degrees(0..graph.vertices()).await.map(drop));
    all.push(graph.find(7).await.map(drop));
    let sources = graph.sources(3, 5).await;
    let source = sources
        .as_ref()
        .ok()
        .and_then(|sources| sources.first().copied());
    all.push(sources.map(drop));
    all.push(bfs(&graph, source.unwrap_or(0), &crew).await.map(drop));
    let options = RankOptions {
        rounds: 3,
        ..RankOptions::default()
    };
    all.push(pagerank(&graph, options, &crew).await.map(drop));
    all.push(components(&graph, &crew).await.map(drop));
    all.push(triangles(&graph, &crew).await.map(drop));
    let order = *draw.one_of(&Order::ALL);
    let options = ReorderOptions {
        spill: spill(&Disk::new(3)),
        ..ReorderOptions::default()
    };
    let job = Job::new(Budget::new(32 << 20));
    all.push(reorder(store, "g", order, &options, job).await.map(drop));
    all.into_iter()
        .filter(|result| !matches!(result, Err(Error::NoVertex { .. })))
        .collect()
}

#[test]
fn graphs_are_opened_and_computed_with() {
    let words = &["no error", "damaged", "buffer"];
    let name = "read::fuzzed::graphs_are_opened_and_computed_with";
    let target = Target::new(name, 200).expects(words);
    let mut graphs = std::collections::BTreeMap::new();
    target.run(|draw| {
        let seed = draw.below(12) as u64;
        let disk = copy(
            graphs
                .entry(seed)
                .or_insert_with(|| some_graph(&mut Draw::new(seed))),
        );
        let store = store(&disk);
        forge(&store, draw);
        match block_on(use_all(&store, draw)) {
            Ok(()) => "no error",
            Err(error) => {
                let text = error.to_string();
                match error {
                    Error::Damaged { .. } => {
                        assert!(text.contains("'g'"), "{text}");
                        "damaged"
                    }
                    Error::Buffer(_) => "buffer",
                    Error::Memory { .. } => "memory",
                    // Pages that are of two arrays, or of none, are freed twice.
                    Error::Store(store::Error::NoSuchPage { .. }) => "freed twice",
                    error => panic!("not an error of a hostile graph: {error}"),
                }
            }
        }
    });
}
