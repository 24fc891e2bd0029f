//! The length of a vector.

/// Rows of a vector: what kernels work on at once.
pub const VECTOR_ROWS: usize = 2048;
