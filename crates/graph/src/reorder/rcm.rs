//! Reverse Cuthill-McKee: breadth first from a vertex at the rim, neighbours by rising degree, and
//! then all the other way round. Directions do not count.

use crate::error::Result;
use crate::job::{Job, Phase};
use crate::reorder::degree::falling;
use crate::reorder::neighbours::Neighbours;

/// Searches for a vertex farther out, for each component.
const ROUNDS: usize = 2;

/// The vertices in their new order.
pub(crate) async fn sequence(lists: &mut Neighbours<'_>, job: &mut Job<'_>) -> Result<Vec<u32>> {
    let vertices = lists.graph.vertices() as usize;
    let degrees = lists.degrees(job).await?;
    let mut search = Search {
        degrees: &degrees,
        seen: vec![0; vertices],
        round: 0,
        queue: Vec::new(),
        around: Vec::new(),
    };
    let placed = u32::MAX;
    let mut sequence: Vec<u32> = Vec::with_capacity(vertices);
    for start in falling(&degrees).into_iter().rev() {
        if search.seen[start as usize] == placed {
            continue;
        }
        let start = search.rim(lists, start, job).await?;
        let mut next = sequence.len();
        sequence.push(start);
        search.seen[start as usize] = placed;
        while let Some(&vertex) = sequence.get(next) {
            next += 1;
            lists.around(vertex, &mut search.around).await?;
            let from = sequence.len();
            for &other in &search.around {
                let seen = &mut search.seen[other as usize];
                if *seen != placed {
                    *seen = placed;
                    sequence.push(other);
                }
            }
            sequence[from..].sort_unstable_by_key(|&other| (degrees[other as usize], other));
            if next.is_multiple_of(4096) {
                job.at(Phase::Order, next as u64, vertices as u64)?;
            }
        }
    }
    sequence.reverse();
    Ok(sequence)
}

/// Breadth-first searches for a vertex at the rim of a component.
struct Search<'d> {
    degrees: &'d [u32],
    /// The last search that saw each vertex.
    seen: Vec<u32>,
    round: u32,
    queue: Vec<u32>,
    around: Vec<u32>,
}

impl Search<'_> {
    /// A vertex at the rim of the component of `start` (George and Liu): the one of least degree of
    /// those farthest away, as long as that leads farther.
    async fn rim(
        &mut self,
        lists: &mut Neighbours<'_>,
        start: u32,
        job: &mut Job<'_>,
    ) -> Result<u32> {
        let (mut best, mut depth) = (start, 0);
        if self.degrees[start as usize] == 0 {
            return Ok(best);
        }
        for _ in 0..ROUNDS {
            let (far, levels) = self.farthest(lists, best, job).await?;
            if levels <= depth {
                break;
            }
            (best, depth) = (far, levels);
        }
        Ok(best)
    }

    /// The vertex of least degree in the last level, and how many levels there are.
    async fn farthest(
        &mut self,
        lists: &mut Neighbours<'_>,
        start: u32,
        job: &mut Job<'_>,
    ) -> Result<(u32, usize)> {
        // It does not reach `u32::MAX`: there are two searches at most for a component, which has two
        // vertices at least.
        self.round += 1;
        self.queue.clear();
        self.queue.push(start);
        self.seen[start as usize] = self.round;
        let (mut level, mut levels) = (0..1, 0);
        loop {
            for at in level.clone() {
                lists.around(self.queue[at], &mut self.around).await?;
                for &other in &self.around {
                    if self.seen[other as usize] < self.round {
                        self.seen[other as usize] = self.round;
                        self.queue.push(other);
                    }
                }
                if at.is_multiple_of(4096) {
                    job.at(Phase::Order, 0, self.seen.len() as u64)?;
                }
            }
            if level.end == self.queue.len() {
                break;
            }
            level = level.end..self.queue.len();
            levels += 1;
        }
        let last = self.queue[level].iter().copied();
        let far = last.min_by_key(|&vertex| (self.degrees[vertex as usize], vertex));
        Ok((far.unwrap_or(start), levels))
    }
}
