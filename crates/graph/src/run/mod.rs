//! What all kernels run on: workers, memory, and vertices dealt out in pieces.

pub(crate) mod bits;
pub(crate) mod crew;
pub(crate) mod room;
