//! A process, its threads and its children over time.

mod follow;
mod sample;
mod summary;

pub use follow::Watch;
pub use sample::{Memory, Sample, Seen};
pub use summary::{Summary, ThreadSummary};
