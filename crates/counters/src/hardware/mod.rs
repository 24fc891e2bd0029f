//! What hardware counts, where it does: written against the kernel's documentation, and not run
//! on a machine that has it. Each reading says so ([`Standing::Unproven`](crate::Standing)).

mod cores;
mod powercap;
mod resctrl;
mod samples;
mod uncore;

pub use cores::CoreEvents;
pub use powercap::Powercap;
pub use resctrl::Resctrl;
pub use samples::LoadSamples;
pub use uncore::Uncore;
