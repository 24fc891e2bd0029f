//! Seconds and joules from counted bytes: a model of a machine, for where it is not at hand or has too few nodes.
//!
//! The time is that of the thread that is busy longest, which waits for memory and links:
//!
//! 1. **A thread** has a core, or a part of one. It computes, and waits for its lines. The cycles that it computes take their number by its clock. Lines out of the
//!    last-level cache come at the cache's rate. Of those from memory a core waits for [`Rates::lines`] at a time, each for as long as
//!    that node's memory takes to answer: `latency_ns`, or `remote_ns` and more by distance, and the queues below. It computes while lines come, so that the
//!    longer of the two counts.
//! 2. **The memory of a node** delivers [`Rates::memory_mb`].
//! 3. **A link** carries [`Rates::link_mb`] in each direction; what goes to a node further away crosses several links.
//!
//! Threads may go from step to step together ([`Model::steps`]): each step takes as long as its slowest thread, so that one that has to read from
//! afar keeps the others waiting.
//!
//! *Queues.* A channel of memory, and a link, is a server that takes the same time for each line, to which lines come at random (M/D/1):
//! if it takes `s` for a line and is busy for the share `u` of the time, a line waits `s * u / (2 * (1 - u))`. As `u` follows from the time, and
//! the time from the waits, the time is found by halving: the more time, the shorter the queues.
//!
//! *Energy* is that of cores that work, of those that do not until all is done, of each bit that memory delivers and each that crosses a link, and of
//! memory that is on. Whatever else a machine has (fans, disks, caches) is in none of these.
//!
//! What it leaves out: what a barrier itself takes, locks, coherence, the cost of moving a thread but for its cold cache, pages of 2 MiB. The
//! text's figures have all of these in them (rows T8 to T10, E12).
//!
//! ```
//! use placement::cost::{Model, Work};
//! use topology::Machine;
//!
//! let machine = Machine::parse("xeon-4114")?;
//! let model = Model::new(&machine);
//! // A core of node 0 reads a gigabyte of its own node's memory, or of the other's.
//! let near = model.cost(&[Work::new(0).memory(0, 1e9)]);
//! let far = model.cost(&[Work::new(0).memory(1, 1e9)]);
//! assert!((far.seconds / near.seconds - 1.36).abs() < 0.02);
//! assert!(far.joules() > near.joules());
//! println!("{near}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod estimate;
mod front;
mod links;
mod model;
mod work;

pub use estimate::estimate;
pub use front::front;
pub use model::{Cost, Limit, Model};
pub use work::{Step, Work};

/// Cycles of a byte that a query over an array reads or writes: a double is compared with bounds and copied in one, as loops over dense
/// chunks do.
pub const CYCLES: f64 = 0.125;
