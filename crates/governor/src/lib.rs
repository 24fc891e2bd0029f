//! Decides which cores a database has: just those, on just the nodes, that its present work needs, and says why.
//!
//! The policy is pure: [`Governor::step`] turns [`Readings`] into a [`Decision`], the same
//! in a test, live, and when a trace is [replayed](replay). How many cores there are is decided by
//! a net of crate `petri` ([`elastic_net`]), within bounds that hysteresis, rate limits and the
//! throughput sensor set; which cores, by a [`Mode`]. [`Together`] governs several databases.
//!
//! [`runtime`] governs the workers of the own process by the same policy. Crate `governor-live` governs other
//! processes: it has the sensors, and what sets their cpus and puts them back.
//!
//! # What touches the system
//!
//! Only the folder `runtime/process`: it has one thread, and reads the clock and the cpu times of this process's own
//! workers, and publishes a counter. The workers' times change while whoever started a statement waits, so that they
//! cannot be passed in; therefore the loop is here, and each decision in it is a function of what it has read. The
//! test `pure` holds this: no other file of this crate names a file, clock, thread or system call.

mod error;
mod policy;
pub mod runtime;

pub use error::{Error, Result};
pub use policy::decision::{Action, Decision, Exchanged, Migrated, Moved};
pub use policy::energy::{
    Energy, LINK_JOULES_PER_BIT, Machine, OPTERON_8387_WATTS, Power, Spent, core_seconds,
};
pub use policy::governor::{Governor, Plan};
pub use policy::lonc::Lonc;
pub use policy::net::elastic_net;
pub use policy::readings::{
    BUSY, LOAD, Measure, PRESSURE, RESIDENCY, Readings, THROUGHPUT, TRAFFIC, WAITING,
};
pub use policy::residency::{MAX_PROCESSES, Residency};
pub use policy::settings::{Policy, Sensor, Stride};
pub use policy::share::{Claim, Member, Together, share};
pub use policy::sites::{Mode, Priorities, Siblings, Site, Sites};
pub use policy::trace::{Head, MAX_LINE, Trace, replay};
