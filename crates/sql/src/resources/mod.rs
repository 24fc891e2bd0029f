//! What statements share and compete for: the right to run, memory, disk, stack, and a way to stop.
//!
//! Uses `functions`, `error` and `messages`.

pub(crate) mod admission;
pub(crate) mod allowance;
pub(crate) mod budget;
pub(crate) mod sequences;
pub(crate) mod stop;
pub(crate) mod stream;
pub(crate) mod turn;
pub(crate) mod whole_file;
pub(crate) mod work;
