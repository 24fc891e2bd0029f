//! Cells in memory: regions, grids of chunks, columns and blocks, and the copying of one box into another.

pub(crate) mod assembly;
pub(crate) mod block;
pub(crate) mod buffer;
pub(crate) mod grid;
pub(crate) mod region;
pub(crate) mod runs;
pub(crate) mod strided;
