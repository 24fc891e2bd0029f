//! Governing what runs: the part of this crate that reads clocks and files, and changes things.

mod actuate;
mod affinity;
mod cgroup;
mod energy;
mod folders;
mod instructions;
mod memory;
mod metrics;
mod migrate;
mod opened;
mod own;
mod partition;
mod pressure;
pub(crate) mod proc;
mod record;
mod run;
mod signals;
mod target;
mod throughput;
mod traffic;
mod unit;
mod waiting;

pub use actuate::Means;
pub use folders::own as state_folder;
pub use metrics::Metrics;
pub use proc::Identity;
pub use record::{Standing, Status, Undone, guard, statuses, undo};
pub use run::{Live, Options, Wanted};
pub use signals::{asked_to_end, hurry, listen};
pub use target::{MAX_GOVERNED, Target};
pub use throughput::Counter;
