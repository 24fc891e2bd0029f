//! A graph as rows: its vertices and its edges, by the ids of the file.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::read::graph::Graph;
use crate::read::reader::Reader;

/// Pins that a reader of rows keeps.
const SLOTS: usize = 8;

/// Some of the edges of a graph. The vectors are of the same length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edges {
    /// Where each leads from.
    pub from: Vec<i64>,
    /// Where it leads to.
    pub to: Vec<i64>,
    /// What it weighs; `None` of a graph without weights.
    pub weights: Option<Vec<f64>>,
}

/// Reads the edges of a graph, some at a time. An undirected edge comes in both directions, as in the lists, a loop
/// once.
#[derive(Debug)]
pub struct EdgeRows {
    graph: Arc<Graph>,
    /// The vertex whose list is next or being read.
    vertex: u32,
    /// How much of it was read.
    done: u64,
}

impl EdgeRows {
    /// All edges of a graph, by the number of the vertex that they lead from, then of the one that they lead to.
    pub fn new(graph: &Arc<Graph>) -> EdgeRows {
        EdgeRows {
            graph: graph.clone(),
            vertex: 0,
            done: 0,
        }
    }

    /// The next `most` edges, fewer at the end; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged), [`Error::Buffer`](crate::Error::Buffer) of the pages.
    pub async fn next(&mut self, most: usize) -> Result<Option<Edges>> {
        let graph = self.graph.clone();
        let mut lists = Reader::new(&graph, SLOTS);
        let mut edges = Edges {
            weights: graph.weights.as_ref().map(|_| Vec::new()),
            ..Edges::default()
        };
        let mut numbers: Vec<u32> = Vec::new();
        while numbers.len() < most && self.vertex < graph.vertices() {
            let (start, end) = lists.bounds(graph.out(), self.vertex).await?;
            let at = start + self.done;
            if at >= end {
                (self.vertex, self.done) = (self.vertex + 1, 0);
                continue;
            }
            let end = end.min(at + (most - numbers.len()) as u64);
            let part = lists.piece(graph.out(), at, end).await?;
            let count = part.len();
            numbers.extend_from_slice(part);
            if let (Some(array), Some(weights)) = (&graph.weights, &mut edges.weights) {
                for at in at..at + count as u64 {
                    weights.push(f64::from_bits(lists.wide(array, at).await?));
                }
            }
            let id = lists.wide(&graph.ids, self.vertex.into()).await?;
            let end = edges.from.len() + count;
            edges.from.resize(end, id.cast_signed());
            self.done += count as u64;
        }
        edges.to = graph.ids_of(&numbers).await?;
        Ok((!numbers.is_empty()).then_some(edges))
    }
}

impl Graph {
    /// The number of the vertex with this id of the file.
    ///
    /// # Errors
    /// [`Error::NoVertex`](crate::Error::NoVertex); those of reading.
    pub async fn find(&self, id: i64) -> Result<u32> {
        let wanted = id.cast_unsigned();
        let mut reader = Reader::new(self, 4);
        let (mut low, mut high) = (0, u64::from(self.vertices()));
        while low < high {
            let middle = low + (high - low) / 2;
            let vertex = match &self.ranks {
                Some(ranks) => u64::from(reader.narrow(ranks, middle).await?),
                None => middle,
            };
            match reader.wide(&self.ids, vertex).await?.cmp(&wanted) {
                std::cmp::Ordering::Equal => return Ok(vertex as u32),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(Error::NoVertex {
            graph: self.name().to_owned(),
            vertex: id,
        })
    }

    /// The id in the file of a vertex.
    ///
    /// # Errors
    /// [`Error::NoVertex`](crate::Error::NoVertex) beyond the last; those of reading.
    pub async fn id(&self, vertex: u32) -> Result<i64> {
        self.check(vertex)?;
        let mut reader = Reader::new(self, 1);
        let id = reader.wide(&self.ids, u64::from(vertex)).await?;
        Ok(id.cast_signed())
    }

    /// The ids of vertices, in their order. A number beyond the last vertex is an error.
    ///
    /// # Errors
    /// [`Error::NoVertex`](crate::Error::NoVertex); those of reading.
    pub async fn ids_of(&self, numbers: &[u32]) -> Result<Vec<i64>> {
        let mut reader = Reader::new(self, SLOTS);
        let mut ids = Vec::with_capacity(numbers.len());
        for &number in numbers {
            self.check(number)?;
            let id = reader.wide(&self.ids, number.into()).await?;
            ids.push(id.cast_signed());
        }
        Ok(ids)
    }

    /// For each vertex of a range how many edges lead from it, and how many to it. Numbers beyond the last vertex are
    /// left out.
    ///
    /// # Errors
    /// Those of reading.
    pub async fn degrees(&self, range: Range<u32>) -> Result<Vec<(u64, u64)>> {
        let mut reader = Reader::new(self, SLOTS);
        let range = range.start..range.end.min(self.vertices());
        let mut degrees = Vec::with_capacity(range.len());
        for vertex in range {
            let (start, end) = reader.bounds(self.out(), vertex).await?;
            let out = end - start;
            let (start, end) = reader.bounds(self.incoming(), vertex).await?;
            degrees.push((out, end - start));
        }
        Ok(degrees)
    }

    /// `count` vertices that edges lead from, drawn at random: for the same `seed` those with the same ids, whatever the
    /// order of the graph. A vertex may come twice. None of a graph without edges.
    ///
    /// # Errors
    /// Those of reading.
    pub async fn sources(&self, count: usize, seed: u64) -> Result<Vec<u32>> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut reader = Reader::new(self, SLOTS);
        let mut sources = Vec::with_capacity(count);
        if self.entries() == 0 {
            return Ok(sources);
        }
        while sources.len() < count {
            let before = sources.len();
            let first = random.u32(..self.vertices());
            // The next one that has edges, by id from there on around.
            for rank in (first..self.vertices()).chain(0..first) {
                let vertex = match &self.ranks {
                    Some(ranks) => reader.narrow(ranks, rank.into()).await?,
                    None => rank,
                };
                let (start, end) = reader.bounds(self.out(), vertex).await?;
                if start < end {
                    sources.push(vertex);
                    break;
                }
            }
            if sources.len() == before {
                // It has edges, and no vertex has any.
                return Err(self.damaged(self.out().offsets.sort.name()));
            }
        }
        Ok(sources)
    }
}
