//! Statements that make, change and remove arrays.
//!
//! [`definition`] makes and drops them and keeps versions. [`change`] plans the query inside an `insert`, `update` or
//! `delete`, whose rows are cells; [`cells`] finds where these are, and writes them chunk by chunk;
//! [`moments`] turns times into the numbers that arrays have for them.

mod cells;
mod change;
mod definition;
mod moments;

pub(super) use change::{change, changes_one};
pub(super) use definition::define;
