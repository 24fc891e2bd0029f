//! Gives a database just the cores, on just the nodes, that its present work needs, and says why.
//!
//! The policy is pure: [`Governor::step`] turns [`Readings`] into a [`Decision`], the same
//! in a test, live, and when a trace is [replayed](replay). How many cores there are is decided by
//! a net of crate `petri` ([`elastic_net`]), within bounds that hysteresis, rate limits and the
//! throughput sensor set; which cores, by a [`Mode`]. [`Together`] governs several databases.
//!
//! [`live`] governs what runs: it reads the sensors, and gives processes their cores. [`runtime`] governs the
//! workers of the own process.

mod decision;
mod energy;
mod error;
mod filter;
mod follow;
mod governor;
pub mod live;
mod lonc;
mod nodes;
mod policy;
mod published;
mod readings;
mod residency;
pub mod runtime;
mod share;
mod sites;
mod trace;

pub use decision::{Action, Decision, Exchanged, Migrated, Moved};
pub use energy::{
    Energy, LINK_JOULES_PER_BIT, Machine, OPTERON_8387_WATTS, Power, Spent, core_seconds,
};
pub use error::{Error, Result};
pub use governor::{Governor, Plan};
pub use lonc::Lonc;
pub use policy::{Policy, Sensor, Stride};
pub use readings::{
    BUSY, LOAD, Measure, PRESSURE, RESIDENCY, Readings, THROUGHPUT, TRAFFIC, WAITING,
};
pub use residency::{MAX_PROCESSES, Residency};
pub use share::{Claim, Member, Together, share};
pub use sites::{Mode, Priorities, Siblings, Site, Sites};
pub use trace::{Head, MAX_LINE, Trace, replay};

/// The net by which a database gets its cores; another can be read with [`petri::Net::parse`].
///
/// # Errors
///
/// None, as it is tested.
pub fn elastic_net() -> Result<petri::Net> {
    Ok(petri::Net::parse(petri::ELASTIC)?)
}
