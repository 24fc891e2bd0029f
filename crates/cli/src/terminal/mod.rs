//! The terminal: Ctrl-C, standard output, the pager, progress.

#[cfg(feature = "sql")]
pub mod elapsed;
#[cfg(feature = "sql")]
pub mod hidden;
#[cfg(feature = "sql")]
pub mod history;
pub mod interrupt;
pub mod out;
#[cfg(feature = "sql")]
pub mod pager;
pub mod phases;
#[cfg(feature = "sql")]
pub mod progress;
