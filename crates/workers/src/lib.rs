//! Worker threads pinned to cpus, how many of them may run at once, and NUMA-aware work stealing.
//!
//! [`Workers`] is a multi-threaded runtime whose threads are pinned to the cpus of a [`Layout`]. Everything that
//! computes runs on them, including the tasks of DataFusion. The *width* of a runtime is the number of its workers
//! that may run; it can change while queries run. [`here`] returns the worker and NUMA node that the calling code is
//! on, and [`Morsels`] hands out pieces of work, those whose data is on the caller's node first.
//!
//! [`Queues`] are threads that serve a queue of tasks each, for what must stay on one thread.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use workers::{Layout, Morsels, Workers};
//! use topology::Machine;
//!
//! let live = Machine::live()?;
//! let four_nodes = Machine::parse("4x1")?;
//! let workers = Workers::new(Layout::of(&four_nodes, &live, 4, true))?;
//!
//! let distance = |a, b| four_nodes.distance(a, b);
//! let morsels = Arc::new(Morsels::new(4, distance, (0..100).map(|n| (n as usize % 4, n))));
//! let sums: Vec<_> = (0..4)
//!     .map(|_| {
//!         let morsels = morsels.clone();
//!         workers.spawn(async move {
//!             let node = workers::here().map_or(0, |here| here.node);
//!             let mut sum = 0;
//!             while let Some(morsel) = morsels.claim(node) {
//!                 sum += morsel;
//!             }
//!             sum
//!         })
//!     })
//!     .collect();
//! let total = workers.block_on(async move {
//!     let mut total = 0;
//!     for sum in sums {
//!         total += sum.await?;
//!     }
//!     Ok::<u32, workers::Error>(total)
//! })?;
//! assert_eq!(total, 4950);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assignment;
mod counter;
mod error;
mod here;
mod layout;
mod morsels;
mod pin;
mod pool;
mod queues;
mod task;
mod width;

pub use counter::{Counter, Pending};
pub use error::{Error, Result};
pub use here::{Here, here};
pub use layout::{Layout, MAX_THREADS, Place};
pub use morsels::{Claimant, Morsels, Nearness};
pub use pool::Workers;
pub use queues::{QueueStatistics, Queues};
pub use task::{JoinHandle, yield_now};
