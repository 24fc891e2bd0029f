//! Options that several commands share, and the library's options for them.

pub mod arrays;
#[cfg(feature = "sql")]
pub mod execution;
pub mod resources;
#[cfg(feature = "sql")]
pub mod results;
#[cfg(feature = "sql")]
pub mod waiting;
