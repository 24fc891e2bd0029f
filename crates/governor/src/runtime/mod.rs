//! Governing the workers of the own process, by the same policy as other databases.
//!
//! 1. While no statement runs nothing is looked at, and the workers have all of their cpus.
//! 2. A statement begins with all of them ([`Runtime::begin`]). Each period in which statements ran, the
//!    workers' busy time and the bytes that they read are looked at, and the net decides.
//! 3. Load is busy time over the time in which statements ran, so that pauses between short statements
//!    are no reason to take cores away: statements that do not use what they have are.
//! 4. Where none has run for a second, the workers get everything back.
//! 5. Whether it governs or not, it publishes what was counted, for governors of other processes
//!    (`Counter::Atoll` of crate `governor-live`).
//!
//! With [`Options::by_throughput`] the rate at which statements read bytes decides as well: if fewer workers read as
//! much or more, as with a contended table or a saturated memory, only these are kept.
//!
//! There is one worker thread for each cpu. Time in which it was ready and did not run was taken by others, and
//! counts as busy. How much work waits behind workers that are all busy is unknown, so their number may grow up to
//! fourfold in one decision ([`Stride::Demand`](crate::Stride)).
//!
//! `activity`, `history` and `control` are functions of their arguments, times included; `process` reads clocks and
//! has the thread.

mod activity;
mod control;
mod crew;
mod history;
mod process;

pub use control::Options;
pub use crew::Crew;
pub use process::published;
pub use process::{Running, Runtime};
