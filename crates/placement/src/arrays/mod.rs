//! Threads for queries over arrays in chunks (rows T4 and T11): how threads divide the chunks among themselves, what a
//! placement then reads locally and remotely, and a [`schedule`] that chooses both from where the chunks lie.
//!
//! Bytes are counted, not timed: what a thread reads of a chunk on its own node is local, the rest remote, and a remote
//! byte weighs as much more as its node is further away. [`choices`] trades time against energy, by a [model](crate::cost) of the machine.
//!
//! ```
//! use placement::arrays::{Chunk, Goal, Load, Sharing, schedule};
//! use placement::{Site, Strategy, Threads};
//! use topology::Machine;
//!
//! let site = Site::new(&Machine::parse("xeon-2630")?);
//! // Three large chunks, of which a query reads 80 MiB each; two of them lie on node 1.
//! let chunk = |home| Chunk { home, bytes: 80 << 20, slabs: 200 };
//! let chunks = [chunk(1), chunk(0), chunk(1)];
//!
//! // As SAVIME does it: three groups of four threads, a chunk for each group.
//! let groups = Sharing::Groups { of: 4 };
//! let division = groups.divide(12, &chunks)?;
//! let shared = Strategy::Shared.place(&site, &Threads::with_groups(groups.groups(12)?)?)?;
//! let load = Load::of(&site, &shared, &division, &chunks)?;
//! assert!(load.remote_share() > 0.3);
//!
//! let schedule = schedule(&site, 12, &chunks, Goal::Local)?;
//! let load = Load::of(&site, schedule.placement(), schedule.division(), &chunks)?;
//! assert_eq!(load.remote, 0.0);
//! println!("{}", schedule.why().join("\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod choices;
mod cut;
mod division;
mod flow;
mod goal;
mod load;
mod schedule;

pub use choices::{Choice, choices};
pub use division::{Chunk, Division, Piece, Sharing};
pub use goal::{Goal, LEAST_PIECE};
pub use load::Load;
pub use schedule::{Schedule, schedule};
