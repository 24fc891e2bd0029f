//! PageRank: how much a walker who follows edges at random, and now and then starts anew anywhere, is where
//! (Brin and Page 1998), by pulling along the edges that lead to a vertex, as GAP does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::read::graph::Graph;
use crate::read::reader::{Enough, Reads};
use crate::run::crew::{Crew, Share};

/// How ranks are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankOptions {
    /// How likely the walker follows an edge rather than starting anew; 0 to 1.
    pub damping: f64,
    /// The end: when all ranks together change by less than this in a round.
    pub tolerance: f64,
    /// The end, at the latest.
    pub rounds: u32,
}

impl Default for RankOptions {
    /// Those of GAP: 0.85, 1e-4, 20.
    fn default() -> RankOptions {
        RankOptions {
            damping: 0.85,
            tolerance: 1e-4,
            rounds: 20,
        }
    }
}

/// The ranks of a graph.
#[derive(Debug)]
pub struct Ranks {
    /// The rank of each vertex, by number. All together are 1.
    pub ranks: Vec<f64>,
    /// Rounds that were run.
    pub rounds: u32,
    /// How much all ranks together changed in the last round.
    pub change: f64,
    /// What it has asked of the pool.
    pub reads: Reads,
    /// How long it took.
    pub time: Duration,
}

/// Ranks the vertices. What a vertex without edges would pass on goes to all alike, so that the sum stays 1. The sums of
/// a vertex are added in the order of its list: the result does not depend on the workers.
///
/// In memory are 28 bytes for each vertex.
///
/// # Errors
/// [`Error::Option`] for a damping that is no probability; [`Error::Memory`]; [`Error::Damaged`], [`Error::Buffer`] of
/// the pages; [`Error::Interrupted`].
pub async fn pagerank(graph: &Arc<Graph>, options: RankOptions, crew: &Crew) -> Result<Ranks> {
    let begun = Instant::now();
    if !(0.0..=1.0).contains(&options.damping) {
        return Err(Error::Option {
            what: format!("damping {}", options.damping),
            range: "a number from 0 to 1".to_owned(),
        });
    }
    let vertices = graph.vertices();
    let _room = crew.room(graph, 28, "PageRank")?;
    let degrees = crew.sweep(graph, graph.out(), degrees).await?;
    let mut reads = Reads::default();
    let mut state = State::new(vertices, &degrees);
    degrees.iter().for_each(|part| reads += part.reads);
    drop(degrees);
    let (mut rounds, mut change) = (0, f64::INFINITY);
    // A sum over no edge is not worth a round.
    while rounds < options.rounds && change >= options.tolerance && vertices > 0 {
        let base = state.base(options.damping);
        let shared = Arc::new(state);
        let task = |graph, share| round(graph, share, shared.clone(), base, options.damping);
        let mut parts = crew.sweep(graph, graph.incoming(), task).await?;
        // Sums of pieces in their order, so that it does not matter who had which.
        let mut pieces: Vec<Change> = Vec::new();
        for part in &mut parts {
            reads += part.reads;
            pieces.append(&mut part.pieces);
        }
        pieces.sort_unstable_by_key(|piece| piece.first);
        change = pieces.iter().map(|piece| piece.change).sum();
        // The tasks were joined: nobody else has it.
        let Some(mut last) = Arc::into_inner(shared) else {
            return Err(Error::Interrupted);
        };
        last.dangling = pieces.iter().map(|piece| piece.dangling).sum();
        std::mem::swap(&mut last.shares, &mut last.next);
        state = last;
        rounds += 1;
    }
    Ok(Ranks {
        ranks: state.ranks.into_iter().map(value).collect(),
        rounds,
        change: if rounds == 0 { 0.0 } else { change },
        reads,
        time: begun.elapsed(),
    })
}

/// What the tasks share. Numbers are the bits of an `f64`; each is written by one task of a round, and read by others in
/// the next.
#[derive(Debug)]
struct State {
    ranks: Vec<AtomicU64>,
    /// What each vertex passes on along each of its edges.
    shares: Vec<AtomicU64>,
    /// The same for the next round.
    next: Vec<AtomicU64>,
    degrees: Vec<u32>,
    /// The ranks of vertices without edges, together.
    dangling: f64,
}

