//! Counting triangles: three vertices each of which has an edge with both others, whatever the direction.
//!
//! An edge is kept at its end that has fewer edges (the lower number of two alike), so that no vertex keeps more than
//! the square root of twice the edges; each triangle is found once, at its least vertex (Schank and Wagner 2005). What is
//! kept goes into memory in as many turns as it takes; in each, all vertices look at those of this turn (as MGT does:
//! Hu, Tao, Chung, "Massive graph triangulation", SIGMOD 2013).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::read::graph::Graph;
use crate::read::reader::{Reader, Reads};
use crate::run::crew::{Crew, PIECE, Share, total};
use crate::run::room::Room;

/// What there is of triangles in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triangles {
    /// How many there are.
    pub triangles: u64,
    /// In how many turns what is kept went through memory.
    pub turns: u32,
    /// What it has asked of the pool.
    pub reads: Reads,
    /// How long it took.
    pub time: Duration,
}

/// Counts the triangles. Edges count whatever their direction, repeated ones once; loops are no edges here.
///
/// In memory are 8 bytes for each vertex and up to 4 for each entry of the lists; with less, down to the edges of 1024
/// vertices, in turns.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory); [`Error::Damaged`](crate::Error::Damaged),
/// [`Error::Buffer`](crate::Error::Buffer) of the pages; [`Error::Interrupted`](crate::Error::Interrupted).
pub async fn triangles(graph: &Arc<Graph>, crew: &Crew) -> Result<Triangles> {
    let begun = Instant::now();
    let _room = crew.room(graph, 8, "counting triangles")?;
    let vertices = graph.vertices();
    let degrees: Arc<Vec<AtomicU32>> = Arc::new((0..vertices).map(|_| AtomicU32::new(0)).collect());
    let measure = |graph, share| measure(graph, share, degrees.clone());
    let mut reads = total(crew.sweep(graph, graph.out(), measure).await?);
    let bounds = bounds(graph, &degrees);
    let all: u64 = bounds.iter().sum();
    let least = bounds.iter().copied().max().unwrap_or(0);
    let what = || format!("counting triangles of graph '{}'", graph.name());
    let room = Room::most(crew.budget(), all, least, what)?;
    let (mut found, mut turns) = (0, 0);
    for turn in turns_of(&bounds, room.bytes()) {
        let whole = turn.len() == bounds.len();
        let (kept, more) = Kept::read(graph, crew, &degrees, turn).await?;
        reads += more;
        let kept = Arc::new(kept);
        let count = |graph, share| count(graph, share, degrees.clone(), kept.clone(), whole);
        for (triangles, more) in crew.sweep(graph, graph.out(), count).await? {
            found += triangles;
            reads += more;
        }
        turns += 1;
    }
    Ok(Triangles {
        triangles: found,
        turns,
        reads,
        time: begun.elapsed(),
    })
}

/// Finds out how many edges each vertex of a task's share has.
async fn measure(graph: Arc<Graph>, share: Share, degrees: Arc<Vec<AtomicU32>>) -> Result<Reads> {
    let mut reader = share.reader(&graph);
    let mut around = Vec::new();
    while let Some(range) = share.vertices(&graph)? {
        for vertex in range {
            reader.around(vertex, &mut around).await?;
            // Fewer than there are vertices, each once.
            degrees[vertex as usize].store(around.len() as u32, Ordering::Relaxed);
        }
    }
    Ok(reader.reads())
}

/// Bytes that the edges of each piece take at most.
fn bounds(graph: &Graph, degrees: &[AtomicU32]) -> Vec<u64> {
    let degree = |slot: &AtomicU32| u64::from(slot.load(Ordering::Relaxed));
    let pieces = degrees.chunks(PIECE as usize);
    let bytes =
        pieces.map(|piece| 4 * (piece.len() as u64 + 1 + piece.iter().map(degree).sum::<u64>()));
    debug_assert_eq!(degrees.len(), graph.vertices() as usize);
    bytes.collect()
}

/// The pieces in as few ranges as fit into `bytes`, each.
fn turns_of(bounds: &[u64], bytes: u64) -> Vec<Range<usize>> {
    let mut turns: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    for (piece, &bound) in bounds.iter().enumerate() {
        match turns.last_mut() {
            Some(turn) if used + bound <= bytes => {
                turn.end = piece + 1;
                used += bound;
            }
            _ => {
                turns.push(piece..piece + 1);
                used = bound;
            }
        }
    }
    turns
}

