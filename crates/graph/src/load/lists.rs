//! Sorted edges become lists of neighbours in pages.

use store::Transaction;

use crate::error::Result;
use crate::format::array::{ListsWriter, Written};
use crate::format::meta::{Array, Meta, Order};
use crate::job::{Job, Phase};
use crate::sort::radix::Record;
use crate::sort::sorter::{Sorted, Sorter};
use crate::sort::spool::Spill;

/// Edges that are written between two looks at whether to stop.
const BATCH: usize = 1 << 14;

/// An edge under the numbers of its vertices, as a key to sort by.
#[inline]
pub(crate) fn key(vertex: u32, neighbour: u32) -> u64 {
    u64::from(vertex) << 32 | u64::from(neighbour)
}

/// The other way round.
#[inline]
pub(crate) fn ends(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

/// What graph is written.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub vertices: u64,
    pub directed: bool,
    pub weighted: bool,
    /// Whether repeated edges stay; otherwise the first of each does.
    pub repeats: bool,
    /// Entries that come, repeated ones too.
    pub entries: u64,
    /// Bytes for sorting the in-edges.
    pub memory: u64,
    pub spill: Spill,
}

/// What was written.
pub(crate) struct Made {
    pub out: Written,
    pub into: Option<Written>,
    /// Edges that were left out because they were repeated; undirected ones once.
    pub dropped: u64,
    /// Edges that are there; undirected ones once.
    pub edges: u64,
    /// Whether repeated edges are there.
    pub repeats: bool,
    /// Edges from a vertex to itself that are there.
    pub loops: u64,
}

impl Made {
    /// The metadata of the graph, whose other arrays are `more`.
    pub fn meta(self, vertices: u64, order: Order, more: Vec<Array>) -> Meta {
        let mut meta = self.out.meta(vertices, order, self.into, more);
        (meta.loops, meta.repeats) = (self.loops, self.repeats);
        meta
    }
}

/// Writes the lists of the vertices that edges lead to and, of a directed graph, come from. `each`
/// sees each list's entries in order.
pub(crate) fn write<R: Record>(
    transaction: &Transaction,
    mut sorted: Sorted<R>,
    shape: &Shape,
    job: &mut Job<'_>,
    mut each: impl FnMut(u32, u32),
) -> Result<Made> {
    let mut out = ListsWriter::out(transaction, shape.weighted);
    let mut into = shape
        .directed
        .then(|| Sorter::<u64>::new(&shape.spill, shape.memory));
    let total = shape.entries * (1 + u64::from(shape.directed));
    let (mut dropped, mut edges, mut done) = (0, 0, 0);
    let (mut repeats, mut loops) = (false, 0);
    let mut last = None;
    let mut batch = Vec::new();
    loop {
        sorted.next(&mut batch, BATCH)?;
        if batch.is_empty() {
            break;
        }
        for record in &batch {
            let (vertex, neighbour) = ends(record.key());
            // Both entries of an undirected edge count once.
            let counts = u64::from(shape.directed || vertex <= neighbour);
            if last == Some(record.key()) {
                if !shape.repeats {
                    dropped += counts;
                    continue;
                }
                repeats = true;
            }
            last = Some(record.key());
            edges += counts;
            loops += u64::from(vertex == neighbour);
            let weight = shape.weighted.then(|| record.value());
            out.edge(u64::from(vertex), u64::from(neighbour), weight)?;
            each(vertex, neighbour);
            if let Some(into) = &mut into {
                into.push(key(neighbour, vertex))?;
            }
        }
        done += batch.len() as u64;
        job.at(Phase::Write, done, total)?;
    }
    drop(sorted);
    let out = out.finish(shape.vertices)?;
    let into = match into {
        Some(into) => Some(write_into(transaction, into.finish()?, shape, done, job)?),
        None => None,
    };
    Ok(Made {
        out,
        into,
        dropped,
        edges,
        repeats,
        loops,
    })
}

fn write_into(
    transaction: &Transaction,
    mut sorted: Sorted<u64>,
    shape: &Shape,
    before: u64,
    job: &mut Job<'_>,
) -> Result<Written> {
    let mut writer = ListsWriter::into(transaction);
    let (mut batch, mut done) = (Vec::new(), before);
    loop {
        sorted.next(&mut batch, BATCH)?;
        if batch.is_empty() {
            return writer.finish(shape.vertices);
        }
        for &edge in &batch {
            let (vertex, neighbour) = ends(edge);
            writer.edge(u64::from(vertex), u64::from(neighbour), None)?;
        }
        done += batch.len() as u64;
        job.at(Phase::Write, done, 2 * shape.entries)?;
    }
}
