//! The lists of a graph, read one after the other or here and there.

use crate::error::Result;
use crate::job::{Job, Phase};
use crate::read::graph::Graph;
use crate::read::reader::Reader;

/// Vertices whose offsets are read together.
const BATCH: u32 = 8192;
/// Most pages that are kept pinned.
const MOST_SLOTS: usize = 1 << 14;

/// Reads the lists of a graph.
pub(crate) struct Neighbours<'g> {
    pub graph: &'g Graph,
    reader: Reader<'g>,
}

impl<'g> Neighbours<'g> {
    /// Keeps at most a quarter of the pool pinned.
    pub fn new(graph: &'g Graph) -> Neighbours<'g> {
        // A power of two that is not above a quarter of the frames.
        let slots = (graph.pool().frames() / 4 + 1).next_power_of_two() / 2;
        let slots = slots.min(graph.list_pages().next_power_of_two());
        Neighbours {
            graph,
            reader: Reader::new(graph, slots.clamp(1, MOST_SLOTS)),
        }
    }

    /// How many edges each vertex has, out and in; the edges of an undirected graph once.
    pub async fn degrees(&mut self, job: &mut Job<'_>) -> Result<Vec<u32>> {
        let vertices = self.graph.vertices();
        let mut degrees = vec![0_u32; vertices as usize];
        let both = [Some(self.graph.out()), Some(self.graph.incoming())];
        let lists = both
            .into_iter()
            .take(1 + usize::from(self.graph.meta().directed));
        let mut offsets = Vec::new();
        for lists in lists.flatten() {
            let mut first = 0;
            while first < vertices {
                let count = BATCH.min(vertices - first);
                self.reader
                    .offsets(lists, first, count, &mut offsets)
                    .await?;
                for (degree, bounds) in degrees[first as usize..].iter_mut().zip(offsets.windows(2))
                {
                    let more = u32::try_from(bounds[1] - bounds[0]).unwrap_or(u32::MAX);
                    *degree = degree.saturating_add(more);
                }
                first += count;
                job.at(Phase::Order, 0, u64::from(vertices))?;
            }
        }
        Ok(degrees)
    }

    /// The vertices that edges of a vertex lead to, in place of what is in `into`.
    pub async fn out(&mut self, vertex: u32, into: &mut Vec<u32>) -> Result<()> {
        into.clear();
        self.reader.append(self.graph.out(), vertex, into).await
    }

    /// The vertices that edges to a vertex come from, in place of what is in `into`.
    pub async fn into(&mut self, vertex: u32, into: &mut Vec<u32>) -> Result<()> {
        into.clear();
        self.reader
            .append(self.graph.incoming(), vertex, into)
            .await
    }

    /// How many edges lead from a vertex.
    pub async fn out_degree(&mut self, vertex: u32) -> Result<u64> {
        let (start, end) = self.reader.bounds(self.graph.out(), vertex).await?;
        Ok(end - start)
    }

    /// The other vertices that a vertex has an edge with, each once and in order.
    pub async fn around(&mut self, vertex: u32, into: &mut Vec<u32>) -> Result<()> {
        self.reader.around(vertex, into).await
    }
}
