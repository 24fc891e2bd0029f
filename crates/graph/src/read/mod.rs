//! Graphs of a snapshot, and how tasks read their lists through pinned pages.

pub(crate) mod ahead;
#[cfg(test)]
mod fuzzed;
pub(crate) mod graph;
pub(crate) mod reader;
pub(crate) mod rows;
