//! Governs running databases: reads the sensors, has crate [`governor`] decide, and gives processes their cores.
//!
//! Every change is recorded before it is made, so that everything is put back however the governor ends: by the
//! governor itself ([`Live::end`]), by a guard when it is killed ([`guard`]), or by [`undo`].
//!
//! # Layers
//!
//! From top to bottom; a file uses what stands below it, never above.
//!
//! * `service`: the loop over targets ([`Live`]), [`Metrics`], signals;
//! * `journal`: records of what was changed, from which it is put back;
//! * `actuators` and `sensors`;
//! * `group`: a [`Target`] and its processes, control groups;
//! * `system`: `/proc` and files of the kernel.

mod actuators;
mod error;
mod group;
mod journal;
mod sensors;
mod service;
mod system;

pub use actuators::Means;
pub use error::{Error, Result};
pub use group::named::{Named, named};
pub use group::target::{MAX_GOVERNED, Target};
pub use journal::folders::{is_root, own as state_folder};
pub use journal::guard::guard;
pub use journal::record::{Undone, undo};
pub use journal::status::{Standing, Status, statuses};
pub use sensors::throughput::Counter;
pub use service::live::Live;
pub use service::metrics::Metrics;
pub use service::options::{Options, Wanted};
pub use service::signals::{asked_to_end, hurry, listen};
pub use system::proc::Identity;
