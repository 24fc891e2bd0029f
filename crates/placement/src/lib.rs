//! Which thread runs on which cpus: strategies, all placements that differ, and putting threads there.
//!
//! | part | for |
//! |---|---|
//! | [`Site`], [`Threads`] | where there is room, and what for |
//! | [`Strategy`] | the placements that have a name (row T5), and those in files |
//! | [`Classes`] | all placements that differ: counted, listed, drawn (row T6) |
//! | [`search`] | a placement near the best in few runs (row T11) |
//! | [`table`] | recorded costs, to compare searches with |
//! | [`apply`] | putting threads there, and back |
//!
//! All but `apply` is pure: no clock, no thread, no system call; the same input gives the same result.
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
mod classes;
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
