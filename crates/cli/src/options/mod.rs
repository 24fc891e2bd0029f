//! Options that several commands share, and their translation to the library's options.

pub mod execution;
pub mod resources;
pub mod results;
pub mod waiting;
