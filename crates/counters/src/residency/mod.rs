//! Where the memory of a process lies.
//!
//! A [`looker`] looks, by a [`walk`] of every page or a [`sample`] of addresses; what it [`found`] can be told in
//! [`groups`], and read as a [`sensor`].

mod found;
mod groups;
mod looker;
mod maps;
mod sample;
mod sensor;
mod stacks;
mod walk;

pub use found::{Holds, Look, Region, Residency};
pub use groups::Group;
pub(crate) use looker::page_bytes;
pub use looker::{Depth, Looker};
pub use sensor::ProcessMemory;
