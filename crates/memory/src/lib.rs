//! Memory on a NUMA machine: arenas bound to a node, the memory limits of this process, the nodes that
//! pages are on, one memory budget, and counters of the bytes read across nodes.
//!
//! Everything here works unprivileged and in containers that refuse `mbind`, `move_pages` or
//! huge pages: a refusal is noted ([`Arena::notes`]), and the memory is used as it comes.
//!
//! ```
//! let arena = memory::Arena::new(1 << 20, Some(0))?;
//! assert_eq!(arena.len(), 1 << 20);
//!
//! let budget = memory::Budget::new(memory::available()? / 2);
//! budget.take(arena.len() as u64)?;
//! budget.give(arena.len() as u64);
//! assert_eq!(budget.used(), 0);
//! # Ok::<(), memory::Error>(())
//! ```

mod account;
mod arena;
mod budget;
mod cache;
mod error;
mod limits;
pub mod pages;
mod residency;
mod resident;
mod traffic;

pub use account::Account;
pub use arena::{Arena, Reserve};
pub use budget::Budget;
pub use cache::drop_system_caches;
pub use error::{Error, Result};
pub use limits::{available, total};
pub use residency::{Mapping, numa_maps, parse_numa_maps, residency, residency_of};
pub use traffic::Traffic;
