//! Options that several commands share, and what they mean to the library.

pub mod execution;
pub mod resources;
pub mod results;
pub mod waiting;
