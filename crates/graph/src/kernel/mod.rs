//! The kernels of the GAP benchmark suite over graphs in pages (row B9): breadth-first search, PageRank, connected
//! components and triangles.
//!
//! Each runs on a [`Crew`](crate::Crew): its workers draw pieces of the vertices, those whose lists lie on their node
//! first, and keep no more than a quarter of the pool pinned, so that a graph may be larger than the pool. What is kept
//! for each vertex is in memory, counted against the crew's budget.

mod bfs;
mod components;
mod pagerank;
mod triangles;

pub use bfs::{Search, bfs};
pub use components::{Components, components};
pub use pagerank::{RankOptions, Ranks, pagerank};
pub use triangles::{Triangles, triangles};
