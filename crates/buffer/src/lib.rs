//! The buffer pool: pages of a store in frames on their home nodes.

mod config;
mod error;
mod pin;
mod pool;
mod statistics;

pub use config::{Config, LoadError, PageId, Source};
pub use error::{Error, Result};
pub use pin::{OwnedPin, Pin};
pub use pool::{FRAMES_PER_NODE, Pool};
pub use statistics::{NodeStatistics, Statistics};
