//! Connected components by Afforest (Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via
//! subgraph sampling", IPDPS 2018).
//!
//! The first neighbours of each vertex connect most of a graph. After that only vertices outside the component that is
//! then the largest look at the rest of their lists.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::read::graph::Graph;
use crate::read::reader::{Enough, Reads};
use crate::run::crew::{Crew, Share, total};

/// Neighbours of each vertex that are linked at first.
const FIRST: usize = 2;
/// Vertices that are asked which component is the largest.
const SAMPLE: u32 = 1024;

/// The components of a graph.
#[derive(Debug)]
pub struct Components {
    /// For each vertex the lowest number of a vertex that it is connected with, whatever the direction of edges.
    pub labels: Vec<u32>,
    /// How many components there are.
    pub count: u64,
    /// How many vertices the largest has; 0 of an empty graph.
    pub largest: u64,
    /// What it has asked of the pool.
    pub reads: Reads,
    /// How long it took.
    pub time: Duration,
}

/// Finds out which vertices are connected, whatever the direction of the edges.
///
/// In memory are 8 bytes for each vertex.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory); [`Error::Damaged`](crate::Error::Damaged),
/// [`Error::Buffer`](crate::Error::Buffer) of the pages; [`Error::Interrupted`](crate::Error::Interrupted).
pub async fn components(graph: &Arc<Graph>, crew: &Crew) -> Result<Components> {
    let begun = Instant::now();
    let vertices = graph.vertices();
    let _room = crew.room(graph, 8, "components")?;
    let parents: Arc<Vec<AtomicU32>> = Arc::new((0..vertices).map(AtomicU32::new).collect());
    let begin = |graph, share| first(graph, share, parents.clone());
    let mut reads = total(crew.sweep(graph, graph.out(), begin).await?);
    compress(&parents);
    let most = most_frequent(&parents);
    let go_on = |graph, share| rest(graph, share, parents.clone(), most);
    reads += total(crew.sweep(graph, graph.out(), go_on).await?);
    compress(&parents);
    let labels: Vec<u32> = parents
        .iter()
        .map(|parent| parent.load(Ordering::Relaxed))
        .collect();
    drop(parents);
    let mut sizes = vec![0_u32; labels.len()];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    Ok(Components {
        count: sizes.iter().filter(|&&size| size > 0).count() as u64,
        largest: u64::from(sizes.iter().copied().max().unwrap_or(0)),
        labels,
        reads,
        time: begun.elapsed(),
    })
}

/// Links the first neighbours of the vertices of a task's share.
async fn first(graph: Arc<Graph>, share: Share, parents: Arc<Vec<AtomicU32>>) -> Result<Reads> {
    let mut reader = share.reader(&graph);
    let mut offsets = Vec::new();
    while let Some(range) = share.vertices(&graph)? {
        let see = |vertex: u32, part: &[u32]| {
            let few = part.iter().take(FIRST);
            few.for_each(|&other| link(&parents, vertex, other));
            // A few less of a list that begins at the end of a page.
            Enough::Yes
        };
        reader
            .lists(graph.out(), range, &mut offsets, |_| true, see)
            .await?;
    }
    Ok(reader.reads())
}

/// Links the neighbours of those vertices of a task's share that are not in component `most`.
async fn rest(
    graph: Arc<Graph>,
    share: Share,
    parents: Arc<Vec<AtomicU32>>,
    most: Option<u32>,
) -> Result<Reads> {
    let mut reader = share.reader(&graph);
    let mut offsets = Vec::new();
    // An edge between `most` and another vertex is in a list of the other: in one direction or the other.
    let lists = [graph.out(), graph.incoming()];
    let both = 1 + usize::from(graph.meta().directed);
    while let Some(range) = share.vertices(&graph)? {
        for lists in &lists[..both] {
            let outside =
                |vertex: u32| Some(parents[vertex as usize].load(Ordering::Relaxed)) != most;
            let see = |vertex: u32, part: &[u32]| {
                part.iter().for_each(|&other| link(&parents, vertex, other));
                Enough::No
            };
            reader
                .lists(lists, range.clone(), &mut offsets, outside, see)
                .await?;
        }
    }
    Ok(reader.reads())
}

/// Brings two vertices into one tree: the root with the higher number gets the lower one as its parent. So a root is the
/// lowest of its tree.
///
/// Relaxed throughout: a parent only ever becomes lower, and any value that it had is in the same component.
fn link(parents: &[AtomicU32], one: u32, other: u32) {
    let parent = |vertex: u32| parents[vertex as usize].load(Ordering::Relaxed);
    let (mut one, mut other) = (parent(one), parent(other));
    while one != other {
        let (low, high) = (one.min(other), one.max(other));
        let above = parent(high);
        if above == low {
            return;
        }
        let root = above == high
            && parents[high as usize]
                .compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if root {
            return;
        }
        one = parent(parent(high));
        other = parent(low);
    }
}

/// Makes each vertex a child of its root.
fn compress(parents: &[AtomicU32]) {
    for slot in parents {
        let mut parent = slot.load(Ordering::Relaxed);
        loop {
            let above = parents[parent as usize].load(Ordering::Relaxed);
            if above == parent {
                break;
            }
            parent = above;
        }
        slot.store(parent, Ordering::Relaxed);
    }
}

/// The component that most of some vertices are in, which are picked evenly.
fn most_frequent(parents: &[AtomicU32]) -> Option<u32> {
    let step = (parents.len() / SAMPLE as usize).max(1);
    let mut picked: Vec<u32> = parents
        .iter()
        .step_by(step)
        .map(|parent| parent.load(Ordering::Relaxed))
        .collect();
    picked.sort_unstable();
    let runs = picked.chunk_by(|one, other| one == other);
    runs.max_by_key(|run| run.len()).map(|run| run[0])
}
