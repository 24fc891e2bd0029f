//! Graphs of a snapshot, and how tasks read their lists through pinned pages.

pub(crate) mod graph;
pub(crate) mod reader;
pub(crate) mod rows;