impl State {
    fn new(vertices: u32, parts: &[Degrees]) -> State {
        let mut degrees = vec![0; vertices as usize];
        for (first, part) in parts.iter().flat_map(|part| &part.pieces) {
            let first = *first as usize;
            degrees[first..first + part.len()].copy_from_slice(part);
        }
        let first = 1.0 / f64::from(vertices);
        let all = |each: &dyn Fn(u32) -> f64| -> Vec<AtomicU64> {
            let bits = degrees.iter().map(|&degree| each(degree).to_bits());
            bits.map(AtomicU64::new).collect()
        };
        let dangling = degrees.iter().filter(|&&degree| degree == 0).count();
        State {
            ranks: all(&|_| first),
            shares: all(&|degree| share(first, degree)),
            next: all(&|_| 0.0),
            dangling: dangling as f64 * first,
            degrees,
        }
    }

    /// The rank that each vertex has whatever its edges.
    fn base(&self, damping: f64) -> f64 {
        (1.0 - damping + damping * self.dangling) / self.degrees.len() as f64
    }
}

fn value(bits: AtomicU64) -> f64 {
    f64::from_bits(bits.into_inner())
}

/// What a vertex of this rank passes on along each of its edges.
fn share(rank: f64, degree: u32) -> f64 {
    if degree == 0 {
        0.0
    } else {
        rank / f64::from(degree)
    }
}

/// The number of edges of vertices, by pieces that a task has seen.
#[derive(Debug, Default)]
struct Degrees {
    pieces: Vec<(u32, Vec<u32>)>,
    reads: Reads,
}

async fn degrees(graph: Arc<Graph>, share: Share) -> Result<Degrees> {
    let mut reader = share.reader(&graph);
    let mut found = Degrees::default();
    let mut offsets = Vec::new();
    while let Some(range) = share.vertices(&graph)? {
        let count = range.end - range.start;
        reader
            .offsets(graph.out(), range.start, count, &mut offsets)
            .await?;
        // More neighbours than 2^32 only where edges repeat.
        let degree = |pair: &[u64]| u32::try_from(pair[1] - pair[0]).unwrap_or(u32::MAX);
        found
            .pieces
            .push((range.start, offsets.windows(2).map(degree).collect()));
    }
    found.reads = reader.reads();
    Ok(found)
}

/// What a round has done to the vertices of a piece.
#[derive(Debug)]
struct Change {
    first: u32,
    change: f64,
    dangling: f64,
}

#[derive(Debug, Default)]
struct Round {
    pieces: Vec<Change>,
    reads: Reads,
}

/// A task's share of a round.
async fn round(
    graph: Arc<Graph>,
    work: Share,
    state: Arc<State>,
    base: f64,
    damping: f64,
) -> Result<Round> {
    let mut reader = work.reader(&graph);
    let mut round = Round::default();
    let (mut offsets, mut sums) = (Vec::new(), Vec::new());
    while let Some(range) = work.vertices(&graph)? {
        let first = range.start;
        sums.clear();
        sums.resize(range.len(), 0.0);
        let add = |vertex: u32, part: &[u32]| {
            let mut sum = sums[(vertex - first) as usize];
            for &other in part {
                let share = &state.shares[other as usize];
                sum += f64::from_bits(share.load(Ordering::Relaxed));
            }
            sums[(vertex - first) as usize] = sum;
            Enough::No
        };
        reader
            .lists(graph.incoming(), range.clone(), &mut offsets, |_| true, add)
            .await?;
        let (mut change, mut dangling) = (0.0, 0.0);
        for (vertex, sum) in range.zip(&sums) {
            let vertex = vertex as usize;
            let (rank, degree) = (base + damping * sum, state.degrees[vertex]);
            let before = state.ranks[vertex].load(Ordering::Relaxed);
            change += (rank - f64::from_bits(before)).abs();
            dangling += if degree == 0 { rank } else { 0.0 };
            state.ranks[vertex].store(rank.to_bits(), Ordering::Relaxed);
            let passed = share(rank, degree).to_bits();
            state.next[vertex].store(passed, Ordering::Relaxed);
        }
        round.pieces.push(Change {
            first,
            change,
            dangling,
        });
    }
    round.reads = reader.reads();
    Ok(round)
}
