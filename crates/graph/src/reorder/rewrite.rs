//! Writing a graph under new numbers.

use store::Transaction;

use crate::error::Result;
use crate::format::array::ArrayWriter;
use crate::format::meta::{Array, Meta, Order, Sort};
use crate::job::{Job, Phase};
use crate::load::lists::{self, Made, Shape};
use crate::read::graph::Graph;
use crate::read::reader::Reader;
use crate::reorder::locality::{Locality, Meter};
use crate::sort::radix::Record;
use crate::sort::sorter::{Sorted, Sorter};
use crate::sort::spool::Spill;

/// Vertices whose offsets are read together, and records that are written between looks.
const BATCH: u32 = 8192;

/// The edges of a graph, and the new number of each vertex.
pub(crate) struct Edges<'e> {
    pub graph: &'e Graph,
    pub numbers: &'e [u32],
    pub order: Order,
    /// Bytes for sorting.
    pub memory: u64,
    pub spill: &'e Spill,
}

/// Edges under new numbers, sorted.
pub(crate) struct Renumbered {
    edges: Width,
    /// The ids of the file by new number.
    ids: Sorted<[u64; 2]>,
    before: Locality,
}

/// Edges without and with weights.
enum Width {
    Plain(Sorted<u64>),
    Weighted(Sorted<[u64; 2]>),
}

/// A graph that has been written.
pub(crate) struct Rewritten {
    pub meta: Meta,
    pub edges: u64,
    pub before: Locality,
    pub after: Locality,
}

impl Edges<'_> {
    /// Reads and sorts the edges and ids.
    pub async fn sort(&self, job: &mut Job<'_>) -> Result<Renumbered> {
        let mut meter = self.meter();
        let edges = if self.graph.weights.is_some() {
            Width::Weighted(self.sorted(&mut meter, job).await?)
        } else {
            Width::Plain(self.sorted(&mut meter, job).await?)
        };
        Ok(Renumbered {
            edges,
            ids: self.ids().await?,
            before: meter.locality(),
        })
    }

    fn meter(&self) -> Meter {
        Meter::new(self.graph.out().offsets.shift)
    }

    async fn sorted<R: Record>(&self, meter: &mut Meter, job: &mut Job<'_>) -> Result<Sorted<R>> {
        let (graph, lists) = (self.graph, self.graph.out());
        let mut sorter = Sorter::<R>::new(self.spill, self.memory / 2);
        let mut reader = Reader::new(graph, 4);
        let (mut offsets, mut list) = (Vec::new(), Vec::new());
        let mut first = 0;
        while first < graph.vertices() {
            let count = BATCH.min(graph.vertices() - first);
            reader.offsets(lists, first, count, &mut offsets).await?;
            for (vertex, bounds) in (first..).zip(offsets.windows(2)) {
                list.clear();
                let mut at = bounds[0];
                while at < bounds[1] {
                    let piece = reader.piece(lists, at, bounds[1]).await?;
                    at += piece.len() as u64;
                    list.extend_from_slice(piece);
                }
                for (&neighbour, at) in list.iter().zip(bounds[0]..) {
                    meter.see(vertex, neighbour);
                    let weight = match &graph.weights {
                        Some(weights) => reader.wide(weights, at).await?,
                        None => 0,
                    };
                    let (vertex, neighbour) = (self.number(vertex), self.number(neighbour));
                    sorter.push(R::new(lists::key(vertex, neighbour), weight))?;
                }
            }
            first += count;
            job.at(
                Phase::Sort,
                offsets.last().copied().unwrap_or(0),
                graph.entries(),
            )?;
        }
        sorter.finish()
    }

    #[inline]
    fn number(&self, vertex: u32) -> u32 {
        self.numbers[vertex as usize]
    }

    async fn ids(&self) -> Result<Sorted<[u64; 2]>> {
        let mut sorter = Sorter::new(self.spill, self.memory / 4);
        let mut reader = Reader::new(self.graph, 1);
        for vertex in 0..self.graph.vertices() {
            let id = reader.wide(&self.graph.ids, u64::from(vertex)).await?;
            sorter.push([u64::from(self.number(vertex)), id])?;
        }
        sorter.finish()
    }

    /// Writes all arrays.
    pub async fn write(
        &self,
        transaction: &Transaction,
        mut sorted: Renumbered,
        job: &mut Job<'_>,
    ) -> Result<Rewritten> {
        let old = self.graph.meta();
        let mut more = vec![write_ids(transaction, &mut sorted.ids)?];
        drop(sorted.ids);
        if self.order != Order::Ids {
            more.push(self.write_ranks(transaction).await?);
        }
        let shape = Shape {
            vertices: old.vertices,
            directed: old.directed,
            weighted: self.graph.weights.is_some(),
            // What is repeated was to stay when the graph was loaded.
            repeats: true,
            entries: old.edges,
            memory: self.memory / 4,
            spill: self.spill.clone(),
        };
        let mut meter = self.meter();
        let see = |vertex, neighbour| meter.see(vertex, neighbour);
        let made: Made = match sorted.edges {
            Width::Plain(sorted) => lists::write(transaction, sorted, &shape, job, see)?,
            Width::Weighted(sorted) => lists::write(transaction, sorted, &shape, job, see)?,
        };
        Ok(Rewritten {
            edges: made.edges,
            meta: made.meta(old.vertices, self.order, more),
            before: sorted.before,
            after: meter.locality(),
        })
    }

    /// Writes the new numbers by rising id of the file.
    async fn write_ranks(&self, transaction: &Transaction) -> Result<Array> {
        let mut writer = ArrayWriter::new(transaction, Sort::Ranks);
        let mut reader = Reader::new(self.graph, 1);
        for rank in 0..self.graph.vertices() {
            let vertex = match &self.graph.ranks {
                Some(ranks) => reader.narrow(ranks, u64::from(rank)).await?,
                None => rank,
            };
            writer.push(u64::from(self.number(vertex)))?;
        }
        writer.finish()
    }
}

fn write_ids(transaction: &Transaction, ids: &mut Sorted<[u64; 2]>) -> Result<Array> {
    let mut writer = ArrayWriter::new(transaction, Sort::Ids);
    let mut batch = Vec::new();
    loop {
        ids.next(&mut batch, BATCH as usize)?;
        if batch.is_empty() {
            return writer.finish();
        }
        for id in &batch {
            writer.push(id.value())?;
        }
    }
}