/// The neighbours of a vertex that have more edges than it, by rising number.
async fn above(
    reader: &mut Reader<'_>,
    degrees: &[AtomicU32],
    vertex: u32,
    into: &mut Vec<u32>,
) -> Result<()> {
    reader.around(vertex, into).await?;
    let rank = |vertex: u32| (degrees[vertex as usize].load(Ordering::Relaxed), vertex);
    let own = rank(vertex);
    into.retain(|&other| rank(other) > own);
    Ok(())
}

/// The edges that are kept at the vertices of one turn.
#[derive(Debug)]
struct Kept {
    turn: Range<usize>,
    /// One for each piece of the turn, in order.
    pieces: Vec<Piece>,
}

/// The edges that are kept at the vertices of one piece.
#[derive(Debug, Default)]
struct Piece {
    /// Where the list of each vertex begins, and where the last ends.
    offsets: Vec<u32>,
    lists: Vec<u32>,
}

impl Kept {
    async fn read(
        graph: &Arc<Graph>,
        crew: &Crew,
        degrees: &Arc<Vec<AtomicU32>>,
        turn: Range<usize>,
    ) -> Result<(Kept, Reads)> {
        let read = |graph, share| keep(graph, share, degrees.clone(), turn.clone());
        let mut pieces: Vec<Piece> = turn.clone().map(|_| Piece::default()).collect();
        let mut reads = Reads::default();
        for (part, more) in crew.sweep(graph, graph.out(), read).await? {
            reads += more;
            for (piece, kept) in part {
                pieces[piece - turn.start] = kept;
            }
        }
        Ok((Kept { turn, pieces }, reads))
    }

    /// What is kept at a vertex; `None` where another turn has it.
    #[inline]
    fn list(&self, vertex: u32) -> Option<&[u32]> {
        let piece = (vertex / PIECE) as usize;
        if !self.turn.contains(&piece) {
            return None;
        }
        let piece = &self.pieces[piece - self.turn.start];
        let at = (vertex % PIECE) as usize;
        Some(&piece.lists[piece.offsets[at] as usize..piece.offsets[at + 1] as usize])
    }
}

/// Reads what is kept at the vertices of a task's share that are in this turn.
async fn keep(
    graph: Arc<Graph>,
    share: Share,
    degrees: Arc<Vec<AtomicU32>>,
    turn: Range<usize>,
) -> Result<(Vec<(usize, Piece)>, Reads)> {
    let mut reader = share.reader(&graph);
    let (mut found, mut list) = (Vec::new(), Vec::new());
    while let Some(range) = share.vertices(&graph)? {
        let number = (range.start / PIECE) as usize;
        if !turn.contains(&number) {
            continue;
        }
        let mut piece = Piece::default();
        piece.offsets.push(0);
        for vertex in range {
            above(&mut reader, &degrees, vertex, &mut list).await?;
            piece.lists.extend_from_slice(&list);
            // 1024 vertices keep fewer than 2^10 times the square root of twice the edges.
            piece.offsets.push(piece.lists.len() as u32);
        }
        piece.lists.shrink_to_fit();
        found.push((number, piece));
    }
    Ok((found, reader.reads()))
}

/// The triangles of the vertices of a task's share with the vertices of this turn.
async fn count(
    graph: Arc<Graph>,
    share: Share,
    degrees: Arc<Vec<AtomicU32>>,
    kept: Arc<Kept>,
    whole: bool,
) -> Result<(u64, Reads)> {
    let mut reader = share.reader(&graph);
    let (mut found, mut own) = (0, Vec::new());
    while let Some(range) = share.vertices(&graph)? {
        for vertex in range {
            let list = if whole {
                kept.list(vertex).unwrap_or_default()
            } else {
                above(&mut reader, &degrees, vertex, &mut own).await?;
                &own[..]
            };
            for &other in list {
                found += kept.list(other).map_or(0, |others| shared(list, others));
            }
        }
    }
    Ok((found, reader.reads()))
}

/// How many numbers two rising lists share.
fn shared(one: &[u32], other: &[u32]) -> u64 {
    let (mut count, mut i, mut j) = (0, 0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        count += u64::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    count
}
