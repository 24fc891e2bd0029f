//! Options that several commands share, and the library's options for them.

pub mod execution;
pub mod resources;
pub mod results;
pub mod waiting;
