//! Thread placement on NUMA machines: which thread runs on which cpus. Named strategies, the enumeration of all
//! placements that are not equivalent, a search for a good one, and binding threads to a placement.
//!
//! | part | for |
//! |---|---|
//! | [`Site`], [`Threads`] | the cpus that may be used, and the threads to be placed |
//! | [`Strategy`] | the named strategies, such as compact and sparse, and placements read from files |
//! | [`Classes`] | the equivalence classes of placements: counted, enumerated, sampled |
//! | [`search`] | Bayesian optimisation: a placement near the best after few runs of the workload |
//! | [`table`] | recorded costs of placements, to evaluate searches without running anything |
//! | [`cost`] | seconds and joules from counted bytes, by a model of a machine |
//! | [`arrays`] | how threads share the chunks of an array, and a scheduler for queries over them |
//! | [`apply`] | binding threads to their cpus, and undoing it |
//!
//! All but [`apply`] is deterministic: no clock, no thread, and no system call but to read the file of a [`mapping`] or
//! a [`table`].
//!
//! ```
//! use placement::{Classes, Site, Strategy, Threads};
//! use topology::Machine;
//!
//! let site = Site::new(&Machine::parse("2x6")?);
//! let threads = Threads::in_groups(4, 2)?;
//! let sparse = Strategy::Sparse.place(&site, &threads)?;
//! assert_eq!(sparse.nodes(&site), [Some(0), Some(1), Some(0), Some(1)]);
//!
//! let classes = Classes::new(&site, &Threads::in_groups(12, 1)?)?;
//! assert_eq!(classes.count(), Some(462));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod apply;
pub mod arrays;
mod classes;
pub mod cost;
mod cpu_list;
mod cpus;
mod error;
pub mod mapping;
mod placement;
mod random;
pub mod search;
mod site;
mod strategy;
pub mod table;
mod threads;

pub use classes::{Classes, Siblings};
pub use cpus::CpuSet;
pub use error::{Error, Result};
pub use placement::Placement;
pub use random::Random;
pub use site::Site;
pub use strategy::{Strategy, draws, like};
pub use threads::{MAX_THREADS, Threads};
