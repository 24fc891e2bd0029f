//! Options that several commands share, and the library's options for them.

#[cfg(feature = "sql")]
pub mod execution;
pub mod resources;
#[cfg(feature = "sql")]
pub mod results;
#[cfg(feature = "sql")]
pub mod waiting;
