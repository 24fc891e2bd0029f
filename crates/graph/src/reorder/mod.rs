//! Numbering the vertices of a graph anew, so that what is read together lies together (row B9).
//!
//! An order is a sequence of the vertices; [`reorder`] finds one and writes the graph under it in
//! one transaction. Outside, vertices keep the ids of the file.

mod dbg;
mod degree;
mod gorder;
mod heap;
mod locality;
mod neighbours;
mod rcm;
mod rewrite;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::Store;

use crate::error::{Error, Result};
use crate::format::meta::{DIRECTORY, Order, Sort, key};
use crate::job::{Job, Phase};
use crate::load::{check_name, exists, pages, sort_memory};
use crate::read::graph::{Graph, publish, remove};
use crate::read::reader::Reader;
use crate::reorder::neighbours::Neighbours;
use crate::run::room::Room;
use crate::sort::spool::Spill;

pub use locality::Locality;

/// With what a graph is reordered, and where it goes.
#[derive(Debug, Clone)]
pub struct ReorderOptions {
    /// The name of the graph in the new order; `None` puts it in the place of the old one.
    pub into: Option<String>,
    /// Whether another graph that has this name is replaced.
    pub replace: bool,
    /// Most bytes for sorting, beside what the order takes for each vertex; no more than half of what
    /// the budget has left is taken, and at least 256 KiB.
    pub memory: u64,
    /// Where edges go that do not fit into it.
    pub spill: Spill,
}

impl Default for ReorderOptions {
    /// In the place of the old one; 256 MiB.
    fn default() -> ReorderOptions {
        ReorderOptions {
            into: None,
            replace: false,
            memory: 256 << 20,
            spill: Spill::default(),
        }
    }
}

/// What a reordering has done.
#[derive(Debug, Clone, PartialEq)]
pub struct Reordered {
    /// How far apart neighbours lay.
    pub before: Locality,
    /// How far apart they lie now.
    pub after: Locality,
    /// Vertices of the graph.
    pub vertices: u64,
    /// Edges of the graph; an undirected one counts once.
    pub edges: u64,
    /// Pages of the graph, with those that say where the others are.
    pub pages: u64,
    /// How long it took to find the order.
    pub ordering: Duration,
    /// How long it took in all.
    pub time: Duration,
}

/// Numbers the vertices of graph `name` in `order` and writes it so, in one transaction. Snapshots
/// that have the old one keep it.
///
/// In memory are 8 bytes for each vertex by `Degree`, `Dbg` and `Ids`, 24 for `Rcm`, 28 for
/// `Gorder`. The last two read lists all over the graph: where the pool holds few of its pages, they
/// are slow. The calling thread does the work.
///
/// # Errors
/// [`Error::NoGraph`]; [`Error::Name`], [`Error::Exists`] for the new name; [`Error::Memory`];
/// [`Error::Changed`] if another transaction has replaced the graph meanwhile; [`Error::Spill`],
/// [`Error::SpillDamaged`] of the temporary files; [`Error::Damaged`], [`Error::Store`],
/// [`Error::Buffer`] of the store; [`Error::Interrupted`].
pub async fn reorder(
    store: &Arc<Store>,
    name: &str,
    order: Order,
    options: &ReorderOptions,
    mut job: Job<'_>,
) -> Result<Reordered> {
    let begun = Instant::now();
    let target = options.into.as_deref().unwrap_or(name);
    check_name(target)?;
    let snapshot = store.snapshot();
    let graph = Graph::open(&snapshot, name).await?;
    let allowed = options.replace || target == name;
    if !allowed && snapshot.get(DIRECTORY, &key(target)).is_some() {
        return Err(exists(target));
    }
    let numbers = Numbers::find(&graph, order, &mut job).await?;
    let ordering = begun.elapsed();
    let memory = sort_memory(&job, options.memory, Path::new(name))?;
    let edges = rewrite::Edges {
        graph: &graph,
        numbers: &numbers.new,
        order,
        memory: memory.bytes(),
        spill: &options.spill,
    };
    let sorted = edges.sort(&mut job).await?;
    let mut transaction = store.begin()?;
    if transaction.get(DIRECTORY, &key(name)).as_deref() != Some(&graph.root().to_le_bytes()[..]) {
        return Err(Error::Changed {
            name: name.to_owned(),
        });
    }
    if remove(&mut transaction, target).await? && !allowed {
        return Err(exists(target));
    }
    let written = edges.write(&transaction, sorted, &mut job).await?;
    publish(&mut transaction, target, &written.meta)?;
    job.go_on()?;
    transaction.commit()?;
    Ok(Reordered {
        before: written.before,
        after: written.after,
        vertices: written.meta.vertices,
        edges: written.edges,
        pages: pages(&written.meta, store.page_size()),
        ordering,
        time: begun.elapsed(),
    })
}

/// The new number of each vertex.
struct Numbers {
    new: Vec<u32>,
    _room: Room,
}

impl Numbers {
    async fn find(graph: &Graph, order: Order, job: &mut Job<'_>) -> Result<Numbers> {
        let each = match order {
            Order::Ids | Order::Degree | Order::Dbg => 8,
            Order::Rcm => 24,
            Order::Gorder => 28,
        };
        let vertices = u64::from(graph.vertices());
        let what = || format!("ordering graph '{}' by {}", graph.name(), order.name());
        let all = Room::take(job.budget(), each * vertices, what)?;
        job.at(Phase::Order, 0, vertices)?;
        let mut lists = Neighbours::new(graph);
        let sequence = match order {
            Order::Ids => by_id(graph, job).await?,
            Order::Degree => degree::sequence(&mut lists, job).await?,
            Order::Dbg => dbg::sequence(&mut lists, job).await?,
            Order::Rcm => rcm::sequence(&mut lists, job).await?,
            Order::Gorder => gorder::sequence(&mut lists, job).await?,
        };
        let new = inverse(&sequence, graph.vertices()).ok_or_else(|| {
            // Ranks that name a vertex twice, or lists of which one direction is not the other's.
            graph.damaged(match order {
                Order::Ids => Sort::Ranks.name(),
                _ => "the lists of its neighbours",
            })
        })?;
        drop(sequence);
        drop(all);
        let _room = Room::take(job.budget(), 4 * vertices, what)?;
        job.at(Phase::Order, vertices, vertices)?;
        Ok(Numbers { new, _room })
    }
}

/// The place of each vertex in a sequence; `None` if one is missing from it or comes twice.
fn inverse(sequence: &[u32], vertices: u32) -> Option<Vec<u32>> {
    const NONE: u32 = u32::MAX;
    let mut places = vec![NONE; vertices as usize];
    for (place, &vertex) in (0u32..).zip(sequence) {
        let slot = places.get_mut(vertex as usize)?;
        if *slot != NONE {
            return None;
        }
        *slot = place;
    }
    (sequence.len() == places.len()).then_some(places)
}

/// The vertices by rising id of the file.
async fn by_id(graph: &Graph, job: &mut Job<'_>) -> Result<Vec<u32>> {
    let Some(ranks) = &graph.ranks else {
        return Ok((0..graph.vertices()).collect());
    };
    let mut reader = Reader::new(graph, 1);
    let mut sequence = Vec::with_capacity(graph.vertices() as usize);
    for rank in 0..u64::from(graph.vertices()) {
        sequence.push(reader.narrow(ranks, rank).await?);
        if rank.is_multiple_of(65_536) {
            job.at(Phase::Order, rank, u64::from(graph.vertices()))?;
        }
    }
    Ok(sequence)
}

#[cfg(test)]
mod figures;
#[cfg(test)]
mod tests;
