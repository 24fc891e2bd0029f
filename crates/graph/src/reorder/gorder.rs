//! Gorder (Wei, Yu, Lu and Lin, SIGMOD 2016): each next vertex is the one that has most to do with
//! the last five, by edges with them and by vertices whose lists name both.
//!
//! As the authors' program does, it leaves out the lists of vertices that lead to more than the
//! square root of all vertices: those would take most of the time and tell little.

use std::collections::VecDeque;

use crate::error::Result;
use crate::job::{Job, Phase};
use crate::reorder::degree::falling;
use crate::reorder::heap::Heap;
use crate::reorder::neighbours::Neighbours;

/// How many of the last vertices count.
const WINDOW: usize = 5;

/// The vertices in their new order.
pub(crate) async fn sequence(lists: &mut Neighbours<'_>, job: &mut Job<'_>) -> Result<Vec<u32>> {
    let vertices = lists.graph.vertices();
    let heap = Heap::new(&falling(&lists.degrees(job).await?));
    let mut greedy = Greedy {
        lists,
        heap,
        most: u64::from(vertices.isqrt()),
        into: Vec::new(),
        out: Vec::new(),
    };
    let mut window = VecDeque::with_capacity(WINDOW + 1);
    let mut sequence = Vec::with_capacity(vertices as usize);
    while let Some(vertex) = greedy.heap.take() {
        sequence.push(vertex);
        greedy.count(vertex, Heap::gain).await?;
        window.push_back(vertex);
        if window.len() > WINDOW
            && let Some(old) = window.pop_front()
        {
            greedy.count(old, Heap::lose).await?;
        }
        if sequence.len().is_multiple_of(256) {
            job.at(Phase::Order, sequence.len() as u64, u64::from(vertices))?;
        }
    }
    Ok(sequence)
}

struct Greedy<'l, 'g> {
    lists: &'l mut Neighbours<'g>,
    heap: Heap,
    /// Longest list that counts.
    most: u64,
    into: Vec<u32>,
    out: Vec<u32>,
}

impl Greedy<'_, '_> {
    /// Applies `change` once for each edge and each common in-neighbour that a vertex has with another.
    async fn count(&mut self, vertex: u32, change: fn(&mut Heap, u32)) -> Result<()> {
        if self.lists.out_degree(vertex).await? <= self.most {
            self.lists.out(vertex, &mut self.out).await?;
            for &other in &self.out {
                change(&mut self.heap, other);
            }
        }
        let mut into = std::mem::take(&mut self.into);
        self.lists.into(vertex, &mut into).await?;
        for &from in &into {
            let degree = self.lists.out_degree(from).await?;
            if degree > self.most {
                continue;
            }
            change(&mut self.heap, from);
            // A list of one names only this vertex.
            if degree > 1 {
                self.lists.out(from, &mut self.out).await?;
                for &sibling in &self.out {
                    change(&mut self.heap, sibling);
                }
            }
        }
        self.into = into;
        Ok(())
    }
}
